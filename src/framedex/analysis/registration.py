"""Registration of two images, and what differs after it: the proof that one image is a copy of another one.

Two images are laid over each other by an affine transform, which is refined by the enhanced correlation coefficient
(G. D. Evangelidis & E. Z. Psarakis, IEEE TPAMI 30(10), 2008). The light of one is fitted to that of the other by a
table of grey levels. Then blocks are compared by their normalised cross-correlation: compression, blur, noise and light
leave it high in a copy, while another text, a moved thing or something that is laid over the image lowers it where it
is. What has no structure, such as a shadow in an X-ray, is compared by its grey levels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Mask, Pixels

Matrix = npt.NDArray[np.float64]
"""An affine transform from pixels of the first image to those of the second one: float64, shape (2, 3)."""
Grey = npt.NDArray[np.uint8]
_Values = npt.NDArray[np.float32]
SIDE = 480
"""Pixels of the longer side at which images are compared."""
_BLOCK, _STEP = 16, 8  # pixels
_BLUR = 0.8  # pixels, before blocks are compared: below it is noise
_SMOOTH = 3.0  # pixels, before grey levels are compared
_STRUCTURE = 6.0  # standard deviation of the grey levels of a block that shows something
_LEAST_BLOCKS = 4
_OTHER, _UNLIKE = 0.5, 0.7  # correlation of blocks that show something else, and of those that are not equal
_EQUAL, _UNLIKE_EQUAL = 0.995, 0.9  # where nearly all is equal, less is a difference
_UNLIKE_DETAIL = 0.25  # below the detail of the image, which compression lowers everywhere
_COLOURS = 2.0  # grey levels by which the brightest channel of an image with colours exceeds its grey
_HUE_BLOCKS = 0.5  # of the blocks with structure, at least in the brightest channel
_SHIFTS = [(x, y) for x in (0, -1, 1) for y in (0, -1, 1)]  # pixels by which a block of the second image may be shifted
_SURE = 0.95  # correlation of all blocks from which none is shifted
_BESIDE = 2  # blocks around something else, which show a part of it
_LIGHT_BINS = 32
_REFINED = 200  # pixels of the longer side at which a transform is refined
_ITERATIONS, _LEAST_GAIN = 25, 1e-4
_CHANGE = 0.1  # of the scale, that refinement may make
_SAME_CHANGED, _SAME_SPOT, _SAME_SHADE = 0.004, 5, 12.5  # at most, for a copy
_LEAST_COVERED, _MOST_COVERED = 0.01, 0.45  # for a copy that is covered
_LEAST_DETAIL, _MOST_PLAIN = 0.92, 0.25  # of such a copy; pages and plots are plain
_LARGE_SPOT = 20  # blocks of something that covers a part of a large image
_PART = 12  # pixels of the parts that are looked for elsewhere, at half the size
_MOST_PARTS = 48
_LEAST_SHIFT = 4  # pixels, at half the size
_MOVED, _LEAST_MOVED, _MOVED_SHARE = 0.9, 3, 0.1  # correlation, number and share of parts that moved alike
_PLAIN_SIDE = 32
_PLAIN_APART, _PLAIN_MOST = 4.0, 24.0  # mean and largest difference of grey levels of images without structure
_SPECKS_SIDE, _SPECK, _SPECKS_APART = 64, 1.5, 4.0  # pixels, pixels of blur, and grey levels
_ALIGNED, _SETTLED = 0.5, 0.9
_CLIPPED = (3, 252)  # grey levels at and beyond which light is clipped
_CLIPPED_APART = 48.0  # grey levels that clipping explains


class Judgement(Enum):
    """Judgements of a pair of images."""

    COPY = "copy"
    """They show the same everywhere."""
    COVERED = "covered"
    """They show the same, but for parts over which something was laid."""
    DIFFERENT = "different"
    """They show different things, or not only the same ones."""


class Shades(NamedTuple):
    """An image for registration.

    Attributes:
        grey: uint8, shape (H, W): greyscale.
        brightest: uint8, shape (H, W): the largest channel of each pixel, which a turn of the hue leaves as it is;
            *grey* for a greyscale image.
    """

    grey: Grey
    brightest: Grey

    @classmethod
    def of(cls, pixels: Pixels) -> "Shades":
        """Return the shades of an image: uint8, shape (H, W, 3), RGB."""
        grey, brightest = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8), pixels.max(axis=2)
        return cls(grey, brightest if float(brightest.mean()) - float(grey.mean()) > _COLOURS else grey)

    def resized(self, factor: float) -> "Shades":
        """Return the image at a smaller size."""
        if factor >= 1:
            return self
        grey = _resized(self.grey, factor)
        return Shades(grey, _resized(self.brightest, factor) if self.has_colours else grey)

    @property
    def has_colours(self) -> bool:
        """True if the image is not grey."""
        return self.brightest is not self.grey

    def mirrored(self) -> "Shades":
        """Return the mirror image."""
        grey = np.ascontiguousarray(self.grey[:, ::-1])
        return Shades(grey, np.ascontiguousarray(self.brightest[:, ::-1]) if self.has_colours else grey)


@dataclass(frozen=True)
class Difference:
    """Differences of two images that are laid over each other.

    Attributes:
        blocks: the number of blocks with structure.
        changed: the share of them that show something else, in [0, 1].
        spot: the number of adjacent blocks in the largest area that is not equal.
        correlation: the median correlation of blocks, at most 1.
        detail: the tenth percentile of the correlation of the blocks that do not lie at something that is changed.
        shade: grey levels by which an area without structure differs more than noise and light explain, at least 0.
        plain: the share of pixels whose grey level is within two of the most frequent one, in the less plain image.
        moved: whether something that changed is found at another place; false where nothing could be covered.
        residual: the mean difference of grey levels after the light was fitted, where nothing is changed.
        matrix: the refined transform.
    """

    blocks: int
    changed: float
    spot: int
    correlation: float
    detail: float
    shade: float
    plain: float
    moved: bool
    residual: float
    matrix: Matrix

    @property
    def is_aligned(self) -> bool:
        """True where most blocks show the same."""
        return self.changed <= _ALIGNED

    @property
    def is_settled(self) -> bool:
        """True where blocks show the same so exactly that no other transform would show more."""
        return self.is_aligned and self.detail >= _SETTLED

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement."""
        if self.changed <= _SAME_CHANGED and self.spot <= _SAME_SPOT and self.shade <= _SAME_SHADE:
            return Judgement.COPY
        is_covered = (
            (self.changed >= _LEAST_COVERED or self.spot >= _LARGE_SPOT)
            and self.changed <= _MOST_COVERED
            and self.detail >= _LEAST_DETAIL
            and self.plain <= _MOST_PLAIN
        )
        return Judgement.COVERED if is_covered and not self.moved else Judgement.DIFFERENT


def least_difference(a: Shades, b: Shades, transforms: Iterable[Matrix], side: int = SIDE) -> Difference | None:
    """Return the least difference of two images under some transforms; None where nothing can be compared or is alike.

    Args:
        a: the first image.
        b: the second one.
        transforms: tried one after another, as they are and refined, until one shows a copy.
        side: pixels of the longer side at which they are compared, at most.
    """
    least: Difference | None = None
    for matrix in transforms:
        pair = _Pair.of(a, b, matrix, side)
        for each in (pair.matrix, pair.refined()):
            found = None if each is None else pair.compared(each)
            if found is not None and (least is None or found.changed < least.changed):
                least = found
            if found is not None and found.judgement is Judgement.COPY:
                return found
    return least or _plain_difference(a.grey, b.grey)


def _plain_difference(a: Grey, b: Grey) -> Difference | None:
    """Return the differences of two small images, or of two without structure; None where they are not alike."""
    if abs(a.shape[0] * b.shape[1] / (a.shape[1] * b.shape[0]) - 1) > _CHANGE:
        return None
    small, its = (
        np.asarray(cv2.resize(each, (_PLAIN_SIDE, _PLAIN_SIDE), interpolation=cv2.INTER_AREA), np.float32)
        for each in (a, b)
    )
    apart = np.abs(small - its)
    if apart.mean() > _PLAIN_APART or apart.max() > _PLAIN_MOST or _have_other_specks(a, b):
        return None
    whole = stretched((0, 0, *a.shape), (0, 0, *b.shape))
    return Difference(1, 0.0, 0, 1.0, 1.0, 0.0, _plain(a), False, float(apart.mean()), whole)


def _have_other_specks(a: Grey, b: Grey) -> bool:
    """Return whether images without structure differ by small things, such as faint stars."""
    if a.size > b.size:
        a, b = b, a
    if min(a.shape) < _SPECKS_SIDE:
        return False
    b = np.asarray(cv2.resize(b, a.shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    apart = np.abs(_blurred(a, _SPECK) - _blurred(b, _SPECK))
    return float(np.quantile(apart, 0.999) - np.median(apart)) > _SPECKS_APART


def stretched(box: Sequence[float], other: Sequence[float], quarters: int = 0) -> Matrix:
    """Return the transform that puts a part of an image upon a part of another one.

    Args:
        box: the part of the first image.
        other: that of the second one.
        quarters: turns by 90° clockwise from the first to the second image.
    """
    corners, others = (
        np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float32) - 0.5
        for top, left, bottom, right in (box, other)
    )
    return np.asarray(cv2.getAffineTransform(corners[:3], np.roll(others, -quarters, axis=0)[:3]), np.float64)


def quarters_of(matrix: Matrix, most: float = 8.0) -> int | None:
    """Return the number of turns by 90° clockwise of a transform; None if it is turned by another angle.

    Args:
        matrix: the transform.
        most: degrees by which the angle may differ.
    """
    angle = float(np.degrees(np.arctan2(matrix[1, 0], matrix[0, 0])))
    quarters = round(angle / 90)
    return quarters % 4 if abs(angle - 90 * quarters) <= most else None


@dataclass(frozen=True)
class _Pair:
    """Two images at the size at which they are compared.

    Attributes:
        a, b: the images.
        matrix: the transform between their pixels.
        of_pixels: the factors from the pixels of the images to these, as transforms.
    """

    a: Shades
    b: Shades
    matrix: Matrix
    of_pixels: tuple[Matrix, Matrix]

    @classmethod
    def of(cls, a: Shades, b: Shades, matrix: Matrix, side: int) -> "_Pair":
        scale = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
        factor = min(1.0, scale, side / max(a.grey.shape))
        small, other = a.resized(factor), b.resized(factor / scale)
        to_a, to_b = _factors(a.grey, small.grey), _factors(b.grey, other.grey)
        between = _square(to_b) @ _square(matrix) @ np.linalg.inv(_square(to_a))
        return cls(small, other, between[:2], (to_a, to_b))

    def refined(self) -> Matrix | None:
        """Return the refined transform; None if there is none near."""
        longest = max(self.a.grey.shape)
        factor = min(1.0, (_REFINED if longest <= SIDE else SIDE) / longest)
        a, b = _resized(self.a.grey, factor), _resized(self.b.grey, factor)
        to_a, to_b = _square(_factors(self.a.grey, a)), _square(_factors(self.b.grey, b))
        start = (to_b @ _square(self.matrix) @ np.linalg.inv(to_a))[:2].astype(np.float32)
        criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, _ITERATIONS, _LEAST_GAIN)
        try:
            found = cv2.findTransformECC(a, b, start, cv2.MOTION_AFFINE, criteria, None, 5)[1]  # type: ignore[call-overload]
        except cv2.error:  # the images have nothing in common, or no structure
            return None
        matrix = (np.linalg.inv(to_b) @ _square(np.asarray(found, np.float64)) @ to_a)[:2]
        change = np.linalg.det(matrix[:, :2]) / np.linalg.det(self.matrix[:, :2])
        return matrix if np.isfinite(matrix).all() and abs(change - 1) <= _CHANGE else None

    def compared(self, matrix: Matrix) -> Difference | None:
        """Return the differences under a transform.

        Where both have colours and lie alike, the hue may have been turned: then the brightest channels count if these
        show a copy, and have about as much structure.
        """
        height, width = self.a.grey.shape
        if min(height, width) < _BLOCK:
            return None
        ones = np.full(self.b.grey.shape, 255, np.uint8)
        valid = _warped(ones, matrix, self.a.grey, cv2.BORDER_CONSTANT) == 255
        if not valid.any():
            return None
        to_a, to_b = (_square(each) for each in self.of_pixels)
        whole = (np.linalg.inv(to_b) @ _square(matrix) @ to_a)[:2]
        grey, brightest = (_warped(each, matrix, self.a.grey, cv2.BORDER_REPLICATE) for each in self.b)
        clipped = _are_clipped(self.a.brightest) | _are_clipped(brightest)
        found = _compared(self.a.grey, grey, valid, clipped, whole)
        if found is None or found.judgement is not Judgement.DIFFERENT or not found.is_aligned:
            return found
        if not (self.a.has_colours and self.b.has_colours):
            return found
        again = _compared(self.a.brightest, brightest, valid, clipped, whole)
        if again is None or again.judgement is not Judgement.COPY or again.blocks < _HUE_BLOCKS * found.blocks:
            return found
        return again


def _warped(image: Grey, matrix: Matrix, target: Grey, border: int) -> Grey:
    """Return an image as it lies upon a target: uint8, of the shape of the target."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    size = (target.shape[1], target.shape[0])
    return np.asarray(cv2.warpAffine(image, matrix, size, flags=flags, borderMode=border), np.uint8)


def _square(matrix: Matrix) -> Matrix:
    return np.vstack([matrix, [0.0, 0.0, 1.0]])


def _factors(large: Grey, small: Grey) -> Matrix:
    """Return the transform from the pixels of an image to those of a smaller version."""
    x, y = small.shape[1] / large.shape[1], small.shape[0] / large.shape[0]
    return np.array([[x, 0, 0.5 * x - 0.5], [0, y, 0.5 * y - 0.5]])


def _resized(grey: Grey, factor: float) -> Grey:
    if factor >= 1:
        return grey
    size = (max(1, round(grey.shape[1] * factor)), max(1, round(grey.shape[0] * factor)))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)


def _compared(a: Grey, b: Grey, valid: Mask, clipped: Mask, matrix: Matrix) -> Difference | None:
    """Return the differences of two images of one size, where the second one is valid; in one light may be clipped."""
    fine = [_blurred(each, _BLUR) for each in (a, b)]
    if (
        _are_clipped(b).mean() < _are_clipped(a).mean()
    ):  # light that is cut off in one image cannot be fitted to the other one
        fine.reverse()
    fitted = _fitted(fine[0], fine[1], valid)
    deviation, correlation, within = _blocks(fitted, fine[1], valid)
    shown = within & (deviation > _STRUCTURE)
    count = int(np.count_nonzero(shown))
    if count < _LEAST_BLOCKS:
        return None
    other = shown & (correlation < _OTHER)
    agreeing = correlation[shown & ~other]
    usual = float(np.quantile(agreeing, 0.1)) if len(agreeing) else -1.0
    beside = cv2.dilate(other.astype(np.uint8), np.ones((2 * _BESIDE + 1, 2 * _BESIDE + 1), np.uint8)) > 0
    apart = correlation[shown & ~beside]
    same = cv2.resize((shown & ~other).astype(np.uint8), (a.shape[1], a.shape[0]), interpolation=cv2.INTER_NEAREST) > 0
    residual = float(np.mean(np.abs(fitted - fine[1])[same & valid])) if (same & valid).any() else 0.0
    found = Difference(
        count,
        float(np.count_nonzero(other)) / count,
        _largest_area(
            shown & (correlation < (_UNLIKE_EQUAL if usual >= _EQUAL else min(_UNLIKE, usual - _UNLIKE_DETAIL)))
        ),
        float(np.median(correlation[shown])),
        float(np.quantile(apart, 0.1)) if len(apart) >= _LEAST_BLOCKS else -1.0,
        _shade(fitted, fine[1], valid & ~(clipped & (np.abs(fitted - fine[1]) < _CLIPPED_APART))),
        min(_plain(a), _plain(b)),
        False,
        residual,
        matrix,
    )
    is_moved = found.judgement is Judgement.COVERED and _is_moved(a, b, other)
    return replace(found, moved=True) if is_moved else found


def _blurred(grey: Any, sigma: float) -> _Values:
    return np.asarray(cv2.GaussianBlur(grey, (0, 0), sigma), np.float32)


def _are_clipped(grey: Grey) -> Mask:
    return (grey <= _CLIPPED[0]) | (grey >= _CLIPPED[1])


def _fitted(values: _Values, target: _Values, valid: Mask) -> _Values:
    """Return an image with the light of another one: the median of its values for each grey level."""
    mine, its = values[valid][::5], target[valid][::5]
    places = np.minimum((mine * (_LIGHT_BINS / 256)).astype(np.intp), _LIGHT_BINS - 1)
    levels, light = [], []
    for number in range(_LIGHT_BINS):
        of_bin = its[places == number]
        if len(of_bin) >= max(8, len(its) // 2000):
            levels.append(float(np.median(mine[places == number])))
            light.append(float(np.median(of_bin)))
    if len(levels) < 2:
        return values
    # Light that is too rare to be fitted differs as the nearest one that is fitted.
    levels, light = [0.0, *levels, 255.0], [light[0] - levels[0], *light, light[-1] + 255 - levels[-1]]
    return np.interp(values, levels, light).astype(np.float32)


def _blocks(a: _Values, b: _Values, valid: Mask) -> tuple[_Values, _Values, Mask]:
    """Return (deviation, correlation, is valid) of blocks: shape (rows, columns) each.

    The deviation is the larger one of both images. The second one may be shifted by a pixel.
    """
    height, width = a.shape
    rows = slice(_BLOCK // 2, height - _BLOCK // 2 + 1, _STEP)
    columns = slice(_BLOCK // 2, width - _BLOCK // 2 + 1, _STEP)

    def means(values: _Values) -> _Values:
        box = cv2.boxFilter(values, -1, (_BLOCK, _BLOCK), borderType=cv2.BORDER_REFLECT)
        return np.asarray(box, np.float32)[rows, columns]

    mean, variance = means(a), means(a * a)
    variance = np.maximum(variance - mean * mean, 0)
    inside = cv2.erode(valid.astype(np.uint8), np.ones((_BLOCK, _BLOCK), np.uint8))[rows, columns] > 0
    best = np.full(mean.shape, -1, np.float32)
    deviation = np.sqrt(variance)
    for x, y in _SHIFTS:
        shifted = np.roll(b, (y, x), (0, 1))
        its = means(shifted)
        spread = np.maximum(means(shifted * shifted) - its * its, 0)
        both = means(a * shifted) - mean * its
        np.maximum(best, both / np.sqrt(np.maximum(variance, 1) * np.maximum(spread, 1)), out=best)
        if x == y == 0:
            deviation = np.maximum(deviation, np.sqrt(spread))
            if (best[inside & (deviation > _STRUCTURE)] >= _SURE).all():
                break
    return deviation, best, inside


def _largest_area(blocks: Mask) -> int:
    """Return the number of blocks in the largest connected area."""
    count, _, areas, _ = cv2.connectedComponentsWithStats(blocks.astype(np.uint8), connectivity=8)
    return int(areas[1:, cv2.CC_STAT_AREA].max()) if count > 1 else 0


def _shade(a: _Values, b: _Values, valid: Mask) -> float:
    """Return the largest difference of grey levels that noise, light and edges do not explain."""
    mine, its = (_blurred(each, _SMOOTH) for each in (a, b))
    inside = cv2.erode(valid.astype(np.uint8), np.ones((13, 13), np.uint8), borderValue=0)
    inside[:8], inside[-8:], inside[:, :8], inside[:, -8:] = 0, 0, 0, 0
    if np.count_nonzero(inside) < 250:
        return 0.0
    apart = np.abs(mine - its)
    noise = 1.5 * float(np.median(apart[inside > 0])) + 0.3
    x, y = (cv2.Sobel(its, -1, *axes, scale=1 / 8) for axes in ((1, 0), (0, 1)))
    slope = cv2.dilate(np.hypot(x, y), np.ones((5, 5), np.uint8))  # edges that lie a pixel apart
    unexplained = (apart - 0.7 * np.asarray(slope) - max(4.0, 5 * noise)) * inside
    return max(0.0, float(unexplained.max()))


def _plain(grey: Grey) -> float:
    counts = np.bincount(grey.ravel(), minlength=256).astype(np.float64)
    return float(np.convolve(counts, np.ones(5), "same").max()) / grey.size


def _is_moved(a: Grey, b: Grey, other: Mask) -> bool:
    """Return whether several parts of what changed in one image are seen in the other one, shifted alike."""
    factor = 0.5
    small, its = _resized(a, factor), _resized(b, factor)
    places = (np.argwhere(other) * (_STEP * factor)).astype(np.int64)
    places = places[:: max(1, len(places) // _MOST_PARTS)]
    return _shifted_alike(small, its, places) or _shifted_alike(its, small, places)


def _shifted_alike(image: Grey, where: Grey, places: npt.NDArray[np.int64]) -> bool:
    shifts = []
    for top, left in places.tolist():
        part = image[top : top + _PART, left : left + _PART]
        if part.shape != (_PART, _PART) or part.std() < 2 * _STRUCTURE:
            continue
        scores = cv2.matchTemplate(where, part, cv2.TM_CCOEFF_NORMED)
        _, score, _, (column, row) = cv2.minMaxLoc(scores)
        if score >= _MOVED:
            shifts.append((row - top, column - left))
    found = np.array([each for each in shifts if max(map(abs, each)) >= _LEAST_SHIFT], np.int64).reshape(-1, 2)
    if not len(found):
        return False
    alike = (np.abs(found[:, None] - found[None]).max(axis=2) <= 1).sum(axis=1).max()
    return int(alike) >= max(_LEAST_MOVED, _MOVED_SHARE * len(places))
