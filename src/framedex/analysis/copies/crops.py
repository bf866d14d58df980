"""The search for images of which an image may be a part, by what their descriptors say of each cell of a grid."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.units import Rows
from framedex.core.arrays import Mask, Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.executors import Executor

_COMPONENTS = 8  # of the energies of a cell
_SAMPLED = 1024
_FIRST = 1024  # images that are compared before others, those with the most similar energies
_BLOCK = 1024  # rows that are compared at a time; their scores stay in the processor's cache
_ASPECT = 0.25  # width of a class of aspects, in octaves
_LARGEST, _SMALLER, _LEAST_AREA = (
    1.0,
    0.85,
    0.18,
)  # sizes of a part: that of the whole, the next one, and the least area
_EDGES = 2.0  # exponent of the weight of cells that are covered in part
_LIGHT, _COLOUR = 0.4, 9.6  # weights
_LIGHT_PRODUCT, _COLOUR_PRODUCT = 4.0, 0.04  # of cells, for the product of the descriptors
_LEAST_LIGHT, _LEAST_CONTRAST = 4.0, 1e-5  # variances of light that is no noise, in grey levels and in descriptors
_FEW = 1e-6
_LEVELS = 127
_HEADROOM = 1.25  # of the values of all rows over those of the sample


class CellGrids(Protocol):
    """The values of a grid of C cells, of N images."""

    @property
    def energy(self) -> Vectors:
        """Root mean energies of E filters: float32, shape (N, C, E)."""

    @property
    def light(self) -> Vectors:
        """Luminance: float32, shape (N, C)."""

    @property
    def colours(self) -> Vectors:
        """Opponent colours: float32, shape (N, 2, C)."""


class PlacedGrids(Protocol):
    """An image in H places of larger ones."""

    @property
    def cells(self) -> CellGrids:
        """The values of the cells that it covers."""

    @property
    def covered(self) -> Vectors:
        """The share of each cell that it covers: float32, shape (H, C)."""

    @property
    def width(self) -> Vectors:
        """The share of the width that it takes: float32, shape (H,)."""


Place = Callable[[Sequence[tuple[float, float]]], PlacedGrids]
"""Returns the placements of an image at some sizes, which are shares of the width and of the height of a larger one."""


@dataclass(frozen=True)
class WholeImages:
    """The images of which one may be a part.

    Attributes:
        rows: int64, shape (K,): the nearest ones, nearest first.
        scores: float32, shape (K,): higher is nearer.
        widths: float32, shape (K,): the share of its width that the part takes.
    """

    rows: Rows
    scores: Vectors
    widths: Vectors


class CropIndex:
    """The cells of images in eight bits each: for a grid of 16 cells, 176 bytes an image.

    Args:
        basis: float32, shape (E, 8): the principal components of the energies of cells.
        scale: float32, shape (D,): the value of one step of each column.
        codes: int8, shape (N, D): energies, light and colours of the images.
        aspects: int16, shape (N,), ascending: their classes of aspects.
        rows: int64, shape (N,): the numbers of the images.
    """

    def __init__(
        self,
        basis: Vectors,
        scale: Vectors,
        codes: npt.NDArray[np.int8],
        aspects: npt.NDArray[np.int16],
        rows: Rows,
    ) -> None:
        self._basis, self._scale, self._codes, self._aspects, self._rows = basis, scale, codes, aspects, rows

    @classmethod
    def of(
        cls, count: int, cells: Callable[[Vectors], CellGrids], blocks: Iterable[tuple[Vectors, Vectors]]
    ) -> "CropIndex":
        """Return the index of images.

        Args:
            count: the number of images at most, at least that of the descriptors.
            cells: returns the cells of descriptors.
            blocks: descriptors, and the aspects of the images, width over height.
        """
        codes, aspects, start = np.empty((0, 0), np.int8), np.empty(count, np.int16), 0
        basis = scale = np.empty(0, np.float32)
        for vectors, aspect in blocks:
            values, end = cells(vectors), start + len(vectors)
            if not len(basis):
                basis = _basis(values)
                scale = _HEADROOM / _LEVELS * np.abs(_columns(values, basis)).max(axis=0) + np.float32(_FEW)
                codes = np.empty((count, len(scale)), np.int8)
            codes[start:end] = np.clip(np.rint(_columns(values, basis) / scale), -_LEVELS, _LEVELS)
            aspects[start:end] = np.rint(np.log2(aspect) / _ASPECT)
            start = end
        order = np.argsort(aspects[:start], kind="stable")
        return cls(basis, scale, codes[order], aspects[order], order)

    @property
    def arrays(self) -> dict[str, Any]:
        """The arguments of the index, by name."""
        return {
            "basis": self._basis,
            "scale": self._scale,
            "codes": self._codes,
            "aspects": self._aspects,
            "rows": self._rows,
        }

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self._codes.nbytes + self._rows.nbytes + self._aspects.nbytes

    def nearest(self, values: CellGrids, count: int, *, executor: Executor) -> Rows:
        """Return the images nearest to any of Q ones, nearest first.

        Args:
            values: the cells of the Q images.
            count: the number of images, at most.
            executor: compares them.
        """
        columns = _columns(values, self._basis) * self._scale
        cells = values.light.shape[1]
        columns[:, -3 * cells : -2 * cells] *= _LIGHT_PRODUCT
        columns[:, -2 * cells :] *= _COLOUR_PRODUCT
        targets = np.ascontiguousarray(columns.T, np.float32)
        starts = range(0, len(self._rows), _BLOCK)
        with single_threaded_blas():
            scores = np.concatenate(list(executor.map(partial(_products, self._codes, targets), starts)))
        best = np.argpartition(-scores, min(count, len(scores)) - 1)[:count]
        return self._rows[best[np.lexsort((self._rows[best], -scores[best]))]]

    def whole_images(self, aspect: float, place: Place, count: int, *, executor: Executor) -> WholeImages:
        """Return the images of which an image is a part most likely.

        Args:
            aspect: of the image, width over height.
            place: returns its placements.
            count: the number of images, at most.
            executor: compares them.
        """
        if not len(self._rows):
            return WholeImages(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))
        classes, starts = np.unique(self._aspects, return_index=True)
        groups: list[tuple[Rows, _Comparison]] = []
        ends = [*starts[1:].tolist(), len(self._rows)]
        with single_threaded_blas():  # its threads wait for each other longer than these products take
            for number, start, end in zip(classes.tolist(), starts.tolist(), ends, strict=True):
                if sizes := _sizes(aspect / 2.0 ** (number * _ASPECT)):
                    groups.append((np.arange(start, end), _Comparison.of(place(sizes), self._basis, self._scale)))
            if not groups:
                return WholeImages(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))
            best, scores, widths = self._best(groups, count, executor)
        order = np.lexsort((self._rows[best], -scores))[:count]
        return WholeImages(self._rows[best[order]], scores[order], widths[order])

    def _best(
        self, groups: Sequence[tuple[Rows, "_Comparison"]], count: int, executor: Executor
    ) -> tuple[Rows, Vectors, Vectors]:
        """Return the places with the best scores, at least *count* of them, the scores and the widths.

        The energies alone bound a score, as light adds at most its weight and colours add nothing. So after those with
        the largest energies, only places are compared whose bound reaches the score that is needed.
        """
        parts = [(rows[at : at + _BLOCK], each) for rows, each in groups for at in range(0, len(rows), _BLOCK)]
        bounds = np.full(len(self._rows), -np.inf, np.float32)
        for (rows, _), energy in zip(parts, executor.map(partial(_energies, self._codes), parts), strict=True):
            bounds[rows] = energy + np.float32(_LIGHT + _FEW)
        first = np.argpartition(-bounds, min(_FIRST, len(bounds)) - 1)[:_FIRST]
        is_first = np.zeros(len(bounds), np.bool_)
        is_first[first] = True
        found = [self._compare(groups, is_first, executor)]
        least = np.partition(found[0][1], -min(count, len(found[0][1])))[-min(count, len(found[0][1]))]
        if (further := (bounds >= least) & ~is_first).any():
            found.append(self._compare(groups, further, executor))
        rows, scores, widths = (np.concatenate(each) for each in zip(*found, strict=True))
        return rows, scores, widths

    def _compare(
        self, groups: Sequence[tuple[Rows, "_Comparison"]], chosen: Mask, executor: Executor
    ) -> tuple[Rows, Vectors, Vectors]:
        """Return the chosen places of groups, their scores and widths."""
        selected = [(rows[chosen[rows]], each) for rows, each in groups]
        parts = [(rows[at : at + _BLOCK], each) for rows, each in selected for at in range(0, len(rows), _BLOCK)]
        scores, widths = zip(*executor.map(partial(_compared, self._codes), parts), strict=True)
        return np.concatenate([rows for rows, _ in parts]), np.concatenate(scores), np.concatenate(widths)


def _basis(values: CellGrids) -> Vectors:
    """Return the principal components of the energies of cells of unit length."""
    some = values.energy[np.linspace(0, len(values.energy) - 1, min(_SAMPLED, len(values.energy))).astype(np.int64)]
    energy = some.reshape(-1, some.shape[2])
    energy = energy / np.maximum(np.linalg.norm(energy, axis=1, keepdims=True), np.float32(1e-3))
    return np.asarray(np.linalg.eigh(energy.T @ energy)[1][:, ::-1][:, :_COMPONENTS], np.float32)


def _columns(values: CellGrids, basis: Vectors) -> Vectors:
    """Return the values of images in a row each."""
    energy = values.energy @ basis
    return np.concatenate([each.reshape(len(energy), -1) for each in (energy, values.light, values.colours)], axis=1)


def _sizes(ratio: float) -> list[tuple[float, float]]:
    """Return the sizes that a part may have, given the ratio of its aspect to that of the whole."""
    sizes, side = [], min(ratio**0.5, ratio**-0.5)
    while side**2 >= _LEAST_AREA:
        sizes.append((side * ratio**0.5, side / ratio**0.5))
        side *= _SMALLER
    return sizes


@dataclass(frozen=True)
class _Comparison:
    """Weighted values of an image in H places.

    Attributes:
        weights: float32, shape (C, H): of the cells; their sum is 1.
        energy: float32, shape (C * 8, H): of unit length in each place.
        light: float32, shape (C, H): of zero mean and unit variance.
        colours: float32, shape (2 * C, H), and the sums of their squares: shape (H,).
        both: float32, shape (2 * C, H): the weights of colours.
        scales: of the columns of energies, of light and of colours.
        widths: float32, shape (H,).
    """

    weights: Vectors
    energy: Vectors
    light: Vectors
    colours: Vectors
    squares: Vectors
    both: Vectors
    scales: tuple[Vectors, Vectors, Vectors]
    widths: Vectors

    @classmethod
    def of(cls, placed: PlacedGrids, basis: Vectors, scale: Vectors) -> "_Comparison":
        weights = placed.covered**_EDGES
        weights = weights / weights.sum(axis=1, keepdims=True)
        energy = placed.cells.energy @ basis
        energy = energy / np.sqrt((weights[..., None] * energy**2).sum(axis=(1, 2), keepdims=True) + _FEW)
        light = placed.cells.light
        light = light - (weights * light).sum(axis=1, keepdims=True)
        light = light / np.sqrt(np.maximum((weights * light**2).sum(axis=1, keepdims=True), _LEAST_LIGHT))
        colours, both = placed.cells.colours.reshape(len(weights), -1), np.concatenate([weights, weights], axis=1)
        ends = np.cumsum([weights.shape[1] * _COMPONENTS, weights.shape[1]]).tolist()
        first, second, third = np.split(scale, ends)
        weighted = (weights[..., None] * energy).reshape(len(weights), -1)
        squares = (both * colours**2).sum(axis=1)
        matrices = (weights, weighted, weights * light, both * colours)
        shaped = tuple(np.ascontiguousarray(each.T, np.float32) for each in (*matrices, both))
        return cls(shaped[0], shaped[1], shaped[2], shaped[3], squares, shaped[4], (first, second, third), placed.width)


def _products(codes: npt.NDArray[np.int8], targets: Vectors, start: int) -> Vectors:
    """Return the largest product of each image of a block."""
    return np.asarray((codes[start : start + _BLOCK].astype(np.float32) @ targets).max(axis=1))


def _energies(codes: npt.NDArray[np.int8], part: tuple[Rows, _Comparison]) -> Vectors:
    """Return the largest cosine of the energies of each of some images."""
    rows, places = part
    return np.asarray(_energy_scores(codes[rows[0] : rows[-1] + 1], places).max(axis=1))


def _energy_scores(codes: npt.NDArray[np.int8], places: _Comparison) -> Vectors:
    """Return the cosine of the energies of images in each place."""
    energy = codes[:, : len(places.scales[0])].astype(np.float32) * places.scales[0]
    lengths = (energy**2).reshape(len(energy), -1, _COMPONENTS).sum(axis=2)
    scores = energy @ places.energy
    scores /= np.sqrt(lengths @ places.weights) + np.float32(_FEW)
    return np.asarray(scores)


def _compared(codes: npt.NDArray[np.int8], part: tuple[Rows, _Comparison]) -> tuple[Vectors, Vectors]:
    """Return the best score of each of some images, and the width of the placement that has it."""
    rows, places = part
    some = codes[rows]
    ends = np.cumsum([len(each) for each in places.scales])[:-1].tolist()
    light, colours = (
        each.astype(np.float32) * scale
        for each, scale in zip(np.split(some, ends, axis=1)[1:], places.scales[1:], strict=True)
    )
    scores = _energy_scores(some, places)
    contrast = light**2 @ places.weights
    contrast -= (light @ places.weights) ** 2
    shown = light @ places.light
    shown /= np.sqrt(np.maximum(contrast, np.float32(_LEAST_CONTRAST)))
    scores += np.float32(_LIGHT) * shown
    apart = colours**2 @ places.both
    apart -= 2 * (colours @ places.colours)
    apart += places.squares
    scores -= np.float32(_COLOUR) * apart
    best = scores.argmax(axis=1)
    return scores[np.arange(len(best)), best], places.widths[best]
