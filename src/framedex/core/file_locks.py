"""A lock between processes, which a killed process does not keep."""

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
        path: the file; made if it does not exist.
    """
    with path.open("ab") as file:
        if _locks is not None:
            _locks.flock(file, _locks.LOCK_EX)
        yield


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
