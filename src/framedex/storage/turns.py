"""A lock with first-come, first-served order."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that threads get in the order of their requests, unlike the locks of SQLite and Python.

    It is not reentrant: a thread that holds it must not request it again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tickets = deque[threading.Event]()  # the first one holds the lock

    @contextmanager
    def turn(self, *, timeout_s: float) -> Iterator[None]:
        """Wait for this thread's turn and hold the lock for the duration of the block.

        Args:
            timeout_s: maximum waiting time in seconds.

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
        finally:  # also if an interrupt ends the wait
            with self._lock:
                if ticket in self._tickets:
                    self._tickets.remove(ticket)
                if self._tickets:
                    self._tickets[0].set()
