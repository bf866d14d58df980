"""A clock that a test sets, by which the package dates its rows."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from framedex.storage import datasets


class Clock:
    """The clock of the machine.

    Attributes:
        offset: how far it is from the right time.
    """

    def __init__(self) -> None:
        self.offset = timedelta()

    def turn(self, **time: float) -> None:
        """Turn the clock forward, by so much time as for timedelta."""
        self.offset += timedelta(**time)


@contextmanager
def turning() -> Iterator[Clock]:
    """Give the clock of all modules that are imported to a block."""
    clock, right = Clock(), datasets.now
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("framedex.") and vars(module).get("now") is right:
                patch.setattr(module, "now", lambda: right() + clock.offset)
        yield clock
