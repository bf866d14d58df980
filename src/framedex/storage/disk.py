"""Files on disk: sizes, hard links, removal, and the number of bytes that removal frees.

Sizes are those of contents, as ``ls`` shows them. Clones share files by hard links. A file with several names frees its
bytes only when the last name is removed.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path

Inode = tuple[int, int]
"""The identity of a file, independent of its names."""
_REMOVED = ".removed"
_AT_ONCE = 8  # files that are synced at the same time


@dataclass(frozen=True)
class UnsyncedTree:
    """The parts of a folder that are not synced to disk yet.

    Attributes:
        files, folders: their paths.
        remember: called once they are synced.
    """

    files: Sequence[str]
    folders: Sequence[str]
    remember: Callable[[], None]

    def sync(self) -> None:
        """Sync them; files that are removed or renamed meanwhile are left out."""
        sync_all(self.files, self.folders, missing_ok=True)
        self.remember()


class DeferredSyncs:
    """Files and folders that are to be synced to disk before a commit, each once and several at the same time."""

    def __init__(self) -> None:
        self._files, self._folders = dict[str, None](), dict[str, None]()  # in the order of the requests
        self._trees = dict[Path, Callable[[], UnsyncedTree]]()

    def add(self, other: "DeferredSyncs") -> None:
        """Add those of other changes."""
        self._files |= other._files
        self._folders |= other._folders
        self._trees |= other._trees

    def run(self) -> None:
        """Sync all of them.

        Raises:
            OSError: one of them cannot be synced.
        """
        with syncing_at_once():
            trees = [unsynced() for unsynced in self._trees.values()]
            files = {file for tree in trees for file in tree.files} - self._files.keys()
            folders = self._folders | {folder: None for tree in trees for folder in tree.folders}
            sync_all([*self._files], [])
            UnsyncedTree([*files], [*folders], lambda: None).sync()
            for tree in trees:
                tree.remember()


_DEFERRED: ContextVar[DeferredSyncs | None] = ContextVar("deferred syncs", default=None)


@contextmanager
def deferring_syncs() -> Iterator[DeferredSyncs]:
    """Yield what collects the files and folders that the block syncs on its thread, instead of syncing them.

    The caller syncs them before the commit of what was written.
    """
    syncs = DeferredSyncs()
    token = _DEFERRED.set(syncs)
    try:
        yield syncs
    finally:
        _DEFERRED.reset(token)


@contextmanager
def syncing_at_once() -> Iterator[None]:
    """Sync files and folders at once in the block, although a surrounding one defers it."""
    token = _DEFERRED.set(None)
    try:
        yield
    finally:
        _DEFERRED.reset(token)


def sync_tree(folder: Path, unsynced: Callable[[], UnsyncedTree]) -> None:
    """Sync what is not synced yet of a folder; if syncs are deferred, what is not synced then."""
    if (deferred := _DEFERRED.get()) is not None:
        deferred._trees[folder] = unsynced
    else:
        unsynced().sync()


def sync_file(path: str | os.PathLike[str]) -> None:
    """Sync the content of a file to disk."""
    if (deferred := _DEFERRED.get()) is not None:
        deferred._files[os.fspath(path)] = None
        return
    try:
        _sync(path, os.O_RDONLY)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        _sync(path, os.O_RDWR)  # Windows syncs only files open for writing


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Sync the names in a folder to disk; do nothing on systems that cannot open folders (Windows)."""
    if (deferred := _DEFERRED.get()) is not None:
        deferred._folders[os.fspath(path)] = None
        return
    with suppress(PermissionError):
        _sync(path, os.O_RDONLY)


def sync_all(files: Sequence[str], folders: Sequence[str], *, missing_ok: bool = False) -> None:
    """Sync the content of files, and then the names in folders, to disk; several at the same time.

    Args:
        files: paths of files.
        folders: paths of folders.
        missing_ok: whether files that do not exist are left out.

    Raises:
        OSError: one of them cannot be synced.
    """

    def sync(file: str) -> None:
        with suppress(*[FileNotFoundError] * missing_ok):
            sync_file(file)

    if len(files) + len(folders) < _AT_ONCE:
        for file in files:
            sync(file)
        for folder in folders:
            sync_folder(folder)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for function, paths in ((sync, files), (sync_folder, folders)):
            list(pool.map(partial(_each, function), [paths[start::_AT_ONCE] for start in range(_AT_ONCE)]))


def _each(function: Callable[[str], None], paths: Sequence[str]) -> None:
    for path in paths:  # a task of a pool costs more than a file that is synced already
        function(path)


def _sync(path: str | os.PathLike[str], flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hard_link(source: Path, target: Path) -> None:
    """Give a file a second name.

    Raises:
        FileExistsError: the name is in use.
        FileNotFoundError: the file, or the folder of the new name, does not exist.
        OSError: the system or the file system does not support hard links.
    """
    if not hasattr(os, "link"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), os.fspath(target))
    os.link(source, target)


def walk_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of all files below a folder, which may be missing; links to folders count as files.

    Files that are removed meanwhile are left out.
    """
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                inside = list(entries)
        except OSError:
            continue
        for entry in inside:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted; an empty list if it is missing."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of the files directly in a folder. Files that are removed meanwhile are left out."""
    for path in entries(folder):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield path, status


def inode_of(status: os.stat_result) -> Inode:
    """Return the identity of a file."""
    return status.st_dev, status.st_ino


def measure_folder(folder: Path) -> dict[Path, int]:
    """Return the bytes that removing each file of a folder would free: 0 for a file with other hard links."""
    return {path: _freed(status) for path, status in walk_files(folder)}


def freed_since(before: dict[Path, int], folder: Path) -> int:
    """Return the bytes freed in a folder since its measurement; no file may get a new name in between."""
    now = measure_folder(folder)
    return sum(size for path, size in before.items() if path not in now)


def remove_tree(folder: Path) -> int:
    """Remove a folder as far as possible; return the number of bytes freed."""
    before = measure_folder(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return freed_since(before, folder)


def remove_file(path: Path) -> int:
    """Remove a file if it exists; return the number of bytes freed.

    Raises:
        OSError: the file cannot be removed.
    """
    try:
        status = path.lstat()
        path.unlink()
    except FileNotFoundError:
        return 0
    return _freed(status)


def set_aside(path: Path) -> Path:
    """Rename a file or folder for removal, atomically, to a name that no reader uses; return the new path."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}{_REMOVED}")
    path.rename(aside)
    return aside


def is_aside(path: Path) -> bool:
    """Return whether :func:`set_aside` made a path."""
    return path.name.startswith(".") and path.name.endswith(_REMOVED)


def _freed(status: os.stat_result) -> int:
    return status.st_size if status.st_nlink < 2 else 0
