"""Results of the stages of a long computation, from which another process goes on after a kill."""

import logging
import pickle
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from framedex.core.atomic import atomic_file

_LOG = logging.getLogger(__name__)
_PREFIX = "stage-"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROCESS = secrets.token_hex(8)

T = TypeVar("T")


class Stages:
    """Results of stages, in the folder of the files that they belong to.

    The files are not flushed to the disk, so that results count until the machine is started again. On systems that do
    not name this time, they count in the same process alone.

    Args:
        folder: the folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Any:
        """Return the result of a stage; None if it is not complete."""
        return _read(self._path(name))

    def put(self, name: str, result: Any) -> None:
        """Keep the result of a stage, which is not None, in place of an earlier one.

        Raises:
            OSError: it cannot be written.
        """
        with atomic_file(self._path(name)) as partial, partial.open("wb") as file:
            file.write(_head())
            pickle.dump(result, file, pickle.HIGHEST_PROTOCOL)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of a stage, which is computed if it is not complete, and kept if the disk has room."""
        result: T | None = self.get(name)
        if result is not None:
            _LOG.debug("%s: the stage %r is complete", self._folder, name)
        else:
            result = compute()
            with suppress(OSError):
                self.put(name, result)
        return result

    def clear(self) -> None:
        """Forget the results of all stages."""
        for path in self._folder.glob(f"{_PREFIX}*"):
            path.unlink()

    def remove(self, *names: str) -> None:
        """Forget the results of some stages."""
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / (_PREFIX + name)


def stages_outlast_processes() -> bool:
    """Return whether the stages of a process count in another one."""
    return _BOOT.exists()


def is_stage(path: Path) -> bool:
    """Return whether a file has the result of a stage."""
    return path.name.startswith(_PREFIX)


def last_stage_time(folder: Path) -> float | None:
    """Return when the last stage of a folder was completed, in seconds since 1970; None if none counts."""
    found = [path for path in folder.glob(f"{_PREFIX}*") if _is_of_this_run(path)]
    return max((path.stat().st_mtime for path in found), default=None)


def _is_of_this_run(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return _reads_this_run(file)
    return False


def _read(path: Path) -> Any:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return pickle.load(file) if _reads_this_run(file) else None  # noqa: S301 - written by put
    return None


def _reads_this_run(file: BinaryIO) -> bool:
    """Read the head of a file; return whether it was written since the machine was started, so that it is whole."""
    return file.readline() == _head()


def _head() -> bytes:
    """Return the first line of files, which names the time since the machine was started."""
    return (_BOOT.read_text().strip() if _BOOT.exists() else _PROCESS).encode() + b"\n"
