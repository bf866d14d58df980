"""Saved views of a dataset: list, creation, deletion, trend and alerts."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Query
from pydantic import BaseModel

from framedex.access import Action
from framedex.records import EntityType, SavedViewRecord, ViewAuthor, ViewStats
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.state import ServiceState

router = routes("saved views")

_LIST = "/dataset/{dataset_id}/views"
_ONE = "/dataset/{dataset_id}/views/{view_id}"
_NO_THRESHOLD = "0"
_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_FORM = {"requestBody": {"content": {"multipart/form-data": {"schema": _NAME}}}}


class SavedViewFilters(BaseModel):
    """The filters of a saved view. ``threshold`` is a number from 0 to 1 as text; 0 for the default."""

    entity_type: str
    threshold: str
    caption: str | None
    vql: list[dict[str, Any]]


class SavedViewModel(BaseModel):
    """A saved view of a dataset, with its results so far; ``evaluation_error`` is why the last evaluation failed."""

    id: str
    dataset_id: str
    name: str
    created_at: datetime
    created_by: ViewAuthor
    filters: SavedViewFilters
    stats: ViewStats
    monitoring_enabled: bool
    monitoring_started_at: datetime
    alerting_enabled: bool
    total_results: int
    last_results: datetime | None
    evaluation_error: str | None = None


class SavedViewList(BaseModel):
    """The saved views of a dataset, newest first."""

    views: list[SavedViewModel]


class TrendPointModel(BaseModel):
    """The results of a saved view in a batch of media, and in all batches up to it."""

    timestamp: datetime
    batch_id: str
    batch: int
    count: int
    cumulative: int


class ViewTrendModel(BaseModel):
    """The trend of a saved view: a point for each evaluated batch, oldest first."""

    points: list[TrendPointModel]
    total_results: int
    last_results: datetime | None


class Alerting(BaseModel):
    """The alerts of a view: on or off."""

    enabled: bool


class AlertingRequest(BaseModel):
    """A request to turn alerts on or off."""

    request: Alerting


class AlertingState(BaseModel):
    """The present state of the alerts of a view."""

    alerting_enabled: bool


@router.get(_LIST)
@needs(Action.DATASET_VIEW)
def get_saved_views(dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor) -> SavedViewList:
    """Return the saved views, newest first."""
    return SavedViewList(views=_shown(service, service.hub.views.of_dataset(actor, dataset.id)))


@router.post(_LIST, openapi_extra=_FORM)
@needs(Action.VIEW_CREATE, heavy=True)
def post_saved_view(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    name: Annotated[str, Form(max_length=1000)],
    entity_type: EntityType = EntityType.IMAGES,
    threshold: Annotated[float, Query(ge=0, le=1)] = 0,
    caption: Annotated[str | None, Query(max_length=10_000)] = None,
    vql: Annotated[str | None, Query(max_length=2**16)] = None,
) -> SavedViewModel:
    """Save a view, whose results are counted in each batch of media that is added from now on."""
    options: dict[str, Any] = {"entity_type": entity_type, "threshold": threshold, "caption": caption or None}
    view = service.hub.views.create(actor, dataset.id, name, vql=vql or None, **options)
    return _shown(service, [view])[0]


@router.delete(_ONE)
@needs(Action.VIEW_DELETE)
def delete_saved_view(
    dataset_id: str, view_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor
) -> None:
    """Delete a saved view with its trend; its notifications stay."""
    service.hub.views.delete(actor, dataset.id, view_id)


@router.get(_ONE + "/trend")
@needs(Action.DATASET_VIEW, invalid_status=400)
def get_view_trend(
    dataset_id: str, view_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor
) -> ViewTrendModel:
    """Return the number of results in each batch of media that was added after the view was saved."""
    return ViewTrendModel.model_validate(service.hub.views.trend(actor, dataset.id, view_id), from_attributes=True)


@router.post(_ONE + "/alerting")
@needs(Action.VIEW_ALERTING, invalid_status=400)
def post_view_alerting(
    dataset_id: str, view_id: str, body: AlertingRequest, dataset: OpenedDataset, service: Service, actor: CurrentActor
) -> AlertingState:
    """Turn the alerts of a saved view on or off; its trend continues."""
    enabled = service.hub.views.set_alerting(actor, dataset.id, view_id, enabled=body.request.enabled)
    return AlertingState(alerting_enabled=enabled)


def _shown(service: ServiceState, views: list[SavedViewRecord]) -> list[SavedViewModel]:
    """Return saved views in the form of the interface."""
    authors, shown = service.hub.views.authors(views), []
    for view in views:
        filters = SavedViewFilters.model_validate(
            {**view.filters.model_dump(), "threshold": view.filters.threshold or _NO_THRESHOLD}
        )
        shown.append(SavedViewModel.model_validate({**dict(view), "created_by": authors[view.id], "filters": filters}))
    return shown
