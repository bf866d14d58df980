"""Tasks of datasets, as the users of a hub see them."""

from framedex.access import Action, Actor
from framedex.errors import NotFound
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.tasks import Task

_NOT_FOUND = "Task not found"


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
