"""Moments at which a process is killed: around one of its transactions, or after a part of its work."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import sqlalchemy as sa

from framedex.storage.database import Database

_PLACES = ("before", "in", "after")
_TRIES = 6


@dataclass(frozen=True)
class Moment:
    """A moment of a process's work.

    Attributes:
        write: the number of a transaction, counted from 0, around which the process ends itself; None if it is killed
            from outside.
        place: ``before``, ``in`` or ``after`` the transaction.
        share: the share of its undisturbed time after which it is killed from outside.
        waits_s: how long it stays at the transaction.
    """

    write: int | None = None
    place: str = ""
    share: float = 0.0
    waits_s: float = 0.0

    def __str__(self) -> str:
        return f"after {self.share:.3f} of its time" if self.write is None else f"{self.place} write {self.write}"

    def earlier(self) -> "Moment":
        """Return a moment before this one."""
        if self.write is None:
            return replace(self, share=self.share / 2)
        return replace(self, write=max(0, self.write - 1))

    def after_s(self, takes_s: float, patience_s: float = 60.0) -> float:
        """Return the time in seconds after which the process is killed from outside.

        Args:
            takes_s: its undisturbed time.
            patience_s: how long is waited for a process that ends itself.
        """
        return patience_s if self.write is not None else self.share * takes_s


def moment_of(name: str, number: int, writes: int) -> Moment:
    """Return the moment of a trial: those of the first trials are around the transactions, in an order by the name.

    Args:
        name: the work.
        number: the trial.
        writes: transactions of the work.
    """
    points = [Moment(write, place) for write, place in product(range(writes), _PLACES)]
    random.Random(name).shuffle(points)
    return points[number] if number < len(points) else Moment(share=random.Random(f"{name} {number}").random())


def placed(kill: Callable[[Moment], bool], moment: Moment) -> Moment:
    """Kill at a moment, or at an earlier one where the work ended before it; return the moment of the kill.

    Args:
        kill: begins the work and kills it; returns whether it had not ended.
        moment: the first moment that is tried.
    """
    for _ in range(_TRIES):
        if kill(moment):
            return moment
        moment = moment.earlier()
    raise AssertionError(f"no kill within the work; the last one was {moment}")


def watch_writes(database: type[Database], moment: Moment | None = None) -> list[bool]:
    """Return a list that grows by each transaction of a class of databases; at a moment the process kills itself."""
    write, writes = database.write, list[bool]()

    def reach(number: int, place: str) -> None:
        if moment is not None and (moment.write, moment.place) == (number, place):
            time.sleep(moment.waits_s)
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def watched(opened: Database, **options: Any) -> Iterator[sa.Connection]:
        number = len(writes)
        writes.append(True)
        reach(number, "before")
        with write(opened, **options) as connection:
            yield connection
            reach(number, "in")
        reach(number, "after")

    setattr(database, "write", watched)  # noqa: B010 - an assignment to a method has no type
    return writes
