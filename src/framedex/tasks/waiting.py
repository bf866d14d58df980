"""Waiting for what runs on another thread, such that an interrupt is always heard."""

import time
from concurrent.futures import Future
from typing import TypeVar

_LOOK_S = 0.5

Result = TypeVar("Result")


def result_of(future: Future[Result], timeout_s: float | None) -> Result:
    """Return a future's result.

    A thread that blocks without a limit can miss a signal that came in the instant before, and would then hear Ctrl-C
    only when it is pressed again; so this one looks up now and then.

    Args:
        future: what is waited for.
        timeout_s: give up after so many seconds; None for as long as it takes.

    Raises:
        TimeoutError: the time is over and the future is not done.
        BaseException: what the future ended with.
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
