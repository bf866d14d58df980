"""Limits for the pixels that are decoded at the same time, which bound the memory of decoding."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Protocol

from framedex.core.file_locks import locked
from framedex.core.forks import renew_after_forks

_SMALL = 1_000_000  # pixels of an image that need not wait


class Budget(Protocol):
    """A limit for the number of pixels that are decoded at the same time."""

    def hold(self, pixels: int) -> AbstractContextManager[None]:
        """Wait until the pixels fit into the budget; reserve them for at least the duration of the block."""
        ...


class PixelBudget:
    """A limit for the number of pixels that all threads decode at the same time, which bounds their memory.

    An image larger than the whole budget is decoded alone. Threads get their pixels in the order in which they ask.
    """

    def __init__(self, pixels: int) -> None:
        self._limit = pixels
        self.renew()

    def renew(self) -> None:
        """Release all pixels, in the child of a fork."""
        self._reserved, self._changed = 0, threading.Condition()
        self._waiting: deque[object] = deque()

    @property
    def waiting(self) -> int:
        """The number of images that wait."""
        with self._changed:
            return len(self._waiting)

    def _is_turn(self, me: object, pixels: int) -> bool:
        is_next = self._waiting[0] is me
        return is_next and (self._reserved == 0 or self._reserved + pixels <= self._limit)

    @contextmanager
    def hold(self, pixels: int) -> Iterator[None]:
        """Wait until the pixels fit into the budget, and reserve them for the duration of the block."""
        me = object()
        with self._changed:
            self._waiting.append(me)
            try:
                self._changed.wait_for(lambda: self._is_turn(me, pixels))
                self._reserved += pixels
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._reserved -= pixels
                self._changed.notify_all()


@cache
def shared_budget(pixels: int) -> PixelBudget:
    """Return the limit for images that a process decodes on request, such as queries and thumbnails."""
    budget = PixelBudget(pixels)
    renew_after_forks(budget)
    return budget


class PartOfBudget(PixelBudget):
    """The part that one of several processes has of a limit; a larger image waits for its turn among all processes.

    Args:
        pixels: the part.
        turn: a file whose lock gives the turn; it ends with the process that has it.
    """

    def __init__(self, pixels: int, turn: Path) -> None:
        super().__init__(pixels)
        self._turn = turn

    @contextmanager
    def hold(self, pixels: int) -> Iterator[None]:
        """Wait until the pixels fit into the part, or have their turn; reserve them for the duration of the block."""
        with locked(self._turn) if pixels > self._limit else nullcontext(), super().hold(pixels):
            yield


class HeldOn:
    """A budget for one image whose pixels stay reserved until the end of this context, while the image is in use."""

    def __init__(self, budget: PixelBudget) -> None:
        self._budget, self._reservation = budget, ExitStack()

    def hold(self, pixels: int) -> AbstractContextManager[None]:
        """Wait until the pixels fit into the budget; release the pixels of an earlier attempt at the same image."""
        self._reservation.close()
        self._reservation.enter_context(self._budget.hold(pixels))
        return nullcontext()

    def __enter__(self) -> "HeldOn":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reservation.close()


def reserve_pixels(budget: Budget | None, pixels: int) -> AbstractContextManager[None]:
    """Reserve pixels of a budget, if there is one, for the duration of a block."""
    # Small images need little memory even on all threads, so they need not wait.
    return nullcontext() if budget is None or pixels < _SMALL else budget.hold(pixels)
