"""Deleting the files of media that were removed: exactly those, and only while they are what they were."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.media.remote import is_remote
from framedex.regular_files import opener
from framedex.storage.blobs import BLOBS_ROOT
from framedex.storage.media import LOCATION, Media
from framedex.storage.media_rows import text_of_path

_BLOCK = 4096
_AT_ONCE = 64  # files that go while nobody may begin to read any
_MOST_LINKS = 40  # that follow each other, as the system has it
_SHOWN = 1000
_COLUMNS = [*LOCATION, "size_bytes"]
_CHANGED, _OUTSIDE = "it has changed since it was read", "it lies outside of its source folder"
# Uris may spell a name in many ways, so that all of those are looked at, and names that are no text.
_SAME_NAMES = """
SELECT _rowid FROM media
WHERE regexp_extract(path, '[^/]*$') IN (SELECT name FROM names)
    OR (root IS NULL AND starts_with(path, 'file:')) OR path_raw IS NOT NULL
ORDER BY _rowid
"""
_FOLDERS = "SELECT DISTINCT root, regexp_replace(path, '[^/]*$', '') AS folder FROM media"

Numbers = npt.NDArray[np.uint64]
"""64 bits of the hash of a file's path each, however the way to its folder is spelled; 0 for what is no file."""
Guard = Callable[[], AbstractContextManager[str | None]]
"""Held while files go: nobody begins to read any until then. Gives why none may go any more, or None."""


@dataclass
class DeletionResult:
    """What became of files.

    Attributes:
        deleted, left: how many were deleted, and left alone.
        failed: (path, reason) of the first thousand of these.
    """

    deleted: int = 0
    left: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, reason: str | None) -> None:
        """Count a file that was deleted, or that stays for a reason."""
        if reason is None:
            self.deleted += 1
            return
        self.left += 1
        if len(self.failed) < _SHOWN:
            self.failed.append((path, reason))


def delete_files(
    media: Media, removed: RowIds, others: Iterable[Media], *, guard: Guard, progress: Callable[[float], None]
) -> DeletionResult:
    """Delete the files of rows that were removed.

    A file goes if it lies below a local source root, in the folder that this names and not in one elsewhere to which a
    link there leads, has the size and content that were read, and no other media are in it, be it by way of a link. A
    link in place of a file goes itself; what it leads to stays.

    Args:
        media: a state with the rows.
        removed: uint64, ascending: their row ids.
        others: states whose rows keep their files.
        guard: that holds since *others* were read.
        progress: called with the share that is done; raises to stop, before the next files go.
    """
    removed = _first_of_each(media, removed)
    files, names, links = _files(media, removed)
    order = np.argsort(~links, kind="stable")  # before what they lead to, for else they lead nowhere
    needed, outcome = _needed(files, names, others)[order], DeletionResult()
    rows = enumerate(_rows(media, removed[order]))
    while some := list(islice(rows, _AT_ONCE)):
        checked = []
        for place, row in some:
            found = _foreign(media, row) or (
                "other media are in the same file" if needed[place] else _check(media, row)
            )
            if isinstance(found, str):
                outcome.note(media.shown_path(row), found)
            else:
                checked.append(found)
            progress(place / len(removed))
        with guard() as refusal:
            for file in checked:
                outcome.note(file.shown, refusal or file.delete())
    progress(1.0)
    return outcome


def _first_of_each(media: Media, removed: RowIds) -> RowIds:
    """Return the rows of pictures, and one row of each video: its frames are in one file."""
    if not media.has_videos:
        return removed
    seen, first = set[str](), np.ones(len(removed), dtype=bool)
    for place, video_id in enumerate(each for block in media.blocks(removed, ["video_id"]) for each in _texts(block)):
        if video_id is not None:
            first[place] = video_id not in seen
            seen.add(video_id)
    return removed[first]


def _texts(block: pa.Table) -> list[str | None]:
    values: list[str | None] = block.column(0).to_pylist()
    return values


def _rows(media: Media, row_ids: RowIds) -> Iterator[dict[str, Any]]:
    for block in media.blocks(row_ids, _COLUMNS):
        yield from block.to_pylist()


def _files(media: Media, removed: RowIds) -> tuple[Numbers, pa.Array, npt.NDArray[np.bool_]]:
    """Return the files of some rows, their names, each once, and which of them are links."""
    _real.cache_clear()
    files, links = np.empty(len(removed), dtype=np.uint64), np.empty(len(removed), dtype=bool)
    names = []
    for start in range(0, len(removed), _BLOCK):
        rows = list(_rows(media, removed[start : start + _BLOCK]))
        paths, block = [media.file_of(row) for row in rows], slice(start, start + len(rows))
        files[block] = [_number(path) for path in paths]
        links[block] = [path is not None and os.path.islink(path) for path in paths]  # noqa: PTH114
        names.append(pa.array([row["path"].rpartition("/")[2] for row in rows], pa.string()))
    return files, pa.chunked_array(names, pa.string()).unique(), links


def _needed(files: Numbers, names: pa.Array, others: Iterable[Media]) -> npt.NDArray[np.bool_]:
    """Return which of some files other rows have, too, or lead to: bool, shape (len(files),)."""
    links, needed = _Links(files), np.zeros(len(files), dtype=bool)
    for other in others:
        asked = pa.table({"name": pa.concat_arrays([names, pa.array(links.names(other), pa.string())])})
        reader = other.table.scan(["path", "path_raw", "root"], row_ids=True)
        found = other.sql.query(_SAME_NAMES, (), {"media": reader, "names": asked})["_rowid"].to_numpy()
        for start in range(0, len(found), _BLOCK):
            rows = list(_rows(other, found[start : start + _BLOCK]))
            there = [number for row in rows for number in _numbers(other.file_of(row))]
            needed |= np.isin(files, np.array(there, dtype=np.uint64))
    return needed


class _Links:
    """Finds links to some files in the folders of media.

    Args:
        files: the files.
    """

    def __init__(self, files: Numbers) -> None:
        self._files = np.unique(files[files > 0])
        self._known: dict[str, list[str]] = {}

    def names(self, media: Media) -> list[str]:
        """Return the names of the links to the files in all folders with files of this machine."""
        reader = media.table.scan(["path", "root"])
        found = media.sql.query(_FOLDERS, (), {"media": reader}).to_pylist()
        blank = {"path_raw": None, "content_hash": None}
        folders = {media.file_of({"path": f"{row['folder']}.", "root": row["root"], **blank}) for row in found}
        return sorted({name for folder in folders if folder for name in self._in(os.path.realpath(folder))})

    def _in(self, folder: str) -> list[str]:
        if folder not in self._known:
            self._known[folder] = []
            with suppress(OSError), os.scandir(folder) as entries:  # no media are in a folder that cannot be read
                links = (each for each in entries if each.is_symlink() and self._leads_there(each.path))
                self._known[folder] = [text_of_path(each.name)[0] for each in links]
        return self._known[folder]

    def _leads_there(self, path: str) -> bool:
        return bool(np.isin(np.array(list(_numbers(path)), dtype=np.uint64), self._files).any())


def _numbers(path: str | None) -> Iterator[int]:
    """Yield the number of a file, and where that is a link, of all that it leads to."""
    for _ in range(_MOST_LINKS):
        yield _number(path)
        try:
            path = os.path.join(os.path.dirname(str(path)), os.readlink(str(path)))  # noqa: PTH115, PTH118, PTH120
        except (OSError, ValueError):
            return


def _number(path: str | None) -> int:
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
    path = str(media.file_of(row))
    if _is_within(str(media.table.path.parents[1]), path):
        return "it belongs to the workspace"
    return None if _is_within(root, path) else _OUTSIDE


def _is_within(root: str, path: str) -> bool:
    """Return whether a file is below a folder, wherever links on the way lead now, and that was when we began."""
    home, folder = _real(root), os.path.realpath(os.path.dirname(path))  # noqa: PTH120
    return os.path.commonpath([home, folder]) == home


@dataclass(frozen=True)
class _File:
    """A file that is still that of a row.

    Attributes:
        shown: what it is called.
        root, path: where it is.
        identity: which file that was when it was looked at.
    """

    shown: str
    root: str
    path: str
    identity: tuple[int, ...]

    def delete(self) -> str | None:
        """Delete it; return why not, or None."""
        try:
            if not _is_within(self.root, self.path):
                return _OUTSIDE
            if _identity(os.stat(self.path)) != self.identity:  # noqa: PTH116
                return _CHANGED
            os.unlink(self.path)  # noqa: PTH108
        except OSError as error:
            return error.strerror or str(error)
        return None


def _check(media: Media, row: dict[str, Any]) -> _File | str:
    """Return a row's file if it is still that of the row, else why it is not."""
    path = str(media.file_of(row))
    try:
        with open(path, "rb", buffering=0, opener=opener) as file:
            status = os.fstat(file.fileno())
            if status.st_size != row["size_bytes"] or _digest(file) != row["content_hash"]:
                return _CHANGED
    except OSError as error:
        return error.strerror or str(error)
    return _File(media.shown_path(row), media.roots[row["root"]], path, _identity(status))


def _digest(file: Any) -> bytes:
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
