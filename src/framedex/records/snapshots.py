"""Records of snapshots."""

from datetime import datetime
from enum import StrEnum

from framedex.records.base import Record


class SnapshotReason(StrEnum):
    """Reason for which a snapshot was made."""

    MANUAL = "manual"
    CREATION = "creation"
    CLONE = "clone"


class Snapshot(Record):
    """A snapshot of a dataset, as the interface returns it."""

    snapshot_id: str
    snapshot_name: str
    source_dataset_name: str
    created_at: datetime
    created_by: str
    n_images: int
    n_videos: int
    description: str
    reason: SnapshotReason
    training_model_id: str | None
    training_model_name: str | None
    is_current: bool
    is_restoring: bool


class StateCounts(Record):
    """The counts of a dataset in one state: a snapshot, or the present state.

    ``state`` is the id of the snapshot, or ``head``. ``issues`` counts media by issue type, ``labels`` by label, the
    hundred most frequent.
    """

    state: str
    name: str
    created_at: datetime
    n_images: int
    n_videos: int
    n_objects: int
    issues: dict[str, int]
    labels: dict[str, int]
