"""Local features: points of an image with short binary codes, by which parts of two images are recognised as the same.

Points and their turns are those of ORB (E. Rublee et al., ICCV 2011), spread over the image. A code has the signs of
the lowest coefficients of the cosine transform of the patch around a point. The patch is turned by the turn of the
point, and mirrored to a standard side, so that turned and mirrored images have the same codes (W.-L. Zhao & C.-W. Ngo,
"Flip-invariant SIFT for copy and object detection", IEEE TIP 22(3), 2013).
"""

from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
LOCAL_FEATURE = np.dtype(
    [("code", "<u8"), ("x", "u1"), ("y", "u1"), ("turn", "u1"), ("level", "i1"), ("is_mirrored", "?")]
)
"""A local feature: the code in the lowest 48 bits; the place, in pixels of an image of at most 192 a side; the turn, in
256ths of a full one; the level of the pyramid; and whether the patch was mirrored."""
LocalFeatures = npt.NDArray[np.void]
"""The features of an image: :data:`LOCAL_FEATURE`, shape (K,)."""
SIDE = 192
MOST = 96
"""The maximum number of features of an image."""
BITS = 48
AGREEING = 4
"""The number of features that agree on one placement, from which two images may show the same."""
_FOUND = 300  # points, of which those are kept that spread best
_CELLS = 4  # a side
_LEVELS, _SCALE = 4, 2**0.5
_FAST = 16  # difference of grey levels of a corner
_EDGE, _ORIENTED = 10, 21  # pixels: margin without points, and width of the patch that gives the turn
_LEAST_SIDE = 24
_GRID, _SPACING = 8, 3.2  # samples a side of a patch, and pixels between them
_BLUR = 1.2
_SIDES = 3  # coefficients whose sum tells the side
_DIFFERENT_BITS = 10  # at most, of codes that match
_APART = 8.0  # pixels between two points that give a turn and a scale
_TURNED, _SCALED = 0.35, 0.8  # radians, and powers of two, by which two estimates of one placement differ


def find_local_features(grey: npt.NDArray[np.uint8]) -> LocalFeatures:
    """Return the local features of a greyscale image without borders: uint8, shape (H, W), any size."""
    factor = SIDE / max(grey.shape)
    if factor < 1:
        size = (max(1, round(grey.shape[1] * factor)), max(1, round(grey.shape[0] * factor)))
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
    if min(grey.shape) < _LEAST_SIDE:
        return np.empty(0, LOCAL_FEATURE)
    orb: Any = cv2.ORB
    detector = orb.create(  # not shared: it is not safe between threads
        _FOUND, _SCALE, _LEVELS, edgeThreshold=_EDGE, patchSize=_ORIENTED, fastThreshold=_FAST
    )
    found = detector.detect(np.ascontiguousarray(grey), None)
    if not found:
        return np.empty(0, LOCAL_FEATURE)
    columns = [(*each.pt, each.angle, each.octave, each.response) for each in found]
    x, y, degrees, levels, strength = np.array(columns, np.float32).T
    kept = _spread(x / grey.shape[1], y / grey.shape[0], strength)
    x, y, turn, level = x[kept], y[kept], np.radians(degrees[kept]), levels[kept].astype(np.int8)
    features = np.empty(len(kept), LOCAL_FEATURE)
    features["x"], features["y"], features["level"] = np.rint(x), np.rint(y), level
    features["turn"] = np.rint(turn * (128 / np.pi)).astype(np.int64) % 256
    features["code"], features["is_mirrored"] = _codes(_patches(grey, x, y, turn, level))
    return features


def _spread(x: Any, y: Any, strength: Any) -> npt.NDArray[np.intp]:
    """Return the points to keep: the strongest of each cell, then the second ones, and so on; places are in [0, 1)."""
    cell = (x * _CELLS).astype(np.intp) * _CELLS + (y * _CELLS).astype(np.intp)
    order = np.lexsort((-strength, cell))
    first = np.searchsorted(cell[order], cell[order])
    rank = np.arange(len(order)) - first
    return np.asarray(order[np.lexsort((-strength[order], rank))[:MOST]])


def _patches(grey: npt.NDArray[np.uint8], x: Any, y: Any, turn: Any, level: Any) -> npt.NDArray[np.float32]:
    """Return the patches around points, in their turns: float32, shape (K, 64)."""
    along, across = _grid()
    cosine, sine = np.cos(turn)[:, None], np.sin(turn)[:, None]
    right, down = cosine * along - sine * across, sine * along + cosine * across
    patches = np.empty((len(x), _GRID**2), np.float32)
    height, width = grey.shape
    for number in np.unique(level).tolist():
        of_level = np.flatnonzero(level == number)
        factor = _SCALE**-number
        size = (max(_GRID, round(width * factor)), max(_GRID, round(height * factor)))
        reduced = cv2.resize(grey, size, interpolation=cv2.INTER_AREA) if number else grey
        smooth = cv2.blur(reduced, (3, 3))
        columns, rows = x[of_level, None] * factor + right[of_level], y[of_level, None] * factor + down[of_level]
        patches[of_level] = cv2.remap(smooth, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return patches


@cache
def _grid() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the places of the samples of a patch along and across its turn: float32, shape (64,)."""
    places = (np.arange(_GRID, dtype=np.float32) - (_GRID - 1) / 2) * _SPACING
    across, along = np.meshgrid(places, places, indexing="ij")
    return along.ravel(), across.ravel()


@cache
def _transform() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return the cosine transform to the lowest coefficients, and those whose sign a mirror image changes.

    float32, shape (64, 48); bool, shape (48,).
    """
    number, place = np.arange(_GRID)[:, None], np.arange(_GRID)[None]
    basis = np.cos(np.pi * (2 * place + 1) * number / (2 * _GRID))
    numbers = sorted(np.ndindex(_GRID, _GRID), key=lambda each: (sum(each), each[0]))[1 : BITS + 1]
    matrix = np.stack([np.outer(basis[across], basis[along]).ravel() for across, along in numbers], axis=1)
    return matrix.astype(np.float32), np.array([across % 2 == 1 for across, _ in numbers])


def _codes(patches: npt.NDArray[np.float32]) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the codes of patches, and whether they were mirrored."""
    matrix, is_odd = _transform()
    coefficients = patches @ matrix
    is_mirrored = coefficients[:, np.flatnonzero(is_odd)[:_SIDES]].sum(axis=1) < 0
    bits = (coefficients > 0) ^ (is_mirrored[:, None] & is_odd)
    return bits @ (np.uint64(1) << np.arange(BITS, dtype=np.uint64)), is_mirrored


def agreeing_features(a: LocalFeatures, b: LocalFeatures) -> int:
    """Return the number of features of two images that agree on how one of them is placed upon the other one.

    Features match where each is the closest of the other one. Two matches agree where the turn and the scale between
    their points are those of the features themselves.
    """
    if min(len(a), len(b)) < AGREEING:
        return 0
    different = np.bitwise_count(a["code"][:, None] ^ b["code"])
    mine, its = np.divmod(np.flatnonzero(different <= _DIFFERENT_BITS), len(b))
    if len(mine) < AGREEING:  # as in most pairs
        return 0
    is_mutual = (different.argmin(axis=1)[mine] == its) & (different.argmin(axis=0)[its] == mine)
    mine, nearest = mine[is_mutual], its[is_mutual]
    if len(mine) < AGREEING:
        return 0
    a, b = a[mine], b[nearest]
    is_mirrored = a["is_mirrored"] != b["is_mirrored"]
    here, there = (each["x"] + 1j * each["y"].astype(np.float32) for each in (a, b))
    here = np.where(is_mirrored, here.conj(), here)
    turn = a["turn"].astype(np.float32) * np.where(is_mirrored, -1, 1)
    turn = (b["turn"] - turn) * np.float32(np.pi / 128)
    scale = (b["level"] - a["level"]) * np.float32(np.log2(_SCALE))
    between, others = here - here[:, None], there - there[:, None]
    is_apart = (np.abs(between) > _APART) & (np.abs(others) > 0) & (is_mirrored == is_mirrored[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = others / between
        is_turned = np.abs(np.angle(ratio * np.exp(-1j * turn)[:, None])) < _TURNED
        is_scaled = np.abs(np.log2(np.abs(ratio)) - scale[:, None]) < _SCALED
    agreeing = (is_apart & is_turned & is_scaled).sum(axis=1).max()
    return int(agreeing) + 1 if agreeing else 0
