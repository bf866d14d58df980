"""Definition of an issue type, and the pixels for its measure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Floats, Pixels
from framedex.core.borders import BorderedImage
from framedex.core.forks import cached_property
from framedex.errors import InvalidInput
from framedex.issue_types.steps import Grey, lost_by_direction

Histogram = npt.NDArray[np.float32]
_SIDE = 192  # pixels of the longer side of the small image
_STRUCTURE_SIDE, _LOCAL_SIGMA, _REACH = 64, 3.0, 12
_DARK, _BLACK = 0.32, 0.02  # brightness of the brightest pixels of an image that is dark, and of one that is black
_SAME_SIZE, _HALF = 0.9, 0.5
_SAME_TONE = 8  # grey levels
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_BINS = 4096  # of squared brightness: steps of 0.001 at 0.1, finer above
_HSP = (0.241, 0.691, 0.068)
_DEPTH = 4  # further bits of a summand of squared brightness


class JudgedBy(Enum):
    """Source of the decision whether a row has an issue."""

    LIMIT = auto()  # the value lies beyond the limit
    LABELS = auto()  # the labels of the nearest images
    GROUP = auto()  # the row is in a group of near-duplicates
    ERROR = auto()  # the file is not decoded, or not wholly


@dataclass(frozen=True)
class ImageSample:
    """Pixels of an image for quality measures.

    Attributes:
        pixels: uint8, shape (H, W, 3), RGB; may be a reduced version of the image.
        sample: uint8, shape (h, w, 3): pixels of the original image for statistics of pixel values; averaged pixels of
            a reduced image have less noise and fewer extremes.
        width: width of the original image in pixels.
        height: height of the original image in pixels.
        bands: the number of channels in the file: 1 for a greyscale image.
        is_damaged: whether the decoder found damage in the file, and decoded it with gaps.
        larger: returns the image with twice as many pixels a side, for measures that need them for a few images; None
            if there are no more pixels.
        bordered: the same pixels with their part within uniform borders; by default it is found.
    """

    pixels: Pixels
    sample: Pixels
    width: int
    height: int
    bands: int = 3
    is_damaged: bool = False
    larger: Callable[[], Pixels] | None = None
    bordered: BorderedImage | None = None

    @cached_property
    def whole_grey(self) -> Grey:
        """The greyscale image with its borders: uint8, shape (H, W)."""
        return self._bordered.grey

    @cached_property
    def grey(self) -> Grey:
        """The greyscale image without uniform borders: uint8, shape (h, w)."""
        return self._bordered.inner_grey

    @cached_property
    def large(self) -> Grey:
        """The same from more pixels, if there are more; slow."""
        return self.grey if self.larger is None else BorderedImage(self.larger()).inner_grey

    @cached_property
    def _bordered(self) -> BorderedImage:
        return self.bordered or BorderedImage(self.pixels)

    @cached_property
    def small(self) -> Grey:
        """The same on about 192 pixels of the longer side; smaller images keep their size."""
        grey = self.grey
        height, width = grey.shape
        factor = _SIDE / max(height, width)
        if factor >= _SAME_SIZE:
            return grey
        size = (max(1, round(width * factor)), max(1, round(height * factor)))
        # Averaging over parts of pixels takes five times as long, and hardly differs where few are left out.
        method = cv2.INTER_LINEAR if factor >= _HALF else cv2.INTER_AREA
        return np.asarray(cv2.resize(grey, size, interpolation=method), dtype=np.uint8)

    @cached_property
    def channels(self) -> tuple[Any, ...]:
        """The red, green and blue channels of the sample: uint8, shape (h, w) each."""
        return tuple(cv2.split(self.sample))

    @cached_property
    def brightness(self) -> tuple[float, float, float]:
        """The 1st, the 50th and the 99th percentile of perceived brightness, in [0, 1]."""
        return _brightness(self.channels)

    @cached_property
    def inner_brightness(self) -> tuple[float, float, float]:
        """The same of the part within uniform borders; of a thing with the same ground on all sides, without that."""
        top, left, bottom, right = self._bordered.box
        (height, width), (h, w) = self._bordered.grey.shape, self.sample.shape[:2]
        rows = slice(top * h // height, max(bottom * h // height, top * h // height + 1))
        columns = slice(left * w // width, max(right * w // width, left * w // width + 1))
        inner = np.ascontiguousarray(self.sample[rows, columns])
        if top and left and bottom < height and right < width:
            ground = int(cv2.cvtColor(self.sample[:1, :1], cv2.COLOR_RGB2GRAY)[0, 0])
            grey = cv2.cvtColor(inner, cv2.COLOR_RGB2GRAY).astype(np.int16)
            things = inner[np.abs(grey - ground) > _SAME_TONE]
            inner = things[None] if len(things) else inner
        return _brightness(cv2.split(inner))

    @cached_property
    def structure(self) -> float:
        """The standard deviation, in grey levels, of about 64 pixels a side minus their local mean.

        Gradients are equal to their local mean, and the averages of 64 pixels have hardly any noise. The contrast of a
        dark image is taken as if it were just bright enough: it is dark, not empty.
        """
        grey = self.whole_grey
        height, width = grey.shape
        factor = max(1, round(max(height, width) / _STRUCTURE_SIDE))
        size = (max(1, width // factor), max(1, height // factor))
        whole = grey[: size[1] * factor, : size[0] * factor]  # averages over whole pixels are fast
        small = cv2.resize(whole, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        small -= small[0, 0]  # so that rounding leaves nothing of one grey
        means = _local_means(size[1]) @ small @ _local_means(size[0]).T
        contrast = float(cv2.meanStdDev(small - means)[1][0, 0])
        return contrast * max(1.0, _DARK / max(self.brightness[2], _BLACK))

    @cached_property
    def lost_steps(self) -> list[float]:
        """The shares of the steps of :attr:`grey` that a blur takes away, by its direction."""
        return lost_by_direction(self.grey)

    @cached_property
    def tones(self) -> Histogram:
        """The share of each grey level among the pixels of the sample: float32, shape (256,)."""
        counts = histogram(cv2.cvtColor(self.sample, cv2.COLOR_RGB2GRAY), 256, 256)
        return np.asarray(counts / counts.sum(), dtype=np.float32)


def _brightness(channels: Sequence[Any]) -> tuple[float, float, float]:
    """Return percentiles of perceived brightness, which is √(0.241 R² + 0.691 G² + 0.068 B²).

    This is the HSP model (alienryderflex.com/hsp.html). The root preserves the order, so it is computed for the
    percentiles only.
    """
    red, green, blue = (cv2.LUT(channel, table) for channel, table in zip(channels, _squares(), strict=True))
    squares = np.right_shift(cv2.add(cv2.add(red, green), blue), _DEPTH, dtype=np.uint16)
    below = np.cumsum(np.bincount(squares.ravel(), minlength=_BINS))
    bins = np.searchsorted(below, np.array([0.01, 0.5, 0.99]) * below[-1])
    low, middle, high = np.minimum(1.0, np.sqrt(bins / (_BINS - 1))).tolist()
    return low, middle, high


@cache
def _squares() -> tuple[npt.NDArray[np.uint16], ...]:
    """Return the share of the squared brightness of each value of a channel, for each channel: uint16, shape (256,)."""
    squares = np.arange(256) ** 2 / 255**2
    return tuple(np.floor((_BINS - 1 << _DEPTH) * weight * squares + 0.5).astype(np.uint16) for weight in _HSP)


@lru_cache(512)
def _local_means(count: int) -> npt.NDArray[np.float32]:
    """Return the matrix that blurs a row of pixels by a Gaussian, which is faster here than a filter."""
    rows = cv2.GaussianBlur(np.eye(count, dtype=np.float32), (1, 2 * _REACH + 1), 1.0, sigmaY=_LOCAL_SIGMA)
    return np.asarray(rows, dtype=np.float32)


def histogram(values: Any, bins: int, limit: float) -> Histogram:
    """Return the histogram of an array, with equal bins from 0 to below a limit: float32, shape (bins,)."""
    return np.asarray(cv2.calcHist([values], [0], None, [bins], [0, limit]).ravel(), dtype=np.float32)


@dataclass(frozen=True)
class Derived:
    """Derived value, which indexing computes from other columns of all rows.

    Attributes:
        inputs: names of numeric columns.
        compute: takes these columns, float32, shape (N,), NaN for missing values, and returns values in the same form.
    """

    inputs: tuple[str, ...]
    compute: Callable[..., Floats]


@dataclass(frozen=True)
class IssueType:
    """Quality problem that an image can have.

    The value of a pixel *measure* is stored when the image is ingested. It is compared with the limit when the dataset
    is indexed, or when a user sets another limit, so a changed threshold only needs a reindex.

    Attributes:
        name: the name in results, filters and exports: lower-case letters, digits and ``_``.
        meaning: description of the value, for users.
        threshold: the limit; None if it depends on the dataset, or if the type has no limit.
        above: True if values above the limit are an issue, False if values below it are.
        worst: the most extreme possible value, with the confidence 1; None for an unbounded value.
        measure: returns the value from the pixels of an image, a finite number; called on several threads at once.
        derived: computes the value from other columns, for types without a measure.
        column: the table column of the value; ``value_<name>`` by default for types with a measure or a derived value.
            Other types name the column of another type's value, or have None for no value.
        judged_by: the source of the decision.
        details: further index columns for the issue.
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
        """Check the name and the value, and set the default column.

        Raises:
            InvalidInput: the name is invalid, or the type has both a measure and a derived value.
        """
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"{self.name!r} cannot name an issue type: use lower-case letters, digits and _, as in low_contrast"
            )
        if self.measure is not None and self.derived is not None:
            raise InvalidInput(f"the value of {self.name!r} is measured or derived, not both")
        if self.column is None and self.has_own_value:
            object.__setattr__(self, "column", f"value_{self.name}")

    @property
    def has_own_value(self) -> bool:
        """True if the type has a measure or a derived value."""
        return self.measure is not None or self.derived is not None

    @property
    def has_value(self) -> bool:
        """True if the type has a value that a limit is compared with; false for one that is judged by errors."""
        return self.column is not None and self.judged_by is not JudgedBy.ERROR

    @property
    def confidence_column(self) -> str:
        """The index column with the confidence of the issue; null for images without the issue."""
        return f"issue_{self.name}"

    @property
    def computed_columns(self) -> tuple[str, ...]:
        """The index columns that are computed only for this type, without the confidence."""
        if self.column is None or (self.derived is None and self.judged_by is not JudgedBy.LABELS):
            return self.details
        return (self.column, *self.details)
