"""Run-length encoded masks of COCO: runs of pixels column by column, the first of pixels outside of the object.

The compressed form of ``counts`` has 5 bits of a number a character, the lowest first, and from the third number on the
difference to the one before the last (``rleFrString`` in ``maskApi.c`` of pycocotools 2.0).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

MOST_PIXELS = 2**27
"""The most pixels of a mask that is read: an array of them takes a byte for each."""
_OFFSET, _MORE, _SIGN = 48, 0x20, 0x10


def runs_of(counts: str | list[int]) -> list[int]:
    """Return the lengths of the runs of a mask.

    Raises:
        ValueError: a compressed text is malformed.
    """
    if not isinstance(counts, str):
        return counts
    runs: list[int] = []
    number = shift = 0
    for sign in counts.encode():
        digit = sign - _OFFSET
        if not 0 <= digit < 64 or shift > 60:
            raise ValueError("the 'counts' of a mask must be a list of numbers, or a text of COCO's encoding")
        number |= (digit & 0x1F) << shift
        shift += 5
        if digit & _MORE:
            continue
        if digit & _SIGN:
            number -= 1 << shift
        runs.append(number + runs[-2] if len(runs) > 2 else number)
        number = shift = 0
    if shift or any(run < 0 for run in runs):
        raise ValueError("the 'counts' of a mask must be a list of numbers, or a text of COCO's encoding")
    return runs


def bounds_of_mask(mask: dict[str, Any]) -> tuple[float, float, float, float] | None:
    """Return x, y, width and height of the pixels of a mask; None for an empty mask."""
    height = mask["size"][0]
    ends = np.cumsum(runs_of(mask["counts"]), dtype=np.int64)
    starts, ends = ends[0::2][: len(ends) // 2], ends[1::2]
    starts, ends = starts[ends > starts], ends[ends > starts]
    if not len(starts):
        return None
    left, right = int(starts[0]) // height, (int(ends[-1]) - 1) // height
    columns_end = (ends - 1) // height
    is_wide = columns_end > starts // height  # such a run has the last pixel of a column, and the first of the next
    top = 0 if is_wide.any() else int((starts % height).min())
    bottom = height - 1 if is_wide.any() else int(((ends - 1) % height).max())
    return float(left), float(top), float(right - left + 1), float(bottom - top + 1)


def pixels_of(mask: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return a mask as an array of shape (H, W); pixels behind its last run are outside of the object."""
    height, width = mask["size"]
    runs = runs_of(mask["counts"])
    values = np.zeros(len(runs), bool)
    values[1::2] = True
    pixels = np.repeat(values, runs)
    return np.pad(pixels, (0, height * width - len(pixels))).reshape(width, height).T


def mask_of_pixels(pixels: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the mask of an array of shape (H, W), not compressed."""
    flat = pixels.T.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], edges, [len(flat)]])).tolist()
    return {"size": list(pixels.shape), "counts": [0, *runs] if len(flat) and flat[0] else runs}
