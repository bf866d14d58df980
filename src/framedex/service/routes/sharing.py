"""Sharing of datasets: invitations, the list of members, and the end of sharing."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool

from framedex.access import Action, Role
from framedex.records import DatasetMember
from framedex.service.actions import needs, routes
from framedex.service.forms import model_body, parse_fields, read_fields
from framedex.service.models_people import Invitation, SharedWith
from framedex.service.parameters import CurrentActor, Service

router = routes("sharing")

_SHARING = ("dataset_share_enabled", "Dataset sharing is not enabled")


@router.put("/manage/{dataset_id}/invite")
@needs(Action.DATASET_SHARE, feature=_SHARING, invalid_status=400)
def invite_user(service: Service, actor: CurrentActor, dataset_id: str, body: Invitation) -> None:
    """Share a dataset with a registered account; again, to change its role."""
    service.hub.datasets.share(actor, dataset_id, body.grant_to_user_email, Role(body.role))


@router.get("/manage/{dataset_id}/share")
@needs(Action.DATASET_VIEW)
def members_of_dataset(service: Service, actor: CurrentActor, dataset_id: str) -> list[DatasetMember]:
    """Return the owner of a dataset, and then those with whom it is shared."""
    return service.hub.datasets.members(actor, dataset_id)


@router.delete("/manage/{dataset_id}/share")
@needs(Action.DATASET_SHARE, invalid_status=400)
def end_sharing(
    service: Service, actor: CurrentActor, dataset_id: str, email: Annotated[str, Query(max_length=320)]
) -> None:
    """Stop sharing a dataset with an account."""
    service.hub.datasets.unshare(actor, dataset_id, email)


@router.post("/dataset/{dataset_id}/share", openapi_extra=model_body(SharedWith))
@needs(Action.DATASET_SHARE, feature=_SHARING, invalid_status=400)
async def share_with_user(service: Service, actor: CurrentActor, dataset_id: str, request: Request) -> None:
    """Share a dataset with a registered account as a viewer, in the words of older clients."""
    address = parse_fields(SharedWith, await read_fields(request)).user_email
    await run_in_threadpool(service.hub.datasets.share, actor, dataset_id, address)
