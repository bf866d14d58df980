"""Problems of single parts of annotation files, which are counted while the other parts are read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_SHOWN = 80  # characters of a value that cannot be used


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of an annotation file that cannot be used.

    Attributes:
        place: the file, and the line, annotation or object in it.
        value: the value there, as text, cut where it is long.
        reason: what is wrong, and what would be right.
    """

    place: str
    value: str
    reason: str

    def __str__(self) -> str:
        """Return the problem as a sentence."""
        return f"{self.place}: {self.value}: {self.reason}"


class Problems:
    """A count of problems, with the first of them.

    Attributes:
        count: how many there were.
        sample: the first hundred.
    """

    KEPT = 100

    def __init__(self) -> None:
        self.count = 0
        self.sample: list[Problem] = []

    def add(self, problem: Problem) -> None:
        """Count a problem, and keep it if it is one of the first."""
        self.count += 1
        if len(self.sample) < self.KEPT:
            self.sample.append(problem)


def without_problems(rows: Iterable[T | Problem], problems: Problems) -> Iterator[T]:
    """Yield the rows that can be used, in order; add the others to *problems*."""
    for row in rows:
        if isinstance(row, Problem):
            problems.add(row)
        else:
            yield row


def problem(place: str, value: Any, reason: str) -> Problem:
    """Return a problem with a value, which is shown as in code, up to a length."""
    text = repr(value)
    return Problem(place, text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…", reason)
