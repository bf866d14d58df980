"""Files that appear under their names when they are complete, and the removal of incomplete ones."""

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from framedex.core.atomic import SUFFIX, atomic_file
from framedex.errors import InvalidInput

_locks: Any
try:
    import fcntl as _locks
except ImportError:  # Windows does not remove or rename open files
    _locks = None

_START, _END = ".framedex-", SUFFIX
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def whole_file(path: Path, *, settle: Callable[[], None] = lambda: None) -> Iterator[BinaryIO]:
    """Yield a file that replaces *path* at the end of the block. If the block raises, the file is removed.

    Incomplete files of the same name that a killed process left are removed first.

    Args:
        path: the target path.
        settle: called after the last write, before the file gets its name. If it raises, the file is removed.

    Raises:
        InvalidInput: the path cannot be written.
    """
    if "\0" in str(path):
        raise InvalidInput(f"cannot write {str(path)!r}: a name has no null characters")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidInput(f"cannot write {str(path)!r}: a name has no lone surrogates") from None
    try:
        if path.is_dir():
            raise InvalidInput(f"cannot write {path}: it is a folder")
        if path.exists() and not path.is_file():  # never replace a pipe or a device, such as /dev/null
            raise InvalidInput(f"cannot write {path}: it is no regular file")
        partial, file = _open_partial(path)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error

    def put(partial: Path, path: Path) -> None:
        if _locks is None:
            file.close()
        partial.replace(path)

    try:
        # The lock is held until the file has its name. Otherwise another process would remove it as abandoned.
        with file, atomic_file(path, partial=partial, fsync=True, put=put):
            yield file
            file.flush()
            settle()
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise InvalidInput(f"cannot write {path}: {error.strerror}") from error
        raise


def remove_partial_files(folder: Path, name: str | None = None) -> int:
    """Remove incomplete files that killed processes left, and return their number.

    Args:
        folder: the folder to search. Files that a process is writing are kept.
        name: the name of the target file, or None for all names.
    """
    count = 0
    for partial in folder.glob(f"{_start(name)}*{_END}" if name is not None else f"{_START}*{_END}"):
        with suppress(OSError):  # already removed, or owned by another user
            count += _remove_dead(partial)
    return count


def _open_partial(path: Path) -> tuple[Path, BinaryIO]:
    """Open a file beside *path* with a lock, which shows other processes that it is being written."""
    remove_partial_files(path.parent, path.name)
    while True:
        partial = path.with_name(f"{_start(path.name)}{secrets.token_hex(4)}{_END}")
        file = partial.open("xb")
        with suppress(OSError):  # the file system has no locks
            _lock(file)
        # Another process may have removed the file between opening and locking.
        if os.fstat(file.fileno()).st_nlink:
            return partial, file
        file.close()


def _remove_dead(partial: Path) -> bool:
    with partial.open("r+b") as file:
        _lock(file)
        if _locks is not None:
            partial.unlink()
            return True
    partial.unlink()
    return True


def _lock(file: BinaryIO) -> None:
    """Lock a file until it is closed.

    Raises:
        OSError: another process holds the lock.
    """
    if _locks is not None:
        _locks.flock(file, _locks.LOCK_EX | _locks.LOCK_NB)


def _start(name: str) -> str:
    # A hash, because the name may already have the maximum length.
    return f"{_START}{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}-"
