"""Values that are kept in memory for their users for a time: results, plans."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from framedex.core import forks

Value = TypeVar("Value")


@dataclass
class _Entry(Generic[Value]):
    value: Value
    weight: int
    used_at: float


class KeptValues(Generic[Value]):
    """Values of users, each kept until it was not used for a time. Safe to share between threads.

    Args:
        most: the maximum number of values of a user; the least recently used ones are dropped first.
        max_bytes: the maximum size of all values together; the same holds.
        keep_s: the number of seconds after its last use for which a value is kept.
        clock: returns a time in seconds.
    """

    def __init__(
        self, *, most: int, max_bytes: int, keep_s: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._max_bytes, self._keep_s, self._clock = most, max_bytes, keep_s, clock
        self._entries: OrderedDict[tuple[str, str], _Entry[Value]] = OrderedDict()
        self._lock = forks.RLock()

    @property
    def nbytes(self) -> int:
        """The size of all values together."""
        with self._lock:
            return sum(each.weight for each in self._entries.values())

    def __len__(self) -> int:
        """Return the number of values of all users."""
        with self._lock:
            self._expire()
            return len(self._entries)

    def get(self, user_id: str, name: str) -> Value | None:
        """Return a value, which counts as a use; None if it is not kept."""
        with self._lock:
            self._expire()
            if (entry := self._entries.get((user_id, name))) is None:
                return None
            entry.used_at = self._clock()
            self._entries.move_to_end((user_id, name))
            return entry.value

    def put(self, user_id: str, name: str, value: Value, *, weight: int = 0) -> None:
        """Keep a value, in place of the former one of this name.

        Args:
            user_id: the user.
            name: the name of the value, which the user's other values do not have.
            value: the value.
            weight: its size in bytes.
        """
        with self._lock:
            self._expire()
            self._entries.pop((user_id, name), None)
            own = [key for key in self._entries if key[0] == user_id]
            for key in own[: max(len(own) - self._most + 1, 0)]:
                del self._entries[key]
            self._entries[user_id, name] = _Entry(value, weight, self._clock())
            while len(self._entries) > 1 and self.nbytes > self._max_bytes:
                self._entries.popitem(last=False)

    def _expire(self) -> None:
        limit = self._clock() - self._keep_s
        while self._entries and next(iter(self._entries.values())).used_at < limit:
            self._entries.popitem(last=False)
