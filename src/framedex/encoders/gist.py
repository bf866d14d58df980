"""The built-in encoder, a classical global descriptor without weights.

Four parts, concatenated and scaled to unit length:

- *Spatial envelope* (512 values): the energy of Gabor-like filters at 4 scales × 8 orientations, averaged over a
  4×4 grid, after a local normalisation of contrast. A. Oliva, A. Torralba, "Modeling the shape of the scene: a
  holistic representation of the spatial envelope", IJCV 42(3), 2001. The filters are log-Gabor filters (D. J.
  Field, JOSA A 4(12), 1987).
- *Layout* (64 values, weight 0.3): an 8×8 luminance thumbnail, of zero mean and unit length. A. Torralba, R. Fergus,
  W. T. Freeman, "80 million tiny images", PAMI 30(11), 2008.
- *Colour* (32 values, weight 0.2): two opponent colours over a 4×4 grid.
- *Level* (2 values): brightness as a direction, only for images without structure, where the other parts carry no
  information.

The response of each filter is band-limited, so it is computed from the window of the spectrum that the filter covers:
an inverse transform of 24×24 points instead of 64×64. The shift of the window changes the phase of the response, and
not its energy.

Uniform borders are cut off before. The descriptor changes little with size, compression, brightness, contrast and small
crops. It changes with rotation and reflection; the descriptor of a turned or mirrored image has the same values in
another order (:func:`poses`). It is deterministic: equal pixels give equal vectors, on any number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels, Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.borders import BorderedImage
from framedex.core.forks import cached_property

_SIZE = 64
_MARGIN = 4
_INNER = _SIZE - 2 * _MARGIN
_GRID = 4
_ORIENTATIONS = 8
# (centre frequency in cycles a pixel, width of the spectrum window that covers the filter)
_SCALES = ((0.30, 24), (0.158, 16), (0.0831, 16), (0.0437, 8))
_CONTRAST_FLOOR = 0.2
_NO_STRUCTURE = 1e-3  # energy of a cell of a descriptor
_ENVELOPE_FLOOR = 2.0
_LAYOUT_WEIGHT, _COLOUR_WEIGHT = 0.3, 0.2
_ENVELOPE_VALUES = len(_SCALES) * _ORIENTATIONS * _GRID**2
_LAYOUT = 8
_COLOURS = 2 * _GRID**2
_AT_LUMINANCE = slice(0, _SIZE**2)
_AT_LAYOUT = slice(_SIZE**2, _SIZE**2 + _LAYOUT**2)
_PREPARED = _SIZE**2 + _LAYOUT**2 + 3 * _GRID**2
_AT_COLOUR = slice(_SIZE**2 + _LAYOUT**2, _PREPARED)
_TOGETHER = 4  # images whose responses fit into the processor's cache
_LOG = np.log1p(np.arange(256, dtype=np.float32))
# Standard deviation of the Gaussian whose transfer falls to one half at 4 cycles an image.
_LOCAL_SIGMA = float(_SIZE * np.sqrt(2 * np.log(2)) / (2 * np.pi * 4) / np.sqrt(2))


class Gist:
    """The encoder ``gist``: 610 values, no weights, offline. The module docstring names its sources."""

    name = "gist"
    dimension = _ENVELOPE_VALUES + _LAYOUT**2 + _COLOURS + 2
    min_side_px = _INNER
    thresholds = (0.05, 0.12, 0.16, 0.19, 0.22)

    @property
    def preparer(self) -> Callable[[Pixels], npt.NDArray[np.float32]]:
        """The function that prepares images, for other processes."""
        return self.prepare

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Return float32, shape (4208,): normalised luminance (64×64), layout (8×8) and mean colours (4×4×3), 0–255."""
        image = BorderedImage(pixels)
        return self.prepare_within(image.inner_pixels, image.inner_grey)

    def prepare_within(self, pixels: Pixels, grey: Any) -> npt.NDArray[np.float32]:
        """Return the same for an image without borders, and its greyscale image: uint8, shape (H, W)."""
        small = _shrink(grey)
        framed = cv2.copyMakeBorder(small, _MARGIN, _MARGIN, _MARGIN, _MARGIN, cv2.BORDER_REFLECT)
        # 14×14 pixels of each cell are enough for its mean colour, and averages over whole pixels are fast.
        some = cv2.resize(pixels, (_INNER, _INNER), interpolation=cv2.INTER_NEAREST)
        out = np.empty(_PREPARED, np.float32)
        out[_AT_LUMINANCE] = _normalised(framed).ravel()
        out[_AT_LAYOUT] = cv2.resize(small, (_LAYOUT, _LAYOUT), interpolation=cv2.INTER_AREA).ravel()
        out[_AT_COLOUR] = cv2.resize(some, (_GRID, _GRID), interpolation=cv2.INTER_AREA).ravel()
        return out

    def encode_images(self, batch: npt.NDArray[np.float32]) -> Vectors:
        """Return float32, shape (N, 610), unit length, for N prepared images, shape (N, 4208)."""
        with single_threaded_blas():  # its threads wait for each other longer than these products take
            envelope = _envelope(batch[:, _AT_LUMINANCE].reshape(-1, _SIZE, _SIZE))
        # Below this norm the image is rounding noise without structure, which must not be scaled to unit length.
        envelope /= np.maximum(np.linalg.norm(envelope, axis=1, keepdims=True), _ENVELOPE_FLOOR)
        level = batch[:, _AT_LAYOUT].mean(axis=1)
        layout = _centred(batch[:, _AT_LAYOUT], level)
        parts = [envelope, _LAYOUT_WEIGHT * layout, _COLOUR_WEIGHT * _colours(batch[:, _AT_COLOUR])]
        squared = sum((part**2).sum(axis=1) for part in parts)
        missing = np.sqrt(np.maximum(0.0, 1.0 - squared))
        angle = level * (np.pi / 2 / 255)
        out = np.concatenate([*parts, (missing * np.cos(angle))[:, None], (missing * np.sin(angle))[:, None]], axis=1)
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return np.ascontiguousarray(out, dtype=np.float32)


POSES = 8
"""The poses of an image: four turns, and four of its mirror image."""
MIRRORED = 4
"""The first pose of the mirror image."""


def poses(vectors: Vectors) -> Vectors:
    """Return the descriptors of turned and mirrored images: shape (8, N, 610), of the dtype of *vectors*.

    Pose p is the image, mirrored left to right if p ≥ 4, then turned by 90° · (p % 4) counter-clockwise.

    Args:
        vectors: shape (N, 610), descriptors of N images.
    """
    turned = np.take(vectors, _places(), axis=1)
    return turned.reshape(len(vectors), POSES, vectors.shape[1]).transpose(1, 0, 2)


@cache
def _places() -> npt.NDArray[np.intp]:
    """Return the place, in the descriptor of an image, of each value of its descriptors in all poses: shape (4880,)."""
    at = np.cumsum([0, _ENVELOPE_VALUES, _LAYOUT**2, _COLOURS]).tolist()
    shapes = ((len(_SCALES), _ORIENTATIONS, _GRID, _GRID), (1, 1, _LAYOUT, _LAYOUT), (1, 2, _GRID, _GRID))
    places = []
    for pose in range(POSES):
        for number, shape in enumerate(shapes):
            part = np.arange(at[number], at[number + 1]).reshape(shape)
            part = np.rot90(part[..., ::-1] if pose >= MIRRORED else part, pose % 4, axes=(2, 3))
            places.append((part[:, _orientations(pose)] if number == 0 else part).ravel())
        places.append(np.arange(at[-1], Gist.dimension))  # the level is the same in all poses
    return np.concatenate(places)


def _orientations(pose: int) -> npt.NDArray[np.intp]:
    """Return the orientation of the image that becomes each orientation of a pose."""
    places = (np.arange(_ORIENTATIONS) + (pose % 2) * _ORIENTATIONS // 2) % _ORIENTATIONS
    return (-places) % _ORIENTATIONS if pose >= MIRRORED else places


def layouts(vectors: Vectors) -> Vectors:
    """Return the layouts of descriptors: shape (N, 8, 8), luminance of zero mean."""
    return vectors[:, _ENVELOPE_VALUES : _ENVELOPE_VALUES + _LAYOUT**2].reshape(-1, _LAYOUT, _LAYOUT)


def structure(vectors: Vectors) -> Vectors:
    """Return the share of descriptors that is no mere level of a uniform image: shape (N,), in [0, 1]."""
    return np.asarray(1 - (vectors[:, -2:] ** 2).sum(axis=1), dtype=np.float32)


def cells(vectors: Vectors) -> Vectors:
    """Return the energies of the cells of descriptors: shape (N, 16, 32), unit length, row by row; 0 without structure.

    Cells of equal content are equal, whatever the other cells show.
    """
    filters = len(_SCALES) * _ORIENTATIONS
    envelope = vectors[:, :_ENVELOPE_VALUES].reshape(-1, filters, _GRID**2).transpose(0, 2, 1)
    length = np.linalg.norm(envelope, axis=2, keepdims=True)
    return np.asarray(envelope / np.maximum(length, _NO_STRUCTURE), dtype=np.float32)


def _shrink(grey: Any) -> npt.NDArray[np.uint8]:
    height, width = grey.shape
    if min(height, width) >= 2 * _INNER and height % 2 == width % 2 == 0:
        # OpenCV halves many times faster than it averages over fractional areas.
        grey = cv2.resize(grey, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    large = min(height, width) >= _INNER
    method = cv2.INTER_AREA if large else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(grey, (_INNER, _INNER), interpolation=method), dtype=np.uint8)


def _normalised(grey: Any) -> npt.NDArray[np.float32]:
    """Return log luminance minus its local mean, divided by its local standard deviation."""
    level = np.asarray(cv2.LUT(grey, _LOG), dtype=np.float32)
    level -= _blurred(level)
    deviation = _blurred(level * level)
    level /= np.sqrt(deviation) + _CONTRAST_FLOOR
    return level


def _blurred(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    blurred = cv2.GaussianBlur(values, (0, 0), _LOCAL_SIGMA, borderType=cv2.BORDER_REFLECT)
    return np.asarray(blurred, dtype=np.float32)


def _centred(layouts: npt.NDArray[np.float32], level: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return layouts of zero mean and unit length. Layouts with a deviation below 2.5 grey levels, noise, fade out."""
    layouts = layouts - level[:, None]
    return np.asarray(layouts / np.maximum(np.linalg.norm(layouts, axis=1, keepdims=True), 20.0), dtype=np.float32)


def _colours(means: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return red-green and yellow-blue over the grid, each in (-1, 1), scaled so that the norm of a grid is ≤ 2."""
    red, green, blue = np.moveaxis(means.reshape(len(means), _GRID**2, 3), 2, 0)
    opponents = np.concatenate([red - green, (red + green) / 2 - blue], axis=1)
    return np.asarray(np.tanh(opponents / 60) * (2 / np.sqrt(_COLOURS)), dtype=np.float32)


def _envelope(images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the root mean energy by scale, orientation and grid cell: float32, shape (N, 512)."""
    out = np.empty((len(images), len(_SCALES), _ORIENTATIONS, _GRID, _GRID), dtype=np.float32)
    for start in range(0, len(images), _TOGETHER):
        some = slice(start, start + _TOGETHER)
        spectra = _spectra(images[some])
        for scale, filters in enumerate(_filters()):
            # Smaller windows divide by fewer points, which raises the coarse scales. On photographs all four scales
            # then have about the same energy.
            np.sqrt(filters.energy(spectra), out=out[some, scale])
    return out.reshape(len(images), _ENVELOPE_VALUES)


@dataclass(frozen=True)
class _Filters:
    """The filters of one scale, of all orientations.

    Both steps of the inverse transform, and the mean over the cells, are matrix products, one for each image: the last
    bits of a product depend on its size, and those of an image must not depend on the others. The axes are in such an
    order that nothing is transposed between the products: image, column, orientation, row.

    Attributes:
        width: width W of the window of the spectrum.
        positions: int64, shape (W, O, W): the window's places in the flat spectrum, by column, orientation and row.
        weights: float32, shape (W, O, W, 1).
    """

    width: int
    positions: npt.NDArray[np.intp]
    weights: npt.NDArray[np.float32]

    def energy(self, spectra: npt.NDArray[np.complex64]) -> npt.NDArray[np.float32]:
        """Return the mean energy of the responses: float32, shape (N, O, 4, 4), from spectra, shape (N, 64, 64)."""
        count, width = len(spectra), self.width
        in_rows = np.matmul(self._squares(spectra).reshape(count, width * _ORIENTATIONS, 2 * width), _cells(width))
        grid = in_rows.reshape(count, _GRID, width // _GRID, _ORIENTATIONS, _GRID).sum(axis=2)
        return np.asarray(grid.transpose(0, 2, 3, 1))

    def energy_maps(self, spectrum: npt.NDArray[np.complex64]) -> npt.NDArray[np.float32]:
        """Return the energy of the responses at each place: float32, shape (O, W, W), from one spectrum."""
        squares = self._squares(spectrum[None]).reshape(self.width, _ORIENTATIONS, self.width, 2)
        return np.asarray(squares.sum(axis=3).transpose(1, 2, 0))

    def _squares(self, spectra: npt.NDArray[np.complex64]) -> npt.NDArray[np.float32]:
        """Return the squares of the real and the imaginary parts of responses: shape (N, W, O, 2 * W)."""
        count, width = len(spectra), self.width
        response = np.take(spectra.reshape(-1), self._places[:count], mode="clip")
        values = response.view(np.float32)
        values *= self._weights
        half = np.matmul(_inverse(width), response.reshape(count, width, -1))
        np.matmul(half.reshape(count, -1, width), _inverse(width), out=response.reshape(count, -1, width))
        np.multiply(values, values, out=values)
        return values

    @cached_property
    def _weights(self) -> npt.NDArray[np.float32]:
        """The weights of real and imaginary parts: shape (W, O, 2 * W); broadcasting in the last axis is slow."""
        both = np.broadcast_to(self.weights, (self.width, _ORIENTATIONS, self.width, 2))
        return both.reshape(self.width, _ORIENTATIONS, 2 * self.width)

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """The windows' places in the spectra of several images: shape (4, W, O, W)."""
        return np.asarray(self.positions + _SIZE**2 * np.arange(_TOGETHER)[:, None, None, None])


@cache
def _cells(width: int) -> npt.NDArray[np.float32]:
    """Return the matrix that averages pairs of squares over the cells of a row: float32, shape (2 * width, 4)."""
    cell = width // _GRID
    return np.repeat(np.eye(_GRID, dtype=np.float32), 2 * cell, axis=0) / np.float32(cell**2)


def _spectra(images: npt.NDArray[np.float32]) -> npt.NDArray[np.complex64]:
    """Return the discrete Fourier transforms of images: complex64, shape (N, 64, 64)."""
    spectra = np.empty((*images.shape, 2), dtype=np.float32)
    for image, spectrum in zip(images, spectra, strict=True):
        cv2.dft(image, dst=spectrum, flags=cv2.DFT_COMPLEX_OUTPUT)
    return spectra.view(np.complex64)[..., 0]


@cache
def _inverse(width: int) -> npt.NDArray[np.complex64]:
    """Return the symmetric matrix of the inverse Fourier transform. For this size a matrix product is as fast."""
    turns = np.outer(np.arange(width), np.arange(width)) / width
    return np.asarray(np.exp(2j * np.pi * turns) / width, dtype=np.complex64)


@cache
def _filters() -> tuple[_Filters, ...]:
    return tuple(_filters_of(frequency, width) for frequency, width in _SCALES)


def _filters_of(frequency: float, width: int) -> _Filters:
    positions, weights = [], []
    for angle in np.pi * np.arange(_ORIENTATIONS) / _ORIENTATIONS:
        rows = round(frequency * np.sin(angle) * _SIZE) + np.arange(-width // 2, width // 2)[:, None]
        columns = round(frequency * np.cos(angle) * _SIZE) + np.arange(-width // 2, width // 2)[None, :]
        radius = np.hypot(rows, columns) / _SIZE
        turn = np.angle(np.exp(1j * (np.arctan2(rows, columns) - angle)))
        radial = np.exp(-(np.log(np.maximum(radius, 1e-9) / frequency) ** 2) / (2 * np.log(1.45) ** 2))
        angular = np.exp(-(turn**2) / (2 * (0.9 * np.pi / _ORIENTATIONS) ** 2))
        inside = (np.abs(rows) <= _SIZE // 2) & (np.abs(columns) <= _SIZE // 2) & (radius > 0)
        positions.append((rows % _SIZE) * _SIZE + columns % _SIZE)
        weights.append(np.where(inside, radial * angular, 0.0))
    by_column = (2, 0, 1)
    weights_by_column = np.array(weights, dtype=np.float32).transpose(by_column)
    return _Filters(width, np.array(positions).transpose(by_column), weights_by_column[..., None].copy())


def energy_maps(framed: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.float32]]:
    """Return the energies of the filters all over a greyscale image: for each scale float32, shape (8, W, W).

    Args:
        framed: uint8, shape (64, 64): with a margin, as :meth:`Gist.prepare_within` makes one.
    """
    spectrum = _spectra(_normalised(framed)[None])[0]
    return [filters.energy_maps(spectrum) for filters in _filters()]


@dataclass(frozen=True)
class CellValues:
    """The values of a 4×4 grid of cells, row by row, of N images.

    Attributes:
        energy: float32, shape (N, 16, 32): root mean energies of the filters.
        light: float32, shape (N, 16): luminance, of zero mean where it comes from descriptors.
        colours: float32, shape (N, 2, 16): both opponent colours.
    """

    energy: npt.NDArray[np.float32]
    light: npt.NDArray[np.float32]
    colours: npt.NDArray[np.float32]


def cell_values(vectors: Vectors) -> CellValues:
    """Return the values of the cells of descriptors: shape (N, 610)."""
    filters, half = len(_SCALES) * _ORIENTATIONS, _LAYOUT // _GRID
    envelope = vectors[:, :_ENVELOPE_VALUES].reshape(-1, filters, _GRID**2).transpose(0, 2, 1)
    light = layouts(vectors).reshape(-1, _GRID, half, _GRID, half).mean(axis=(2, 4)).reshape(-1, _GRID**2)
    at = _ENVELOPE_VALUES + _LAYOUT**2
    colours = vectors[:, at : at + _COLOURS].reshape(-1, 2, _GRID**2) / np.float32(_COLOUR_WEIGHT)
    return CellValues(*(np.ascontiguousarray(each, np.float32) for each in (envelope, light, colours)))


def cell_colours(means: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return both opponent colours, shape (N, 2, 16), of mean colours of cells: shape (N, 16, 3), 0–255."""
    return _colours(means.reshape(len(means), -1)).reshape(-1, 2, _GRID**2)
