"""Media as rows of a table in memory: the columns of the Parquet export, and those for work in Python."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.core.arrays import RowIds
from framedex.core.ids import Kind
from framedex.errors import InvalidInput
from framedex.export.columns import (
    EXPORTED,
    OF_BOXES,
    ON_REQUEST,
    RESERVED,
    column_of,
    group_ids,
    merge_blocks,
    required_columns,
    value_fields,
)
from framedex.export.user_edits import custom_fields
from framedex.issue_types import issue_types, valued_types
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.media_rows import CLUSTERS, DUPLICATES

GROUP = pa.field("duplicate_group_id", pa.string(), metadata={b"computed": b"group"})
"""The near-duplicate group at the lowest similarity; null for media in no group."""
KEEP = pa.field("keep", pa.bool_(), metadata={b"computed": b"keep"})
"""Whether a member is the one of its group to keep; null for media in no group."""
_FLAG_OF = b"issue_flag"  # metadata that marks the columns of flags
_FEW = 10  # rows that are read by themselves
_BLOCK_ROWS = 4096
_DENSE = 4  # rows in the files for each row of a page that is read from them
KeptIds = Callable[[pa.Array], pa.Array]
"""Returns the media ids of the members to keep in near-duplicate groups, at least in those with some numbers."""


def all_fields(media: Media) -> list[pa.Field]:
    """Return the columns that a table has by default: all except the embedding and those on request."""
    of_objects = media.parents is not None
    own = [] if of_objects else custom_fields(media)
    # A custom field of an older version may have the name of a column that is new.
    taken = {field.name for field in own}
    new = [field for field in (*_flags(), GROUP, KEEP) if field.name not in taken]
    clusters = [pa.field(name, pa.string()) for name in CLUSTERS]
    return [*EXPORTED, *clusters, *value_fields(media), *new, *(OF_BOXES if of_objects else own)]


def _flags() -> list[pa.Field]:
    """Return a column for each issue type: whether a row has the issue."""
    return [
        pa.field(flag_name(name), pa.bool_(), metadata={_FLAG_OF: issue.confidence_column})
        for name, issue in issue_types().items()
    ]


def flag_name(issue_type: str) -> str:
    """Return the name of the column that says whether a row has an issue of a type."""
    return f"is_{issue_type}_issue"


def reserved_names() -> frozenset[str]:
    """Return the column names that a new custom field cannot have."""
    return RESERVED | valued_types().keys() | {field.name for field in (*_flags(), GROUP, KEEP)}


def table_schema(media: Media, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of ``to_arrow``: the requested columns in order, or all columns except the embedding.

    Custom fields are fields of media; objects have none.

    Raises:
        InvalidInput: a column does not exist.
    """
    schema = all_fields(media)
    if columns is None:
        return pa.schema(schema)
    if isinstance(columns, str):
        raise InvalidInput(f"columns must be a list of names, as [{columns!r}], not the text {columns!r}")
    fields = {field.name: field for field in [*ON_REQUEST, media.table.schema.field("embedding"), *schema]}
    unknown = [name for name in columns if name not in fields]
    if unknown:
        names = dict.fromkeys(re.sub(r"^is_\w+_issue$", "is_<issue>_issue", field.name) for field in schema)
        raise InvalidInput(
            f"no columns {unknown!r}; there are: {', '.join(names)}, {', '.join(ON_REQUEST.names)}, embedding"
        )
    return pa.schema([fields[name] for name in columns])


def table_batches(
    media: Media, rows: Condition | RowIds, schema: pa.Schema, *, kept_ids: KeptIds
) -> Iterator[pa.Table]:
    """Yield the columns of a schema of :func:`table_schema`, some ten thousand rows at a time.

    Args:
        media: the media, or the objects.
        rows: a condition, for rows in the order of ingestion; or row ids, in their order.
        schema: the columns.
        kept_ids: called if the column ``keep`` is needed for members of groups, with the numbers of these.
    """
    for block in merge_blocks(_blocks(media, rows, columns_to_read(media, schema))):
        yield pa.table([table_column(media, block, field, kept_ids) for field in schema], schema=schema)


def _blocks(media: Media, rows: Condition | RowIds, columns: list[str]) -> Iterator[pa.Table]:
    """Return the stored columns of rows in blocks.

    Rows in another order than that of the table lie anywhere in its files. Reading a hundred of them takes as long as
    reading half a million values of the column, so the columns are cached for the next page. A page of rows that lie
    together is read from the files.
    """
    if isinstance(rows, Condition) or len(rows) <= _FEW or _lie_together(rows):
        return media.blocks(rows, columns)
    starts = range(0, len(rows), _BLOCK_ROWS)
    return (media.take(rows[start : start + _BLOCK_ROWS].tolist(), columns, keep=True) for start in starts)


def _lie_together(rows: RowIds) -> bool:
    """Return whether the rows of a page ascend with few others between them."""
    span = int(rows[-1]) - int(rows[0])
    return len(rows) <= _BLOCK_ROWS and 0 < span < _DENSE * len(rows) and bool((rows[1:] > rows[:-1]).all())


def columns_to_read(media: Media, schema: pa.Schema) -> list[str]:
    """Return the stored columns that columns of a table depend on."""
    plain = pa.schema([field for field in schema if not _stored(field)])
    stored = {name for field in schema for name in _stored(field)} & set(media.table.schema.names)
    return sorted({*stored, *required_columns(media, plain)})


def _stored(field: pa.Field) -> tuple[str, ...]:
    """Return the stored columns that a column depends on; none for the columns of the export."""
    if (flag := (field.metadata or {}).get(_FLAG_OF)) is not None:
        return (flag.decode(),)
    if field.equals(GROUP, check_metadata=True):
        return (DUPLICATES[0],)
    return (DUPLICATES[0], "media_id") if field.equals(KEEP, check_metadata=True) else ()


def table_column(media: Media, block: pa.Table, field: pa.Field, kept_ids: KeptIds) -> Any:
    """Return a column, computed from a block with its :func:`columns_to_read`; *kept_ids* is as for a whole table."""
    if not (stored := _stored(field)):
        return column_of(media, block, field)
    # An older table lacks the columns of newer issue types, and one without an index those of groups.
    has_values = stored[0] in block.column_names and block[stored[0]].null_count < len(block)
    if field.equals(GROUP, check_metadata=True):
        return (
            group_ids(media, block, stored[0], Kind.DUPLICATE_GROUP, 0)
            if has_values
            else pa.nulls(len(block), pa.string())
        )
    if field.equals(KEEP, check_metadata=True):
        return _keep(block, stored[0], kept_ids) if has_values else pa.nulls(len(block), pa.bool_())
    if not has_values:
        return pa.repeat(pa.scalar(value=False), len(block))
    return pc.fill_null(pc.invert(pc.is_nan(column(block, stored[0]))), fill_value=False)


def _keep(block: pa.Table, group: str, kept_ids: KeptIds) -> pa.Array:
    numbers = column(block, group)
    is_kept = pc.is_in(column(block, "media_id"), value_set=kept_ids(pc.unique(numbers.drop_null())))
    return pc.if_else(pc.is_valid(numbers), is_kept, None)
