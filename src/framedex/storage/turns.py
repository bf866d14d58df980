"""A lock with first-come, first-served order."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Baton(Protocol):
    """Work in progress that each thread can pass on to the next one in turn."""

    def finish(self) -> None:
        """Finish the work; called by the next thread if it does not continue it, or if there is no next one."""
        ...


class Turn:
    """The turn of one thread, from its request on.

    Args:
        turns: the lock.
    """

    def __init__(self, turns: "Turns") -> None:
        self._turns, self._event = turns, threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the turn comes; return whether it has come.

        Args:
            timeout_s: maximum waiting time in seconds.
        """
        return self._event.wait(timeout_s)

    @property
    def is_awaited(self) -> bool:
        """True if another thread waits behind this one."""
        with self._turns._lock:
            return self._turns._queue[-1] is not self

    def end(self) -> None:
        """End the turn, or the wait for it. The last thread finishes the work in progress."""
        baton = None
        with self._turns._lock:
            if self in self._turns._queue:
                self._turns._queue.remove(self)
            if self._turns._queue:
                self._turns._queue[0]._event.set()
            else:
                baton, self._turns.baton = self._turns.baton, None
        if baton is not None:
            baton.finish()


class Turns:
    """A lock that threads get in the order of their requests, unlike the locks of SQLite and Python.

    It is not reentrant: a thread that holds it must not request it again.

    Attributes:
        baton: the work in progress that the thread which holds the lock passes on; None without any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue = deque[Turn]()  # the first one holds the lock
        self.baton: Baton | None = None

    def request(self) -> Turn:
        """Return a new turn, behind all others; the caller must end it."""
        turn = Turn(self)
        with self._lock:
            self._queue.append(turn)
            self._queue[0]._event.set()
        return turn

    @contextmanager
    def turn(self, *, timeout_s: float) -> Iterator[Turn]:
        """Wait for this thread's turn and hold the lock for the duration of the block.

        Args:
            timeout_s: maximum waiting time in seconds.

        Raises:
            TimeoutError: the turn did not come in time.
        """
        turn = self.request()
        try:
            if not turn.wait(timeout_s):
                raise TimeoutError(f"other threads did not finish within {timeout_s:g} s")
            yield turn
        finally:  # also if an interrupt ends the wait
            turn.end()
