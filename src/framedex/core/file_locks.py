"""A lock between processes, which a killed process does not keep."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_locks: Any
try:
    import fcntl as _locks
except ImportError:  # Windows
    _locks = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file within the block; other processes and threads wait. Systems without such locks have none.

    Args:
        path: the file; made if it does not exist, and again if another holder of the lock removed it.
    """
    while True:
        with path.open("ab") as file:
            if _locks is not None:
                _locks.flock(file, _locks.LOCK_EX)
                if not _is_file(file, path):
                    continue
            yield
            return


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of a file within the block, and yield True, or yield False if a process or thread holds it.

    Systems without such locks have none, so that True is yielded.

    Args:
        path: the file; made if it does not exist.
    """
    with path.open("ab") as file:
        try:
            if _locks is not None:
                _locks.flock(file, _locks.LOCK_EX | _locks.LOCK_NB)
        except OSError:
            yield False
            return
        yield _locks is None or _is_file(file, path)


def _is_file(file: Any, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Return whether a process or thread holds the lock of a file; False on systems without such locks.

    Args:
        path: the file, which exists.
    """
    if _locks is None:
        return False
    with path.open("ab") as file:
        try:
            _locks.flock(file, _locks.LOCK_EX | _locks.LOCK_NB)
        except OSError:
            return True
        return False
