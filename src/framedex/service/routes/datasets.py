"""Datasets: list, status, creation from a bucket, change, deletion, and what clients ask about one."""

from contextlib import suppress
from typing import Annotated

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, model_validator

from framedex.access import Action, Actor
from framedex.errors import NotFound
from framedex.hub.datasets import OpenedDataset as DatasetOfActor
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.forms import model_body, parse_fields, read_fields
from framedex.service.links import Links
from framedex.service.models_datasets import DatasetStats, DatasetStatusModel, NewDataset, dataset_fields
from framedex.service.parameters import CurrentActor, FileLinks, OpenedDataset, OpenedWithRecord, Service
from framedex.service.routes.account import Message
from framedex.service.sources import check_bucket, reading_source
from framedex.service.state import ServiceState

router = routes("datasets")

_NO_ARCHIVES = "Archives are not supported for the initial creation of a dataset"
_TOGGLES = {
    "ADD_MEDIA": "add_media_enabled",
    "SNAPSHOTS": "dataset_snapshots_enabled",
    "SHARE": "dataset_share_enabled",
    "DELETE_DATASET": "delete_dataset_enabled",
}
_DELETION = ("delete_dataset_enabled", "Deleting datasets is not enabled")


class BucketSource(BaseModel):
    """The name of a new dataset, and the folder or manifest in a bucket with its media."""

    dataset_name: Annotated[str, Field(min_length=1)]
    bucket_path: str | None = None
    uploaded_filename: str | None = None


class DatasetChange(BaseModel):
    """A new name, a new description, or both."""

    display_name: str | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _is_change(self) -> "DatasetChange":
        if self.display_name is None and self.description is None:
            raise ValueError("give display_name, description, or both")
        return self


class Feature(BaseModel):
    """A feature of the service for a dataset, with its options."""

    feature_key: str
    feature_options: dict[str, bool]


class UserConfig(BaseModel):
    """The features that a client may offer for a dataset."""

    features: list[Feature]


@router.get("/datasets")
@needs(Action.OWN_ACCOUNT)
def list_user_datasets(service: Service, actor: CurrentActor, links: FileLinks) -> list[DatasetStatusModel]:
    """Return the datasets that the user may view, newest first."""
    answers, permissions = [], service.hub.datasets.permissions(actor)
    for record in service.hub.datasets.visible(actor):
        with suppress(NotFound):  # it was deleted meanwhile
            may = permissions.get(record.id, [])
            fields = dataset_fields(record, actor, links, service.workspace.dataset, may)
            answers.append(DatasetStatusModel(**fields))
    return answers


@router.get("/datasets/sample_data")
@needs(Action.OWN_ACCOUNT)
def list_sample_datasets() -> list[DatasetStatusModel]:
    """Return the datasets with sample data: none."""
    return []


@router.get("/dataset/{dataset_id}")
@needs(Action.DATASET_VIEW)
def get_dataset(
    service: Service, actor: CurrentActor, links: FileLinks, opened: OpenedWithRecord, dataset_id: str
) -> DatasetStatusModel:
    """Return the status, the counts and the origin of a dataset."""
    return _status(service, actor, links, opened)


@router.post("/dataset", openapi_extra=model_body(BucketSource))
@needs(Action.TENANT_CREATE_DATASET)
async def create_dataset(service: Service, actor: CurrentActor, links: FileLinks, request: Request) -> NewDataset:
    """Create a dataset from a folder or a manifest in a bucket; its task runs on after the answer."""
    source = parse_fields(BucketSource, await read_fields(request))
    if source.bucket_path is None:
        is_archive = source.uploaded_filename is not None
        raise Refusal(400, _NO_ARCHIVES) if is_archive else Refusal(422, "Field 'bucket_path' is required")
    uri = check_bucket(service, source.bucket_path)

    def create() -> NewDataset:
        with reading_source(uri):
            dataset = service.hub.datasets.create(actor, source.dataset_name, uri)
        created = _status(service, actor, links, service.hub.datasets.open_with_record(actor, dataset.id))
        return NewDataset(**dict(created), dataset_id=dataset.id)

    async with service.heavy:
        return await run_in_threadpool(create)


@router.patch("/dataset/{dataset_id}")
@needs(Action.DATASET_RENAME)
def change_dataset(
    service: Service,
    actor: CurrentActor,
    links: FileLinks,
    dataset: OpenedDataset,
    dataset_id: str,
    body: DatasetChange,
) -> DatasetStatusModel:
    """Change the name or the description of a dataset."""
    dataset.update(name=body.display_name, description=body.description)
    return _status(service, actor, links, service.hub.datasets.open_with_record(actor, dataset_id))


@router.delete("/dataset/{dataset_id}")
@needs(Action.DATASET_DELETE, feature=_DELETION)
def delete_user_dataset(service: Service, actor: CurrentActor, dataset_id: str) -> Message:
    """Delete a dataset with all that is stored for it; its source stays."""
    service.hub.datasets.delete(actor, dataset_id)
    return Message(message="Dataset deleted")


@router.get("/dataset/{dataset_id}/stats")
@needs(Action.DATASET_VIEW, heavy=True)
def get_dataset_stats(dataset: OpenedDataset, dataset_id: str) -> DatasetStats:
    """Return the numbers of media, of issues by type, and of media by label."""
    info = dataset.info
    return DatasetStats(
        n_images=info.n_images,
        n_videos=info.n_videos,
        n_objects=info.n_objects,
        n_clusters=dataset.view.count_clusters().n_clusters,
        issues=dataset.view.issue_summaries(),
        labels=dataset.labels(),
    )


@router.get("/dataset/{dataset_id}/preview", status_code=307, response_class=Response)
@needs(Action.DATASET_VIEW, signed=True)
def get_dataset_preview(dataset: OpenedDataset, links: FileLinks, dataset_id: str) -> Response:
    """Send the client to the thumbnail of the first image of a dataset."""
    row = next(dataset.view.limit(1).rows(["media_id"]), None)
    if row is None:
        raise NotFound("The dataset has no image")
    target = links.media(dataset_id, row["media_id"], "thumbnail", size=256)
    return Response(status_code=307, headers={"Location": target, "Cache-Control": "private, max-age=300"})


@router.get("/user_config")
@needs(Action.DATASET_VIEW, heavy=True)
def get_user_config(service: Service, dataset: OpenedDataset, dataset_id: str) -> UserConfig:
    """Return which searches and which changes a client may offer for a dataset."""
    searches = {f"{kind}_search": is_possible for kind, is_possible in dataset.text_searches()}
    texts = Feature(feature_key="TEXTUAL_SEARCH_IMAGE", feature_options=searches)
    settings = service.workspace.settings
    toggles = {key: {"enabled": bool(getattr(settings, name))} for key, name in _TOGGLES.items()}
    return UserConfig(features=[texts, *(Feature(feature_key=key, feature_options=on) for key, on in toggles.items())])


def _status(service: ServiceState, actor: Actor, links: Links, opened: DatasetOfActor) -> DatasetStatusModel:
    """Return a dataset as its user sees it."""
    permissions = opened.permissions(actor)
    return DatasetStatusModel(**dataset_fields(opened.record, actor, links, service.workspace.dataset, permissions))
