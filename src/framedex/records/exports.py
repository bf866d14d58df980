"""Records of exports."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from framedex.records.base import Record


class ExportResult(Record):
    """The outcome of an export.

    ``missing_images`` lists images that are not in the ZIP file: the paths of the first 10,000. They could not be read,
    were too large, grew while they were copied, or a link leads out of their source. ``message`` says in words what was
    written, how many images are missing and why, and which values the format cannot hold. ``total_objects`` counts the
    objects in the exported media. ``warnings`` say what is empty and why, as the list of classes.
    """

    path: str
    total_media_items: int
    total_objects: int = 0
    images: int
    missing_images: list[str]
    message: str
    warnings: list[str] = Field(default_factory=list)


class ExportStatus(StrEnum):
    """State of an export."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"

    @property
    def final(self) -> bool:
        """True if the export has ended."""
        return self not in (ExportStatus.PENDING, ExportStatus.RUNNING)


class ExportRecord(Record):
    """An export, as the interface returns it.

    ``progress`` is in percent, 0 to 100. ``entities_count`` is the number of exported media, or of objects if the
    export is of objects; None until it is counted. ``result_message`` says what was written, or why the export failed.
    ``download_uri`` is the URI of the ZIP file once the status is COMPLETED.
    """

    id: str
    dataset_id: str
    created_at: datetime
    status: ExportStatus
    progress: int
    entities_count: int | None
    result_message: str
    download_uri: str | None
