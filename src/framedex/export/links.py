"""Links out of a source folder: a check that an export copies only indexed images through them.

Anyone who shares a folder can add a link to any file of the machine. Links to images elsewhere are common, too:
download caches and versioned data consist of them. So a file outside of its source is copied only if it is still the
image of the dataset: ingestion decoded it, and its content has not changed.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, BinaryIO, ClassVar

from framedex.errors import CannotDecode
from framedex.media.decode import decode
from framedex.settings import Settings

_PART = 2**20


class LeftOut(CannotDecode):
    """A file that an export leaves out although it can be read.

    Attributes:
        reason: the reason for several files, for a summary.
    """

    reason: ClassVar[str]


class LeadsOutside(LeftOut):
    """A file outside of its source folder that is not the indexed image."""

    reason = "a link leads out of their source folder, and not to an image that was indexed"


def check_inside(file: BinaryIO, location: str, root: str | None, row: Mapping[str, Any], settings: Settings) -> None:
    """Check that a file lies within its source folder, or is the image that ingestion decoded.

    Args:
        file: an open file at its start, where it is left.
        location: its absolute path.
        root: the source folder, or None for a file that was added by its own path.
        row: with ``error`` and ``content_hash``.
        settings: limits.

    Raises:
        LeadsOutside: the file is outside of the folder, and is not the indexed image.
    """
    if root is None or _is_within(file, location, root):
        return
    if row["error"] is not None or not _is_as_ingested(file, row["content_hash"], settings):
        raise LeadsOutside("a link leads out of the source folder, and not to an image that was indexed")
    file.seek(0)


def _is_within(file: BinaryIO, location: str, root: str) -> bool:
    """Return whether an open file is the one at its path, and the resolved path is below the root."""
    real, home = os.path.realpath(location), _real(root)
    try:
        # The path may lead to another file since the file was opened.
        is_same = os.path.samestat(os.fstat(file.fileno()), os.stat(real))  # noqa: PTH116
    except OSError:
        return False
    return is_same and os.path.commonpath([home, real]) == home


@lru_cache(maxsize=64)
def _real(root: str) -> str:
    return os.path.realpath(root)


def _is_as_ingested(file: BinaryIO, content_hash: bytes | None, settings: Settings) -> bool:
    if content_hash is not None:
        return _hash(file) == content_hash
    data = file.read(settings.max_file_bytes + 1)  # datasets with imported embeddings have no hash of the file
    try:
        decode(data, max_pixels=settings.max_pixels, detail=1)
    except CannotDecode:
        return False
    return len(data) <= settings.max_file_bytes


def _hash(file: BinaryIO) -> bytes:
    """Return the hash of a file up to its present size; it may grow while it is read."""
    digest, left = hashlib.blake2b(digest_size=16), os.fstat(file.fileno()).st_size
    while left > 0 and (data := file.read(min(left, _PART))):
        digest.update(data)
        left -= len(data)
    return digest.digest()
