"""Temporary folders of clusters of Ray, and the end of what a killed process leaves: its folder, Ray's processes."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framedex.core.file_locks import is_locked, locked

_FOLDER, _LOCK = "framedex-ray-", "lock"
_LONGEST = 16  # characters of a folder for temporary files: names of sockets within have 107 at most
_NAMES = (b"ray", b"gcs_server")  # the first letters of the names of its processes
_END_S, _PAUSE_S = 5.0, 0.1
_KILL = 9  # the signal, which not every system has by its name


@contextmanager
def cluster_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end, or by another of these processes if this one is killed."""
    base = tempfile.gettempdir()
    place = Path(base if len(base) <= _LONGEST else "/tmp")  # noqa: S108 - our folder in it is our user's alone
    for each in place.glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):  # also those of other users
            _remove_unused(each)
    made = Path(tempfile.mkdtemp(prefix=f".{_FOLDER}", dir=place))
    folder = place / made.name.removeprefix(".")
    try:
        with locked(made / _LOCK):  # before others see the folder
            made.rename(folder)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_cluster(folder: Path) -> None:
    """End the processes of a cluster whose process that was connected has ended, and remove its folder.

    Ray's agents notice only after minutes that the others have gone; on systems without ``/proc`` they end then.
    """
    end = time.monotonic() + _END_S
    while (left := _processes_of(folder)) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.kill(pid, _KILL)
        time.sleep(_PAUSE_S)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_unused(folder: Path) -> None:
    """Remove the cluster of a process that was killed: nobody has the lock of its folder. Those of other users stay.

    Raises:
        OSError: it cannot be looked at.
    """
    if hasattr(os, "getuid") and (folder.is_symlink() or folder.stat().st_uid != os.getuid()):
        return
    if (folder / _LOCK).exists() and not is_locked(folder / _LOCK):
        remove_cluster(folder)


def _processes_of(folder: Path) -> list[int]:
    """Return the processes of Ray that have a file of a folder open, where ``/proc`` says so."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is of another user
            is_of_ray = (each / "comm").read_bytes().startswith(_NAMES)
            if is_of_ray and any(str(file.readlink()).startswith(f"{folder}/") for file in (each / "fd").iterdir()):
                found.append(int(each.name))
    return found
