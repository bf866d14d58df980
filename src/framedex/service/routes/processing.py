"""Datasets from folders of the server, and from lists of paths."""

from typing import Annotated

from fastapi import Form
from pydantic import BaseModel

from framedex.access import Action, Actor
from framedex.api.dataset import Dataset
from framedex.records import SourcePreview
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.sources import check_server_path, reading_source
from framedex.service.state import ServiceState

router = routes("processing")

_ERROR = (("status", "error"),)
_ADDITION = ("add_media_enabled", "Add media feature is not enabled")
_OfForm = Annotated[str, Form()]


class ProcessingStarted(BaseModel):
    """The dataset whose task has started."""

    status: str = "success"
    message: str
    dataset_id: str
    name: str


@router.get("/process")
@needs(Action.TENANT_CREATE_DATASET, changes=True, heavy=True, invalid_status=400, error_fields=_ERROR)
def process(
    service: Service, actor: CurrentActor, path: str = "", name: str = "", serve_mode: str = ""
) -> ProcessingStarted:
    """Create a dataset from a folder or a list on the server, or from a bucket."""
    return _create(service, actor, path, name)


@router.post("/process")
@needs(Action.TENANT_CREATE_DATASET, heavy=True, invalid_status=400, error_fields=_ERROR)
def post_process(
    service: Service,
    actor: CurrentActor,
    path: str = "",
    name: str = "",
    form_path: Annotated[str, Form(alias="path")] = "",
    form_name: Annotated[str, Form(alias="name")] = "",
) -> ProcessingStarted:
    """Create a dataset from a folder or a list on the server; the parameters are in the query or in a form."""
    return _create(service, actor, path or form_path, name or form_name)


@router.get("/process/preview")
@needs(Action.TENANT_CREATE_DATASET, heavy=True, invalid_status=400, error_fields=_ERROR)
def get_preview(service: Service, actor: CurrentActor, path: str = "") -> SourcePreview:
    """Return how the beginning of a folder or a list on the server, or of a bucket, is understood; change nothing."""
    _require(path=path)
    source = check_server_path(service, actor, path, service.hub.tenants.primary(actor) or "")
    with reading_source(source):
        return service.workspace.preview(source)


@router.get("/process/add_media")
@needs(Action.DATASET_EDIT, changes=True, heavy=True, feature=_ADDITION, invalid_status=400, error_fields=_ERROR)
def process_addition(
    service: Service, actor: CurrentActor, dataset: OpenedDataset, dataset_id: str = "", path: str = ""
) -> ProcessingStarted:
    """Add media from a folder or a list on the server, or from a bucket."""
    return _add(service, actor, dataset, path)


@router.post("/process/add_media")
@needs(Action.DATASET_EDIT, heavy=True, feature=_ADDITION, invalid_status=400, error_fields=_ERROR)
def post_process_addition(
    service: Service,
    actor: CurrentActor,
    dataset: OpenedDataset,
    dataset_id: str = "",
    path: str = "",
    form_path: Annotated[str, Form(alias="path")] = "",
) -> ProcessingStarted:
    """Add media from a folder or a list on the server; the path is in the query or in a form."""
    return _add(service, actor, dataset, path or form_path)


def _create(service: ServiceState, actor: Actor, path: str, name: str) -> ProcessingStarted:
    _require(path=path, name=name)
    tenant_id = service.hub.tenants.primary(actor) or ""
    source = check_server_path(service, actor, path, tenant_id)
    with reading_source(source):
        dataset = service.hub.datasets.create(actor, name, source)
    return ProcessingStarted(message="Dataset processing started", dataset_id=dataset.id, name=name)


def _add(service: ServiceState, actor: Actor, dataset: Dataset, path: str) -> ProcessingStarted:
    _require(path=path)
    tenant_id = service.hub.datasets.subject(actor, dataset.id).tenant_id
    source = check_server_path(service, actor, path, tenant_id)
    with reading_source(source):
        dataset.add_media(source, wait=False)
    return ProcessingStarted(message="Media addition started", dataset_id=dataset.id, name=dataset.name)


def _require(**parameters: str) -> None:
    for name, value in parameters.items():
        if not value:
            raise Refusal(400, f"Field {name!r} is required")
