"""Waiting for results of other threads in a way that Ctrl-C can always interrupt."""

import time
from concurrent.futures import Future
from typing import TypeVar

_LOOK_S = 0.5

Result = TypeVar("Result")


def result_of(future: Future[Result], timeout_s: float | None) -> Result:
    """Return a future's result.

    A thread that blocks without a limit can miss a signal that arrives just before it blocks, and reacts only to the
    next Ctrl-C. So this function waits in short intervals.

    Args:
        future: the future.
        timeout_s: maximum waiting time in seconds; None for no limit.

    Raises:
        TimeoutError: the future was not done in time.
        BaseException: the exception of the future.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left = _LOOK_S if end is None else min(_LOOK_S, end - time.monotonic())
        try:
            return future.result(max(left, 0.0))
        except TimeoutError:
            if future.done():  # just now, or with a TimeoutError of its own
                return future.result()
            if end is not None and time.monotonic() >= end:
                raise
