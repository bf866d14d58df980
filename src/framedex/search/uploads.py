"""Stored vectors of query images, so that any process can continue a search."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from framedex.core.arrays import Vectors
from framedex.core.ids import is_id, new_id
from framedex.core.regular_files import regular
from framedex.errors import NotFound, WorkspaceError


def keep_upload(folder: Path, vector: Vectors) -> str:
    """Store the vector of a query image; return its anchor id.

    Args:
        folder: the dataset's folder of query images.
        vector: float32, shape (D,), unit length.

    Raises:
        WorkspaceError: the vector cannot be written, for example on a full disk; no file remains.
    """
    anchor_id = new_id()
    partial = folder / f"{anchor_id}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.save(file, vector)
        partial.rename(folder / f"{anchor_id}.npy")
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise WorkspaceError(f"cannot keep the image in {folder}: {error.strerror or error}") from error
        raise
    return anchor_id


def read_upload(folder: Path, anchor_id: str) -> Vectors:
    """Return the stored vector of a query image: float32, shape (D,), unit length.

    Raises:
        NotFound: the anchor does not exist.
    """
    if not is_id(anchor_id):
        raise NotFound(f"no uploaded image {anchor_id!r}")
    try:
        row: Vectors = np.load(regular(folder / f"{anchor_id}.npy"))
    except (OSError, ValueError, EOFError) as error:
        raise NotFound(f"no uploaded image {anchor_id!r}; upload it again") from error
    return row


def is_upload(folder: Path, anchor_id: str) -> bool:
    """Return whether an anchor id exists."""
    return is_id(anchor_id) and (folder / f"{anchor_id}.npy").exists()
