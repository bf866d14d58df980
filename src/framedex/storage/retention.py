"""Table versions of a dataset that must be retained. Each function takes an open connection of the catalog.

Readers open the head and then read without registering anywhere, so versions that were the head until recently are
retained, too. The time at which a version was written does not matter.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict
from framedex.records import TaskStatus, TaskType
from framedex.storage import export_rows, journal_rows, snapshot_rows, task_rows
from framedex.storage.datasets import head, now
from framedex.storage.generation import Generation
from framedex.storage.leases import is_leased
from framedex.storage.schema import tasks, uploads
from framedex.storage.table_names import MEDIA
from framedex.storage.videos import VIDEOS

UNFINISHED_S = 7 * 86_400.0
"""Seconds for which the checkpoints of stopped tasks are retained."""
_LONGEST_S = 1e9  # dates have no infinity
_ENDED = (TaskStatus.FAILED, TaskStatus.ABORTED)
_RUNNING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)


@dataclass(frozen=True)
class RetentionLimits:
    """Retention limits for unreferenced table versions.

    Attributes:
        superseded: generations that were the head after this time are retained.
        unfinished: checkpoints of tasks that failed or were aborted after this time are retained, so that the tasks can
            resume.
    """

    superseded: datetime
    unfinished: datetime

    @classmethod
    def ago(cls, superseded_s: float, unfinished_s: float = UNFINISHED_S) -> "RetentionLimits":
        """Return the limits for the given numbers of seconds before now."""
        times = [now() - timedelta(seconds=min(each, _LONGEST_S)) for each in (superseded_s, unfinished_s)]
        return cls(*times)


@dataclass(frozen=True)
class RetainedStates:
    """The generations and table versions of a dataset that must be retained.

    Attributes:
        head: the head; None before the first commit.
        generations: the head, the generations of snapshots, and those that open readers may use.
        unfinished: (table name, version) of the checkpoints from which stopped tasks can resume.
    """

    head: Generation | None
    generations: list[Generation]
    unfinished: frozenset[tuple[str, int]]

    @property
    def versions(self) -> dict[str, set[int]]:
        """The versions to retain, by table name."""
        versions: dict[str, set[int]] = defaultdict(set)
        for generation in self.generations:
            for name, version in generation.tables.items():
                versions[name].add(version)
        for name, version in self.unfinished:
            versions[name].add(version)
        return dict(versions)


def read_retained(
    connection: sa.Connection, dataset_id: str, limits: RetentionLimits, *, of_journal: bool = True
) -> RetainedStates:
    """Return the states of a dataset that must be retained, by default with those to which its journal returns."""
    present, since = head(connection, dataset_id), _since(connection, dataset_id, limits)
    generations = snapshot_rows.retained_generations(connection, dataset_id, since, of_journal=of_journal)
    states = _unfinished(connection, dataset_id, limits, present).values()
    media = {(MEDIA, int(state["version"])) for state in states}
    videos = {(VIDEOS, int(state["videos"])) for state in states if state.get("videos")}
    return RetainedStates(present, generations, frozenset(media | videos))


def has_superseded(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> bool:
    """Return whether a dataset has generations that need not be retained."""
    since = _since(connection, dataset_id, limits)
    return snapshot_rows.has_superseded_generations(connection, dataset_id, since)


def prune(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> None:
    """Delete the rows of unreferenced generations and snapshots, and clear data of tasks and steps not needed any more.

    The configuration of a finished deletion is cleared, because it is a list of media that may be long and is not
    needed again.
    """
    journal_rows.release_generations(connection, dataset_id, limits.unfinished)
    finished = (tasks.c.dataset_id == dataset_id, tasks.c.status == TaskStatus.COMPLETED)
    deleted = tasks.c.task_type == TaskType.MEDIA_DELETION
    connection.execute(tasks.update().where(*finished, deleted).values(config=sa.null()))
    checkpoints = _unfinished(connection, dataset_id, limits, head(connection, dataset_id))
    ended = (tasks.c.dataset_id == dataset_id, tasks.c.status.in_(_ENDED), tasks.c.id.not_in(list(checkpoints)))
    connection.execute(tasks.update().where(*ended).values(resume=sa.null()))
    snapshot_rows.prune_generations(connection, dataset_id, _since(connection, dataset_id, limits))


def referenced_uploads(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> set[str]:
    """Return the ids of the uploads that tasks of a dataset read, or may read when they are retried."""
    again = sa.and_(tasks.c.status.in_(_ENDED), tasks.c.end_time > limits.unfinished)
    query = sa.select(tasks.c.config).where(
        tasks.c.dataset_id == dataset_id, sa.or_(tasks.c.status.in_(_RUNNING), again)
    )
    contents = [(config or {}).get("content") or {} for config in connection.execute(query).scalars()]
    collected = sa.select(uploads.c.collected).where(uploads.c.dataset_id == dataset_id, uploads.c.list_bytes > 0)
    named = {content["upload_id"] for content in contents if "upload_id" in content}
    return named.union(each for each in connection.execute(collected).scalars() if each is not None)


def check_unused(connection: sa.Connection, dataset_id: str) -> None:
    """Check that no task writes to a dataset's tables or clones them.

    Raises:
        Conflict: such a task is running, or an edit.
    """
    check_no_task(connection, dataset_id)
    if is_leased(connection, dataset_id):
        raise Conflict("it is being edited")


def check_no_task(connection: sa.Connection, dataset_id: str) -> None:
    """Check as :func:`check_unused` does, except for edits."""
    task_rows.fail_interrupted(connection)
    if (busy := task_rows.running(connection, dataset_id)) is not None:
        raise Conflict(f"its {busy} task is running")
    if any(dataset_id in (config.get("source"), config.get("other")) for config in _copying(connection)):
        raise Conflict("it is being cloned or merged")


def _copying(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return the configs of the running tasks that clone or merge datasets."""
    copying = (
        tasks.c.task_type.in_([TaskType.SNAPSHOT_CLONE, TaskType.DATASET_CREATION]),
        tasks.c.status.in_(_RUNNING),
    )
    return [config or {} for config in connection.execute(sa.select(tasks.c.config).where(*copying)).scalars()]


def _since(connection: sa.Connection, dataset_id: str, limits: RetentionLimits) -> datetime:
    """Return the time since which heads are retained: the given limit, or the start of the oldest running export."""
    if not export_rows.has_running_export(connection, dataset_id):
        return limits.superseded
    begun = [
        each.created_at for each in export_rows.list_exports(connection, dataset_id=dataset_id) if not each.status.final
    ]
    return min([limits.superseded, *begun])


def _unfinished(
    connection: sa.Connection, dataset_id: str, limits: RetentionLimits, present: Generation | None
) -> dict[str, dict[str, Any]]:
    """Return the checkpoints of stopped tasks by task id, if the head is still the one that they started from."""
    query = sa.select(tasks.c.id, tasks.c.resume).where(
        tasks.c.dataset_id == dataset_id, tasks.c.status.in_(_ENDED), tasks.c.end_time > limits.unfinished
    )
    begun_with = None if present is None else present.id
    return {
        row.id: row.resume
        for row in connection.execute(query).all()
        if row.resume and row.resume.get("version") and row.resume.get("head") == begun_with
    }
