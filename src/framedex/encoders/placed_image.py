"""Placements of an image as a part of larger ones: the values that a descriptor of such an image would have there.

A crop has another descriptor than its source. But the descriptor of the source (:mod:`framedex.encoders.gist`)
describes each cell of a grid by itself. So the cells that a crop covers are known for each size and place that it may
have had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.borders import BorderedImage
from framedex.encoders.gist import CellValues, cell_colours, energy_maps

__all__ = ["Placements", "placements"]

_FRAMED, _MARGIN, _SIDE, _GRID = 64, 4, 56, 4  # pixels of the images that are described, and cells a side
_STEP = 0.15  # of a side, between places
_LEAST_COVERED = 0.1  # of a cell
_LEAST_SIDE = 6  # pixels
_Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Placements:
    """Placements of an image within a larger one, H in all.

    Attributes:
        cells: the values of the cells of the larger image that the image covers; any elsewhere.
        covered: float32, shape (H, 16): the share of each cell that it covers.
        width: float32, shape (H,): the share of the width of the larger image that it takes.
    """

    cells: CellValues
    covered: _Matrix
    width: _Matrix


def placements(image: BorderedImage, sizes: Sequence[tuple[float, float]]) -> Placements:
    """Return the placements of an image, without its borders, at some sizes.

    Args:
        image: the image.
        sizes: at least one: the shares of the width and of the height of the larger image that it takes.
    """
    parts = [_placed(image, *each) for each in sizes]
    cells = CellValues(
        np.concatenate([each.cells.energy for each in parts]),
        np.concatenate([each.cells.light for each in parts]),
        np.concatenate([each.cells.colours for each in parts]),
    )
    covered, width = (np.concatenate([getattr(each, name) for each in parts]) for name in ("covered", "width"))
    return Placements(cells, covered, width)


def _placed(image: BorderedImage, width: float, height: float) -> Placements:
    """Return the placements at one size."""
    wide, high = (min(_SIDE, max(_LEAST_SIDE, round(_SIDE * share))) for share in (width, height))
    grey, pixels = (_framed(each, wide, high) for each in (image.inner_grey, image.inner_pixels))
    (across, covered_across), (down, covered_down) = _means(wide), _means(high)
    count, cells = len(covered_across) * len(covered_down), _GRID**2

    def means(maps: npt.NDArray[Any]) -> _Matrix:
        """Return the means of maps, shape (M, W, W), over the covered cells: shape (H, 16, M)."""
        finer = _interpolation(maps.shape[1])
        found = np.matmul(np.matmul(down @ finer, maps.astype(np.float32)), (across @ finer).T)
        grid = found.reshape(len(maps), len(covered_down), _GRID, len(covered_across), _GRID)
        return np.asarray(grid.transpose(1, 3, 2, 4, 0).reshape(count, cells, len(maps)))

    energy = np.concatenate([means(each) for each in energy_maps(grey)], axis=2)
    values = CellValues(
        np.sqrt(np.maximum(energy, 0)), means(grey[None])[..., 0], cell_colours(means(np.moveaxis(pixels, 2, 0)))
    )
    covered = (covered_down[:, None, :, None] * covered_across[None, :, None, :]).reshape(count, cells)
    return Placements(values, np.where(covered > _LEAST_COVERED, covered, 0), np.full(count, wide / _SIDE, np.float32))


def _framed(pixels: npt.NDArray[np.uint8], width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return an image at a size in the upper left corner of a larger one, which is filled by its reflections."""
    small = cv2.resize(np.ascontiguousarray(pixels), (width, height), interpolation=cv2.INTER_AREA)
    below, beside = _FRAMED - _MARGIN - height, _FRAMED - _MARGIN - width
    return np.asarray(cv2.copyMakeBorder(small, _MARGIN, below, _MARGIN, beside, cv2.BORDER_REFLECT), np.uint8)


@cache
def _interpolation(size: int) -> _Matrix:
    """Return the matrix that interpolates a row of values to 64 ones: shape (64, size)."""
    return np.asarray(cv2.resize(np.eye(size, dtype=np.float32), (size, _FRAMED)), np.float32)


@cache
def _means(size: int) -> tuple[_Matrix, _Matrix]:
    """Return the matrix of the means over the cells along one side, and the shares of the cells that are covered.

    Their shapes are (P * 4, 64) and (P, 4), for P places.
    """
    places = np.linspace(0, _SIDE - size, 1 + int(np.ceil((_SIDE - size) / (_SIDE * _STEP) - 1e-3)))
    edges = np.arange(_GRID + 1) * (_SIDE / _GRID)
    start = np.clip(edges[:-1] - places[:, None], 0, size)
    end = np.clip(edges[1:] - places[:, None], 0, size)
    pixel = np.arange(_FRAMED) - _MARGIN
    shares = np.clip(np.minimum(pixel + 1, end[..., None]) - np.maximum(pixel, start[..., None]), 0, 1)
    lengths = np.maximum(end - start, 1e-6)
    matrix = (shares / lengths[..., None]).reshape(-1, _FRAMED).astype(np.float32)
    return matrix, (_GRID / _SIDE * (end - start)).astype(np.float32)
