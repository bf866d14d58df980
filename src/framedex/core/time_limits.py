"""Time limits of what one call does, which the engines below it observe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock, Timer

from framedex.errors import TimedOut


@dataclass(frozen=True)
class _Limit:
    seconds: float
    end: float

    def error(self) -> TimedOut:
        return TimedOut(f"this took longer than {self.seconds:g} s and was stopped; ask for less, as by a filter")


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
    if (remaining_s := limit.end - time.monotonic()) <= 0:
        raise limit.error()
    state, lock = {"works": True, "late": False}, Lock()

    def end() -> None:
        with lock:
            if state["works"]:  # else it would interrupt what follows
                state["late"] = True
                interrupt()

    timer = Timer(remaining_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if state["late"]:
            raise limit.error() from error
        raise
    finally:
        with lock:
            state["works"] = False
        timer.cancel()
