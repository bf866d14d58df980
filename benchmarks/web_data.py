"""Workspaces for ``web.py``: clustered vectors with labels, whose rows name small photographs.

The files of a million rows are links to a few photographs, so a workspace needs little room, while each row has its
own path and thumbnail.
"""

import os
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex import Workspace

NAME = "web"
_PHOTOS, _WIDTH, _HEIGHT = 64, 1200, 900
_DIMENSION, _MEMBERS, _CLASSES = 16, 50, 40
_COPIES = 0.01  # of the rows, each of another one
_MISLABELLED = 0.02
_IN_FOLDER = 1000


def make(workspace: Path, rows: int) -> None:
    """Create the dataset of so many rows in a workspace, and the photographs beside it."""
    files = _linked(workspace.parent / f"{workspace.name}-files", rows)
    vectors, clusters = _vectors(rows)
    random = np.random.default_rng(1)
    wrong = random.random(rows) < _MISLABELLED
    classes = np.where(wrong, random.integers(_CLASSES, size=rows), clusters % _CLASSES)
    columns = {
        "uri": pa.array(files),
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), _DIMENSION),
        "label": pa.array([f"class {number:02}" for number in classes.tolist()]),
        "width": pa.array([_WIDTH] * rows, pa.int32()),
        "height": pa.array([_HEIGHT] * rows, pa.int32()),
    }
    with Workspace(workspace) as opened:
        opened.create_dataset(NAME, pa.table(columns))


def _vectors(rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return vectors of unit length around centres, some of them copies of others, and the cluster of each."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(1, rows // _MEMBERS), _DIMENSION), dtype=np.float32)
    clusters = random.integers(len(centres), size=rows)
    vectors = centres[clusters] + 0.35 * random.standard_normal((rows, _DIMENSION), dtype=np.float32)
    copies = random.choice(rows, int(rows * _COPIES), replace=False)
    originals = random.integers(rows, size=len(copies))
    vectors[copies], clusters[copies] = vectors[originals], clusters[originals]
    vectors[copies] += 0.01 * random.standard_normal((len(copies), _DIMENSION), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), clusters


def _linked(folder: Path, rows: int) -> list[str]:
    """Fill a folder with links to a few photographs, one for each row; return their paths."""
    photos = [_photo(folder / "photos" / f"{number:02}.jpg", number) for number in range(_PHOTOS)]
    paths = []
    for number in range(rows):
        place = folder / f"{number // _IN_FOLDER:04}"
        if number % _IN_FOLDER == 0:
            place.mkdir(parents=True, exist_ok=True)
        path = f"{place}/{number:07}.jpg"
        os.link(photos[number % _PHOTOS], path)
        paths.append(path)
    return paths


def _photo(path: Path, seed: int) -> Path:
    """Write an image of soft coloured areas and noise."""
    random = np.random.default_rng(seed)
    coarse = cv2.resize(random.random((6, 8, 3)).astype(np.float32), (_WIDTH, _HEIGHT), interpolation=cv2.INTER_CUBIC)
    fine = cv2.resize(random.random((90, 120, 3)).astype(np.float32), (_WIDTH, _HEIGHT), interpolation=cv2.INTER_LINEAR)
    pixels = np.clip(255 * (0.75 * coarse + 0.25 * fine), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), pixels, [cv2.IMWRITE_JPEG_QUALITY, 88]):
        raise OSError(f"cannot write {path}")
    return path
