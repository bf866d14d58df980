"""Threads of this process, for functions that release the interpreter lock most of the time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from framedex.executors.base import Executor

T = TypeVar("T")
R = TypeVar("R")


class ThreadExecutor(Executor):
    """An executor whose workers are threads of this process.

    Args:
        workers: the number of threads, which start when they are needed.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="framedex-worker")

    def submit(self, function: Callable[[T], R], item: T) -> "Future[R]":
        """Run a function on an item; see :meth:`Executor.submit`."""
        return self._pool.submit(function, item)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the items in progress; the others are cancelled."""
        self._pool.shutdown(cancel_futures=True)
