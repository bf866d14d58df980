"""Stored query images, so that any process can continue a search.

A query image is a file ``<anchor id>.npz``: its embedding, and the item whose copies come first, or a JPEG in which its
copies are searched. Versions of the program before 0.1 wrote ``<anchor id>.npy``, with the embedding alone.
"""

import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from framedex.core.ids import is_id, new_id
from framedex.core.regular_files import regular
from framedex.errors import NotFound, WorkspaceError
from framedex.search.query_images import QueryImage, QueryPixels

_FORMAT = 2
_SIDE, _QUALITY = 1280, 90  # of the JPEG: the largest size at which images are compared
_SUFFIXES = (".npz", ".npy")
_DAMAGES = (
    OSError, ValueError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, cv2.error,
)  # fmt: skip


def keep_upload(folder: Path, image: QueryImage) -> str:
    """Store a query image; return its anchor id.

    Args:
        folder: the dataset's folder of query images.
        image: the image.

    Raises:
        WorkspaceError: the image cannot be written, for example on a full disk; no file remains.
    """
    anchor_id = new_id()
    partial = folder / f"{anchor_id}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.savez(file, format=np.int64(_FORMAT), vector=image.vector, **_arrays(image.shown))
        partial.rename(folder / f"{anchor_id}.npz")
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise WorkspaceError(f"cannot keep the image in {folder}: {error.strerror or error}") from error
        raise
    return anchor_id


def read_upload(folder: Path, anchor_id: str) -> QueryImage:
    """Return a stored query image.

    Raises:
        NotFound: the anchor does not exist.
    """
    if not is_id(anchor_id):
        raise NotFound(f"no uploaded image {anchor_id!r}")
    path = _path(folder, anchor_id)
    try:
        with regular(path).open("rb") as file:  # NumPy leaves a damaged one open
            arrays = np.load(file)
            if path.suffix == ".npy":
                return QueryImage(arrays)
            if int(arrays["format"]) != _FORMAT:
                raise ValueError("another version of the program wrote it")
            return QueryImage(arrays["vector"], _shown(arrays))
    except _DAMAGES as error:
        raise NotFound(f"no uploaded image {anchor_id!r}; upload it again") from error


def is_upload(folder: Path, anchor_id: str) -> bool:
    """Return whether an anchor id exists."""
    return is_id(anchor_id) and _path(folder, anchor_id).exists()


def _path(folder: Path, anchor_id: str) -> Path:
    paths = [folder / f"{anchor_id}{suffix}" for suffix in _SUFFIXES]
    return next((path for path in paths if path.exists()), paths[0])


def _arrays(shown: str | QueryPixels | None) -> dict[str, Any]:
    """Return the arrays of an item, or of an image."""
    if shown is None:
        return {}
    if isinstance(shown, str):
        return {"item": np.array(shown)}
    pixels = cv2.cvtColor(shown.reduced_to(_SIDE).pixels, cv2.COLOR_RGB2BGR)
    is_encoded, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    assert is_encoded, "pixels are a JPEG"
    return {
        "image": data,
        "size": np.array(shown.size),
        "content": np.frombuffer(shown.content, np.uint8),
        "is_damaged": np.array(shown.is_damaged),
    }


def _shown(arrays: Any) -> str | QueryPixels | None:
    """Return the item, or the image, of stored arrays."""
    if "item" in arrays:
        return str(arrays["item"])
    if "image" not in arrays:
        return None
    pixels = cv2.imdecode(arrays["image"], cv2.IMREAD_COLOR)
    if pixels is None:
        raise ValueError("the image is damaged")
    width, height = arrays["size"].tolist()
    return QueryPixels(
        np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8),
        (width, height),
        arrays["content"].tobytes(),
        bool(arrays["is_damaged"]),
    )
