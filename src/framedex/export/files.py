"""Files that appear under their names only when they are whole, and what is left of those that never became so."""

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from framedex.atomic import SUFFIX, atomic_file
from framedex.errors import InvalidInput

_locks: Any
try:
    import fcntl as _locks
except ImportError:  # Windows, which neither removes nor renames a file that is open
    _locks = None

_START, _END = ".framedex-", SUFFIX
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def whole_file(path: Path, *, settle: Callable[[], None] = lambda: None) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes *path*'s place at the end of the block; if the block raises, nothing stays.

    What a process that was killed left of an earlier file of that name is removed.

    Args:
        path: the file.
        settle: called when all is written, before the file takes its place; raises to give it up.

    Raises:
        InvalidInput: nothing can be written there.
    """
    if "\0" in str(path):
        raise InvalidInput(f"cannot write {str(path)!r}: a name has no null characters")
    try:
        if path.is_dir():
            raise InvalidInput(f"cannot write {path}: it is a folder")
        if path.exists() and not path.is_file():  # a pipe or a device, such as /dev/null, is not ours to replace
            raise InvalidInput(f"cannot write {path}: it is no regular file")
        partial, file = _open_partial(path)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error

    def put(partial: Path, path: Path) -> None:
        if _locks is None:
            file.close()
        partial.replace(path)

    try:
        # The lock is held until the file has its name; otherwise another process could take it for a dead one.
        with file, atomic_file(path, partial=partial, fsync=True, put=put):
            yield file
            file.flush()
            settle()
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise InvalidInput(f"cannot write {path}: {error.strerror}") from error
        raise


def remove_partial_files(folder: Path, name: str | None = None) -> int:
    """Remove what killed processes left of files that never became whole; return how many.

    Args:
        folder: where they are looked for; those that are being written are left alone.
        name: only those of this name.
    """
    found = 0
    for partial in folder.glob(f"{_start(name)}*{_END}" if name is not None else f"{_START}*{_END}"):
        with suppress(OSError):  # it is gone already, or another user's
            found += _remove_dead(partial)
    return found


def _open_partial(path: Path) -> tuple[Path, BinaryIO]:
    """Open a file beside *path* that tells others, as long as it is open, that it is being written."""
    remove_partial_files(path.parent, path.name)
    while True:
        partial = path.with_name(f"{_start(path.name)}{secrets.token_hex(4)}{_END}")
        file = partial.open("xb")
        with suppress(OSError):  # the file system has no locks
            _lock(file)
        # Between opening and locking it may have been taken for a dead one.
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
        OSError: another one holds it.
    """
    if _locks is not None:
        _locks.flock(file, _locks.LOCK_EX | _locks.LOCK_NB)


def _start(name: str) -> str:
    # The name itself may be as long as names can be.
    return f"{_START}{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}-"
