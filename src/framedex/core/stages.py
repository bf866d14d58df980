"""Results of the stages of a long computation, from which another process goes on after a kill."""

import pickle
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from framedex.core.atomic import atomic_file

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
            pickle.dump(_machine_run(), file)
            pickle.dump(result, file, pickle.HIGHEST_PROTOCOL)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of a stage, which is computed if it is not complete."""
        result: T | None = self.get(name)
        if result is None:
            result = compute()
            self.put(name, result)
        return result

    def remove(self, *names: str) -> None:
        """Forget the results of some stages."""
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / (_PREFIX + name)


def last_stage_time(folder: Path) -> float | None:
    """Return when the last stage of a folder was completed, in seconds since 1970; None if none counts."""
    found = [path for path in folder.glob(f"{_PREFIX}*") if _is_of_this_run(path)]
    return max((path.stat().st_mtime for path in found), default=None)


def _is_of_this_run(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(pickle.load(file) == _machine_run())  # noqa: S301 - written by put


def _read(path: Path) -> Any:
    if not path.exists():
        return None
    with path.open("rb") as file:
        if pickle.load(file) != _machine_run():  # noqa: S301 - written by put
            return None
        return pickle.load(file)  # noqa: S301


def _machine_run() -> str:
    """Return what names the time since the machine was started."""
    return _BOOT.read_text().strip() if _BOOT.exists() else _PROCESS
