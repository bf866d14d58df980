"""Custom metadata: fields, which are added in two steps, and their values."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from framedex.access import Action
from framedex.annotations.json_items import read_array
from framedex.errors import InvalidInput, NotFound
from framedex.hub.metadata import WAITING
from framedex.records import FieldResult, FieldType, FieldValue
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.forms import FILE
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.staging import staged_body

router = routes("custom metadata")

_TASKS = "/datasets/{dataset_id}/custom_metadata/tasks"
_NO_ARRAY = "The body must be a JSON array of objects with 'media_id' and 'value', or a form with such a 'file'"
_ROW = {"type": "object", "properties": {"media_id": {"type": "string"}, "value": {}}}
_VALUES = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": _ROW}},
            "multipart/form-data": {"schema": {"type": "object", "properties": {"file": FILE}}},
        },
    }
}


class FieldRequest(BaseModel):
    """The definition of a custom field."""

    field_name: str
    field_type: str
    enum_options: list[str] | None = None
    is_multi: bool = False


class MetadataTask(BaseModel):
    """A task that adds a custom field, and its status."""

    task_id: str
    status: str


class FieldSchema(BaseModel):
    """A custom field of a dataset."""

    field_id: str
    field_name: str
    field_type: FieldType
    enum_options: list[str] | None
    is_multi: bool


@router.post(_TASKS)
@needs(Action.DATASET_EDIT)
def create_metadata_task(service: Service, actor: CurrentActor, dataset_id: str, body: FieldRequest) -> MetadataTask:
    """Store the definition of a custom field; nothing runs until its values are sent, within 24 hours."""
    task_id = service.hub.metadata.define(
        actor,
        dataset_id,
        body.field_name,
        body.field_type,
        enum_options=body.enum_options,
        is_multi=body.is_multi,
    )
    return MetadataTask(task_id=task_id, status=WAITING)


@router.post(_TASKS + "/{task_id}", openapi_extra=_VALUES)
@needs(Action.DATASET_EDIT, body_limit="max_metadata_bytes")
async def send_metadata_values(
    service: Service, actor: CurrentActor, request: Request, dataset_id: str, task_id: str
) -> MetadataTask:
    """Send the values of a defined field, and start the task that writes them. Wrong rows fail alone."""
    workspace, metadata = service.workspace, service.hub.metadata
    await run_in_threadpool(metadata.status, actor, dataset_id, task_id)  # raises before the body is read
    async with staged_body(request, workspace.path, workspace.settings, field_name="file") as path, service.heavy:
        rows = await run_in_threadpool(_read_rows, path)
        result = await run_in_threadpool(metadata.fill, actor, dataset_id, task_id, rows)
    return MetadataTask(task_id=task_id, status=result.status)


@router.get(_TASKS + "/{task_id}/status")
@needs(Action.DATASET_VIEW)
def get_metadata_task(service: Service, actor: CurrentActor, dataset_id: str, task_id: str) -> FieldResult:
    """Return the progress of a task, and the first errors of its rows."""
    return service.hub.metadata.status(actor, dataset_id, task_id)


@router.get("/datasets/{dataset_id}/custom_metadata/schema")
@needs(Action.DATASET_VIEW)
def get_metadata_schema(dataset: OpenedDataset, dataset_id: str) -> list[FieldSchema]:
    """Return the custom fields of a dataset, oldest first."""
    return [FieldSchema(**field.model_dump(include=set(FieldSchema.model_fields))) for field in dataset.fields()]


@router.get("/datasets/{dataset_id}/image/{media_id}/custom_metadata")
@needs(Action.DATASET_VIEW)
def get_metadata_values(dataset: OpenedDataset, dataset_id: str, media_id: str) -> list[FieldValue]:
    """Return the values of a media item."""
    try:
        return dataset.field_values(media_id)
    except (NotFound, InvalidInput):
        raise NotFound("Media not found") from None


def _read_rows(path: Path | None) -> list[Any]:
    """Return the rows of a JSON array, in the form that takes the least memory.

    Raises:
        Refusal: it is no such array.
    """
    if path is None:
        raise Refusal(422, _NO_ARRAY)
    try:
        return [_row(item) for item in read_array(path)]
    except InvalidInput:
        raise Refusal(422, _NO_ARRAY) from None


def _row(item: Any) -> Any:
    is_pair = isinstance(item, dict) and item.keys() == {"media_id", "value"}
    return (item["media_id"], item["value"]) if is_pair else item
