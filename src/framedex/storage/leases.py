"""Leases: the right of one process to write the tables of a dataset, without a transaction that all others wait for.

Tables are written under a lease; the transaction that commits them also ends it. Edits of two datasets never wait for
each other, and readers never wait. The lease of a process that ended is taken over at once; the lease of a process that
is stopped or on another machine, once it was silent for 30 seconds. The late commit of such a process is refused.

A task needs no lease: its row and the status of the dataset keep others away. It starts while nobody has one.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa

from framedex.core.ids import new_id
from framedex.errors import Conflict, WorkspaceError
from framedex.storage.catalog import Catalog
from framedex.storage.datasets import now
from framedex.storage.owners import has_died, this_process
from framedex.storage.row_values import reading_row
from framedex.storage.schema import leases
from framedex.storage.turns import Turn

_WAIT_S = 60.0
_BEAT_S = 5.0
_PAUSE_S = (0.002, 0.05)  # the shortest and the longest pause between two looks at a lease of another process
_ENDED: set[str] = set()  # tokens of leases of this process whose row could not be deleted, as on a full disk


class Lease:
    """A lease that this process holds.

    Args:
        catalog: the catalog.
        token: the id of the lease.
        operation: what is done under it, for messages.
    """

    def __init__(self, catalog: Catalog, token: str, operation: str) -> None:
        self._catalog, self._token, self._operation = catalog, token, operation
        self._ended = threading.Event()

    @contextmanager
    def commit(self, *, end: bool = True) -> Iterator[sa.Connection]:
        """Yield a transaction that commits what was written and ends the lease.

        Args:
            end: False keeps the lease.

        Raises:
            Conflict: another process took the lease over, as this one was silent; nothing is committed.
        """
        mine = leases.c.token == self._token
        with self._catalog.write() as connection:
            row = leases.delete().where(mine) if end else leases.update().where(mine).values(heartbeat_at=now())
            if not connection.execute(row).rowcount:
                raise Conflict(
                    f"Operation '{self._operation}' was given up while this process did not run; nothing was changed"
                )
            yield connection
        if end:
            self._ended.set()

    def end(self) -> None:
        """End the lease, unless it was committed.

        Where its row cannot be deleted, other processes take it over once it was silent for 30 seconds.
        """
        if not self._ended.is_set():
            self._ended.set()
            try:
                with self._catalog.write() as connection:
                    connection.execute(leases.delete().where(leases.c.token == self._token))
            except WorkspaceError:
                _ENDED.add(self._token)

    def beat(self) -> None:
        """Write heartbeats until the lease ends."""
        while not self._ended.wait(_BEAT_S):
            with suppress(WorkspaceError), self._catalog.write() as connection:
                connection.execute(leases.update().where(leases.c.token == self._token).values(heartbeat_at=now()))


@contextmanager
def leased(
    catalog: Catalog, dataset_id: str, operation: str, check: Callable[[sa.Connection], object]
) -> Iterator[Lease]:
    """Wait for the lease of a dataset, and hold it for the duration of the block.

    Threads of this process get it in the order of their requests.

    Args:
        catalog: the catalog.
        dataset_id: the dataset.
        operation: name of the operation, for messages.
        check: called in the transaction that takes the lease; raises to refuse it.

    Raises:
        Conflict: another process held it for a minute.
        ReadOnly: the workspace was opened for reading.
    """
    catalog.check_writable()
    with _turn(catalog, dataset_id, operation):
        lease = take_lease(catalog, dataset_id, operation, check)
        try:
            yield lease
        finally:
            lease.end()


def take_lease(catalog: Catalog, dataset_id: str, operation: str, check: Callable[[sa.Connection], object]) -> Lease:
    """Wait for the lease of a dataset, in the turn of this thread, and take it; as :func:`leased`."""
    token = new_id()
    with _unheld(catalog, dataset_id, operation) as connection:
        check(connection)
        time_now = now()
        connection.execute(
            leases.insert().values(
                dataset_id=dataset_id,
                token=token,
                owner=this_process(),
                operation=operation,
                since=time_now,
                heartbeat_at=time_now,
            )
        )
    lease = Lease(catalog, token, operation)
    try:
        threading.Thread(target=lease.beat, name="framedex-lease", daemon=True).start()
    except BaseException:
        lease.end()
        raise
    return lease


@contextmanager
def unleased(catalog: Catalog, dataset_id: str, operation: str) -> Iterator[sa.Connection]:
    """Yield a transaction in which nobody holds the lease of a dataset; raise as :func:`leased`."""
    catalog.check_writable()
    with _turn(catalog, dataset_id, operation), _unheld(catalog, dataset_id, operation) as connection:
        yield connection


def is_leased(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether a process that has not ended holds the lease of a dataset."""
    return _holder(connection, dataset_id) is not None


def forget_leases(connection: sa.Connection) -> None:
    """Delete all leases, as in a copy of the catalog, which no process of theirs changes."""
    connection.execute(leases.delete())


def wait_for_turn(turn: Turn, operation: str) -> None:
    """Wait for the turn of this thread.

    Raises:
        Conflict: it did not come within a minute.
    """
    if not turn.wait(_WAIT_S):
        raise Conflict(f"Operation '{operation}' is blocked: other threads did not finish within {_WAIT_S:g} s")


@contextmanager
def _turn(catalog: Catalog, dataset_id: str, operation: str) -> Iterator[None]:
    """Wait for the turn of this thread; edits that wait for their commit are committed first."""
    turns = catalog.turns_of(dataset_id)
    turn = turns.request()
    try:
        wait_for_turn(turn, operation)
        if (edits := turns.baton) is not None:
            turns.baton = None
            edits.finish()
        yield
    finally:
        turn.end()


@contextmanager
def _unheld(catalog: Catalog, dataset_id: str, operation: str) -> Iterator[sa.Connection]:
    """Yield a transaction in which nobody holds the lease; that of a process that has ended is removed."""
    deadline, pause_s = time.monotonic() + _WAIT_S, _PAUSE_S[0]
    while True:
        with catalog.read() as connection:
            held_by = _holder(connection, dataset_id)
        if held_by is None:
            with catalog.write() as connection:
                held_by = _holder(connection, dataset_id)
                if held_by is None:
                    connection.execute(leases.delete().where(leases.c.dataset_id == dataset_id))
                    yield connection
                    return
        if time.monotonic() > deadline:
            raise Conflict(
                f"Operation '{operation}' is blocked: another process has been doing '{held_by}' for {_WAIT_S:g} s"
            )
        time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - so that processes do not look in step
        pause_s = min(2 * pause_s, _PAUSE_S[1])


def _holder(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return what is done under the lease of a dataset; None if nobody holds it."""
    row = connection.execute(leases.select().where(leases.c.dataset_id == dataset_id)).one_or_none()
    if row is None:
        return None
    with reading_row("leases", dataset_id):
        is_dead = row.token in _ENDED or has_died(row.token, row.owner, row.heartbeat_at, now=now())
    return None if is_dead else str(row.operation)
