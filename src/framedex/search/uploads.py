"""Pictures that were given to search by, kept as their vectors, so that any process can go on with the search."""

import re
from contextlib import suppress
from pathlib import Path

import numpy as np

from framedex.arrays import Vectors
from framedex.errors import NotFound, WorkspaceError
from framedex.ids import new_id

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def keep_upload(folder: Path, vector: Vectors) -> str:
    """Keep the vector of a picture; return the anchor id by which it is found again.

    Args:
        folder: of the dataset.
        vector: float32, shape (D,), unit length.

    Raises:
        WorkspaceError: it cannot be written, as on a full disk; nothing is left of it.
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
            raise WorkspaceError(f"cannot keep the picture in {folder}: {error.strerror or error}") from error
        raise
    return anchor_id


def read_upload(folder: Path, anchor_id: str) -> Vectors:
    """Return the vector of a picture: float32, shape (D,), unit length.

    Raises:
        NotFound: there is no such anchor.
    """
    if not isinstance(anchor_id, str) or _UUID.fullmatch(anchor_id) is None:
        raise NotFound(f"no uploaded picture {anchor_id!r}")
    try:
        found: Vectors = np.load(folder / f"{anchor_id}.npy")
    except (OSError, ValueError, EOFError) as error:
        raise NotFound(f"no uploaded picture {anchor_id!r}; upload it again") from error
    return found


def is_upload(folder: Path, anchor_id: str) -> bool:
    """Return whether there is a picture of that anchor id."""
    return _UUID.fullmatch(anchor_id) is not None and (folder / f"{anchor_id}.npy").exists()
