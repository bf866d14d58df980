"""What a job tells while it runs, and the way by which it learns that it should stop."""

import threading
from collections.abc import Callable
from typing import Any

from framedex.errors import Aborted

DONE = "done"
Progress = Callable[[str, float], None]
Commit = Callable[[Any], None]
"""Given an open transaction of the catalog, makes a job's result visible in it."""


class TaskProgress:
    """What a job tells of its progress; the way by which it learns that it should stop.

    Attributes:
        stage, share: what is being done, and how much of the whole job is done, 0 to 1.
        outcome: the message of the task once it has ended well.
        resume: what the job kept when it ran before and was stopped; None when there is nothing to go on from.
    """

    def __init__(
        self,
        save: Callable[[dict[str, Any]], None] | None = None,
        commit: Callable[[Commit, Callable[[], dict[str, Any]]], None] | None = None,
    ) -> None:
        self.stage, self.share = "starting", 0.0
        self.resume: dict[str, Any] | None = None
        self.outcome = DONE
        self.progress: Progress | None = None
        self.closed = threading.Event()
        self.cancelled = threading.Event()
        self.reason: BaseException = Aborted("aborted on request")
        self._save, self._commit = save, commit

    def __call__(self, stage: str, share: float) -> None:
        """Note how far the job is.

        Args:
            stage: what is being done, in words for people.
            share: how much of the whole job is done, 0 to 1.

        Raises:
            Aborted: the job should stop.
        """
        self.stage, self.share = stage, min(max(share, 0.0), 1.0)
        if self.progress is not None:
            self.progress(self.stage, self.share)
        self.check()

    def check(self) -> None:
        """Raise Aborted if the job should stop, or what else ended it."""
        if self.cancelled.is_set():
            raise self.reason

    def cancel(self, reason: BaseException | None = None) -> None:
        """Make the job stop the next time that it looks.

        Args:
            reason: what it ends with; by default Aborted.
        """
        self.reason = self.reason if reason is None else reason
        self.cancelled.set()

    def save(self, state: dict[str, Any]) -> None:
        """Store what a later run of the same task can go on from, as JSON: it is :attr:`resume` there."""
        if self._save is not None:
            self._save(state)

    def commit(self, commit: Commit, config: Callable[[], dict[str, Any]]) -> None:
        """Make the first part of the job's result visible, while the task goes on.

        Args:
            commit: makes it visible.
            config: called after that, returns what is left to do, which takes the place of what the task was asked in
                the same transaction.

        Raises:
            Aborted: the job should stop; nothing was committed.
        """
        self.check()
        assert self._commit is not None, "a task runs the job"
        self._commit(commit, config)

    def part(self, stage: str, start: float, end: float) -> Callable[[float], None]:
        """Return a function that reports shares of one stage, which takes the job from *start* to *end*."""
        return lambda share: self(stage, start + (end - start) * share)

    def stages(self, start: float, end: float) -> Progress:
        """Return a function that reports stages by name, which take the job from *start* to *end*."""
        return lambda stage, share: self(stage, start + (end - start) * share)


Job = Callable[[TaskProgress], Commit]
