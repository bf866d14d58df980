"""Progress of a job, and the signal that stops it."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from framedex.errors import Aborted

_LOG = logging.getLogger(__name__)
DONE = "done"
_COUNT = "0123456789,"
Progress = Callable[[str, float], None]
Commit = Callable[[Any], None]
"""Writes a job's result into an open transaction of the catalog."""


class TaskProgress:
    """Progress of a job, and the signal that stops it.

    Attributes:
        stage, share: the current stage, and the share of the whole job that is done, 0 to 1.
        outcome: message of the task after success.
        resume: checkpoint that an earlier, stopped run of the job saved; None if there is none.
        callback: called with each report; None for no one.
        interruption: the reason of a planned stop of the process; None without one.
    """

    def __init__(
        self,
        save: Callable[[dict[str, Any], Commit | None], None] | None = None,
        commit: Callable[[Commit, Callable[[], dict[str, Any]]], None] | None = None,
    ) -> None:
        self.stage, self.share = "starting", 0.0
        self.resume: dict[str, Any] | None = None
        self.outcome = DONE
        self.callback: Progress | None = None
        self.interruption: str | None = None
        self.closed = threading.Event()
        self.cancelled = threading.Event()
        self.reason: BaseException = Aborted("aborted on request")
        self._save, self._commit = save, commit

    def __call__(self, stage: str, share: float) -> None:
        """Report progress.

        Args:
            stage: the current stage, as text for users.
            share: share of the whole job that is done, 0 to 1.

        Raises:
            Aborted: the job should stop.
        """
        if stage.rstrip(_COUNT) != self.stage.rstrip(_COUNT):
            _LOG.debug("%s", stage)
        self.stage, self.share = stage, min(max(share, 0.0), 1.0)
        if self.callback is not None:
            self.callback(self.stage, self.share)
        self.check()

    def check(self) -> None:
        """Raise the reason for stopping, usually Aborted, if the job should stop."""
        if self.cancelled.is_set():
            raise self.reason

    def cancel(self, reason: BaseException | None = None) -> None:
        """Stop the job at its next check.

        Args:
            reason: exception that ends the job; Aborted by default.
        """
        self.reason = self.reason if reason is None else reason
        self.cancelled.set()

    def interrupt(self, reason: str | None) -> None:
        """Stop the job at its next check because its process ends, unless it is to stop already.

        Args:
            reason: the reason of a planned stop, after which the job may continue elsewhere; None to abort it.
        """
        if not self.cancelled.is_set():  # an abort by a user remains one
            self.interruption = reason
            self.cancel(None if reason is None else Aborted(reason))

    def save(self, state: dict[str, Any], commit: Commit | None = None) -> None:
        """Save a JSON checkpoint, which a later run of the same task gets as :attr:`resume`.

        Args:
            state: the checkpoint.
            commit: writes more into the same transaction.
        """
        if self._save is not None:
            self._save(state, commit)

    def commit(self, commit: Commit, config: Callable[[], dict[str, Any]]) -> None:
        """Commit the first part of the job's result while the task continues.

        Args:
            commit: writes the result into the transaction.
            config: called after it; returns the remaining work, which replaces the config of the task.

        Raises:
            Aborted: the job should stop; nothing was committed.
        """
        self.check()
        assert self._commit is not None, "a task runs the job"
        self._commit(commit, config)

    def part(self, stage: str, start: float, end: float) -> Callable[[float], None]:
        """Return a progress function for one stage, which takes the job from *start* to *end*."""
        return lambda share: self(stage, start + (end - start) * share)

    def stages(self, start: float, end: float) -> Progress:
        """Return a progress function for several stages, which take the job from *start* to *end*."""
        return lambda stage, share: self(stage, start + (end - start) * share)


Job = Callable[[TaskProgress], Commit]
