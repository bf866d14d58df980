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
