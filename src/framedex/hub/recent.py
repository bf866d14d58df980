"""Values that were read a moment ago, for the many requests of one page."""

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from framedex.core import forks
from framedex.core.lru_cache import LruCache
from framedex.storage.data_versions import DataVersion
from framedex.storage.database import Database

_AGE_S = 1.0
_KEPT = 256
Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values that were read from databases up to a second ago, while no process has changed these since.

    A page asks for dozens of thumbnails, and each request reads the same dataset, owner and grants, which takes more
    than a dozen statements; whether a database has changed takes microseconds. So a right that is taken away ends with
    the commit. The age bounds what no commit tells: that the process of a task died.

    Safe to share between threads.

    Args:
        databases: what the values are read from.
    """

    def __init__(self, *databases: Database) -> None:
        self._versions = [DataVersion(each) for each in databases]
        self._values: LruCache[Hashable, tuple[Value, float]] = LruCache(_KEPT)
        self._lock, self._turn = forks.Lock(), 0

    def get(self, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return a recent value; read it if there is none."""
        turn = self._look()
        known = self._values.get(key)
        if known is not None and time.monotonic() - known[1] < _AGE_S:
            return known[0]
        began = time.monotonic()
        value = read()
        with self._lock:
            if turn == self._turn:  # else it may be from before a change that another thread has seen
                self._values.put(key, (value, began))
        return value

    def close(self) -> None:
        """Close the connections to the databases."""
        for each in self._versions:
            each.close()

    def _look(self) -> int:
        """Forget all values if a database has changed; return the number of times that one has."""
        with self._lock:
            if any([each.has_changed() for each in self._versions]):  # noqa: C419 - each of them is looked at
                self._turn += 1
                self._values.clear()
            return self._turn
