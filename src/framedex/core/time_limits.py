"""Time limits of what one call does, which the engines below it observe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from math import inf
from threading import Condition, Lock, Thread

from framedex.core import forks
from framedex.errors import TimedOut


@dataclass(frozen=True)
class _Limit:
    seconds: float
    end: float

    def error(self) -> TimedOut:
        return TimedOut(f"this took longer than {self.seconds:g} s and was stopped; ask for less, as by a filter")


class _Alarms:
    """Calls of functions at given times, on one thread for all: a thread for each would cost more than a small query.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self.renew()
        forks.renew_after_forks(self)

    def renew(self) -> None:
        """Forget all calls in the child of a fork, where the thread does not exist."""
        self._changed, self._wakes_at = Condition(), inf
        self._thread: Thread | None = None
        self._calls = dict[int, tuple[float, Callable[[], None]]]()

    def add(self, at: float, call: Callable[[], None]) -> int:
        """Plan a call; return its number.

        Args:
            at: the time, of the monotonic clock.
            call: must neither fail nor block.
        """
        with self._changed:
            number = next(self._numbers)
            self._calls[number] = at, call
            if self._thread is None:
                self._thread = Thread(target=self._run, name="framedex-time-limits", daemon=True)
                self._thread.start()
            elif at < self._wakes_at:
                self._changed.notify()
        return number

    def remove(self, number: int) -> None:
        """Forget a call; it may be in progress."""
        with self._changed:
            self._calls.pop(number, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._wakes_at = min((at for at, _ in self._calls.values()), default=inf)
                remaining_s = self._wakes_at - time.monotonic()
                if remaining_s > 0:
                    self._changed.wait(None if remaining_s == inf else remaining_s)
            self._call_due()

    def _call_due(self) -> None:
        with self._changed:
            now = time.monotonic()
            due = [number for number, (at, _) in self._calls.items() if at <= now]
            calls = [self._calls.pop(number)[1] for number in due]
        for call in calls:
            call()


_ALARMS = _Alarms()
_LIMIT: ContextVar[_Limit | None] = ContextVar("time limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the time of what the block does, also on threads that take over its context.

    Queries of tables observe it. Numeric work between two queries is not interrupted.

    Args:
        seconds: the time from now on, above 0.
    """
    token = _LIMIT.set(_Limit(seconds, time.monotonic() + seconds))
    try:
        yield
    finally:
        _LIMIT.reset(token)


@contextmanager
def interrupted(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call a function, on another thread, if the time limit ends within the block; without a limit do nothing.

    Args:
        interrupt: makes the work of the block end with an error of any kind.

    Raises:
        TimedOut: the time limit has ended, before the block or within it.
    """
    if (limit := _LIMIT.get()) is None:
        yield
        return
    if limit.end <= time.monotonic():
        raise limit.error()
    state, lock = {"works": True, "late": False}, Lock()

    def end() -> None:
        with lock:
            if state["works"]:  # else it would interrupt what follows
                state["late"] = True
                interrupt()

    number = _ALARMS.add(limit.end, end)
    try:
        yield
    except Exception as error:
        if state["late"]:
            raise limit.error() from error
        raise
    finally:
        with lock:
            state["works"] = False
        _ALARMS.remove(number)
