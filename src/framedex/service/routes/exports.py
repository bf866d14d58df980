"""Exports: started by a filter or a selection, their state, and the JSON export as the answer itself."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.api.result_set import ResultSet
from framedex.errors import InvalidInput
from framedex.hub.exports import ExportRequest, safe_name
from framedex.hub.results import ResultQuery
from framedex.records import EntityType, ExportRecord, ExportStatus
from framedex.service.actions import needs, routes
from framedex.service.direct_export import direct_export
from framedex.service.errors import Refusal
from framedex.service.links import Links
from framedex.service.models_results import ActionTargets
from framedex.service.parameters import CurrentActor, FileLinks, OpenedDataset, Service
from framedex.service.server_paths import without_folders

router = routes("exports")

_DEFAULT_NAME = "export"
_MAX_SELECTION_BYTES = 8 * 2**20
_FileName = Annotated[str | None, Query(max_length=255)]
_Format = Annotated[str, Query(max_length=100)]
_OPTIONS = {"split", "confidences", "outlines", "keypoints"}
_Vql = Annotated[str | None, Query(max_length=2**16)]


class NewExport(BaseModel):
    """An export of results, of a few media, or of the media that pass a filter; of all of a dataset without these.

    ``entity_type`` is about filters and ids; results have a type of their own. ``split`` has the share of each part, or
    a filter for each. ``confidences``, ``outlines`` and ``keypoints`` are about yolo.
    """

    file_name: Annotated[str, Field(max_length=255)] = _DEFAULT_NAME
    export_format: Annotated[str, Field(max_length=100)] = "json"
    on: ActionTargets | None = None
    vql: list[Any] | None = None
    entity_type: EntityType = EntityType.IMAGES
    include_images: bool = False
    strip_metadata: bool = False
    split: Annotated[dict[str, Any], Field(max_length=20)] | None = None
    confidences: bool = False
    outlines: bool = False
    keypoints: bool = False


class ListedExport(ExportRecord):
    """An export in a list: also the name and the size of its file, and when that is deleted."""

    file_name: str
    size_bytes: int | None
    expires_at: datetime


class MediaSelection(BaseModel):
    """Media and clusters to export, in the form of the interface."""

    media_selection: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100_000)]


@router.get("/dataset/{dataset_id}/export_context_async")
@needs(Action.DATASET_EXPORT, changes=True, heavy=True)
def start_export_by_filter(
    dataset_id: str,
    service: Service,
    actor: CurrentActor,
    dataset: OpenedDataset,
    export_format: _Format,
    file_name: _FileName = None,
    include_images: bool = False,
    entity_type: EntityType = EntityType.IMAGES,
    vql: _Vql = None,
    strip_metadata: bool = False,
) -> ExportRecord:
    """Start an export of the media that pass a filter, to a ZIP file that is kept for some days."""
    if file_name is None and not vql:
        raise Refusal(422, "Field 'file_name' is required unless vql is given")
    name = safe_name(_DEFAULT_NAME if file_name is None else file_name)
    request = ExportRequest(
        name, export_format, include_images, entity_type, vql or None, None, strip_metadata, _media_url(dataset_id)
    )
    return service.hub.exports.start(actor, dataset.id, request, days=service.settings.export_days)


@router.post("/dataset/{dataset_id}/export_entities_async")
@needs(Action.DATASET_EXPORT, heavy=True, body_limit=_MAX_SELECTION_BYTES)
def start_export_of_selection(
    dataset_id: str,
    service: Service,
    actor: CurrentActor,
    dataset: OpenedDataset,
    body: MediaSelection,
    file_name: _FileName = None,
    export_format: _Format = "json",
    include_images: bool = False,
    entity_type: EntityType = EntityType.IMAGES,
    strip_metadata: bool = False,
) -> ExportRecord:
    """Start an export of media and clusters that are named."""
    request = ExportRequest(
        safe_name(_DEFAULT_NAME if file_name is None else file_name), export_format, include_images, entity_type,
        None, body.media_selection, strip_metadata, _media_url(dataset_id),
    )  # fmt: skip
    return service.hub.exports.start(actor, dataset.id, request, days=service.settings.export_days)


@router.post("/dataset/{dataset_id}/exports")
@needs(Action.DATASET_EXPORT, heavy=True)
def start_any_export(
    dataset_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset, body: NewExport
) -> ExportRecord:
    """Start an export with all its options, of results, media or a filter, to a ZIP file that is kept for some days."""
    results = _results_of(service, actor, dataset, body)
    request = ExportRequest(
        safe_name(body.file_name), body.export_format, body.include_images,
        body.entity_type if results is None else results.view().entity_type, body.vql, None, body.strip_metadata,
        _media_url(dataset_id), results, body.model_dump(include=_OPTIONS),
    )  # fmt: skip
    return service.hub.exports.start(actor, dataset.id, request, days=service.settings.export_days)


@router.get("/dataset/{dataset_id}/exports")
@needs(Action.DATASET_VIEW)
def exports_of_dataset(
    dataset_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset, links: FileLinks
) -> list[ListedExport]:
    """Return the exports of a dataset whose files are kept, the newest first: one's own, and for admins all."""
    return [
        ListedExport(
            **dict(_shown(record, file.file_name, links)), file_name=file.file_name,
            size_bytes=size, expires_at=file.expires_at,
        )
        for record, file, size in service.hub.exports.of_dataset(actor, dataset.id)
    ]  # fmt: skip


@router.get("/dataset/{dataset_id}/export_status")
@needs(Action.DATASET_VIEW)
def get_export_status(
    dataset_id: str,
    service: Service,
    actor: CurrentActor,
    dataset: OpenedDataset,
    links: FileLinks,
    export_task_id: Annotated[str, Query(max_length=100)],
) -> ExportRecord:
    """Return the state of an export; once it is complete, with a URI whose signature is new each time."""
    record, name = service.hub.exports.get(actor, dataset.id, export_task_id)
    return _shown(record, name, links)


@router.get("/dataset/{dataset_id}/export", response_class=Response)
@needs(Action.DATASET_EXPORT, heavy=True)
def get_direct_export(
    dataset_id: str, dataset: OpenedDataset, service: Service, export_format: _Format = "json"
) -> Response:
    """Return the JSON export of a dataset of up to 50,000 media."""
    return direct_export(dataset, export_format, service.hub.exports.folder, _media_url(dataset_id))


def _results_of(service: Service, actor: CurrentActor, dataset: OpenedDataset, body: NewExport) -> ResultSet | None:
    on = body.on
    if on is None:
        return None
    if (on.rid is None) == (on.ids is None) or body.vql is not None:
        raise InvalidInput("an export is of one of on.rid, on.ids and vql")
    if on.rid is not None:
        return service.hub.results.get(actor, dataset, on.rid)
    return service.hub.results.open(actor, dataset, ResultQuery(ids=on.ids, entity_type=body.entity_type))


def _media_url(dataset_id: str) -> str:
    return f"/api/v1/dataset/{dataset_id}/media/{{media_id}}/file"


def _shown(record: ExportRecord, file_name: str, links: Links) -> ExportRecord:
    uri = None
    if record.status is ExportStatus.COMPLETED:
        uri = links.path(f"/cdn/{record.dataset_id}/exports/{record.id}/{file_name}")
    message = without_folders(record.result_message)
    return record.model_copy(update={"download_uri": uri, "result_message": message})
