"""Tags and custom fields of a dataset, as narrow tables beside the media table.

Rows of the media table refer to a tag by its number, and a field's column has the field's number in its name. So
renaming changes only these tables. Numbers are never reused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.records import FieldType
from framedex.storage import tables
from framedex.storage.column_cache import ColumnCache
from framedex.storage.media import Media
from framedex.storage.table_versions import small_table

TAGS, FIELDS = "tags", "fields"
"""Names of the tables; ``tags`` is also the media table's column with the tag numbers."""
TAGGED_AT = "tagged_at"
"""The media table's column with the dates, parallel to ``tags``."""
_TIME = pa.timestamp("us", tz="UTC")
TAGGED_SCHEMA = pa.schema([pa.field(TAGS, pa.list_(pa.int32())), pa.field(TAGGED_AT, pa.list_(_TIME))])
"""The media table's columns about tags; null for rows without tags."""
_TAGS_SCHEMA = pa.schema(
    [
        pa.field("tag_id", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("created_at", _TIME, nullable=False),
        pa.field("created_by", pa.string(), nullable=False),
    ]
)
_FIELDS_SCHEMA = pa.schema(
    [
        pa.field("field_id", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("enum_options", pa.list_(pa.string())),
        pa.field("is_multi", pa.bool_(), nullable=False),
        pa.field("created_at", _TIME, nullable=False),
        pa.field("created_by", pa.string(), nullable=False),
    ]
)
_SCHEMAS = {TAGS: _TAGS_SCHEMA, FIELDS: _FIELDS_SCHEMA}
_VALUES = {FieldType.FLOAT: pa.float64(), FieldType.DATETIME: _TIME}


@dataclass(frozen=True)
class TagDefinition:
    """A tag of a dataset.

    Attributes:
        tag_id: its UUID.
        number: the value that rows with the tag store.
        name: unique in the dataset.
        created_at, created_by: time and user of its creation.
    """

    tag_id: str
    number: int
    name: str
    created_at: datetime
    created_by: str


@dataclass(frozen=True)
class FieldDefinition:
    """A custom field of a dataset.

    Attributes:
        field_id: its UUID.
        number: the number in the name of its column.
        name: unique in the dataset.
        type: type of its values.
        enum_options: the allowed values of type enum; None for other types.
        is_multi: whether a media item has a list of values.
        created_at, created_by: time and user of its creation.
    """

    field_id: str
    number: int
    name: str
    type: FieldType
    enum_options: list[str] | None
    is_multi: bool
    created_at: datetime
    created_by: str

    @property
    def column(self) -> pa.Field:
        """The media table's column with the values; null for rows without a value."""
        kind = _VALUES.get(self.type, pa.string())
        return pa.field(f"field_{self.number}", pa.list_(kind) if self.is_multi else kind)


def read_tags(table: Path, versions: Mapping[str, int], columns: ColumnCache | None = None) -> list[TagDefinition]:
    """Return the tags of a generation, oldest first.

    Args:
        table: folder of the dataset's media table.
        versions: versions of the generation's tables, by name.
        columns: cache of small tables.
    """
    return [TagDefinition(**row) for row in _read(table, versions, TAGS, columns)]


def write_tags(table: Path, tags: Sequence[TagDefinition]) -> int:
    """Write all tags of a dataset, sync them to disk, and return the new version of their table."""
    return _write(table, TAGS, [asdict(tag) for tag in tags], _TAGS_SCHEMA)


def read_fields(table: Path, versions: Mapping[str, int], columns: ColumnCache | None = None) -> list[FieldDefinition]:
    """Return the custom fields of a generation, oldest first; for arguments see :func:`read_tags`."""
    rows = _read(table, versions, FIELDS, columns)
    return [FieldDefinition(**{**row, "type": FieldType(row["type"])}) for row in rows]


def write_fields(table: Path, fields: Sequence[FieldDefinition]) -> int:
    """Write all custom fields of a dataset, sync them to disk, and return the new version of their table."""
    return _write(table, FIELDS, [asdict(field) for field in fields], _FIELDS_SCHEMA)


def tags_of(media: Media) -> list[TagDefinition]:
    """Return the tags of the media's generation, oldest first."""
    return read_tags(media.table.path, media.generation.tables, media.columns)


def fields_of(media: Media) -> list[FieldDefinition]:
    """Return the custom fields of the media's generation, oldest first."""
    return read_fields(media.table.path, media.generation.tables, media.columns)


def stored_fields(media: Media) -> list[FieldDefinition]:
    """Return the custom fields that have a column in the table: those that were ever set on some row."""
    present = set(media.table.schema.names)
    return [field for field in fields_of(media) if field.column.name in present]


def tag_names(tags: Sequence[TagDefinition]) -> pa.StringArray:
    """Return the names of tags by number; null for numbers of deleted tags."""
    names: list[str | None] = [None] * (max((tag.number for tag in tags), default=-1) + 1)
    for tag in tags:
        names[tag.number] = tag.name
    return pa.array(names, pa.string())


def tag_numbers(tags: Sequence[TagDefinition]) -> dict[str, int]:
    """Return the numbers of tags by name and by id."""
    return {tag.name: tag.number for tag in tags} | {tag.tag_id: tag.number for tag in tags}


def _read(table: Path, versions: Mapping[str, int], name: str, columns: ColumnCache | None) -> list[dict[str, Any]]:
    if name not in versions:
        return []
    if columns is not None:
        return columns.rows(_path(table, name), versions[name])
    rows: list[dict[str, Any]] = small_table(_path(table, name), versions[name], _SCHEMAS[name].names).to_pylist()
    return rows


def _write(table: Path, name: str, rows: list[dict[str, Any]], schema: pa.Schema) -> int:
    path = _path(table, name)
    version = tables.replace(path, [pa.RecordBatch.from_pylist(rows, schema=schema)], schema)
    tables.sync(path)
    return version


def _path(table: Path, name: str) -> Path:
    return table.with_name(f"{name}.lance")
