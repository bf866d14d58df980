"""The base class of executors: results in order, with a bounded number of items ahead."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")
POLL_S = 0.5
"""Seconds after which a wait for a result looks whether it should go on."""


class ResultLost(Exception):
    """An item whose process ended each time before it returned a result.

    Attributes:
        how: how the last process ended, in words.
        signal: the signal that ended it; None if it ended itself.
    """

    def __init__(self, how: str, signal: int | None) -> None:
        super().__init__(f"a process that worked for this one ended again and again before it had a result: {how}")
        self.how, self.signal = how, signal


class Executor(ABC):
    """A number of workers that run functions.

    A function is one of a module, or a :func:`functools.partial` of one, and changes nothing but files of its own: a
    worker may be lost, and then another one runs its item again. So it is pure, or its results replace earlier ones.

    Attributes:
        workers: the number of items that run at the same time.
    """

    workers: int

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""

    @abstractmethod
    def submit(self, function: Callable[[T], R], item: T) -> "Future[R]":
        """Run a function on an item.

        Raises:
            ResultLost: (from the future) the item's worker was lost several times.
        """

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, check: Callable[[], None] = lambda: None
    ) -> Generator[R, None, None]:
        """Yield the results of a function in the order of the items; at most a few items a worker are ahead.

        Closing the generator, or an exception, cancels the items that have not begun.

        Args:
            function: the function.
            items: the items, which are requested as workers become free.
            check: called at least twice a second while a result is awaited; raises to stop.
        """
        remaining, waiting = iter(items), deque["Future[R]"]()

        def hand_over() -> None:
            while len(waiting) < 2 * self.workers + 2:
                try:
                    item = next(remaining)
                except StopIteration:
                    return
                waiting.append(self.submit(function, item))

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
