"""The listeners of a hub: those who are told of changes on another thread, at most five of each user."""

import threading
from typing import Generic, Protocol, TypeVar

from framedex.errors import TooManyAttempts

MOST_LISTENERS = 5
"""The maximum number of listeners of a kind of a user."""
_RETRY_S = 5


class OfUser(Protocol):
    """A listener of a user."""

    @property
    def user_id(self) -> str | None:
        """The id of the user."""


_Listener = TypeVar("_Listener", bound=OfUser)


class Listeners(Generic[_Listener]):
    """The present listeners of one kind. Safe to share between threads.

    Args:
        kind: what users have open, for messages: a plural noun.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._present: list[_Listener] = []
        self._lock = threading.Lock()

    def add(self, listener: _Listener) -> None:
        """Add a listener.

        Raises:
            TooManyAttempts: its user has five.
        """
        with self._lock:
            if sum(each.user_id == listener.user_id for each in self._present) >= MOST_LISTENERS:
                raise TooManyAttempts(f"A user has at most {MOST_LISTENERS} {self._kind}", _RETRY_S)
            self._present.append(listener)

    def remove(self, listener: _Listener) -> None:
        """Remove a listener, if it is present."""
        with self._lock:
            if listener in self._present:
                self._present.remove(listener)

    def present(self) -> list[_Listener]:
        """Return the present listeners."""
        with self._lock:
            return list(self._present)
