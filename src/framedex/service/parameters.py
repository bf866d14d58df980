"""Parameters of routes beside their own: the running service, the actor, the dataset, links."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from framedex.access import Actor
from framedex.api.dataset import Dataset
from framedex.hub.datasets import OpenedDataset as DatasetOfActor
from framedex.service.errors import Refusal
from framedex.service.links import Links
from framedex.service.state import ServiceState
from framedex.tasks import Task


async def _state(request: Request) -> ServiceState:
    state: ServiceState = request.app.state.service
    return state


async def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


async def _dataset(request: Request) -> Dataset:
    dataset: Dataset | None = getattr(request.state, "dataset", None)
    if dataset is None:  # the parameter of the query is missing
        raise Refusal(request.state.invalid_status, "Field 'dataset_id' is required")
    return dataset


async def _opened(request: Request) -> DatasetOfActor:
    opened: DatasetOfActor = request.state.opened
    return opened


async def _task(request: Request) -> Task:
    task: Task = request.state.task
    return task


def _user_id(request: Request, user_id: str) -> str:
    found: str = request.app.state.service.hub.identities.resolve(request.state.actor, user_id)
    return found


async def _links(request: Request) -> Links:
    return Links(request.app.state.service, request.state.actor, str(request.base_url))


async def _sign_on(request: Request) -> "SingleSignOn":
    state: ServiceState = request.app.state.service
    if state.sign_on is None:
        raise Refusal(404, "OIDC is not configured")
    if state.auth_off:
        raise Refusal(403, "Authentication is disabled")
    return state.sign_on


if TYPE_CHECKING:
    from framedex.service.oidc.sign_on import SingleSignOn

    SignOn = Annotated[SingleSignOn, Depends(_sign_on)]
else:  # the framework reads annotations, and the extra may not be installed
    SignOn = Annotated[Any, Depends(_sign_on)]

Service = Annotated[ServiceState, Depends(_state)]
"""The running service."""
CurrentActor = Annotated[Actor, Depends(_actor)]
"""Who makes the request."""
OpenedDataset = Annotated[Dataset, Depends(_dataset)]
"""The dataset of ``dataset_id``, in which the actor acts; the route's action on it is allowed."""
OpenedWithRecord = Annotated[DatasetOfActor, Depends(_opened)]
"""The dataset of ``dataset_id`` in the path with its record, as it was when the route's action was checked."""
OpenedTask = Annotated[Task, Depends(_task)]
"""The task of ``task_id``; the route's action on it is allowed."""
UserId = Annotated[str, Depends(_user_id)]
"""The id of the user of ``user_id``, which may also be that of the account at the identity provider."""
FileLinks = Annotated[Links, Depends(_links)]
"""Makes URIs of files."""
