"""Leases: the right of one process to write the tables of a dataset, without a transaction that all others wait for.

Tables are written under a lease; the transaction that commits them also ends it. Edits of two datasets never wait for
each other, and readers never wait. The lease of a process that ended is taken over at once; the lease of a process that
is stopped or on another machine, once it was silent for 30 seconds. The late commit of such a process is refused.

Processes get the lease in the order of their requests, which are rows of the catalog. A process that does not take it
within a second of its turn loses its place.

A task needs no lease: its row and the status of the dataset keep others away. It starts while nobody has one.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa

from framedex.core.ids import new_id
from framedex.errors import Conflict, WorkspaceError
from framedex.storage.catalog import Catalog
from framedex.storage.datasets import now
from framedex.storage.owners import has_died, is_gone, this_process
from framedex.storage.row_values import reading_row
from framedex.storage.schema import lease_requests, leases
from framedex.storage.turns import Turn

_LOG = logging.getLogger(__name__)
_WAIT_S = 60.0
_BEAT_S = 5.0
_PAUSE_S = 0.05  # the longest pause between two looks at a lease of another process
_GLANCE_S = 0.003  # the pause between two looks at whether the catalog has changed
_GRACE_S = 1.0  # time in which the first process in turn takes a lease
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

    def is_requested(self) -> bool:
        """Return whether another process waits for the lease."""
        with self._catalog.read() as connection:
            own = sa.select(leases.c.dataset_id).where(leases.c.token == self._token).scalar_subquery()
            return connection.execute(_requests(own)).first() is not None

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
            with suppress(WorkspaceError), self._catalog.write(durable=False) as connection:
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
    with _unheld(catalog, dataset_id, operation, durable=False) as connection:
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
    connection.execute(lease_requests.delete())


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
def _unheld(catalog: Catalog, dataset_id: str, operation: str, *, durable: bool = True) -> Iterator[sa.Connection]:
    """Yield a transaction in which nobody holds the lease and it is the turn of this process.

    The lease of a process that has ended is removed.
    """
    until, request = time.monotonic() + _WAIT_S, _Request(catalog, dataset_id)
    try:
        while True:
            with catalog.read() as connection:
                is_next = request.is_next(connection)
            if is_next:
                with catalog.write(durable=durable) as connection:
                    if is_next := request.is_next(connection):
                        ended = leases.delete().where(leases.c.dataset_id == dataset_id)
                        if connection.execute(ended).rowcount:
                            _LOG.info("the lease of dataset %s is taken over from an ended process", dataset_id)
                        request.remove(connection)
                        yield connection
                if is_next:
                    request.is_removed = True
                    return
            request.wait()
            if time.monotonic() > until:
                raise Conflict(
                    f"Operation '{operation}' is blocked: another process has been doing '{request.holder}' for "
                    f"{_WAIT_S:g} s"
                )
    finally:
        request.withdraw()


class _Request:
    """The request of this process for the lease of a dataset; it is stored once it has to wait.

    Args:
        catalog: the catalog.
        dataset_id: the dataset.

    Attributes:
        holder: the operation under the lease when it was last looked at.
        is_removed: whether the transaction that met the request was committed.
    """

    def __init__(self, catalog: Catalog, dataset_id: str) -> None:
        self.holder: str | None = None
        self._catalog, self._dataset_id = catalog, dataset_id
        self.is_removed = False
        self._id: int | None = None
        self._state = 0, 0
        self._place, self._first, self._since = 0, 0, 0.0  # the request before which this one waits, and since when

    def is_next(self, connection: sa.Connection) -> bool:
        """Return whether nobody holds the lease and no other process is before this one."""
        self._state = self._catalog.log_state()  # before the look, so that no change is missed
        self.holder = _holder(connection, self._dataset_id)
        ids = [row.id for row in connection.execute(_requests(self._dataset_id)).all()]
        if self._id is not None and self._id not in ids:
            self._id = None  # this process was stopped, and lost its place
        self._place = ids.index(self._id) if self._id is not None else len(ids)
        first = ids[0] if self._place and self.holder is None else 0
        if first != self._first:
            self._first, self._since = first, time.monotonic()
        return self.holder is None and not self._place

    def wait(self) -> None:
        """Wait for a change; remove the request of a process that has ended or does not take its turn."""
        if self._first:
            self._remove_first()
        if self._id is None:
            # A deleted dataset has no lease, so the next look is the last one.
            with suppress(sa.exc.IntegrityError), self._catalog.write(durable=False) as connection:
                row = lease_requests.insert().values(dataset_id=self._dataset_id, owner=this_process())
                self._id = int(connection.execute(row.returning(lease_requests.c.id)).scalar_one())
            _LOG.debug("waiting for the lease of dataset %s, held for %r", self._dataset_id, self.holder)
        until, state = time.monotonic() + _PAUSE_S, self._state
        while time.monotonic() < until and self._catalog.log_state() == state:
            time.sleep(_GLANCE_S * random.uniform(0.5, 1.0))  # noqa: S311 - so that processes do not look in step

    def _remove_first(self) -> None:
        is_late = time.monotonic() > self._since + _GRACE_S
        first = lease_requests.c.id == self._first
        with self._catalog.read() as connection:
            owner = connection.execute(sa.select(lease_requests.c.owner).where(first)).scalar()
        if owner is not None and (is_late or is_gone(owner)):
            with self._catalog.write(durable=False) as connection:
                connection.execute(lease_requests.delete().where(first))

    def remove(self, connection: sa.Connection) -> None:
        """Remove the request in the transaction that meets it."""
        if self._id is not None:
            connection.execute(lease_requests.delete().where(lease_requests.c.id == self._id))

    def withdraw(self) -> None:
        """Remove the request, unless it was met."""
        if self._id is not None and not self.is_removed:
            with suppress(WorkspaceError), self._catalog.write(durable=False) as connection:
                connection.execute(lease_requests.delete().where(lease_requests.c.id == self._id))


def _requests(dataset_id: Any) -> sa.Select[Any]:
    """Return the query of the requests for the lease of a dataset, in their order."""
    query = sa.select(lease_requests.c.id).where(lease_requests.c.dataset_id == dataset_id)
    return query.order_by(lease_requests.c.id)


def _holder(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return what is done under the lease of a dataset; None if nobody holds it."""
    row = connection.execute(leases.select().where(leases.c.dataset_id == dataset_id)).one_or_none()
    if row is None:
        return None
    with reading_row("leases", dataset_id):
        is_dead = row.token in _ENDED or has_died(row.token, row.owner, row.heartbeat_at, now=now())
    return None if is_dead else str(row.operation)
