"""What of a dataset must stay on the disk. Each function takes an open connection of the catalog.

Whoever reads opens the head and then reads for a while without telling anyone; so what was the head until a short while
ago stays, too. How long ago a version was written says nothing about that.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict
from framedex.records import TaskStatus, TaskType
from framedex.storage import export_rows, snapshot_rows, task_rows
from framedex.storage.datasets import head, now
from framedex.storage.generation import Generation
from framedex.storage.schema import tasks
from framedex.storage.table_names import MEDIA
from framedex.storage.videos import VIDEOS

UNFINISHED_S = 7 * 86_400.0
"""For how long what a stopped task had written stays, in seconds."""
_LONGEST_S = 1e9  # dates have no infinity
_ENDED = (TaskStatus.FAILED, TaskStatus.ABORTED)
_RUNNING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)


@dataclass(frozen=True)
class RetentionLimits:
    """How long what nothing names any more stays.

    Attributes:
        superseded: what was the head after that time stays.
        unfinished: what a task had written that failed or was aborted after that time stays, for it to go on from.
    """

    superseded: datetime
    unfinished: datetime

    @classmethod
    def ago(cls, superseded_s: float, unfinished_s: float = UNFINISHED_S) -> "RetentionLimits":
        """Return the limits of so many seconds ago."""
        times = [now() - timedelta(seconds=min(each, _LONGEST_S)) for each in (superseded_s, unfinished_s)]
        return cls(*times)


@dataclass(frozen=True)
class RetainedStates:
    """What of a dataset must stay.

    Attributes:
        head: what readers see; None before the first commit.
        generations: that one, those of snapshots, and those that somebody may still read.
        unfinished: the versions of the tables that tasks which were stopped can go on from: (name, version).
    """

    head: Generation | None
    generations: list[Generation]
    unfinished: frozenset[tuple[str, int]]

    @property
    def versions(self) -> dict[str, set[int]]:
        """The versions that must stay, by the names of the tables."""
        found: dict[str, set[int]] = defaultdict(set)
        for generation in self.generations:
            for name, version in generation.tables.items():
                found[name].add(version)
        for name, version in self.unfinished:
            found[name].add(version)
        return dict(found)


def read_retained(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> RetainedStates:
    """Return what of a dataset must stay."""
    present = head(connection, dataset_id)
    generations = snapshot_rows.kept_generations(connection, dataset_id, _since(connection, dataset_id, limits))
    states = _unfinished(connection, dataset_id, limits, present).values()
    media = {(MEDIA, int(state["version"])) for state in states}
    videos = {(VIDEOS, int(state["videos"])) for state in states if state.get("videos")}
    return RetainedStates(present, generations, frozenset(media | videos))


def has_superseded(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> bool:
    """Return whether there are generations that need not stay."""
    since = _since(connection, dataset_id, limits)
    return snapshot_rows.has_superseded(connection, dataset_id, since)


def prune(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> None:
    """Delete the rows of generations and snapshots that need not stay, and forget what tasks do not need any more.

    What a deletion was asked to do is a list of media, which may be long; once done it is not asked for again.
    """
    done = (tasks.c.dataset_id == dataset_id, tasks.c.status == TaskStatus.COMPLETED)
    deleted = tasks.c.task_type == TaskType.MEDIA_DELETION
    connection.execute(tasks.update().where(*done, deleted).values(config=sa.null()))
    kept = _unfinished(connection, dataset_id, limits, head(connection, dataset_id))
    ended = (tasks.c.dataset_id == dataset_id, tasks.c.status.in_(_ENDED), tasks.c.id.not_in(list(kept)))
    connection.execute(tasks.update().where(*ended).values(resume=sa.null()))
    snapshot_rows.prune(connection, dataset_id, _since(connection, dataset_id, limits))


def named_uploads(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> set[str]:
    """Return the ids of the uploads that tasks of a dataset read, or may be asked to read again."""
    again = sa.and_(tasks.c.status.in_(_ENDED), tasks.c.end_time > limits.unfinished)
    query = sa.select(tasks.c.config).where(
        tasks.c.dataset_id == dataset_id, sa.or_(tasks.c.status.in_(_RUNNING), again)
    )
    contents = [(config or {}).get("content") or {} for config in connection.execute(query).scalars()]
    return {content["upload_id"] for content in contents if "upload_id" in content}


def check_unused(connection: sa.Connection, dataset_id: str) -> None:
    """Check that no task writes to a dataset's tables, and none makes another dataset of them.

    Raises:
        Conflict: one does.
    """
    task_rows.fail_interrupted(connection)
    if (busy := task_rows.running(connection, dataset_id)) is not None:
        raise Conflict(f"its {busy} task is running")
    if any(config.get("source") == dataset_id for config in _clones(connection)):
        raise Conflict("it is being cloned")


def _clones(connection: sa.Connection) -> list[dict[str, Any]]:
    cloning = (tasks.c.task_type == TaskType.SNAPSHOT_CLONE, tasks.c.status.in_(_RUNNING))
    return [config or {} for config in connection.execute(sa.select(tasks.c.config).where(*cloning)).scalars()]


def _since(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> datetime:
    """Return the time since which heads stay: exports tell that they read, so what they began with stays, too."""
    if not export_rows.is_busy(connection, dataset_id):
        return limits.superseded
    begun = [
        each.created_at for each in export_rows.list_exports(connection, dataset_id=dataset_id) if not each.status.final
    ]
    return min([limits.superseded, *begun])


def _unfinished(
    connection: sa.Connection, dataset_id: str, limits: RetentionLimits, present: Generation | None
) -> dict[str, dict[str, Any]]:
    """Return what tasks that were stopped can go on from, by their ids: if the head is still what they began with."""
    query = sa.select(tasks.c.id, tasks.c.resume).where(
        tasks.c.dataset_id == dataset_id, tasks.c.status.in_(_ENDED), tasks.c.end_time > limits.unfinished
    )
    begun_with = None if present is None else present.id
    return {
        row.id: row.resume
        for row in connection.execute(query).all()
        if row.resume and row.resume.get("version") and row.resume.get("head") == begun_with
    }
