"""The row of an issue type, and what pixel measures get."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.arrays import Floats, Pixels
from framedex.errors import InvalidInput

Histogram = npt.NDArray[np.float32]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_BINS = 4096  # of squared brightness: steps of 0.001 at 0.1, finer above
_HSP = np.array([[0.241, 0.691, 0.068]], dtype=np.float32)


class JudgedBy(Enum):
    """The way in which an issue and its confidence are decided."""

    LIMIT = auto()  # the value lies beyond the limit
    LABELS = auto()  # the labels of the nearest images
    GROUP = auto()  # the row is in a group of near-duplicates
    ERROR = auto()  # the image cannot be decoded


@dataclass(frozen=True)
class ImageSample:
    """The pixels that an image is measured by.

    Attributes:
        pixels: of the image, which may be reduced.
        sample: pixels of the whole image for statistics of pixel values, because averaged ones have less noise and
            fewer extremes; shape (h, w, 3).
        width: of the whole image in pixels.
        height: likewise.
        bands: channels that the file stores: 1 for a grey image.
    """

    pixels: Pixels
    sample: Pixels
    width: int
    height: int
    bands: int = 3

    @cached_property
    def channels(self) -> tuple[Any, ...]:
        """Red, green and blue of the sample: uint8, shape (h, w) each."""
        return tuple(cv2.split(self.sample))

    @cached_property
    def brightness(self) -> tuple[float, float]:
        """The 5th and the 99th percentile of perceived brightness, in [0, 1].

        It is √(0.241 R² + 0.691 G² + 0.068 B²) (the HSP model, alienryderflex.com/hsp.html). The root keeps the order,
        so it is taken of the two percentiles only.
        """
        squares = cv2.multiply(self.sample, self.sample, dtype=cv2.CV_32F)
        below = np.cumsum(histogram(cv2.transform(squares, _HSP), _BINS, 255**2 + 1))
        bins = np.searchsorted(below, (0.05 * below[-1], 0.99 * below[-1]))
        low, high = np.sqrt(bins / (_BINS - 1))
        return min(1.0, float(low)), min(1.0, float(high))


def histogram(values: Any, bins: int, limit: float) -> Histogram:
    """Return how many values of an array lie in each of some equal bins from 0 to below a limit: shape (bins,)."""
    return np.asarray(cv2.calcHist([values], [0], None, [bins], [0, limit]).ravel(), dtype=np.float32)


@dataclass(frozen=True)
class Derived:
    """A value that an index computes of other columns of all rows.

    Attributes:
        inputs: names of columns with numbers.
        compute: takes them, float32 of shape (N,), NaN where unknown, and returns the values, likewise.
    """

    inputs: tuple[str, ...]
    compute: Callable[..., Floats]


@dataclass(frozen=True)
class IssueType:
    """One way in which an image can be bad.

    A value that a pixel *measure* gives is stored when the image is ingested. It is held against the limit whenever the
    dataset is indexed, so a changed threshold needs a reindex only.

    Attributes:
        name: in results, filters and exports: lower-case letters, digits and ``_``.
        meaning: what the value is, in words for people.
        threshold: the limit; None where it depends on the dataset, or there is none.
        above: whether values above the limit are the issue, else those below.
        worst: the most extreme value possible, where the confidence is 1; None if there is none.
        measure: returns the value from the pixels of an image, a finite number; called on several threads at once.
        derived: how the value follows from other columns; for types without a measure.
        column: of the table, that has the value: ``value_<name>`` by default where there is a measure or a derived
            value. Without these it names the value of another type, or None, which means that there is no value.
        judged_by: how the issue is decided.
        details: further index columns that go with the issue.
    """

    name: str
    meaning: str
    threshold: float | None = None
    above: bool = False
    worst: float | None = None
    measure: Callable[[ImageSample], float] | None = None
    derived: Derived | None = None
    column: str | None = None
    judged_by: JudgedBy = JudgedBy.LIMIT
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name and the value, and name its column.

        Raises:
            InvalidInput: the name is none, or there is a measure and a derived value.
        """
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"{self.name!r} cannot name an issue type: it has lower-case letters, digits and _, as low_contrast"
            )
        if self.measure is not None and self.derived is not None:
            raise InvalidInput(f"the value of {self.name!r} is measured or derived, not both")
        if self.column is None and self.has_own_value:
            object.__setattr__(self, "column", f"value_{self.name}")

    @property
    def has_own_value(self) -> bool:
        """Whether the value is measured or derived for this type."""
        return self.measure is not None or self.derived is not None

    @property
    def confidence_column(self) -> str:
        """The index column with the confidence that an image has the issue, null where it has not."""
        return f"issue_{self.name}"

    @property
    def computed_columns(self) -> tuple[str, ...]:
        """The index columns that are computed for this type alone, beside the confidence."""
        if self.column is None or (self.derived is None and self.judged_by is not JudgedBy.LABELS):
            return self.details
        return (self.column, *self.details)
