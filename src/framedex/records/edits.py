"""Records of tags, decisions about labels, and custom fields."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from framedex.records.base import Record


class Tag(Record):
    """A tag, and the number of media that have it."""

    tag_id: str
    name: str
    created_at: datetime
    created_by: str
    count: int


class LabelDecision(Record):
    """A user's decision that the labels of media are right.

    ``labels`` are those of each of ``media_ids``, in the same order, at the time of the decision. For a media item with
    other labels now, the decision does not hold.
    """

    decision_id: str
    media_ids: list[str]
    labels: list[list[str]]
    decided_by: str
    decided_at: datetime


class FieldType(StrEnum):
    """Type of the values of a custom field."""

    STRING = "string"
    FLOAT = "float"
    DATETIME = "datetime"
    ENUM = "enum"
    LINK = "link"


class Field(Record):
    """A custom field of a dataset; only fields of type enum have options."""

    field_id: str
    field_name: str
    field_type: FieldType
    enum_options: list[str] | None
    is_multi: bool
    created_at: datetime
    created_by: str


class FieldValue(Record):
    """The value of a custom field for one media item: text, float or datetime (UTC), or a list of these."""

    field_name: str
    field_type: FieldType
    value: Any


class FieldError(Record):
    """The reason for which a value was refused, and its row, counted from 0."""

    reason: str
    row_index: int


class FieldResult(Record):
    """The progress and the outcome of a task of type CUSTOM_METADATA.

    ``status`` is the status of the task, or COMPLETED_WITH_ERRORS if rows failed; ``progress`` is in percent.
    ``error_count`` counts all errors; ``sample_errors`` holds at most 100 of them.
    """

    task_id: str
    status: str
    progress: int
    inserted_rows: int
    error_count: int
    sample_errors: list[FieldError]
