"""Folders of temporary files of tasks that need more than memory. They are removed also after a process was killed."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex.core.atomic import SUFFIX
from framedex.core.file_locks import locked, locked_if_free
from framedex.core.stages import last_stage_time
from framedex.errors import WorkspaceError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_TRIES, _TRIED_S = 5, 0.2  # for the lock of a folder
_SPARE = 256 * 2**20  # bytes that are left on the disk for all else, such as the commit

KEPT_S = 24 * 3600.0
"""How long the files of a killed process stay for a task that goes on from its stages."""


@contextmanager
def spill_folder(parent: Path, needed: int, purpose: str, *, key: str = "") -> Iterator[Path]:
    """Yield a folder for temporary files, which is removed after the block.

    It is new, unless a process with the same key was killed after a stage was complete (see
    :class:`framedex.core.stages.Stages`): then it is that one's. What else killed processes left is removed, but for
    folders with stages of the last day if there is space for both.

    Args:
        parent: the folder for such folders of a dataset; made if it does not exist.
        needed: the bytes of the files, for which there must be space.
        purpose: what they are for, in words.
        key: names the task and its input, for a task that can go on from its stages; at least 16 hexadecimal digits.

    Raises:
        WorkspaceError: there is too little space on the disk, before the block or within it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    # It is locked before it is there, so that no other process takes it for a killed one's.
    with _locked_folder(parent, key) as folder:
        is_begun = False
        try:
            if last_stage_time(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
            for unfinished in folder.glob(f".*{SUFFIX}"):
                unfinished.unlink()
            remove_spills(parent, kept_s=KEPT_S)
            check_space(folder, needed, purpose)
            is_begun = True
            folder.mkdir(exist_ok=True)
            yield folder
        except OSError as error:
            is_of_numpy = error.errno is None and "free space" in str(error)  # which counts what it has written
            if error.errno not in _FULL and not is_of_numpy:
                raise
            reason = error.strerror or error
            raise WorkspaceError(f"{purpose} has no space for temporary files in {parent}: {reason}") from error
        finally:
            if is_begun:
                shutil.rmtree(folder, ignore_errors=True)
            _lock(folder).unlink(missing_ok=True)


@contextmanager
def _locked_folder(parent: Path, key: str) -> Iterator[Path]:
    """Yield the folder of a key, or a new one if another process has that, and hold its lock."""
    for _ in range(_TRIES if key else 0):
        with locked_if_free(_lock(parent / key)) as is_held:
            if is_held:
                yield parent / key
                return
        time.sleep(_TRIED_S)  # another process may only have looked at it
    folder = parent / _new_name()
    with locked(_lock(folder)):
        yield folder


def check_space(folder: Path, needed: int, purpose: str) -> None:
    """Check the space for files, of which a folder may have some; other folders without a process make room.

    Args:
        folder: the folder of temporary files, or where it will be.
        needed: the bytes of all its files.
        purpose: what they are for, in words.

    Raises:
        WorkspaceError: it is too little.
    """
    missing = needed + _SPARE - bytes_of(folder)
    if shutil.disk_usage(folder.parent).free < missing:
        remove_spills(folder.parent)
    free = shutil.disk_usage(folder.parent).free
    if free < missing:
        raise WorkspaceError(
            f"{purpose} needs {missing:,} bytes for temporary files in {folder.parent}, and {free:,} are free; free "
            "some, or let it use more memory (FRAMEDEX_MEMORY_BYTES)"
        )


def _new_name() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def bytes_of(folder: Path) -> int:
    """Return the bytes of the files in a folder, which may be missing."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _lock(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def remove_spills(parent: Path, *, kept_s: float = 0.0) -> int:
    """Remove folders of temporary files whose process has ended; return the bytes that they had.

    Args:
        parent: the folder for such folders of a dataset; may be missing.
        kept_s: folders stay for so many seconds after a stage was complete.
    """
    removed = 0
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if not folder.is_dir():
            continue
        with locked_if_free(_lock(folder)) as is_free:
            if not is_free or (kept_s and time.time() - (last_stage_time(folder) or 0.0) < kept_s):
                continue
            removed += bytes_of(folder)
            shutil.rmtree(folder, ignore_errors=True)
            _lock(folder).unlink(missing_ok=True)
    return removed
