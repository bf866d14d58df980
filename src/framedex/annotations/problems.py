"""Problems of single parts of annotation files. They are counted, and reading continues."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_MAX_VALUE_LENGTH = 80  # maximum number of characters of an invalid value in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of an annotation file that cannot be used.

    Attributes:
        location: the file, and the line, annotation or object in it.
        value: the invalid value as text; a long value is cut.
        reason: the error, and what would be valid.
    """

    location: str
    value: str
    reason: str

    def __str__(self) -> str:
        """Return the problem as a sentence."""
        return f"{self.location}: {self.value}: {self.reason}"


class Problems:
    """The number of problems, and a sample.

    Attributes:
        count: the number of problems.
        sample: the first hundred problems.
    """

    SAMPLE_SIZE = 100

    def __init__(self) -> None:
        self.count = 0
        self.sample: list[Problem] = []

    def add(self, problem: Problem) -> None:
        """Count a problem, and add it to the sample if it is among the first hundred."""
        self.count += 1
        if len(self.sample) < self.SAMPLE_SIZE:
            self.sample.append(problem)


def without_problems(rows: Iterable[T | Problem], problems: Problems) -> Iterator[T]:
    """Yield the valid rows in order, and add the others to *problems*."""
    for row in rows:
        if isinstance(row, Problem):
            problems.add(row)
        else:
            yield row


def problem(location: str, value: Any, reason: str) -> Problem:
    """Return a problem with the ``repr`` of a value, cut to a maximum length."""
    text = repr(value)
    return Problem(location, text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…", reason)
