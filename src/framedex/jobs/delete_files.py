"""Deleting the files of media that were removed: exactly those, and only while they are what they were."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.media.files import open_at_once
from framedex.media.remote import is_remote
from framedex.storage.blobs import BLOBS_ROOT
from framedex.storage.media import LOCATION, Media, RowIds

_BLOCK = 4096
_SHOWN = 1000
_COLUMNS = [*LOCATION, "size_bytes"]
# Uris may spell a name in many ways, so that all of those are looked at.
_SAME_NAMES = """
SELECT _rowid FROM media
WHERE regexp_extract(path, '[^/]*$') IN (SELECT name FROM names) OR (root IS NULL AND starts_with(path, 'file:'))
ORDER BY _rowid
"""


@dataclass
class Deleted:
    """What became of files.

    Attributes:
        deleted, left: how many were deleted, and left alone.
        failed: (path, reason) of the first thousand of these.
    """

    deleted: int = 0
    left: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def leave(self, path: str, reason: str) -> None:
        """Count a file that stays."""
        self.left += 1
        if len(self.failed) < _SHOWN:
            self.failed.append((path, reason))


def delete_files(
    media: Media, removed: RowIds, others: Iterable[Media], *, progress: Callable[[float], None]
) -> Deleted:
    """Delete the files of rows that were removed.

    A file goes if it lies below a local source root, in the folder that this names and not in one elsewhere to which a
    link there leads, has the size and content that were read, and no other media are in it. A link in place of a file
    goes itself; what it leads to stays.

    Args:
        media: a state with the rows.
        removed: uint64, ascending: their row ids.
        others: states whose rows keep their files.
        progress: called with the share that is done; raises to stop, between two files.
    """
    _real.cache_clear()
    needed, outcome = _needed(media, removed, others), Deleted()
    for place, row in enumerate(_rows(media, removed)):
        reason = _foreign(media, row)
        if reason is None and needed[place]:
            reason = "other media are in the same file"
        if reason is None:
            reason = _delete(str(media.file_of(row)), row)
        if reason is None:
            outcome.deleted += 1
        else:
            outcome.leave(media.shown_path(row), reason)
        progress((place + 1) / len(removed))
    return outcome


def _rows(media: Media, row_ids: RowIds) -> Iterator[dict[str, Any]]:
    for block in media.blocks(row_ids, _COLUMNS):
        yield from block.to_pylist()


def _needed(media: Media, removed: RowIds, others: Iterable[Media]) -> npt.NDArray[np.bool_]:
    """Return which of some rows have a file that other rows have, too: bool, shape (len(removed),)."""
    files, names = np.empty(len(removed), dtype=np.uint64), []
    for start in range(0, len(removed), _BLOCK):
        rows = list(_rows(media, removed[start : start + _BLOCK]))
        files[start : start + len(rows)] = [_number(media, row) for row in rows]
        names.append(pa.array([row["path"].rpartition("/")[2] for row in rows], pa.string()))
    wanted = pa.table({"name": pa.chunked_array(names, pa.string()).unique()})
    needed = np.zeros(len(removed), dtype=bool)
    for other in others:
        reader = other.table.scan(["path", "root"], row_ids=True)
        found = other.sql.query(_SAME_NAMES, (), {"media": reader, "names": wanted})["_rowid"].to_numpy()
        for start in range(0, len(found), _BLOCK):
            there = [_number(other, row) for row in _rows(other, found[start : start + _BLOCK])]
            needed |= np.isin(files, np.array(there, dtype=np.uint64))
    return needed


def _number(media: Media, row: dict[str, Any]) -> int:
    """Return 64 bits of a hash of a file's path, however the way to its folder is spelled; 0 for what is no file."""
    path = media.file_of(row)
    if path is None:
        return 0
    folder, name = os.path.split(path)
    whole = os.path.join(_real(folder), name)  # noqa: PTH118 - names may be any bytes
    return int.from_bytes(hashlib.blake2b(os.fsencode(whole), digest_size=8).digest())


@lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _foreign(media: Media, row: dict[str, Any]) -> str | None:
    """Return why the place of a row's file forbids to delete it; None if it does not."""
    root = None if row["root"] is None else media.roots[row["root"]]
    if root is None:
        return "it is not below a source folder"
    if root == BLOBS_ROOT:
        return "it was uploaded, and goes when no snapshot needs it"
    if is_remote(root):
        return "it is not on this machine"
    if row["content_hash"] is None or row["size_bytes"] is None:
        return "its content was never read"
    home, folder = _real(root), _real(os.path.dirname(str(media.file_of(row))))  # noqa: PTH120
    return None if os.path.commonpath([home, folder]) == home else "it lies outside of its source folder"


def _delete(path: str, row: dict[str, Any]) -> str | None:
    """Delete a file if it is still that of a row; return why not, or None."""
    try:
        with open(path, "rb", buffering=0, opener=open_at_once) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                return "it is no regular file any more"
            same = before.st_size == row["size_bytes"] and _digest(file) == row["content_hash"]
        if not same or _identity(os.stat(path)) != _identity(before):  # noqa: PTH116
            return "it has changed since it was read"
        os.unlink(path)  # noqa: PTH108
    except OSError as error:
        return error.strerror or str(error)
    return None


def _digest(file: Any) -> bytes:
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
