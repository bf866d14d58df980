"""Datasets in the form of the interface, where it differs from the records."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from framedex.access import Action, Actor
from framedex.api.dataset import Dataset
from framedex.records import DatasetRecord, DatasetStatus, IssueSummary, LabelCount, SourceType, TaskType
from framedex.service.links import Links
from framedex.service.server_paths import without_folders

_FORMER_STATUSES = {DatasetStatus.ERROR: "FATAL_ERROR", DatasetStatus.READ_ONLY: "UPDATING"}


class DatasetStatusModel(BaseModel):
    """A dataset: its state, its counts, and where it comes from.

    ``status_new`` is the status, ``status`` that of older clients. ``source_uri`` is the folder of the server for the
    owner alone, and None for uploads. ``preview_uri`` leads to the thumbnail of an image. ``fatal_error_msg`` is why
    the dataset is in status ERROR. ``permissions`` are the actions that the user may do with the dataset.
    """

    id: str
    display_name: str
    description: str
    status: str
    status_new: DatasetStatus
    progress: int
    owned_by: str
    created_by: str
    created_at: datetime
    updated_at: datetime | None
    n_images: int
    n_videos: int
    n_objects: int
    source_type: SourceType
    source_uri: str | None
    source_dataset_id: str | None
    preview_uri: str | None
    filename: str | None = None
    sample: bool = False
    fatal_error_msg: str | None
    permissions: list[Action]


class NewDataset(DatasetStatusModel):
    """A dataset whose creation has started."""

    dataset_id: str


class DatasetStats(BaseModel):
    """The counts of a dataset: media, clusters of the finest level, issues and labels."""

    n_images: int
    n_videos: int
    n_objects: int
    n_clusters: int
    issues: list[IssueSummary]
    labels: list[LabelCount]


def dataset_fields(
    record: DatasetRecord,
    actor: Actor,
    links: Links,
    open_dataset: Callable[[str], Dataset],
    permissions: Sequence[Action],
) -> dict[str, Any]:
    """Return the fields of a :class:`DatasetStatusModel`.

    Args:
        record: the dataset, with the address of its owner.
        actor: who asks.
        links: makes URIs.
        open_dataset: opens a dataset by its id, where the record does not say enough.
        permissions: what who asks may do with the dataset.
    """
    is_owner = actor.is_local or record.owned_by == actor.name
    is_shown = record.source_type is SourceType.BUCKET or is_owner
    error = None
    if record.status_new is DatasetStatus.ERROR and (task := open_dataset(record.id).last_task) is not None:
        error = task.error_message
    return {
        **dict(record),
        "status": _former_status(record, open_dataset),
        "source_uri": record.source_uri if is_shown else None,
        "preview_uri": None if record.updated_at is None else links.path(f"/api/v1/dataset/{record.id}/preview"),
        "fatal_error_msg": error and without_folders(error),
        "permissions": list(permissions),
    }


def _former_status(record: DatasetRecord, open_dataset: Callable[[str], Dataset]) -> str:
    """Return the status in the words of older clients."""
    if record.status_new is DatasetStatus.READ_ONLY and open_dataset(record.id).running_task is TaskType.ENRICHMENT:
        return "ENRICHING"
    return _FORMER_STATUSES.get(record.status_new, record.status)
