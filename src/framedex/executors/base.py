"""The base classes of executors: results in order, with a bounded number of items ahead."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

from framedex.core.gpus import gpu_count
from framedex.executors.resources import Admission, Capacity, Need

T = TypeVar("T")
R = TypeVar("R")
ATTEMPTS = 3
"""Times that an item is run whose worker is lost each time."""
POLL_S = 0.5
"""Seconds after which a wait for a result looks whether it should go on."""


class ResultLost(Exception):
    """An item whose process ended each time before it returned a result.

    Attributes:
        how: how the last process ended, in words.
        signal: the signal that ended it; None if it ended itself, or if that is not known.
    """

    def __init__(self, how: str, signal: int | None) -> None:
        super().__init__(f"a process that worked for this one ended again and again before it had a result: {how}")
        self.how, self.signal = how, signal


class Executor(ABC):
    """A number of workers that run functions.

    A function is one of a module, or a :func:`functools.partial` of one, and changes nothing but files of its own: a
    worker may be lost, and then another one runs its item again. So it is pure, or its results replace earlier ones.

    Attributes:
        workers: the number of items that run at the same time at most.
        capacity: the resources that items share.
    """

    workers: int
    capacity: Capacity

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""

    @abstractmethod
    def _hand_over(self, function: Callable[[T], R], item: T, need: Need) -> "Future[R]":
        """Run a function on an item as soon as there is what it needs, which the capacity holds."""

    def start(self) -> "Future[None]":
        """Start workers that take long to start beforehand; the future ends when the first one can take an item."""
        started = Future[None]()
        started.set_result(None)
        return started

    def submit(
        self, function: Callable[[T], R], item: T, *, cpus: float = 1, gpus: float = 0, memory: int = 0
    ) -> "Future[R]":
        """Run a function on an item.

        Args:
            function: the function.
            item: its argument.
            cpus: the processors that it keeps busy; fewer items run at the same time where that is more than one.
            gpus: the GPUs that it uses; fractions share one.
            memory: the bytes of memory that it takes at most. An item that needs more than there is runs alone.

        Raises:
            Unavailable: it needs a GPU, and there is none; or the executor has ended.
            InvalidInput: a number cannot be that of a resource.
            ResultLost: (from the future) the item's worker was lost several times.
        """
        need = Need(cpus, gpus, memory)
        self.capacity.check(need)
        return self._hand_over(function, item, need)

    def call(self, function: Callable[[T], R], item: T) -> R:
        """Run a function on an item, and wait for the result; see :meth:`submit`."""
        return self.submit(function, item).result()

    def map(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        cpus: float = 1,
        gpus: float = 0,
        memory: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> Generator[R, None, None]:
        """Yield the results of a function in the order of the items; at most a few items a worker are ahead.

        Closing the generator, or an exception, cancels the items that have not begun.

        Args:
            function: the function.
            items: the items, which are requested as workers become free.
            cpus: what each item needs, as in :meth:`submit`.
            gpus: likewise.
            memory: likewise.
            check: called at least twice a second while a result is awaited; raises to stop.
        """
        remaining, waiting = iter(items), deque["Future[R]"]()
        ahead = 2 * min(self.workers, self.capacity.at_once(Need(cpus, gpus, memory))) + 2

        def hand_over() -> None:
            while len(waiting) < ahead:
                try:
                    item = next(remaining)
                except StopIteration:
                    return
                waiting.append(self.submit(function, item, cpus=cpus, gpus=gpus, memory=memory))

        try:
            hand_over()
            while waiting:
                while not wait([waiting[0]], timeout=POLL_S).done:
                    check()
                yield waiting.popleft().result()
                check()
                hand_over()
        finally:
            for each in waiting:
                each.cancel()


class LocalExecutor(Executor):
    """An executor on this machine, with a thread for each worker.

    Args:
        workers: the number of items that run at the same time.
        memory: the bytes that items which say what they need may take together; None for no limit.
        gpus: the number of GPUs; by default those of the machine.
    """

    def __init__(self, workers: int, *, memory: int | None = None, gpus: float | None = None) -> None:
        self.workers = workers
        self.capacity = Capacity(
            workers, gpu_count() if gpus is None else gpus, float("inf") if memory is None else memory
        )
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="framedex-worker")
        self._admission = Admission(self.capacity, workers)

    @abstractmethod
    def _run(self, function: Callable[[T], R], item: T) -> R:
        """Run a function on an item, on the calling thread."""

    def _hand_over(self, function: Callable[[T], R], item: T, need: Need) -> "Future[R]":
        future = Future[R]()

        def work() -> None:
            try:
                if not future.set_running_or_notify_cancel():
                    return
                try:
                    result = self._run(function, item)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
            finally:
                self._admission.leave(need)

        self._admission.enter(need, future, lambda: self._pool.submit(work))
        return future

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the items in progress; the others are cancelled."""
        self._admission.close()
        self._pool.shutdown()
