"""Folders of temporary files of tasks that need more than memory. They are removed also after a process was killed."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex.core.file_locks import is_locked, locked, locked_if_free
from framedex.core.stages import last_stage_time
from framedex.errors import WorkspaceError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SPARE = 256 * 2**20  # bytes that are left on the disk for all else, such as the commit

KEPT_S = 24 * 3600.0
"""How long the files of a killed process stay for a task that goes on from its stages."""


@contextmanager
def spill_folder(parent: Path, needed: int, purpose: str, *, key: str = "") -> Iterator[Path]:
    """Yield a folder for temporary files, which is removed after the block.

    It is new, unless a process with the same key was killed after a stage was complete (see
    :class:`framedex.core.stages.Stages`): then it is that one's. What else a killed process left is removed by the
    next call, or by :func:`remove_spills`.

    Args:
        parent: the folder for such folders of a dataset; made if it does not exist.
        needed: the bytes of the files, for which there must be space.
        purpose: what they are for, in words.
        key: names the task and its input, for a task that can go on from its stages; at least 16 hexadecimal digits.

    Raises:
        WorkspaceError: there is too little space on the disk, before the block or within it.
    """
    remove_spills(parent, kept_s=KEPT_S)
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / (key or _new_name())
    if key and _lock(folder).exists() and is_locked(_lock(folder)):
        folder = parent / _new_name()
    if _lacking(parent, folder, needed):
        remove_spills(parent, but=folder.name)
    if lacking := _lacking(parent, folder, needed):
        raise WorkspaceError(
            f"{purpose} needs {needed + _SPARE:,} bytes for temporary files in {parent}, and "
            f"{needed + _SPARE - lacking:,} are free; free some, or let it use more memory (FRAMEDEX_MEMORY_BYTES)"
        )
    with locked(_lock(folder)):  # before the folder is there, so that no other process takes it for a killed one's
        try:
            folder.mkdir(exist_ok=True)
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


def _new_name() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def _lacking(parent: Path, folder: Path, needed: int) -> int:
    """Return how many bytes are lacking on the disk, where a folder may have some of the files already."""
    return max(0, needed + _SPARE - shutil.disk_usage(parent).free - _bytes(folder))


def _bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0


def _lock(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def remove_spills(parent: Path, *, but: str = "", kept_s: float = 0.0) -> int:
    """Remove folders of temporary files whose process has ended; return the bytes that they had.

    Args:
        parent: the folder for such folders of a dataset; may be missing.
        but: the name of a folder that stays.
        kept_s: folders stay for so many seconds after a stage was complete.
    """
    removed = 0
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if not folder.is_dir() or folder.name == but:
            continue
        with locked_if_free(_lock(folder)) as is_free:
            if not is_free or (kept_s and time.time() - (last_stage_time(folder) or 0.0) < kept_s):
                continue
            removed += _bytes(folder)
            shutil.rmtree(folder, ignore_errors=True)
            _lock(folder).unlink(missing_ok=True)
    return removed
