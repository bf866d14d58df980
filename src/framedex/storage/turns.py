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
        self._turns, self._event, self._is_handed_over = turns, threading.Event(), False

    def wait(self, timeout_s: float) -> bool:
        """Wait until the turn comes; return whether it has come.

        Args:
            timeout_s: maximum waiting time in seconds.
        """
        return self._event.wait(timeout_s)

    def wake(self) -> None:
        """End the wait of the thread, although its turn may not have come."""
        self._event.set()

    @property
    def is_awaited(self) -> bool:
        """True if another thread waits behind this one."""
        with self._turns._lock:
            return self._turns._queue[-1] is not self

    def end(self) -> None:
        """End the turn, or the wait for it. The last thread finishes the work in progress."""
        self._turns._end(self)

    def hand_over(self) -> None:
        """Have the thread before this turn finish the work in progress and end it; the caller waits no more."""
        with self._turns._lock:
            self._is_handed_over = True
            has_come = self._turns._queue[0] is self
        if has_come:
            self._turns._end(self, finish=True)


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

    def _end(self, turn: Turn, *, finish: bool = False) -> None:
        """End a turn, and those behind it that were handed over.

        Args:
            turn: the turn.
            finish: finish the work in progress first; the turn has come.
        """
        error: BaseException | None = None
        while True:
            if finish:
                try:
                    self._finish()
                except BaseException as raised:  # the threads behind this turn must not wait for ever
                    error = raised
            with self._lock:
                if turn in self._queue:
                    self._queue.remove(turn)
                if not self._queue:
                    baton, self.baton = self.baton, None
                    break
                turn = self._queue[0]
                if not (finish := turn._is_handed_over):
                    baton = None
                    turn._event.set()
                    break
        if baton is not None:
            baton.finish()
        if error is not None:
            raise error

    def _finish(self) -> None:
        if (baton := self.baton) is not None:
            self.baton = None
            baton.finish()

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
