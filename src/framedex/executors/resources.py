"""Processors, GPUs and memory: the need of an item, and the capacity of an executor."""

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any

from framedex.errors import InvalidInput, Unavailable

_ROUNDING = 1e-9  # of sums of fractions


@dataclass(frozen=True)
class Need:
    """The resources that one item takes while it runs.

    Attributes:
        cpus: processors, also fractions.
        gpus: GPUs; fractions share one.
        memory: bytes.

    Raises:
        InvalidInput: a number is negative or not finite, or there are one and a half GPUs.
    """

    cpus: float = 1
    gpus: float = 0
    memory: int = 0

    def __post_init__(self) -> None:
        for name, value in (("processors", self.cpus), ("GPUs", self.gpus), ("bytes of memory", self.memory)):
            if not (math.isfinite(value) and value >= 0):
                raise InvalidInput(f"the {name} of an item are a finite number, 0 or more, not {value!r}")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise InvalidInput(f"an item shares one GPU or has whole ones: {self.gpus!r} is neither")


@dataclass(frozen=True)
class Capacity:
    """The resources of an executor.

    Attributes:
        cpus: processors.
        gpus: GPUs.
        memory: bytes; infinite without a limit.
        place: the machines that have them, for messages.
    """

    cpus: float
    gpus: float
    memory: float
    place: str = "this machine"

    def check(self, need: Need) -> None:
        """Check that there are GPUs for an item. Where processors or memory are short, it runs alone.

        Raises:
            Unavailable: there are fewer GPUs than it needs.
        """
        if need.gpus > self.gpus + _ROUNDING:
            there = f"{self.gpus:g}" if self.gpus else "none"
            raise Unavailable(f"an item needs {need.gpus:g} GPUs, and {self.place} has {there}")

    def at_once(self, need: Need) -> int:
        """Return the number of items with the same need that can run at the same time; at least 1."""
        pairs = ((self.cpus, need.cpus), (self.gpus, need.gpus), (self.memory, need.memory))
        shares = [there / needed for there, needed in pairs if needed and there < math.inf]
        return max(1, int(min(shares, default=self.cpus) + _ROUNDING))


class Admission:
    """Items that wait until what they need is free, each in its turn: later ones do not overtake a large one.

    Args:
        capacity: what there is. An item that needs more runs alone.
        most: the number of items that run at the same time at most.
    """

    def __init__(self, capacity: Capacity, most: int) -> None:
        self._capacity, self._most = capacity, most
        self._lock, self._running = Lock(), list[Need]()
        self._waiting = deque[tuple[Need, Future[Any], Callable[[], object]]]()
        self._closed = False

    def enter(self, need: Need, future: "Future[Any]", start: Callable[[], object]) -> None:
        """Start an item now or when others have left.

        Args:
            need: what it needs.
            future: its future; if it is cancelled before, the item does not start.
            start: called once; its item leaves at its end.

        Raises:
            Unavailable: the executor has ended.
        """
        with self._lock:
            if self._closed:
                raise Unavailable("the executor has ended")
            self._waiting.append((need, future, start))
        self._start_next()

    def leave(self, need: Need) -> None:
        """Free what an item needed, and start those that it is enough for."""
        with self._lock:
            self._running.remove(need)
        self._start_next()

    def close(self) -> None:
        """Cancel the items that wait."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
        for _, future, _ in waiting:
            future.cancel()

    def _start_next(self) -> None:
        while (start := self._next()) is not None:
            start()

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            while self._waiting and self._waiting[0][1].cancelled():
                self._waiting.popleft()
            if not self._waiting or not self._fits(self._waiting[0][0]):
                return None
            need, _, start = self._waiting.popleft()
            self._running.append(need)
            return start

    def _fits(self, need: Need) -> bool:
        if not self._running:
            return True
        if len(self._running) >= self._most:
            return False
        both = [*self._running, need]
        return (
            math.fsum(each.cpus for each in both) <= self._capacity.cpus + _ROUNDING
            and math.fsum(each.gpus for each in both) <= self._capacity.gpus + _ROUNDING
            and sum(each.memory for each in both) <= self._capacity.memory
        )
