"""Folders of temporary files of tasks that need more than memory. They are removed also after a process was killed."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex.core.file_locks import is_locked, locked
from framedex.errors import WorkspaceError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SPARE = 256 * 2**20  # bytes that are left on the disk for all else, such as the commit


@contextmanager
def spill_folder(parent: Path, needed: int, purpose: str) -> Iterator[Path]:
    """Yield a new folder for temporary files, which is removed after the block.

    A folder that a killed process left is removed by the next call, or by :func:`remove_spills`.

    Args:
        parent: the folder for such folders of a dataset; made if it does not exist.
        needed: the bytes of the files, for which there must be space.
        purpose: what they are for, in words.

    Raises:
        WorkspaceError: there is too little space on the disk, before the block or within it.
    """
    remove_spills(parent)
    parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(parent).free
    if free < needed + _SPARE:
        raise WorkspaceError(
            f"{purpose} needs {needed + _SPARE:,} bytes for temporary files in {parent}, and {free:,} are free; "
            "free some, or let it use more memory (FRAMEDEX_MEMORY_BYTES)"
        )
    folder = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
    with locked(_lock(folder)):  # before the folder is there, so that no other process takes it for a killed one's
        try:
            folder.mkdir()
            yield folder
        except OSError as error:
            is_of_numpy = error.errno is None and "free space" in str(error)  # which counts what it has written
            if error.errno not in _FULL and not is_of_numpy:
                raise
            reason = error.strerror or error
            raise WorkspaceError(f"{purpose} has no space for temporary files in {parent}: {reason}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            _lock(folder).unlink(missing_ok=True)


def _lock(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def remove_spills(parent: Path) -> int:
    """Remove folders of temporary files whose process has ended; return the bytes that they had.

    Args:
        parent: the folder for such folders of a dataset; may be missing.
    """
    removed = 0
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if not folder.is_dir() or (_lock(folder).exists() and is_locked(_lock(folder))):
            continue
        removed += sum(each.stat().st_size for each in folder.iterdir())
        shutil.rmtree(folder, ignore_errors=True)
        _lock(folder).unlink(missing_ok=True)
    return removed
