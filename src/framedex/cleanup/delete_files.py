"""Deletion of the files of removed media, while the files are as they were ingested."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.allowed_folders import OUTSIDE, AllowedFolders, OwnPath, within
from framedex.core.arrays import RowIds
from framedex.core.regular_files import opener
from framedex.errors import Forbidden
from framedex.media.file_kinds import UNIDENTIFIED
from framedex.media.remote import is_remote
from framedex.storage.media import LOCATION, Media
from framedex.storage.media_rows import DAMAGED, text_of_path
from framedex.storage.schema import BLOBS_ROOT

_BLOCK = 4096
_BATCH = 64  # files that are deleted under one guard
_MAX_LINKS = 40  # in a chain; the limit of Linux
_MAX_FAILURES = 1000
_COLUMNS = [*LOCATION, "size_bytes", "error", "fault"]  # older tables lack the last one
_CHANGED, _OUTSIDE = "it has changed since it was read", "it lies outside of its source folder"
# URIs have many spellings of a name, so all URIs are checked, and all names that are not valid text.
_SAME_NAMES = """
SELECT _rowid FROM media
WHERE regexp_extract(path, '[^/]*$') IN (SELECT name FROM names)
    OR (root IS NULL AND starts_with(path, 'file:')) OR path_raw IS NOT NULL
ORDER BY _rowid
"""
_FOLDERS = "SELECT DISTINCT root, regexp_replace(path, '[^/]*$', '') AS folder FROM media"

Numbers = npt.NDArray[np.uint64]
"""64-bit hashes of the files' real paths; 0 for media that are not local files."""
Guard = Callable[[], AbstractContextManager[str | None]]
"""A context manager that stops new readers while files are deleted. It yields a reason to stop, or None."""


@dataclass
class DeletionResult:
    """Counts of deleted files and of files left in place.

    Attributes:
        deleted, left: the numbers of files deleted and left in place.
        failed: paths and reasons of the first thousand files left in place.
    """

    deleted: int = 0
    left: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, reason: str | None) -> None:
        """Count a file as deleted, or as left in place for a reason."""
        if reason is None:
            self.deleted += 1
            return
        self.left += 1
        if len(self.failed) < _MAX_FAILURES:
            self.failed.append((path, reason))


def delete_files(
    media: Media,
    removed: RowIds,
    others: Iterable[Media],
    *,
    guard: Guard,
    progress: Callable[[float], None],
    allowed: AllowedFolders | None = None,
    instead: Mapping[int, int] | None = None,
) -> DeletionResult:
    """Delete the files of removed rows.

    A file is deleted if it is below a local source root (not behind a link to a folder elsewhere), has the size and
    content that were ingested, was decoded or is a damaged image, and no other media use it, directly or through a
    link. If a path is a link to a file, the link is deleted, and its target stays. The file of a copy is deleted only
    while that of the row that stays in its place is there, with the content that was ingested; objects of buckets are
    not looked at.

    Args:
        media: a state with the rows.
        removed: uint64, ascending: the ids of the removed rows.
        others: states whose rows keep their files.
        guard: the guard, valid since *others* were read.
        progress: called with the fraction that is done; may raise to stop before the next files are deleted.
        allowed: the folders below which files may be read, and so deleted; None for any.
        instead: by the id of a removed row that has copies, the row that stays in its place.
    """
    lacking = _lacking(media, instead or {}, allowed)
    removed = _first_of_each(media, removed)
    files, names, links = _files(media, removed)
    order = np.argsort(~links, kind="stable")  # links before their targets, since broken links cannot be checked
    needed, outcome = _needed(files, names, others)[order], DeletionResult()
    row_ids = removed[order]
    rows = enumerate(_rows(media, row_ids))
    while batch := list(islice(rows, _BATCH)):
        checked = []
        for number, row in batch:
            result = (
                _refusal(media, row)
                or ("other media are in the same file" if needed[number] else None)
                or _check(media, row, allowed)
            )
            if not isinstance(result, str):
                result = lacking.get(int(row_ids[number]), result)
            if isinstance(result, str):
                outcome.note(media.shown_path(row), result)
            else:
                checked.append(result)
            progress(number / len(removed))
        with guard() as refusal:
            for file in checked:
                outcome.note(file.shown, refusal or file.delete())
    progress(1.0)
    return outcome


def _lacking(media: Media, instead: Mapping[int, int], allowed: AllowedFolders | None) -> dict[int, str]:
    """Return the reason to leave the file of each removed row whose copy that stays has lost its own."""
    reasons: dict[int, str] = {}
    stay = np.unique(np.fromiter(instead.values(), np.uint64, len(instead)))
    for row_id, row in zip(stay.tolist(), _rows(media, stay), strict=True):
        path = media.file_of(row)
        if path is None or row["content_hash"] is None:
            continue
        if isinstance(reason := _status(path, row, None if isinstance(path, OwnPath) else allowed), str):
            reasons[row_id] = f"{media.shown_path(row)}, which stays in its place, is not as it was read: {reason}"
    return {lost: reasons[kept] for lost, kept in instead.items() if kept in reasons}


def _first_of_each(media: Media, removed: RowIds) -> RowIds:
    """Return the rows of images, and one row of each video, whose frames share a file."""
    if not media.has_videos:
        return removed
    seen, first = set[str](), np.ones(len(removed), dtype=bool)
    for index, video_id in enumerate(each for block in media.blocks(removed, ["video_id"]) for each in _texts(block)):
        if video_id is not None:
            first[index] = video_id not in seen
            seen.add(video_id)
    return removed[first]


def _texts(block: pa.Table) -> list[str | None]:
    values: list[str | None] = block.column(0).to_pylist()
    return values


def _rows(media: Media, row_ids: RowIds) -> Iterator[dict[str, Any]]:
    for block in media.blocks(row_ids, [name for name in _COLUMNS if name in media.table.schema.names]):
        yield from block.to_pylist()


def _files(media: Media, removed: RowIds) -> tuple[Numbers, pa.Array, npt.NDArray[np.bool_]]:
    """Return the files of rows, their distinct names, and a mask of links."""
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
    """Return a mask of the files that other rows use, directly or through links: bool, shape (len(files),)."""
    links, needed = _Links(files), np.zeros(len(files), dtype=bool)
    for other in others:
        name_table = pa.table({"name": pa.concat_arrays([names, pa.array(links.names(other), pa.string())])})
        reader = other.table.scan(["path", "path_raw", "root"], row_ids=True)
        row_ids = other.sql.query(_SAME_NAMES, (), {"media": reader, "names": name_table})["_rowid"].to_numpy()
        for start in range(0, len(row_ids), _BLOCK):
            rows = list(_rows(other, row_ids[start : start + _BLOCK]))
            used = [number for row in rows for number in _numbers(other.file_of(row))]
            needed |= np.isin(files, np.array(used, dtype=np.uint64))
    return needed


class _Links:
    """A search for links to files in the folders of media.

    Args:
        files: the targets.
    """

    def __init__(self, files: Numbers) -> None:
        self._files = np.unique(files[files > 0])
        self._names: dict[str, list[str]] = {}

    def names(self, media: Media) -> list[str]:
        """Return the names of links to the targets in all local folders of media."""
        reader = media.table.scan(["path", "root"])
        rows = media.sql.query(_FOLDERS, (), {"media": reader}).to_pylist()
        blank = {"path_raw": None, "content_hash": None}
        folders = {media.file_of({"path": f"{row['folder']}.", "root": row["root"], **blank}) for row in rows}
        return sorted({name for folder in folders if folder for name in self._in(os.path.realpath(folder))})

    def _in(self, folder: str) -> list[str]:
        if folder not in self._names:
            self._names[folder] = []
            with suppress(OSError), os.scandir(folder) as entries:  # no media are in a folder that cannot be read
                links = (each for each in entries if each.is_symlink() and self._is_target(each.path))
                self._names[folder] = [text_of_path(each.name)[0] for each in links]
        return self._names[folder]

    def _is_target(self, path: str) -> bool:
        return bool(np.isin(np.array(list(_numbers(path)), dtype=np.uint64), self._files).any())


def _numbers(path: str | None) -> Iterator[int]:
    """Yield the number of a file; for a link, also the numbers of all files in the chain of links."""
    for _ in range(_MAX_LINKS):
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


def _refusal(media: Media, row: dict[str, Any]) -> str | None:
    """Return the reason, from the location of a row's file, not to delete it; None if there is no reason."""
    root = None if row["root"] is None else media.roots[row["root"]]
    if root is None:
        return "it is not below a source folder"
    if root == BLOBS_ROOT:
        return "it was uploaded, and is deleted when no snapshot needs it"
    if is_remote(root):
        return "it is not on this machine"
    if row["content_hash"] is None or row["size_bytes"] is None:
        return "its content was never read"
    if row["error"] is not None and (row.get("fault") != DAMAGED or row["error"] == UNIDENTIFIED):
        return f"it may be in order, but was not decoded: {row['error']}"
    path = str(media.file_of(row))
    if _is_within(str(media.table.path.parents[1]), path):
        return "it belongs to the workspace"
    return None if _is_within(root, path) else _OUTSIDE


def _is_within(root: str, path: str) -> bool:
    """Return whether a file is really below a folder, with all links resolved; the folder as it was at first."""
    real_root, folder = _real(root), os.path.realpath(os.path.dirname(path))  # noqa: PTH120
    return os.path.commonpath([real_root, folder]) == real_root


@dataclass(frozen=True)
class _File:
    """A file that was checked against its row.

    Attributes:
        shown: the path for messages.
        root, path: the source root, and the path.
        identity: device, inode, size and modification time at the check.
    """

    shown: str
    root: str
    path: str
    identity: tuple[int, ...]

    def delete(self) -> str | None:
        """Delete the file; return the reason if it cannot be deleted, else None."""
        try:
            if not _is_within(self.root, self.path):
                return _OUTSIDE
            if _identity(os.stat(self.path)) != self.identity:  # noqa: PTH116
                return _CHANGED
            os.unlink(self.path)  # noqa: PTH108
        except OSError as error:
            return error.strerror or str(error)
        return None


def _check(media: Media, row: dict[str, Any], allowed: AllowedFolders | None) -> _File | str:
    """Return a row's file if it is unchanged, else the reason not to delete it."""
    path = str(media.file_of(row))
    if isinstance(status := _status(path, row, allowed), str):
        return status
    return _File(media.shown_path(row), media.roots[row["root"]], path, _identity(status))


def _status(path: str, row: dict[str, Any], allowed: AllowedFolders | None) -> os.stat_result | str:
    """Return the status of a file that has the content that was ingested, else what is wrong with it."""
    try:
        with within(allowed), open(path, "rb", buffering=0, opener=opener) as file:
            status = os.fstat(file.fileno())
            if status.st_size != row["size_bytes"] or _digest(file) != row["content_hash"]:
                return _CHANGED
    except Forbidden:
        return OUTSIDE
    except OSError as error:
        return error.strerror or str(error)
    return status


def _digest(file: Any) -> bytes:
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
