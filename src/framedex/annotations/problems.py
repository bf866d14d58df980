"""Problems of single parts of annotation files. They are counted, and reading continues."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from framedex.core.skipped import EXAMPLES, Skipped

T = TypeVar("T")
UNUSABLE = "parts of annotations that cannot be used as they are"
_MAX_VALUE_LENGTH = 80  # maximum number of characters of an invalid value in a message


@dataclass(frozen=True, slots=True)
class AnnotationProblem:
    """A part of an annotation file that cannot be used.

    Attributes:
        location: the file, and the line, annotation or object in it.
        value: the invalid value as text; a long value is cut.
        reason: the error, and what would be valid.
        kind: what it is counted as, a plural noun.
    """

    location: str
    value: str
    reason: str
    kind: str = UNUSABLE

    def __str__(self) -> str:
        """Return the problem as a sentence."""
        return f"{self.location}: {self.value}: {self.reason}"

    def within(self, folder: str) -> "AnnotationProblem":
        """Return the problem with a reason that leaves out a folder, which may be temporary."""
        reason = self.reason.replace(os.path.join(folder, ""), "")  # noqa: PTH118 - a path may be any bytes
        return replace(self, reason=reason.removeprefix(f"{self.location!r}").removeprefix(":").lstrip())


class Problems:
    """The number of problems by kind, and the first ones of each.

    Attributes:
        counts: the numbers by kind.
        sample: the first problems of each kind.
        unread: the first hundred files that could not be read to their end.
        folder: the folder that is read now, which reasons leave out.
    """

    _MOST_UNREAD = 100

    def __init__(self, folder: str = "") -> None:
        self.counts = Counter[str]()
        self.sample: list[AnnotationProblem] = []
        self.unread: set[str] = set()
        self.folder = folder

    @property
    def count(self) -> int:
        """The number of problems."""
        return self.counts.total()

    def add(self, problem: AnnotationProblem) -> None:
        """Count a problem, and keep it if it is among the first of its kind."""
        self.counts[problem.kind] += 1
        if self.counts[problem.kind] <= EXAMPLES:
            self.sample.append(problem.within(self.folder) if self.folder else problem)
        if len(self.unread) < self._MOST_UNREAD and problem.value == _shown(problem.location):
            self.unread.add(problem.location)


def joined_problems(of_labels: Problems, of_boxes: Problems) -> Skipped:
    """Return the counts and first examples of problems of the labels and of the boxes in the same files.

    A part that is a problem of both counts once. As only the first of a kind are known, all of a kind are taken for
    the same where these are.
    """
    skipped = Skipped(of_labels.counts)
    for kind, count in of_boxes.counts.items():
        first = [each for each in of_boxes.sample if each.kind == kind]
        shared = sum(each in of_labels.sample for each in first)
        skipped[kind] += max(count - of_labels.counts[kind], 0) if shared == len(first) else count - shared
    for each in dict.fromkeys([*of_labels.sample, *of_boxes.sample]):
        skipped.show(each.kind, str(each))
    return skipped


def without_problems(rows: Iterable[T | AnnotationProblem], problems: Problems) -> Iterator[T]:
    """Yield the valid rows in order, and add the others to *problems*."""
    for row in rows:
        if isinstance(row, AnnotationProblem):
            problems.add(row)
        else:
            yield row


def problem(location: str, value: Any, reason: str, kind: str = UNUSABLE) -> AnnotationProblem:
    """Return a problem with the ``repr`` of a value, cut to a maximum length.

    Of a file that cannot be read to its end, the location and the value are the file.
    """
    return AnnotationProblem(location, _shown(value), reason, kind)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"
