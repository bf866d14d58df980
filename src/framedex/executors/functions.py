"""The functions that an executor sends to its workers: each once, and only the last few are kept on both sides."""

import pickle
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

V = TypeVar("V")
MOST = 8
"""Functions that are kept. They may refer to large arrays."""


class LastUsed(Generic[V]):
    """The last values that were used, by number. Two of them with the same history have the same numbers."""

    def __init__(self) -> None:
        self._values = OrderedDict[int, V]()

    def __contains__(self, number: int) -> bool:
        """Return whether the value of a number is kept."""
        return number in self._values

    def get(self, number: int) -> V:
        """Return the value of a number, which has been used now.

        Raises:
            KeyError: it is not kept.
        """
        self._values.move_to_end(number)
        return self._values[number]

    def put(self, number: int, value: V) -> int | None:
        """Add a value, which has been used now; return the number of the one that makes room, if any."""
        self._values[number] = value
        return self._values.popitem(last=False)[0] if len(self._values) > MOST else None


class SentFunctions:
    """Functions with their numbers and pickles, by identity.

    Args:
        forget: called with the number of each function that is not kept any longer.
    """

    def __init__(self, forget: Callable[[int], None] = lambda _number: None) -> None:
        self._lock, self._forget, self._count = Lock(), forget, 0
        self._numbers = dict[int, int]()
        self._functions = LastUsed[tuple[Any, bytes]]()  # each is kept, so that its identity stays its own

    def get(self, function: Any) -> tuple[int, bytes]:
        """Return the number and the pickle of a function."""
        with self._lock:
            number = self._numbers.get(id(function))
            if number is None:
                number, self._count = self._count, self._count + 1
                packed = pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
                dropped = self._functions.put(number, (function, packed))
                self._numbers[id(function)] = number
                if dropped is not None:
                    self._numbers = {key: kept for key, kept in self._numbers.items() if kept != dropped}
                    self._forget(dropped)
            return number, self._functions.get(number)[1]
