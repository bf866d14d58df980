"""Custom fields in two steps: the definition, and then the values."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from framedex.access import Action, Actor
from framedex.core.ids import is_id
from framedex.errors import Conflict, NotFound
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.records import FieldResult, TaskStatus
from framedex.storage.service_db.metadata_tasks import (
    delete_metadata_tasks,
    find_metadata_field,
    insert_metadata_task,
)

KEPT = timedelta(hours=24)
"""The time for which a definition waits for its values."""
WAITING = "INIT"
"""The status of a task that waits for its values."""
_STATUSES: dict[str, str] = {TaskStatus.INITIALIZING: TaskStatus.RUNNING, TaskStatus.ABORTED: TaskStatus.FAILED}
_NOT_FOUND = "Custom metadata task not found"


class Metadata:
    """The tasks by which users of a hub add custom fields.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets

    def define(
        self,
        actor: Actor,
        dataset_id: str,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
    ) -> str:
        """Store the definition of a field, which waits 24 hours for its values; return the id of its task.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            name: as for :meth:`framedex.Dataset.add_field`, like the next ones.
            field_type: the type of the values.
            enum_options: the options of a field of type enum.
            is_multi: whether each media item has a list of values.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not edit the dataset.
            InvalidInput: the definition cannot be used.
            Conflict: the name is taken, a task is running, or the dataset is not indexed.
        """
        dataset = self._datasets.open(actor, dataset_id, Action.DATASET_EDIT)
        dataset.check_field(name, field_type, enum_options=enum_options, is_multi=is_multi)
        field = {"name": name, "field_type": field_type, "enum_options": enum_options, "is_multi": is_multi}
        with self._context.database.write() as connection:
            return insert_metadata_task(connection, dataset_id, field, own_id(actor))

    def fill(self, actor: Actor, dataset_id: str, task_id: str, rows: Sequence[Any]) -> FieldResult:
        """Start the task that adds a defined field with its values, and return its progress.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            task_id: as returned by :meth:`define`.
            rows: as for :meth:`framedex.Dataset.add_field`.

        Raises:
            NotFound: there is no such dataset or task, or the actor must not learn of it.
            Forbidden: the actor may not edit the dataset.
            Conflict: the values were sent already, the name is taken meanwhile, or another task is running.
        """
        dataset = self._datasets.open(actor, dataset_id, Action.DATASET_EDIT)
        if self._result(dataset_id, task_id) is not None:
            raise Conflict("The values of this task were sent already")
        field = self._field(dataset_id, task_id)
        if field is None:
            raise NotFound(_NOT_FOUND)
        dataset.add_field(**field, values=rows, task_id=task_id, wait=False)
        return self.status(actor, dataset_id, task_id)

    def status(self, actor: Actor, dataset_id: str, task_id: str) -> FieldResult:
        """Return the progress of a task; its status is INIT before the values were sent.

        Raises:
            NotFound: there is no such dataset or task, or the actor must not learn of it.
        """
        self._datasets.open(actor, dataset_id)
        if (result := self._result(dataset_id, task_id)) is not None:
            return result
        if self._field(dataset_id, task_id) is None:
            raise NotFound(_NOT_FOUND)
        return FieldResult(
            task_id=task_id, status=WAITING, progress=0, inserted_rows=0, error_count=0, sample_errors=[]
        )

    def sweep(self) -> None:
        """Delete the definitions that waited too long for their values."""
        with self._context.database.write() as connection:
            delete_metadata_tasks(connection, before=self._context.clock() - KEPT)

    def _field(self, dataset_id: str, task_id: str) -> dict[str, Any] | None:
        with self._context.database.read() as connection:
            return find_metadata_field(connection, dataset_id, task_id, since=self._context.clock() - KEPT)

    def _result(self, dataset_id: str, task_id: str) -> FieldResult | None:
        """Return the progress of a task that has started; None if there is none of the dataset."""
        if not is_id(task_id):  # ids of tasks have the same form
            return None
        workspace = self._context.workspace
        try:
            if workspace.task(task_id).record.dataset_id != dataset_id:
                return None
            result = workspace.dataset(dataset_id).field_result(task_id)
        except NotFound:
            return None
        return result.model_copy(update={"status": _STATUSES.get(result.status, result.status)})
