"""Tests whether an image could have been made from another one by turning, resizing, another exposure and saving."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.core.borders import LEAST_SIDE, Box

_WINDOW = 512  # pixels a side of the part that is compared
_THUMBNAIL = 32  # pixels a side
_REDUCED = 128  # pixels of the longer side of an image that is searched in another one
_LESS = 0.98  # sides of a part at most, as a share
_PLAIN = 4  # pixels of a reduced image by which a border may be wider than what is around a part
_ALIKE = 0.9  # correlation of thumbnails of one image in the same orientation
_SAME_SIZE = 2  # pixels a side by which turning without a loss changes a size, at most
_ROUNDED = 1.5  # difference of coefficients that the rounding of pixels makes
_LEAST_BLOCKS = 16
_TONES, _FEWEST_TONES = 32, 4  # ranges of brightness whose means show another exposure, and how many must be known
_OF_TONE = 64  # pixels, at least
_STRONG, _GAIN = 2.0, 0.25  # steps of coefficients that show the contrast; natural logarithm of its greatest correction
_BEYOND = 256 / _TONES
_NOISE = (0.1, 0.4)  # variance of coefficients that rounding makes: in saving, and in resizing or exposing before
_LEAST_EXACT = 0.5  # share of blocks without cut-off values from which the others need not be compared
_LEVELS = 255  # the highest grey level
_TRACED, _LEAST_SPREAD = 128, 4.0  # pixels a side of the part by which a place is found, and its spread of grey levels
_FOUND = 0.8  # correlation of that part at its place, and of a reduced image that is searched for it
_SHADE, _SHADED = 8, 0.5  # grey levels of one shade, and its share of what somebody drew around an image
_DIFFERENT = 0.3  # unexplained share of an image whose values are cut off and that was not saved from the other one
_COARSER, _COARSE = 1.2, 4.0  # times the steps of the source, and mean step, that may hide other changes
_FEW, _ABOUT_ONE = 0.01, 0.25  # unexplained share and natural logarithm of the spread of such an image
_GOOD = 0.01  # share of unexplained coefficients of an image that was certainly saved from the other one
_FITS = 0.05  # the same of one that could have been
_WIDEST = 2.0  # spread of differences of an image that could have been saved from the other one
_VISIBLE = 2.0  # mean step of a quantisation that leaves more than the rounding of pixels
_NEAR, _CLEARER = 0.5, 0.2  # natural logarithms of a spread that is about 1, and of how much farther the other one is
_RESIZED = 256  # pixels a side that are compared where one is resized
PLACES = ((0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (1, 2), (2, 1), (2, 2))
"""The frequencies, by row and column, at which images are compared."""

Grey = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.bool_]
_Kernel = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class ComparedPart:
    """The part of an image that is compared with others.

    Attributes:
        width, height: of the image.
        left, top: the first column and row of the part, multiples of 8.
        grey: uint8, shape (h, w): the middle of the greyscale image, in whole blocks, at most 512 pixels a side.
        exact: bool, shape (h / 8, w / 8): whether a block has neither the lowest nor the highest value of a colour,
            at which decoding cuts off.
        reduced: uint8, shape (h, w): the whole greyscale image, at most 128 pixels a side.
        thumbnail: float32, shape (32, 32), of zero mean and unit length: the whole image.
        steps: float64, shape (8,): the quantisation steps of the file at :data:`PLACES`; 1 for none.
        table: float32, shape (8, 8): all its quantisation steps; 1 for none; None if only those at :data:`PLACES` are
            known.
    """

    width: int
    height: int
    left: int
    top: int
    grey: npt.NDArray[np.uint8]
    exact: npt.NDArray[np.bool_]
    reduced: npt.NDArray[np.uint8]
    thumbnail: Grey
    steps: npt.NDArray[np.float64]
    table: Grey | None

    @classmethod
    def of(
        cls,
        pixels: Pixels,
        grey: npt.NDArray[np.uint8],
        steps: npt.NDArray[np.float64],
        table: Sequence[int] = (),
    ) -> "ComparedPart":
        """Return the sample of an image.

        Args:
            pixels: uint8, shape (H, W, 3), RGB.
            grey: uint8, shape (H, W): the greyscale image.
            steps: see :attr:`steps`.
            table: all steps in zigzag order; empty if there are none, or if they are not known.
        """
        height, width = grey.shape
        high, wide = min(height, _WINDOW) // 8 * 8, min(width, _WINDOW) // 8 * 8
        top, left = (height - high) // 16 * 8, (width - wide) // 16 * 8
        part = np.s_[top : top + high, left : left + wide]
        exact = cv2.inRange(pixels[part], np.full(3, 1), np.full(3, 254)) if high * wide else np.zeros((high, wide))
        share = min(1.0, _REDUCED / max(grey.shape))
        size = tuple(max(1, round(side * share)) for side in (width, height))
        reduced = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        small = cv2.resize(grey, (_THUMBNAIL, _THUMBNAIL), interpolation=cv2.INTER_AREA).astype(np.float32)
        small -= small.mean()
        length = float(np.linalg.norm(small))
        return cls(
            width, height, left, top, grey[part].copy(),
            np.asarray(_blocks(np.asarray(exact)).astype(np.bool_).all(axis=(2, 3))), reduced,
            small / (length or 1.0), steps, _table(steps, table),
        )  # fmt: skip

    def turned(self, flips: tuple[bool, ...]) -> "ComparedPart":
        """Return the sample of the image turned by one of the eight ways: transposed, upside down, mirrored."""
        transposed, upside_down, mirrored = flips
        width, height, left, top = self.width, self.height, self.left, self.top
        grey, thumbnail = self.grey, self.thumbnail
        if transposed:
            width, height, left, top, grey, thumbnail = height, width, top, left, grey.T, thumbnail.T
        if upside_down:
            top, grey, thumbnail = height - top - grey.shape[0], grey[::-1], thumbnail[::-1]
        if mirrored:
            left, grey, thumbnail = width - left - grey.shape[1], grey[:, ::-1], thumbnail[:, ::-1]
        return ComparedPart(width, height, left, top, grey, self.exact, self.reduced, thumbnail, self.steps, self.table)


@dataclass(frozen=True, order=True)
class SourceFit:
    """The result of making an image from another one.

    Attributes:
        unexplained: the share of coefficients that differ by more than the quantisation of the image makes.
        spread: the root mean square of the differences of coefficients that were not quantised to zero, in terms of
            what quantisation makes: about 1 if the image was saved from the other one, much less if the other one was
            made from it and is finer.
    """

    unexplained: float
    spread: float

    @property
    def is_possible(self) -> bool:
        """True if the image could have been made from the other one."""
        return self.unexplained <= _FITS and self.spread <= _WIDEST


def made_from(samples: Sequence[ComparedPart]) -> tuple[Matrix, Matrix]:
    """Return which images were made from which others, and which could have been.

    Of two images that could be made from each other, one was made from the other if the differences are those of its
    own quantisation: those of the other one would be larger or smaller.

    Returns:
        bool, shape (N, N): whether the image of a row was shown to be made from that of a column; so is a part of it at
            the same scale, and what has a plain border around it.
        bool, shape (N, N): whether it could have been made from it.
    """
    count = len(samples)
    shown, possible = np.zeros((2, count, count), dtype=np.bool_)
    for one, other in combinations(range(count), 2):
        there, back = fit(samples[one], samples[other]), fit(samples[other], samples[one])
        possible[one, other], possible[other, one] = there.is_possible, back.is_possible
        if possible[one, other] or possible[other, one]:
            # Without coefficients an enlarged image explains the smaller one as well as that explains it.
            if _have_one_size(samples[one], samples[other]) or not _is_cut_off(samples[one], samples[other]):
                shown[one, other], shown[other, one] = _directions(samples[one], samples[other], there, back)
        else:
            shown[one, other], shown[other, one] = _is_part(samples[one], samples[other])
    return shown, possible


def _have_one_size(one: ComparedPart, other: ComparedPart) -> bool:
    """Return whether two images have the same sides, in either order, but for what turning without a loss changes."""
    sides = [sorted((each.width, each.height)) for each in (one, other)]
    return all(abs(side - its) < _SAME_SIZE for side, its in zip(*sides, strict=True))


def _directions(one: ComparedPart, other: ComparedPart, there: SourceFit, back: SourceFit) -> tuple[bool, bool]:
    """Return whether an image is shown to be made from another one, and that from it, by their fits."""
    is_visible = max(one.steps.mean(), other.steps.mean()) >= _VISIBLE
    return (
        _is_shown(there, back, is_visible=is_visible, is_coarser=_is_coarser(one, other)),
        _is_shown(back, there, is_visible=is_visible, is_coarser=_is_coarser(other, one)),
    )


def _is_coarser(image: ComparedPart, source: ComparedPart) -> bool:
    """Return whether an image has so much coarser steps than another one that they explain other changes, too."""
    return bool(image.steps.mean() >= max(_COARSE, _COARSER * source.steps.mean()))


def _is_part(one: ComparedPart, other: ComparedPart) -> tuple[bool, bool]:
    """Return whether an image is shown to be made from another one, and that from it, if one shows a part of the other.

    The part that both show tells which one was saved from the other. If it does not, an image was cut from another one
    that shows more of the same; but a border, a caption or a window may have been added or cut off.
    """
    for image, whole, is_swapped in ((one, other, False), (other, one, True)):
        if (place := _place(image, whole)) is None or (offset := _offset(image, whole, place)) is None:
            continue
        is_cut_off, behind = _is_cut_off(image, whole), (-offset[0], -offset[1])
        there = _fit_at(image, whole, offset, is_cut_off=is_cut_off)
        back = _fit_at(whole, image, behind, is_cut_off=is_cut_off)
        cut, framed = _directions(image, whole, there, back)
        if not (cut or framed):
            cut = (there.is_possible or back.is_possible) and not _is_drawn_beside(place, whole)
        return (framed, cut) if is_swapped else (cut, framed)
    return False, False


def _is_drawn_beside(place: Box, whole: ComparedPart) -> bool:
    """Return whether most of what an image shows beside a place has one shade, as borders and windows have."""
    beside = np.ones(whole.reduced.shape, dtype=np.bool_)
    top, left, bottom, right = place
    beside[max(0, top - _PLAIN) : bottom + _PLAIN, max(0, left - _PLAIN) : right + _PLAIN] = False
    if not beside.any():
        return True
    counts = np.bincount(whole.reduced[beside], minlength=_LEVELS + 1)
    return bool(np.convolve(counts, np.ones(2 * _SHADE + 1)).max() >= _SHADED * counts.sum())


def _offset(image: ComparedPart, whole: ComparedPart, place: Box) -> tuple[int, int] | None:
    """Return the row and column of the first pixel of an image in another one that shows it at the same scale.

    None if the samples have no part with detail in common.
    """
    scale = whole.width / whole.reduced.shape[1]
    reach = int(np.ceil(2 * scale))
    starts, sizes = [], []
    for at, first, length, its_first, its_length in (
        (place[0], image.top, image.grey.shape[0], whole.top, whole.grey.shape[0]),
        (place[1], image.left, image.grey.shape[1], whole.left, whole.grey.shape[1]),
    ):
        shift = round(at * scale)  # of the image's first pixel, in the other one
        begin = max(first, its_first - shift + reach)
        end = min(first + length, its_first + its_length - shift - reach)
        size = min(_TRACED, end - begin)
        if size < LEAST_SIDE:
            return None
        starts.append((begin + (end - begin - size) // 2, shift))
        sizes.append(size)
    (top, down), (left, across) = starts
    part = image.grey[top - image.top :, left - image.left :][: sizes[0], : sizes[1]]
    if part.std() < _LEAST_SPREAD:
        return None
    row, column = top + down - reach - whole.top, left + across - reach - whole.left
    around = whole.grey[row : row + sizes[0] + 2 * reach, column : column + sizes[1] + 2 * reach]
    _, most, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(around, part, cv2.TM_CCOEFF_NORMED))
    return (down + y - reach, across + x - reach) if most >= _FOUND else None


def _place(image: ComparedPart, whole: ComparedPart) -> Box | None:
    """Return the place of an image in the reduced version of another one; None if that does not seem to show it."""
    if max(image.width / whole.width, image.height / whole.height) > 1:
        return None
    if min(image.width / whole.width, image.height / whole.height) > _LESS:
        return None
    scale = whole.reduced.shape[1] / whole.width
    size = (round(image.width * scale), round(image.height * scale))
    if min(size) < LEAST_SIDE or size[1] > whole.reduced.shape[0] or size[0] > whole.reduced.shape[1]:
        return None
    part = cv2.resize(image.reduced, size, interpolation=cv2.INTER_AREA)
    # Their pixels lie between each other, so only what is coarser is compared.
    smooth = [cv2.GaussianBlur(each, (0, 0), 1.0) for each in (whole.reduced, part)]
    _, most, _, (left, top) = cv2.minMaxLoc(cv2.matchTemplate(smooth[0], smooth[1], cv2.TM_CCOEFF_NORMED))
    return (top, left, top + size[1], left + size[0]) if _FOUND <= most <= 1 + 1e-3 else None


def _is_shown(there: SourceFit, back: SourceFit, *, is_visible: bool, is_coarser: bool) -> bool:
    """Return whether an image was made from a source, by how it fits that and how that fits it.

    Args:
        there: the fit of the image with the source.
        back: the fit of the source with the image.
        is_visible: whether the quantisation of one of them leaves more than the rounding of pixels.
        is_coarser: whether the image has coarser steps, which explain other changes of the source, too, if these are
            small: then its differences must be those of quantisation alone.
    """
    if not there.is_possible:
        return False
    if is_coarser and there.spread and (there.unexplained > _FEW or abs(np.log(there.spread)) > _ABOUT_ONE):
        return False
    if not max(there.spread, back.spread):
        return back.unexplained >= _DIFFERENT
    if not back.is_possible:
        return back.unexplained >= 2 * there.unexplained + _GOOD
    if not is_visible or there.unexplained > back.unexplained + _GOOD:
        return False
    near, far = (abs(np.log(max(each.spread, 1e-3))) for each in (there, back))
    return bool(near < _NEAR and far - near > _CLEARER)


_NO_FIT = SourceFit(1.0, np.inf)


def fit(image: ComparedPart, source: ComparedPart) -> SourceFit:
    """Return how well an image is what would be made from another one.

    That is: if the other one was turned, resized, got another exposure, and was saved with the quantisation of the
    image.
    """
    ways = [source.turned(flips) for flips in product((False, True), repeat=3)]
    likeness = [float((way.thumbnail * image.thumbnail).sum()) for way in ways]
    way = ways[int(np.argmax(likeness))]
    if max(likeness) < _ALIKE or not image.grey.size or not way.grey.size:
        return _NO_FIT
    return min(_fits(image, way, is_cut_off=_is_cut_off(image, source)), default=_NO_FIT)


def _is_cut_off(one: ComparedPart, other: ComparedPart) -> bool:
    """Return whether decoding cut off values in most blocks of one of two images, and all their steps are known."""
    is_known = one.table is not None and other.table is not None
    least = _LEAST_EXACT if _have_one_size(one, other) else _LEAST_EXACT / 2  # which tell more where one is resized
    return is_known and any(each.exact.size and each.exact.mean() < least for each in (one, other))


def _fit(
    image: ComparedPart, made: Grey, place: tuple[slice, slice], *, is_resized: bool, is_cut_off: bool
) -> SourceFit:
    """Return the fit of a part of an image with what was made from the source."""
    own = image.grey[place].astype(np.float32)
    exact = image.exact[place[0].start // 8 : place[0].stop // 8, place[1].start // 8 : place[1].stop // 8]
    if exact.size < _LEAST_BLOCKS:
        return _NO_FIT
    if is_cut_off and image.table is not None:
        return _fit_of_cut_off(own, made, image.table)
    if exact.sum() < _LEAST_BLOCKS:
        exact = np.ones_like(exact)
    wanted = _coefficients(own, exact)
    as_it_is = _difference(wanted, _coefficients(made, exact), image.steps, _NOISE[is_resized])
    if as_it_is.unexplained <= _GOOD:
        return as_it_is
    exposed = _exposed(made, own, exact)
    found = _coefficients(exposed, exact)
    # Compression takes away what makes pixels unlike their blocks, so their tones alone show too little contrast.
    strong = np.abs(wanted) > _STRONG * np.maximum(image.steps, 2)
    gain = float(np.sum(wanted[strong] * found[strong]) / max(1.0, float(np.sum(found[strong] ** 2))))
    if abs(np.log(max(gain, 1e-3))) < _GAIN:
        found = np.asarray(found * gain, dtype=np.float32)
    return min(as_it_is, _difference(wanted, found, image.steps, _NOISE[True]))


def _fit_of_cut_off(own: Grey, made: Grey, table: Grey) -> SourceFit:
    """Return the fit of an image whose values are mostly cut off at black or white, by saving what was made.

    Such values do not have the coefficients of the file. The spread is 0: without coefficients nothing tells it.
    """
    blocks = np.asarray(_blocks(np.clip(np.rint(made), 0, _LEVELS)), dtype=np.float32) - 128
    quantised = np.rint(_BASIS @ blocks @ _BASIS.T / table) * table
    decoded = np.clip(np.rint(_BASIS.T @ quantised @ _BASIS + 128), 0, _LEVELS)
    wanted = np.asarray(_blocks(own), dtype=np.float32)
    varied = np.maximum(np.ptp(wanted, axis=(2, 3)), np.ptp(decoded, axis=(2, 3))) > _ROUNDED
    apart = np.abs(wanted - decoded)[varied]
    return SourceFit(float((apart > 2 * _ROUNDED).mean()) if len(apart) else 0.0, 0.0)


def _difference(values: Grey, others: Grey, steps: npt.NDArray[np.float64], noise: float) -> SourceFit:
    """Return the fit of coefficients, float32, shape (blocks, 8), with those before the quantisation."""
    apart = np.abs(values - others)
    coded = np.abs(values) > 0.75 * np.maximum(steps, 2)
    expected = np.broadcast_to(steps**2 / 12 + noise, values.shape)[coded].sum()
    squares = np.minimum(apart, 2 * steps + 2)[coded] ** 2
    return SourceFit(float((apart > steps / 2 + _ROUNDED).mean()), float(np.sqrt(squares.sum() / max(1.0, expected))))


def _exposed(made: Grey, own: Grey, exact: Matrix) -> Grey:
    """Return an image with the tones of another one that shows the same.

    Args:
        made: shape (h, w).
        own: the other one, shape (h, w).
        exact: bool, shape (h / 8, w / 8): the blocks to use.
    """
    values = [np.asarray(_blocks(each)[exact].ravel(), dtype=np.float32) for each in (made, own)]
    number = np.clip(values[0] * (_TONES / 256), 0, _TONES - 1).astype(np.int64)
    count = np.bincount(number, minlength=_TONES)
    known = np.flatnonzero(count >= _OF_TONE)
    if len(known) < _FEWEST_TONES:
        return made
    of, to = (np.bincount(number, each, _TONES)[known] / count[known] for each in values)
    for end, inner in ((0, 2), (-1, -3)):  # the tones beyond the means of the outer ones go on in the same way
        slope = (to[inner] - to[end]) / (of[inner] - of[end])
        beyond = of[end] + (-_BEYOND if end == 0 else _BEYOND)
        at = 0 if end == 0 else len(of)
        of, to = np.insert(of, at, beyond), np.insert(to, at, to[end] + slope * (beyond - of[end]))
    return np.interp(made, of, to).astype(np.float32)


def _fits(image: ComparedPart, source: ComparedPart, *, is_cut_off: bool) -> Iterator[SourceFit]:
    """Yield how an image fits what is made of a source in the same orientation, by several kernels of resizing."""
    is_resized = abs(source.width - image.width) >= _SAME_SIZE or abs(source.height - image.height) >= _SAME_SIZE
    scales = (source.width / image.width, source.height / image.height) if is_resized else (1.0, 1.0)
    most = _RESIZED if is_resized else _WINDOW
    left, right = _common(scales[0], image.left, image.grey.shape[1], source.left, source.grey.shape[1], most)
    top, bottom = _common(scales[1], image.top, image.grey.shape[0], source.top, source.grey.shape[0], most)
    if right <= left or bottom <= top:
        return
    place = slice(top, bottom), slice(left, right)
    if not is_resized:
        yield _fit_at(image, source, (0, 0), is_cut_off=is_cut_off)
        return
    grey = source.grey.astype(np.float32)
    for kernel in _KERNELS:
        rows = _weights(kernel, scales[1], image.top + np.arange(top, bottom), source.top, source.grey.shape[0])
        columns = _weights(kernel, scales[0], image.left + np.arange(left, right), source.left, source.grey.shape[1])
        made = np.asarray(rows @ grey @ columns.T, dtype=np.float32)
        yield _fit(image, made, place, is_resized=True, is_cut_off=is_cut_off)


def _fit_at(image: ComparedPart, source: ComparedPart, offset: tuple[int, int], *, is_cut_off: bool) -> SourceFit:
    """Return the fit of an image with a source of the same scale, whose first pixel is at an offset of the source."""
    places, parts = [], []
    for shift, first, length, its_first, its_length in (
        (offset[0], image.top, image.grey.shape[0], source.top, source.grey.shape[0]),
        (offset[1], image.left, image.grey.shape[1], source.left, source.grey.shape[1]),
    ):
        before = its_first - shift - first
        begin, end = max(0, -(-before // 8) * 8), min(length, (before + its_length) // 8 * 8)
        if end <= begin:
            return _NO_FIT
        places.append(slice(begin, end))
        parts.append(slice(begin - before, end - before))
    made = source.grey[tuple(parts)].astype(np.float32)
    return _fit(image, made, (places[0], places[1]), is_resized=False, is_cut_off=is_cut_off)


def _common(scale: float, start: int, size: int, its_start: int, its_size: int, most: int) -> tuple[int, int]:
    """Return the whole blocks in the middle of a sample that the other one shows, too: first and last place in it."""
    first = max(0, int(np.ceil((its_start / scale - start) / 8 - 1e-9)) * 8)
    last = min(size, int(((its_start + its_size) / scale - start + 1e-9) // 8) * 8)
    spare = max(0, last - first - most) // 16 * 8
    return first + spare, last - spare


def _weights(kernel: _Kernel, scale: float, places: npt.NDArray[np.int64], start: int, size: int) -> Grey:
    """Return the weights by which a row of the source gives values at some places: float32, shape (places, size)."""
    wide = max(1.0, scale)
    centres = (places + 0.5) * scale - 0.5 - start
    weights = kernel((np.arange(size) - centres[:, None]) / wide)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def _cubic(x: npt.NDArray[np.float64], a: float) -> npt.NDArray[np.float64]:
    x = np.abs(x)
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


_KERNELS: tuple[_Kernel, ...] = (
    lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0),
    lambda x: _cubic(x, -0.5),
    lambda x: _cubic(x, -0.75),
    lambda x: np.maximum(0.0, 1 - np.abs(x)),
    lambda x: ((x >= -0.5) & (x < 0.5)).astype(np.float64) + 1e-9,
)
"""Lanczos, cubic as in Pillow and OpenCV, linear and the mean of an area."""


def _table(steps: npt.NDArray[np.float64], table: Sequence[int]) -> Grey | None:
    """Return :attr:`ComparedPart.table` from the steps in zigzag order."""
    if not table:
        return np.ones((8, 8), np.float32) if (steps == 1).all() else None
    # Diagonals in turn go down and up.
    places = sorted(product(range(8), repeat=2), key=lambda at: (sum(at), at[sum(at) % 2 - 1]))
    values = np.empty((8, 8), np.float32)
    values[tuple(np.array(places).T)] = np.maximum(table, 1)
    return values


def _blocks(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the blocks of an image: shape (h / 8, w / 8, 8, 8)."""
    high, wide = values.shape[0] // 8, values.shape[1] // 8
    return values.reshape(high, 8, wide, 8).transpose(0, 2, 1, 3)


def _coefficients(grey: Grey, chosen: npt.NDArray[np.bool_]) -> Grey:
    """Return the cosine coefficients of the chosen blocks at :data:`PLACES`: float32, shape (blocks, 8)."""
    blocks = np.asarray(_blocks(grey)[chosen], dtype=np.float32)
    transforms = _BASIS @ blocks @ _BASIS.T
    return np.stack([transforms[:, row, column] for row, column in PLACES], axis=1)


_BASIS = (np.sqrt(2 / 8) * np.cos(np.pi * (2 * np.arange(8) + 1) * np.arange(8)[:, None] / 16)).astype(np.float32)
_BASIS[0] /= np.sqrt(2)
