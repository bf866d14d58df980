"""Checks that an export copies images only, not other files that a link, a list or a table leads to.

Anyone who shares a folder can add a link to any file of the machine. Links to images elsewhere are common, too:
download caches and versioned data consist of them. So a file outside of its source is copied only if it is still the
image of the dataset: ingestion decoded it, and its content has not changed. Lists and tables can name any file, and
all are inside of their common folder. So a file that was never decoded is copied only if it, and the target of its
link, have the suffix of an image or a video, or if it begins like an image.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, BinaryIO, ClassVar

from framedex.core.suffixes import is_media
from framedex.errors import CannotDecode
from framedex.media.decode import begins_like_image, decode
from framedex.settings import Settings

_HEAD_BYTES, _PART = 132, 2**20


class LeftOut(CannotDecode):
    """A file that an export leaves out although it can be read.

    Attributes:
        reason: the reason for several files, for a summary.
    """

    reason: ClassVar[str]


class LeadsOutside(LeftOut):
    """A file outside of its source folder that is not the indexed image."""

    reason = "a link leads out of their source folder, and not to an image that was indexed"


class NotAnImage(LeftOut):
    """A file that was never decoded, and that is no image."""

    reason = "never decoded, not named as an image, and with no image's beginning"


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
        NotAnImage: the file was never decoded, and is no image.
    """
    if root is None or _is_within(file, location, root):
        _check_image(file, location, row)
        return
    if row["error"] is not None or not _is_as_ingested(file, row["content_hash"], settings):
        raise LeadsOutside("a link leads out of the source folder, and not to an image that was indexed")
    file.seek(0)


def _check_image(file: BinaryIO, location: str, row: Mapping[str, Any]) -> None:
    if row["error"] is None and row["content_hash"] is not None:
        return  # it was decoded
    if is_media(location) and is_media(os.path.realpath(location)):
        return
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if not begins_like_image(head):
        raise NotAnImage("the file was never decoded, is not named as an image, and does not begin like one")


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
