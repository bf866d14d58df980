"""Folders below which files may be read, for programs that read what others name.

The check holds for the file that is opened: its real path is opened part by part from the real path of an allowed
folder, and no part may be a link. So a link that is exchanged between check and opening leads nowhere. Hard links
cannot be told from other files.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from framedex.errors import Forbidden

AnyPath = str | os.PathLike[str]
OUTSIDE = "it lies outside of the folders that may be read (FRAMEDEX_MEDIA_ROOTS)"
_HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_SWAPPED = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # what opening a link without following it raises

Item = TypeVar("Item")


class _End:
    """The end of an iterator."""


_END = _End()


class OwnPath(str):
    """The path of a file that Framedex itself stores, such as an uploaded image; it may always be read."""

    __slots__ = ()


class AllowedFolders:
    """Folders below which files may be read. Links lead only to files below one of the folders.

    Args:
        folders: absolute paths, which may be links.
    """

    def __init__(self, folders: Sequence[AnyPath]) -> None:
        self._folders = [os.path.realpath(folder) for folder in folders]

    def contains(self, path: AnyPath) -> bool:
        """Return whether the real path of a file or a folder, which need not exist, is in an allowed folder."""
        return isinstance(path, OwnPath) or self._folder_of(os.path.realpath(path)) is not None

    def check(self, path: AnyPath) -> None:
        """Check a path that a user names, whether or not something is there.

        Raises:
            Forbidden: its real path is in no allowed folder.
        """
        try:
            is_allowed = self.contains(path)
        except (OSError, ValueError):  # such as a null character
            is_allowed = False
        if not is_allowed:
            raise Forbidden(f"{os.fspath(path)!r} cannot be read: {OUTSIDE}")

    def open(self, path: AnyPath, flags: int, check: Callable[[os.stat_result, AnyPath], None]) -> int:
        """Return the descriptor of a file below an allowed folder, opened without blocking.

        Args:
            path: the file.
            flags: as for :func:`os.open`.
            check: called with the status of the file, before and after it is opened; raises to refuse it.

        Raises:
            OSError: the file is in no allowed folder, with the reason :data:`OUTSIDE`, or it cannot be opened.
        """
        flags |= getattr(os, "O_NONBLOCK", 0)
        with self._parent(path) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise _outside(path)
            check(status, path)
            descriptor = self._open(path, name, flags, folder)
        try:
            check(os.fstat(descriptor), path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def scan(self, path: AnyPath) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of a folder. Their paths are bare names.

        Raises:
            OSError: as for :meth:`open`.
        """
        with self._parent(path) as (folder, name):
            if not _HAS_FOLDER_DESCRIPTORS:
                with os.scandir(name) as entries:
                    yield entries
                return
            descriptor = self._open(path, name, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), folder)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    def _folder_of(self, real: str) -> str | None:
        for folder in self._folders:
            if real == folder or real.startswith(folder.rstrip(os.sep) + os.sep):
                return folder
        return None

    @contextmanager
    def _parent(self, path: AnyPath) -> Iterator[tuple[int | None, str]]:
        """Yield (descriptor of the real folder of a path, name in it), or (None, real path) without descriptors."""
        real = os.path.realpath(path)
        folder = self._folder_of(real)
        if folder is None:
            raise _outside(path)
        if not _HAS_FOLDER_DESCRIPTORS or real == folder:
            yield None, real
            return
        parts = Path(os.path.relpath(real, folder)).parts
        current = os.open(folder, _FOLDER)
        try:
            for part in parts[:-1]:
                inner = self._open(path, part, _FOLDER, current)
                os.close(current)
                current = inner
            yield current, parts[-1]
        finally:
            os.close(current)

    def _open(self, path: AnyPath, name: str, flags: int, folder: int | None) -> int:
        """Open a name in a folder without following a link."""
        try:
            descriptor = os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), dir_fd=folder)
        except OSError as error:
            if error.errno in _SWAPPED and (folder is None or _is_link(name, folder)):
                raise _outside(path) from None
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        if folder is None and os.path.realpath(path) != name:
            os.close(descriptor)
            raise _outside(path)
        return descriptor


def _is_link(name: str, folder: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _outside(path: AnyPath) -> PermissionError:
    return PermissionError(errno.EACCES, OUTSIDE, os.fspath(path))


_SCOPE: ContextVar[AllowedFolders | None] = ContextVar("allowed_folders", default=None)


def current_folders() -> AllowedFolders | None:
    """Return the allowed folders of the surrounding :func:`within`; None if any file may be read."""
    return _SCOPE.get()


@contextmanager
def within(allowed: AllowedFolders | None) -> Iterator[None]:
    """Refuse to open files in no allowed folder by :mod:`framedex.core.regular_files`, on this thread, in a block.

    A generator must not yield within the block, because its caller would be restricted, too; see :func:`each_within`.

    Raises:
        Forbidden: a file in no allowed folder was to be read.
    """
    if allowed is None:
        yield
        return
    token = _SCOPE.set(allowed)
    try:
        yield
    except PermissionError as error:
        if error.strerror != OUTSIDE:
            raise
        raise Forbidden(f"{error.filename!r} cannot be read: {OUTSIDE}") from None
    finally:
        _SCOPE.reset(token)


def each_within(allowed: AllowedFolders | None, read: Callable[[], Iterable[Item]]) -> Iterator[Item]:
    """Yield the items of a function that reads files, each one taken :func:`within` the allowed folders."""
    if allowed is None:
        yield from read()
        return
    with within(allowed):
        items = iter(read())
    while True:
        with within(allowed):
            item = next(items, _END)
        if isinstance(item, _End):
            return
        yield item
