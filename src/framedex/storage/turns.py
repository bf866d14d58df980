"""Turns: what one thread may do at a time, in the order in which threads asked for it."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that is first come, first served, which SQLite's own and those of Python are not.

    It is not reentrant: a thread that has the turn must not ask for another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tickets = deque[threading.Event]()  # the first one has the turn

    @contextmanager
    def turn(self, *, timeout_s: float) -> Iterator[None]:
        """Wait for the turn of this thread, and keep it for the duration of the block.

        Args:
            timeout_s: give up after so many seconds.

        Raises:
            TimeoutError: the turn did not come in time.
        """
        ticket = threading.Event()
        try:
            with self._lock:
                self._tickets.append(ticket)
                self._tickets[0].set()
            if not ticket.wait(timeout_s):
                raise TimeoutError(f"other threads did not finish within {timeout_s:g} s")
            yield
        finally:  # also where an interrupt ends the waiting
            with self._lock:
                if ticket in self._tickets:
                    self._tickets.remove(ticket)
                if self._tickets:
                    self._tickets[0].set()
