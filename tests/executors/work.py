"""Functions that executors run."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from framedex.core.arrays import Vectors
from framedex.storage.engine_calls import check_own_engine
from tests.pauses import wait_until


def square(number: int) -> int:
    """Return the square of a number."""
    return number * number


def late_square(folder: Path, number: int) -> int:
    """Return the square of a number; an even one waits for that of the next one, which runs at the same time."""
    if number % 2:
        (folder / str(number)).touch()
    else:
        wait_until((folder / str(number + 1)).exists)
    return number * number


def pid_of(_item: object) -> int:
    """Return the id of the process that runs this."""
    return os.getpid()


def parent_of(_item: object) -> int:
    """Return the id of the parent of the process that runs this."""
    return os.getppid()


def is_imported(module: str) -> bool:
    """Return whether a module is imported in the process that runs this."""
    return module in sys.modules


def check_engine(_item: object) -> None:
    """Check that Lance can be called in the process that runs this."""
    check_own_engine()


def end_once(marker: Path) -> str:
    """End the process, unless an earlier call did."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def wait_once(marker: Path) -> str:
    """Wait without end, unless an earlier call did."""
    if not marker.exists():
        marker.touch()
        threading.Event().wait()
    return "done"


def end_by(number: int) -> None:
    """End the process by a signal."""
    os.kill(os.getpid(), number)


def fail(item: str) -> None:
    """Raise an exception that names the item."""
    raise ValueError(f"{item} cannot be used")


class Unpicklable(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second, self.lock = second, threading.Lock()


def fail_strangely(item: str) -> None:
    """Raise an exception that cannot be pickled."""
    raise Unpicklable(item, "x")


def wait_in(folder: Path) -> None:
    """Write the id of the process into a folder, and wait without end."""
    (folder / str(os.getpid())).touch()
    threading.Event().wait()


def pause(seconds: float) -> tuple[float, float]:
    """Sleep, and return the times of the beginning and of the end, by the clock of the machine."""
    start = time.monotonic()
    time.sleep(seconds)
    return start, time.monotonic()


def meet(folder: Path, count: int, number: int) -> None:
    """Wait until a number of these run at the same time."""
    (folder / str(number)).touch()
    wait_until(lambda: len(list(folder.iterdir())) >= count)


def products(rows: Vectors) -> Vectors:
    """Return the products of all pairs of rows."""
    return rows @ rows.T


def surroundings(_item: None) -> tuple[list[str], dict[str, str | None], str]:
    """Return the path of modules, the variables of threads of BLAS, and the file of the main module."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return sys.path, {name: os.environ.get(name) for name in names}, str(sys.modules["__main__"].__file__)


def visible_gpus(_item: int) -> str | None:
    """Return the numbers of the GPUs that CUDA shows to this process."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")
