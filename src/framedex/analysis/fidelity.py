"""Measures of what is really there in an image, which decide which of several copies is the original.

An enlarged image has more pixels, but no more detail. A recompressed one keeps traces of its first compression.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import permutations, repeat
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.derivation import PLACES, ComparedPart, made_from
from framedex.core.arrays import Pixels
from framedex.core.borders import cropped, inner_box

_WINDOW = 512  # pixels a side of the part that is examined
_BANDS = 64
_SMALLER = 0.75  # sides of a size from which images may have been enlarged, as a share of theirs
_ALIKE = 0.85  # pixels within borders, as a share, of sizes that are compared together: trimming cuts off a few more
_NOT_FROM_SMALLER = 0.1  # share of the coefficients that a smaller image does not explain
_SAME_SHAPE = 0.03  # difference of the natural logarithms of two ratios of sides
_DROP = -0.9  # decimal logarithm of a ratio of powers
_COMPARED = 2**18  # pixels
_MOST_PAIRED = 6  # images of which each two are compared in all sizes and orientations
_FEWEST = 3  # copies of one size that show which one is the original
_COLOURS = 32  # pixels a side by which colours are seen
_TINTED = 2.5  # mean difference of colour values from those of a tint that noise and compression make
_EQUAL = 0.02  # mean squared difference of equal images that several decoders read
_COMPRESSED = 40.0  # mean squared difference that compression makes
_FINER = 1.1  # times the own steps, for a copy from which an image was saved anew
_ROUNDED = 1.5  # difference of coefficients that the rounding of pixels makes
_UNEXPLAINED = 0.03  # share of the coefficients; clipped pixels make some
_MOST_UNEXPLAINED = 0.05  # the same where any doubt speaks for a source
_BLOCKS = 4096  # at most, of 8×8 pixels
# Typical quantisation steps of brightness (ITU-T T.81, table K.1).
_TYPICAL = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
_FEW_STEPS = 4  # frequencies a side that are low
_LEAST_PLACES = 3
_LEAST_VALUES = 100
_RANGE, _BIN = 120.0, 0.1
_LEAST_STEP, _MOST_STEP = 1.8, 20.0
_COMB = 0.08  # least height of the comb that an earlier quantisation leaves, as a share of the values
_APART = 6  # frequencies from a peak that are not part of it
_COARSER = 1.15  # times the own step, for an earlier compression


@dataclass(frozen=True)
class Fidelity:
    """Measures of an image at full size.

    Attributes:
        width, height: of the image.
        inner: the number of its pixels within uniform borders.
        spectrum: float32, shape (64,): see :func:`spectrum`.
        step: the coarsest step of the quantisation that its brightness went through, in grey levels; 0 for none, None
            if it is not known.
        is_coded: whether the file has quantisation steps, as a JPEG has.
        has_colour: whether it is not grey throughout.
        steps: float64, shape (8,): the quantisation steps of the file for brightness, at low frequencies; 1 for none.
        coefficients: float32, shape (blocks, 8): the cosine coefficients of brightness at these frequencies, of some
            blocks, which are the same for all images of one size.
        is_clipped: bool, shape (blocks,): whether a block has the lowest or highest value of a colour; decoding cut off
            what the coefficients had there.
        is_recompressed: whether an earlier compression was coarser than that of the file.
        luminance: uint8, shape (P,): brightness at places that are the same for all images of one size.
        sample: the part that is compared with other sizes and orientations.
    """

    width: int
    height: int
    inner: int
    spectrum: npt.NDArray[np.float32]
    step: float | None
    is_coded: bool
    has_colour: bool
    steps: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float32]
    is_clipped: npt.NDArray[np.bool_]
    is_recompressed: bool
    luminance: npt.NDArray[np.uint8]
    sample: ComparedPart

    @property
    def clipped(self) -> float:
        """The share of blocks in which decoding cut off values; NaN for an image that is smaller than a block."""
        return float(self.is_clipped.mean()) if len(self.is_clipped) else np.nan


class Doubt(IntEnum):
    """The doubt that remains if an image is taken for the original of its copies."""

    NONE = 0
    """All others were made from it."""
    UNRELATED = 1
    """Another one was not made from it, nor it from that one."""
    SOURCE = 2
    """It could have been made from another one."""


@dataclass(frozen=True)
class Standing:
    """The rank of an image among its copies, in several respects.

    Attributes:
        detail: the number of pixels that have detail: fewer if it was enlarged, or has uniform borders.
        altered: the median, over the other copies of its size, of the mean squared difference of brightness; of the
            least altered of the images that differ from it by compression only. None with less than two others.
        distance: the same of the image itself.
        surplus: the number of pixels without detail; 0 for the size that most copies have, because edits keep it.
        sources: the number of other copies of its size that could have been made by saving it: they differ by no more
            than their own quantisation.
        closest: the least mean squared difference of brightness from another copy of its size; None without one.
        is_derived: whether it was made from another one, by turning, resizing, another exposure or saving it again.
        doubt: the :class:`Doubt` about whether the others were made from it; None in a group of many.
    """

    detail: float
    altered: float | None
    distance: float | None
    surplus: float
    sources: int
    closest: float | None
    is_derived: bool
    doubt: Doubt | None


def measure_fidelity(
    pixels: Pixels, steps: Sequence[int] = (), *, table: Sequence[int] = (), is_lossy: bool = False
) -> Fidelity:
    """Return the measures of an image.

    Args:
        pixels: uint8, shape (H, W, 3), RGB, the whole image.
        steps: the quantisation steps of the file for brightness, at low frequencies, as
            :attr:`framedex.media.jpeg.Traits.steps`; empty for a file without such a compression.
        table: all of these steps, as :attr:`framedex.media.jpeg.Traits.table`; empty if they are not known.
        is_lossy: :attr:`framedex.media.jpeg.Traits.is_lossy`.
    """
    grey = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
    inner = cropped(grey, inner_box(grey))
    own = np.array(steps or [1] * len(PLACES), np.float64)
    coefficients = _coefficients(grey)
    before, is_recompressed = _earlier_steps(grey, own)
    step = float(own.mean()) if steps else None if is_lossy else 0.0
    apart = max(1, int(np.sqrt(grey.size / _COMPARED)))
    return Fidelity(
        grey.shape[1],
        grey.shape[0],
        inner.size,
        spectrum(inner),
        before if is_recompressed else step,
        bool(steps),
        _has_colour(pixels),
        own,
        coefficients,
        _clipped(pixels),
        is_recompressed,
        grey[::apart, ::apart].ravel(),
        ComparedPart.of(pixels, grey, own, table),
    )


def _earlier_steps(grey: npt.NDArray[np.uint8], own: npt.NDArray[np.float64]) -> tuple[float, bool]:
    """Return (mean of the steps of an earlier compression that was coarser, whether there was one).

    The blocks of an image that was turned or mirrored after its first compression begin at another corner.
    """
    most, mean = 0, 0.0
    for top in sorted({0, grey.shape[0] % 8}):
        for left in sorted({0, grey.shape[1] % 8}):
            found = found_steps(grey[top:, left:])
            coarser = found[found > np.maximum(own, 1) * _COARSER]
            if len(coarser) > most:
                most, mean = len(coarser), float(coarser.mean())
    return mean, most >= _LEAST_PLACES


def _has_colour(pixels: Pixels) -> bool:
    """Return whether an image has colours that do not follow from its brightness, as those of a tint do."""
    small = cv2.resize(pixels, (_COLOURS, _COLOURS), interpolation=cv2.INTER_AREA).reshape(-1, 3).astype(np.float64)
    green = small[:, 1] / 255
    powers = np.stack([np.ones_like(green), green, green**2, green**3], axis=1)
    apart = small[:, [0, 2]] - small[:, 1:2]
    tint = powers @ np.linalg.lstsq(powers, apart, rcond=None)[0]
    return bool((np.abs(apart - tint).mean(axis=0) > _TINTED).any())


def stand(copies: Sequence[Fidelity], beside: Sequence[bool] = (), crops: Sequence[bool] = ()) -> list[Standing]:
    """Return how the copies of one image stand among each other.

    An image has the detail of a smaller size if it could have been enlarged from it. Whoever edits an image changes it
    in one way; so the original is nearer to most copies than the copies are to each other.

    Args:
        copies: the measures of the copies.
        beside: whether each shows another copy beside other content, and so was made from it; by default none does.
        crops: whether each seems to show a part of another copy only, which may as well have been made from it; by
            default none does.
    """
    sizes: dict[tuple[int, int], list[int]] = {}
    for number, each in enumerate(copies):
        sizes.setdefault((each.width, each.height), []).append(number)
    standings: dict[int, Standing] = {}
    smaller: list[tuple[float, float, list[Fidelity]]] = []  # pixels, detail and copies of each size so far
    inner = {size: float(np.median([copies[number].inner for number in members])) for size, members in sizes.items()}
    for size, members in sorted(sizes.items(), key=lambda each: inner[each[0]]):
        of_size = [copies[number] for number in members]
        pixels = detail = inner[size]
        alike = [size for size, other in inner.items() if _ALIKE <= other / pixels <= 1 / _ALIKE]
        spectra = np.stack([copies[number].spectrum for size in alike for number in sizes[size]])
        for few, its_detail, its_copies in smaller:
            if _is_enlarged(spectra, (few / pixels) ** 0.5) or _is_explained(of_size, its_copies):
                detail = min(detail, its_detail)
        smaller.append((pixels, detail, of_size))
        is_usual = len(members) >= _FEWEST and 2 * len(members) > len(copies)
        values = np.stack([each.luminance for each in of_size]).astype(np.float32)
        difference = _differences(values)
        altered, distance = _distances(difference)
        surplus = [0.0 if is_usual else max(0.0, each.width * each.height - detail) for each in of_size]
        sources = [_count_copies(each, of_size) for each in of_size]
        derived = [any(_is_saved_again(each, other) for other in of_size) for each in of_size]
        standings |= {
            number: Standing(detail, *each)
            for number, each in zip(
                members,
                zip(altered, distance, surplus, sources, _closest(difference), derived, repeat(None), strict=False),
                strict=True,
            )
        }
    nowhere = [False] * len(copies)
    return _derived([standings[number] for number in range(len(copies))], copies, beside or nowhere, crops or nowhere)


def _derived(
    standings: Sequence[Standing], copies: Sequence[Fidelity], beside: Sequence[bool], crops: Sequence[bool]
) -> list[Standing]:
    """Return the standings with what the comparison of each two images shows, unless there are many."""
    first: dict[int, int] = {}  # equal files have one measure
    number = [first.setdefault(id(each), len(first)) for each in copies]
    distinct = [copies[number.index(each)] for each in range(len(first))]
    if not 0 < len(distinct) <= _MOST_PAIRED:
        return list(standings)
    shown, possible = made_from([each.sample for each in distinct])
    for one, other in permutations(range(len(distinct)), 2):
        shown[one, other] |= _is_decoded(distinct[one], distinct[other])
    is_beside = np.array([beside[number.index(each)] for each in range(len(first))], dtype=np.bool_)
    shown[:, is_beside] = possible[:, is_beside] = False
    shown[np.ix_(is_beside, ~is_beside)] = True
    for middle in range(len(distinct)):
        shown |= shown[:, middle, None] & shown[middle]
    shown &= ~shown.T
    same = np.array([[_is_same(one, other) for other in distinct] for one in distinct], dtype=np.bool_)
    unsettled = ~shown.T & ~same
    is_crop = np.array([crops[number.index(each)] for each in range(len(first))], dtype=np.bool_)
    # Detail counts for nothing where one image shows more than the other one: it may have been added.
    shape = np.array([np.log(max(each.width, each.height) / min(each.width, each.height)) for each in distinct])
    is_other_part = is_crop | is_crop[:, None] | (np.abs(shape - shape[:, None]) > _SAME_SHAPE)
    has_source = (unsettled & (possible | is_other_part)).any(axis=1)
    doubt = np.where(has_source, Doubt.SOURCE, np.where(unsettled.any(axis=1), Doubt.UNRELATED, Doubt.NONE))
    return [
        replace(standing, is_derived=bool(shown[each].any()), doubt=Doubt(int(doubt[each])))
        for standing, each in zip(standings, number, strict=True)
    ]


def _is_same(image: Fidelity, other: Fidelity) -> bool:
    """Return whether two images have equal pixels, as far as they are compared."""
    return (image.width, image.height, image.has_colour) == (other.width, other.height, other.has_colour) and all(
        np.array_equal(*each) for each in ((image.luminance, other.luminance), (image.sample.grey, other.sample.grey))
    )


def _differences(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the mean squared differences of N images of one size: float64, shape (N, N)."""
    squares = (values**2).mean(axis=1, dtype=np.float64)
    products = (values @ values.T).astype(np.float64) / values.shape[1]
    return np.asarray(np.maximum(0, squares[:, None] + squares - 2 * products), dtype=np.float64)


def _closest(difference: npt.NDArray[np.float64]) -> list[float | None]:
    """Return the values of :attr:`Standing.closest` of images of one size."""
    if len(difference) < _FEWEST:
        return [None] * len(difference)
    others = difference + np.diag(np.full(len(difference), np.inf))
    return [float(least) for least in others.min(axis=1)]


def _is_saved_again(image: Fidelity, other: Fidelity) -> bool:
    """Return whether an image was made from another one of its size by saving it with finer steps or without a loss."""
    if _is_decoded(image, other):
        return True
    if not len(image.coefficients) or other.steps.mean() < _FINER * image.steps.mean():
        return False
    # Steps that are only a little coarser explain the differences in both directions, so their traces are needed, too.
    if other.steps.mean() < _FINER * (image.steps.mean() + 2 * _ROUNDED) and not image.is_recompressed:
        return False
    return _unexplained(image, other) <= _UNEXPLAINED


def _is_decoded(image: Fidelity, other: Fidelity) -> bool:
    """Return whether an image without a loss has the pixels of a compressed one, which compression would change."""
    if (image.width, image.height) != (other.width, other.height) or image.is_coded or not other.is_coded:
        return False
    apart = np.subtract(image.luminance, other.luminance, dtype=np.float32)
    return bool(len(apart)) and float(np.mean(apart**2)) <= _EQUAL


def _count_copies(image: Fidelity, of_size: Sequence[Fidelity]) -> int:
    """Return the number of images that could have been made by saving an image, but not the other way round."""
    return sum(
        _unexplained(other, image) <= _MOST_UNEXPLAINED and not _is_saved_again(image, other)
        for other in of_size
        if other is not image
    )


def _unexplained(image: Fidelity, other: Fidelity) -> float:
    """Return the share of coefficients that an image would not have if it was made by saving another one."""
    if not len(image.coefficients):
        return 1.0
    differs = np.abs(image.coefficients - other.coefficients) > image.steps / 2 + _ROUNDED
    exact = ~(image.is_clipped | other.is_clipped)
    return float((differs[exact] if np.count_nonzero(exact) >= _LEAST_VALUES else differs).mean())


def _is_explained(images: Sequence[Fidelity], smaller: Sequence[Fidelity]) -> bool:
    """Return whether most images of a size could have been made by enlarging smaller ones."""
    return 2 * sum(any(_could_be_enlarged(each, other) for other in smaller) for each in images) > len(images)


def _could_be_enlarged(image: Fidelity, smaller: Fidelity) -> bool:
    """Return whether an image differs from a smaller one, enlarged, by no more than its quantisation makes."""
    if (smaller.width * smaller.height) > _SMALLER**2 * image.width * image.height or not image.sample.grey.size:
        return False
    part, its_part = image.sample, smaller.sample
    top, left, (high, wide), its_size = part.top, part.left, part.grey.shape, its_part.grey.shape
    its_top, its_left = its_part.top, its_part.left
    x, y = smaller.width / image.width, smaller.height / image.height
    # Centres of pixels of the image, in pixels of the middle of the smaller one.
    places = np.array([[x, 0, (left + 0.5) * x - 0.5 - its_left], [0, y, (top + 0.5) * y - 0.5 - its_top]])
    wide, high = (
        min(size, max(0, int((its_size[1 - axis] - 0.5 - places[axis, 2]) / places[axis, axis]) // 8 * 8))
        for axis, size in enumerate((wide, high))
    )
    if not wide * high or (places[:, 2] < -1).any():
        return False
    enlarged = cv2.warpAffine(
        smaller.sample.grey.astype(np.float32), places, (wide, high),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE,
    )  # fmt: skip
    difference = np.abs(_transforms(image.sample.grey[:high, :wide] - enlarged))
    typical = np.array([_TYPICAL[place] for place in PLACES])
    unexplained = difference > np.maximum(_TYPICAL * (image.steps / typical).mean(), 1) / 2 + _ROUNDED
    return float(unexplained[:, :_FEW_STEPS, :_FEW_STEPS].mean()) <= _NOT_FROM_SMALLER


def _distances(difference: npt.NDArray[np.float64]) -> tuple[list[float | None], list[float | None]]:
    """Return the values of :attr:`Standing.altered` and :attr:`Standing.distance` of images of one size."""
    count = len(difference)
    if count < _FEWEST:
        return [None] * count, [None] * count
    distance = np.median(difference[~np.eye(count, dtype=bool)].reshape(count, -1), axis=1)
    kind = connected_components(count, *np.nonzero(difference <= _COMPRESSED))[1]
    least = np.full(int(kind.max()) + 1, np.inf)
    np.minimum.at(least, kind, distance)
    return least[kind].tolist(), distance.tolist()


def spectrum(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the power of an image by frequency, times the square of the frequency: float32, shape (64,).

    The power of a natural image falls with the square of the frequency (D. J. Field, "Relations between the statistics
    of natural images and the response properties of cortical cells", JOSA A 4(12), 1987), so these values are about
    even up to the frequency at which the image was cut off. The last value is at the highest frequency that the pixels
    can show. An image that is too small has zeros.

    Args:
        grey: uint8, shape (H, W).
    """
    side = min(_WINDOW, *grey.shape) // 2 * 2
    if side < _BANDS:
        return np.zeros(_BANDS, np.float32)
    top, left = (grey.shape[0] - side) // 2, (grey.shape[1] - side) // 2
    part = grey[top : top + side, left : left + side].astype(np.float32)
    window = np.hanning(side).astype(np.float32)
    power = np.abs(np.fft.rfft2((part - part.mean()) * window * window[:, None])) ** 2
    radius = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    band = np.minimum((radius * 2 * _BANDS).astype(np.int64), _BANDS).ravel()
    count = np.maximum(np.bincount(band, minlength=_BANDS + 1), 1)
    power = (np.bincount(band, power.ravel(), _BANDS + 1) / count)[:_BANDS]
    return np.asarray(power * (np.arange(_BANDS) + 0.5) ** 2, dtype=np.float32)


def _is_enlarged(spectra: npt.NDArray[np.float32], ratio: float) -> bool:
    """Return whether images could be enlarged from a size: float32, shape (N, 64).

    Then they have much less power above the frequencies that the smaller size can show than below.

    Args:
        spectra: of images of one size.
        ratio: the sides of the smaller size as a share of theirs.
    """
    frequency = (np.arange(_BANDS) + 0.5) / _BANDS
    below = (frequency >= 0.4 * ratio) & (frequency < 0.9 * ratio)
    above = (frequency >= 1.2 * ratio) & (frequency < min(0.95, 1.9 * ratio))
    if ratio > _SMALLER or not below.any() or not above.any():
        return False
    powers = [np.maximum(spectra[:, part].mean(axis=1), 1e-6) for part in (below, above)]
    return float(np.median(np.log10(powers[1] / powers[0]))) < _DROP


def found_steps(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the steps that cosine coefficients of 8×8 blocks are multiples of, in grey levels; 0 for none.

    After a compression, the histogram of a coefficient is a comb, whose period a Fourier transform shows (J. Fridrich,
    J. Lukáš, "Estimation of primary quantization matrix in double compressed JPEG images", 2003, use the histograms).

    Args:
        grey: uint8, shape (H, W): the whole image, so that its blocks are those of the file.
    """
    return np.array([_period(values) for values in _coefficients(grey).T])


def _coefficients(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return cosine coefficients of :func:`_some_blocks` at some frequencies: float32, shape (blocks, 8)."""
    transforms = _transforms(grey)
    return np.stack([transforms[:, row, column] for row, column in PLACES], axis=1)


def _some_blocks(pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return some 8×8 blocks, which are the same for all images of one size: shape (blocks, 8, 8).

    Args:
        pixels: shape (H, W).
    """
    high, wide = pixels.shape[0] // 8, pixels.shape[1] // 8
    blocks = pixels[: high * 8, : wide * 8].reshape(high, 8, wide, 8).transpose(0, 2, 1, 3).reshape(-1, 8, 8)
    return blocks[:: max(1, len(blocks) // _BLOCKS)]


def _clipped(pixels: Pixels) -> npt.NDArray[np.bool_]:
    """Return :attr:`Fidelity.is_clipped` of an image: uint8, shape (H, W, 3)."""
    exact = cv2.inRange(pixels, np.full(3, 1), np.full(3, 254))
    return np.asarray((_some_blocks(np.asarray(exact)) == 0).any(axis=(1, 2)))


def _transforms(grey: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the cosine coefficients of :func:`_some_blocks`: float32, shape (blocks, 8, 8)."""
    some = _some_blocks(grey).astype(np.float32)
    basis = np.sqrt(2 / 8) * np.cos(np.pi * (2 * np.arange(8) + 1) * np.arange(8)[:, None] / 16)
    basis[0] /= np.sqrt(2)
    basis = basis.astype(np.float32)
    return np.asarray(basis @ some @ basis.T, dtype=np.float32)


def _period(values: npt.NDArray[np.float32]) -> float:
    values = values[(np.abs(values) > 1) & (np.abs(values) < _RANGE)]
    if len(values) < _LEAST_VALUES:
        return 0.0
    counts = np.histogram(values, bins=round(2 * _RANGE / _BIN), range=(-_RANGE, _RANGE))[0]
    comb = np.abs(np.fft.rfft(counts)) / len(values)
    frequency = np.fft.rfftfreq(len(counts), _BIN)
    # A peak is as narrow as one over the range; the even fall of the histogram is a wide hill.
    peaks = np.minimum(comb[_APART:-_APART] - comb[: -2 * _APART], comb[_APART:-_APART] - comb[2 * _APART :])
    peaks = np.pad(peaks, _APART)
    first, last = np.searchsorted(frequency, [1 / _MOST_STEP, 1 / _LEAST_STEP])
    least = max(_COMB, 4 / np.sqrt(len(values)))
    highest = float(peaks[first:last].max(initial=0.0))
    if highest >= least:
        return 1 / float(frequency[first + np.flatnonzero(peaks[first:last] >= 0.5 * highest)[0]])
    return 0.0
