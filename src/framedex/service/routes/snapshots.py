"""Snapshots of a dataset: list, creation, change, restore, clone and deletion."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.errors import NotFound
from framedex.operations.states import PRESENT
from framedex.records import Snapshot
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("snapshots")

_FEATURE = ("dataset_snapshots_enabled", "Snapshot feature is not enabled")
_LIST = "/dataset/{dataset_id}/snapshot"
_ONE = "/dataset/{dataset_id}/snapshot/{snapshot_id}"


class SnapshotTexts(BaseModel):
    """The name and the description of a snapshot; a text that is left out is the default, or stays as it is."""

    name: str | None = None
    description: str | None = None


@router.get(_LIST)
@needs(Action.DATASET_VIEW, feature=_FEATURE)
def get_snapshots(dataset_id: str, dataset: OpenedDataset) -> list[Snapshot]:
    """Return the snapshots, newest first."""
    return dataset.snapshots()


@router.post(_LIST)
@needs(Action.DATASET_EDIT, feature=_FEATURE)
def post_snapshot(dataset_id: str, dataset: OpenedDataset, body: SnapshotTexts | None = None) -> Snapshot:
    """Create a snapshot of the current state."""
    texts = body or SnapshotTexts()
    return dataset.snapshot(texts.name, description=texts.description or "")


@router.patch(_ONE)
@needs(Action.DATASET_EDIT, feature=_FEATURE)
def patch_snapshot(dataset_id: str, snapshot_id: str, dataset: OpenedDataset, body: SnapshotTexts) -> Snapshot:
    """Change the name or the description of a snapshot."""
    with _existing():
        return dataset.update_snapshot(snapshot_id, name=body.name, description=body.description)


@router.post(_ONE + "/restore", status_code=202, response_class=Response)
@needs(Action.DATASET_EDIT, feature=_FEATURE)
def post_snapshot_restore(
    dataset_id: str, snapshot_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset
) -> Response:
    """Start to restore a snapshot, or ``current``."""
    with _existing():
        dataset.restore(snapshot_id, wait=False)
    service.hub.trail.note(actor, "snapshot.restore", dataset_id=dataset.id, target=snapshot_id)
    return Response(status_code=202)


@router.post(_ONE + "/clone", status_code=202, response_class=Response)
@needs(Action.DATASET_CLONE, feature=_FEATURE)
def post_snapshot_clone(
    dataset_id: str, snapshot_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset
) -> Response:
    """Start to create a dataset from a snapshot, or from ``current``."""
    with _existing():
        service.hub.copies.clone(actor, dataset.id, snapshot_id)
    return Response(status_code=202)


class CloneRequest(BaseModel):
    """The state that a clone is of: a snapshot, by its id or name, or by default ``head``, the present state."""

    snapshot: Annotated[str, Field(max_length=1000)] = PRESENT


class ClonedDataset(BaseModel):
    """The id of a dataset that is being made of a state of another one."""

    id: str


@router.post("/dataset/{dataset_id}/clone", status_code=202)
@needs(Action.DATASET_CLONE, feature=_FEATURE)
def post_clone(
    dataset_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset, body: CloneRequest | None = None
) -> ClonedDataset:
    """Start to create a dataset that equals the present state of another one, or a snapshot of it."""
    state = (body or CloneRequest()).snapshot
    return ClonedDataset(id=service.hub.copies.clone(actor, dataset.id, state).id)


@router.delete(_ONE, response_class=Response)
@needs(Action.DATASET_EDIT, feature=_FEATURE)
def delete_snapshot_by_id(
    dataset_id: str, snapshot_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset
) -> Response:
    """Delete a snapshot, except the current one."""
    with _existing():
        dataset.delete_snapshot(snapshot_id)
    service.hub.trail.note(actor, "snapshot.delete", dataset_id=dataset.id, target=snapshot_id)
    return Response()


@contextmanager
def _existing() -> Iterator[None]:
    """Say in the interface's words that a snapshot does not exist."""
    try:
        yield
    except NotFound:
        raise Refusal(404, "Snapshot not found") from None
