"""A bounded cache that threads share."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from framedex.core import forks

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """The most recently used entries of a mapping, up to a total weight. Safe to share between threads.

    Values must not be None, which stands for a missing entry.

    Args:
        max_weight: the maximum total weight; the least recently used entries are evicted first. The default weight of
            an entry in :meth:`put` is 1, so this is the maximum number of entries by default.
    """

    def __init__(self, max_weight: int) -> None:
        self.max_weight = max_weight
        self._weight = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = forks.RLock()

    @property
    def weight(self) -> int:
        """The weight of all entries together."""
        with self._lock:
            return self._weight

    def __len__(self) -> int:
        """Return the number of entries."""
        with self._lock:
            return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        """Return whether there is an entry; this does not count as a use."""
        with self._lock:
            return key in self._entries

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, and count this as a use; None if there is no entry."""
        with self._lock:
            if (entry := self._entries.get(key)) is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value, *, weight: int = 1) -> None:
        """Store a value, replacing the previous value of the key, unless its weight alone exceeds the limit."""
        with self._lock:
            self.discard(key)
            if weight > self.max_weight:
                return
            self._entries[key] = value, weight
            self._weight += weight
            while self._weight > self.max_weight:
                self._weight -= self._entries.popitem(last=False)[1][1]

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key; create and store it if there is no entry.

        Other threads wait while *make* runs, so each value is created once; *make* should be quick.
        """
        with self._lock:
            if (value := self.get(key)) is None:
                value = make()
                self.put(key, value)
            return value

    def discard(self, key: Key) -> None:
        """Remove the entry of a key if there is one."""
        with self._lock:
            if (entry := self._entries.pop(key, None)) is not None:
                self._weight -= entry[1]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._weight = 0
