"""Calls in processes, where an item that ends its process each time has a result, too: that it is broken."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from framedex.core.child_processes import KILLED
from framedex.errors import Unavailable
from framedex.executors import Executor, ProcessExecutor, ResultLost

T = TypeVar("T")
R = TypeVar("R")


def check_not_killed(lost: ResultLost) -> None:
    """Check that a process has ended by itself, so that an item can be the reason.

    Raises:
        Unavailable: it was killed from outside, as where memory is short.
    """
    if lost.signal == KILLED:
        raise Unavailable(f"{lost}; if memory is short, fewer processes need less (FRAMEDEX_PROCESSES)") from lost


class GuardedCalls(Generic[T, R]):
    """Calls of a function on lists of items.

    Args:
        executor: runs the function.
        function: returns a result for each item.
        broken: returns the result of an item that cannot be decoded, given the reason.
    """

    def __init__(
        self, executor: Executor, function: Callable[[list[T]], list[R]], broken: Callable[[T, str], R]
    ) -> None:
        self._executor, self._function, self._broken = executor, function, broken

    def submit(self, items: list[T]) -> "Future[list[R]]":
        """Run the function; for a future with :class:`ResultLost` there is :meth:`after_loss`."""
        return self._executor.submit(self._function, items)

    def call(self, items: list[T]) -> list[R]:
        """Return the results of items.

        Raises:
            Unavailable: the process was killed from outside, as where memory is short.
        """
        try:
            return self._executor.call(self._function, items)
        except ResultLost as lost:
            return self.after_loss(items, lost)

    def after_loss(self, items: list[T], lost: ResultLost) -> list[R]:
        """Return the results of items of which one has ended its process each time: that one is broken.

        Raises:
            Unavailable: the process was killed from outside, as where memory is short.
        """
        check_not_killed(lost)
        if len(items) > 1:
            return [each for item in items for each in self.call([item])]
        if not isinstance(self._executor, ProcessExecutor):  # a cluster does not show how a process has ended
            with ProcessExecutor(1) as process:
                return GuardedCalls(process, self._function, self._broken).call(items)
        return [self._broken(items[0], f"its decoding ended the process ({lost.how})")]
