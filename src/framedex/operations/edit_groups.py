"""Groups of edits: edits of waiting threads that one transaction commits, under one lease of their dataset.

Each edit of a group begins with the state that the one before it wrote, so it has table versions, a generation and a
step in the journal of its own. An edit that raises leaves the group as it was. The commit covers all of them: their
files are synced at the same time, and a process that ends before it leaves none of them.

The first edit of a group requests a second turn, behind the threads that wait at that moment, and then commits all that
they wrote. So nobody waits for later requests. If they take long, it commits what there is while they go on; the last
of them then ends the group. Where no other process waits for the lease, the next group keeps it.
"""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from framedex.errors import Error, WorkspaceError
from framedex.jobs.context import JobContext
from framedex.storage.disk import DeferredSyncs, syncing_at_once
from framedex.storage.generation import Generation
from framedex.storage.leases import Lease
from framedex.storage.turns import Turn, Turns

_PATIENCE_S = 0.25  # time for which an edit waits for others to be committed with


@dataclass(eq=False)
class PreparedEdit:
    """An edit whose tables are written, and which is not committed.

    Attributes:
        write: writes its rows into the transaction of the commit.
        tidy: removes what the journal does not keep, in the same transaction; called for the last edit of a group.
        syncs: the files that it wrote.
    """

    write: Callable[[Any], None]
    tidy: Callable[[Any], None]
    syncs: DeferredSyncs
    _done: threading.Event = field(default_factory=threading.Event)
    _error: BaseException | None = None

    def end(self, error: BaseException | None) -> None:
        """Let the thread of the edit go on, with the error of the commit or None."""
        self._error = error
        self._done.set()

    def wait_for(self, time_s: float) -> bool:
        """Wait for the commit, but no longer than some seconds; return whether it has ended."""
        return self._done.wait(time_s)

    def wait(self) -> None:
        """Wait for the commit.

        Raises:
            Error: the commit failed.
        """
        self._done.wait()
        if self._error is not None:
            raise self._error


def _for_each_thread(error: BaseException | None) -> BaseException | None:
    """Return the error of a commit for one of several threads, which each have a traceback of their own."""
    if error is None or isinstance(error, Error):
        return copy.copy(error)
    if isinstance(error, Exception):
        return WorkspaceError(f"the commit failed: {error}; nothing was changed")
    return WorkspaceError("the commit was interrupted in another thread; nothing was changed")


class EditGroup:
    """A lease, and the edits under it that are not committed.

    Args:
        lease: the lease of the dataset.
        turns: the turns of the threads of this process.

    Attributes:
        last: the state before the last prepared edit, and the generation after it; None before the first one.
        is_clean: whether the newest versions of the tables are those of that generation.
    """

    def __init__(self, lease: Lease, turns: Turns) -> None:
        self.last: tuple[JobContext, Generation] | None = None
        self.is_clean = False
        self._lease, self._turns = lease, turns
        self._last: Turn | None = None  # the turn in which the group ends
        self._has_ended = False
        self._lock, self._prepared = threading.Lock(), list[PreparedEdit]()
        self._committing = threading.Lock()
        self._error: BaseException | None = None

    @property
    def has_failed(self) -> bool:
        """True if a commit failed, so that the state for later edits does not exist."""
        return self._error is not None

    def commit(self, edit: PreparedEdit, turn: Turn, *, alone: bool = False) -> None:
        """Commit a prepared edit, together with those of the threads that wait.

        Args:
            edit: the edit.
            turn: of this thread; it may end, so that the next edit begins.
            alone: commit it at once, in a transaction of its own, because it may be refused there.

        Raises:
            Error: the commit failed.
        """
        if alone:
            self._commit(end=False)
        with self._lock:
            self._prepared.append(edit)
            is_first = len(self._prepared) == 1
        if alone or not turn.is_awaited:
            self.finish()
        elif is_first and self._last is None:
            self._commit_with_others(turn)
        else:
            turn.end()
            if is_first and not edit.wait_for(_PATIENCE_S):
                self._commit(end=False)
        edit.wait()

    def _commit_with_others(self, turn: Turn) -> None:
        """Request the turn in which the group ends, and commit it then, or before if that takes long."""
        self._last = last = self._turns.request()
        try:
            turn.end()
            has_come = last.wait(_PATIENCE_S)
            if not has_come:
                last.hand_over()
                self._commit(end=False)
            elif self._has_ended:
                last.end()
            elif last.is_awaited and not self._lease.is_requested():
                self._last = None
                self._commit(end=False)
                last.end()
            else:
                self.finish()
                last.end()
        except BaseException:
            self._commit(end=self._turns.baton is not self)
            last.end()
            raise

    def leave(self) -> None:
        """End the group unless there are prepared edits; called in turn after an edit that was not prepared."""
        with self._lock:
            is_empty = not self._prepared
        if is_empty:
            self.finish()

    def finish(self) -> None:
        """Commit the prepared edits and end the lease, in turn; errors reach the threads of the edits."""
        if self._turns.baton is self:
            self._turns.baton = None
        self._commit(end=True)
        self._has_ended = True
        if self._last is not None:
            self._last.wake()

    def _commit(self, *, end: bool) -> None:
        """Commit the prepared edits; errors reach their threads.

        Args:
            end: end the lease; the caller has the turn.
        """
        with self._committing:
            with self._lock:
                edits, self._prepared = self._prepared, []
            try:
                if edits and self._error is None:
                    self._write(edits, end=end)
            except BaseException as error:
                self._error = error
                if not isinstance(error, Exception):
                    raise
            finally:
                try:
                    if end:
                        self._lease.end()
                finally:  # whatever happens, no thread waits for ever
                    for each in edits:
                        each.end(self._error if len(edits) == 1 else _for_each_thread(self._error))

    def _write(self, edits: list[PreparedEdit], *, end: bool) -> None:
        syncs = DeferredSyncs()
        for each in edits:
            syncs.add(each.syncs)
        syncs.run()
        with syncing_at_once(), self._lease.commit(end=end) as connection:
            for each in edits:
                each.write(connection)
            edits[-1].tidy(connection)
