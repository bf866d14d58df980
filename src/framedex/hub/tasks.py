"""Tasks of datasets, as the users of a hub see them."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, TypedDict, Unpack

from framedex.access import Action, Actor, Role, Via
from framedex.errors import NotFound
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.operations.task_pages import TaskSearch
from framedex.records import TaskFilters, TaskPage
from framedex.storage.service_db.database import DEFAULT_ID
from framedex.tasks import Task

_NOT_FOUND = "Task not found"


class _Scope(TypedDict, total=False):
    """Arguments of the workspace's searches that leave out the tasks which the actor must not see."""

    datasets: Collection[str]
    deleted_by: str


class Tasks:
    """The tasks of a workspace as the users of a hub see them.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets

    def open(self, actor: Actor, task_id: str, action: Action = Action.TASK_VIEW) -> Task:
        """Return a task of a dataset that the actor may view.

        Args:
            actor: who asks.
            task_id: the id.
            action: what is to be done with it.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: there is no such task, or the actor must not learn of it.
            Forbidden: the actor may not do it.
        """
        self._context.require(actor, Action.OWN_ACCOUNT)
        try:
            task = self._context.workspace.acting_as(actor.name).task(task_id)
            self._datasets.open(actor, task.record.dataset_id, action)
        except NotFound:
            raise NotFound(_NOT_FOUND) from None
        return task

    def search(self, actor: Actor, **query: Unpack[TaskSearch]) -> TaskPage:
        """Return a page of the tasks that the actor may see, newest first.

        These are the tasks of datasets that the actor may view. Of deleted datasets, users see their own tasks, and
        the admin of a single tenant all.

        Args:
            actor: who asks.
            query: as for :meth:`framedex.Workspace.tasks`, except ``datasets`` and ``deleted_by``.

        Raises:
            NotAuthenticated: nobody is logged in.
            InvalidInput: an argument is unknown or out of range.
        """
        arguments: Any = {**query, **self._scope(actor)}
        return self._context.workspace.tasks(**arguments)

    def filters(
        self, actor: Actor, start_time_from: datetime | str | None = None, start_time_to: datetime | str | None = None
    ) -> TaskFilters:
        """Return the values that occur in the tasks of a period that the actor may see.

        Raises:
            NotAuthenticated: nobody is logged in.
            InvalidInput: a time cannot be parsed.
        """
        return self._context.workspace.task_filters(start_time_from, start_time_to, **self._scope(actor))

    def _scope(self, actor: Actor) -> _Scope:
        self._context.require(actor, Action.OWN_ACCOUNT)
        if actor.is_local or actor.via is Via.FILES:
            return {}
        visible = {record.id for record in self._datasets.visible(actor)}
        return {"datasets": visible | self._deleted(actor), "deleted_by": actor.name}

    def _deleted(self, actor: Actor) -> set[str]:
        """Return the ids of deleted datasets, of which an admin sees the tasks.

        To which of several tenants a deleted dataset belonged is not stored, so they are shown in single mode only.
        """
        if not self._context.is_single or actor.roles.get(DEFAULT_ID) is not Role.ADMIN:
            return set()
        workspace = self._context.workspace
        existing = {record.id for record in workspace.datasets(all_namespaces=True)}
        return set(workspace.task_filters().dataset_ids) - existing
