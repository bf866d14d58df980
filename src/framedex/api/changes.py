"""Changes of a workspace since it was last looked at: tasks, heads of datasets, alerts."""

from collections.abc import Mapping
from dataclasses import dataclass

from framedex.api.workspace import Workspace
from framedex.errors import NotFound
from framedex.records import Alert, DatasetStatus, Record, TaskRecord
from framedex.storage import datasets, view_rows

_PAGE = 50


class HeadChange(Record):
    """A dataset with another state or status; both are None once it is deleted."""

    dataset_id: str
    generation: str | None
    status: DatasetStatus | None


@dataclass(frozen=True)
class Changes:
    """The changes between two looks."""

    tasks: list[TaskRecord]
    heads: list[HeadChange]
    alerts: list[Alert]


class WorkspaceChanges:
    """The changes of a workspace by all processes, since the last look.

    Args:
        workspace: the open workspace.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tasks = {each.task_id: each for each in self._read_tasks(())}
        self._heads = self._read_heads()
        self._last_alert = self._read_alerts(None)[1]

    def look(self) -> Changes:
        """Return what has changed since the last look."""
        open_ids = [each.task_id for each in self._tasks.values() if not each.status.final]
        tasks = self._read_tasks(open_ids)
        changed = [each for each in tasks if self._tasks.get(each.task_id) != each]
        self._tasks = {each.task_id: each for each in tasks}
        before, self._heads = self._heads, self._read_heads()
        heads = [each for each in self._heads.values() if before.get(each.dataset_id) != each]
        gone = [HeadChange(dataset_id=each, generation=None, status=None) for each in before if each not in self._heads]
        alerts, self._last_alert = self._read_alerts(self._last_alert)
        return Changes(changed, heads + gone, alerts)

    def _read_tasks(self, open_ids: list[str] | tuple[str, ...]) -> list[TaskRecord]:
        """Return the newest tasks, and older ones that had not ended."""
        found = {each.task_id: each for each in self._workspace.tasks(page_size=_PAGE).tasks}
        for task_id in open_ids:
            if task_id not in found:
                try:
                    found[task_id] = self._workspace.task(task_id).record
                except NotFound:
                    continue
        return list(found.values())

    def _read_heads(self) -> Mapping[str, HeadChange]:
        records = self._workspace.datasets(all_namespaces=True)
        with self._workspace._context.catalog.read() as connection:
            heads = datasets.list_heads(connection)
        return {
            each.id: HeadChange(dataset_id=each.id, generation=heads.get(each.id), status=each.status_new)
            for each in records
        }

    def _read_alerts(self, after: int | None) -> tuple[list[Alert], int]:
        with self._workspace._context.catalog.read() as connection:
            last = view_rows.last_alert(connection)
            alerts = [] if after is None or last <= after else view_rows.alerts_after(connection, after)
        return alerts, last
