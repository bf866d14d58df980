"""Records of tasks."""

from datetime import datetime
from enum import StrEnum

from framedex.records.base import Record


class TaskType(StrEnum):
    """Kind of work of a task."""

    DATASET_CREATION = "DATASET_CREATION"
    MEDIA_ADDITION = "MEDIA_ADDITION"
    REINDEX = "REINDEX"
    MEDIA_DELETION = "MEDIA_DELETION"
    ENRICHMENT = "ENRICHMENT"
    CUSTOM_METADATA = "CUSTOM_METADATA"
    SNAPSHOT_RESTORE = "SNAPSHOT_RESTORE"
    SNAPSHOT_CLONE = "SNAPSHOT_CLONE"
    MAP = "MAP"


class TaskStatus(StrEnum):
    """State of a task."""

    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"

    @property
    def final(self) -> bool:
        """True if the task has ended."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.ABORTED)


class TaskRecord(Record):
    """A task, as the interface returns it."""

    task_id: str
    dataset_id: str
    dataset_name: str
    dataset_status: str
    created_by: str
    task_type: TaskType
    status: TaskStatus
    status_message: str
    progress_percentage: int | None
    error_message: str | None
    start_time: datetime
    end_time: datetime | None


class TaskPage(Record):
    """A page of tasks, as the interface returns it; pages count from 1."""

    tasks: list[TaskRecord]
    total: int
    page: int
    page_size: int

    @property
    def total_pages(self) -> int:
        """The number of pages."""
        return -(-self.total // self.page_size)


class TaskFilters(Record):
    """The values by which tasks can be filtered, each once, sorted."""

    dataset_names: list[str]
    dataset_ids: list[str]
    task_types: list[str]
    created_by: list[str]
