"""Media as columns of the Parquet export."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.core.arrays import RowIds
from framedex.core.ids import Kind, group_prefix
from framedex.editable_values import editable_values
from framedex.export.locations import file_paths, image_names, media_urls, source_paths, uris
from framedex.export.user_edits import TAG_DATES, custom_fields, edited_column, stored_name
from framedex.issue_types import DUPLICATES as DUPLICATE_ISSUE
from framedex.issue_types import IssueType, issue_types, valued_types
from framedex.records import CLUSTER_LEVELS, DUPLICATE_LEVELS
from framedex.storage.condition import Condition
from framedex.storage.definitions import TAGS
from framedex.storage.media import LOCATION, Media
from framedex.storage.media_rows import BOX, CLUSTERS, CONTENT, DUPLICATES, MODEL_CAPTION, N_PAGES, OF_RANGE, OF_VIDEOS

ISSUE_STRUCT = pa.struct(
    [
        pa.field("issue_type", pa.string()),
        pa.field("confidence", pa.float32()),
        pa.field("duplicate_group_id", pa.string()),
        pa.field("duplicate_threshold", pa.float32()),
    ]
)
EXPORTED = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("image_filename", pa.string()),
        pa.field("file_path", pa.string()),
        pa.field("file_size_bytes", pa.int64()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("uniqueness_score", pa.float32()),
        pa.field("cluster_id", pa.string()),
        *(each.field for each in editable_values().values() if each.from_source),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("issues", pa.list_(ISSUE_STRUCT)),
        pa.field("media_type", pa.string()),
        pa.field("video_id", pa.string()),
        pa.field("video_name", pa.string()),
        pa.field("frame_number", pa.int64()),
        pa.field("frame_timestamp", pa.float64()),
        *(each.field for each in editable_values().values() if not each.from_source),
    ]
)
"""Columns of ``metadata.parquet``. ``cluster_id`` is that of the finest level; ``frame_timestamp`` is in seconds."""
ON_REQUEST = pa.schema([pa.field("file_name", pa.string()), pa.field("path", pa.string()), CONTENT, *OF_RANGE, N_PAGES])
"""Columns on request: the last part of the path, the path relative to the source, the kind of content, the values
that are shown black and white, and the number of pages or frames in the file.
"""
OF_BOXES = pa.schema(
    [
        pa.field("parent_id", pa.string()),
        pa.field("label", pa.string()),
        pa.field("confidence", pa.float64()),
        pa.field("source", pa.string()),
        pa.field("bbox", pa.list_(pa.float64(), len(BOX))),
    ]
)
"""Additional columns of objects. ``bbox`` is x, y, width and height in pixels of the media item ``parent_id``."""
URL = pa.field("url", pa.string())
"""The URL of the image; a column of the JSON export only."""
RESERVED = frozenset(
    {
        *EXPORTED.names,
        *ON_REQUEST.names,
        URL.name,
        TAG_DATES.name,
        MODEL_CAPTION.name,
        *CLUSTERS,
        "embedding",
        "objects",
        "n_objects",
    }
)
"""Column names that a custom field cannot have, in addition to the names of issue types."""
_OF_OBJECTS = frozenset({*OF_BOXES.names, "object_id", "original_id", "iscrowd", "truncated", "difficult"})
_VALUE_OF = b"issue_value"  # metadata that marks the columns of values
_BLOCK_ROWS = 32_768
_BLOCK_BYTES = 32 * 2**20
_HEX = np.frombuffer("".join(f"{octet:02x}" for octet in range(256)).encode(), np.uint16)
"""The two hexadecimal digits of each byte value."""


def _file_names(_media: Media, block: pa.Table) -> Any:
    """Return the last parts of the paths."""
    return pc.replace_substring_regex(column(block, "path"), r"(?s)^(?:.*/)?([^/]+)/*$", r"\1")


def _file_paths(media: Media, block: pa.Table) -> Any:
    return file_paths(media, block) if media.media_url is None else source_paths(media, block)


def _urls(media: Media, block: pa.Table) -> Any:
    return uris(media, block) if media.media_url is None else media_urls(media, block)


_PATHS: dict[str, Callable[[Media, pa.Table], Any]] = {
    "image_filename": image_names,
    "file_path": _file_paths,
    "file_name": _file_names,
    "url": _urls,
}


def value_fields(media: Media) -> list[pa.Field]:
    """Return a column for the values of each issue type, named like the type: float32, null for missing values.

    A type of a plugin can have the name of another column or of an older custom field: these come first.
    """
    fields = [] if media.parents is not None else custom_fields(media)
    taken = RESERVED | _OF_OBJECTS | {field.name for field in fields}
    return [
        pa.field(name, pa.float32(), metadata={_VALUE_OF: issue.column})
        for name, issue in valued_types().items()
        if name not in taken
    ]


def is_value(field: pa.Field) -> bool:
    """Return whether a column is one of :func:`value_fields`."""
    return _value_column(field) is not None


def _value_column(field: pa.Field) -> str | None:
    """Return the name of the stored column of an issue type's values; None for other columns."""
    name = (field.metadata or {}).get(_VALUE_OF)
    return None if name is None else name.decode()


def export_batches(media: Media, condition: Condition | RowIds, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield columns of the export, some ten thousand rows at a time."""
    for block in merge_blocks(media.blocks(condition, required_columns(media, schema))):
        yield pa.table([column_of(media, block, field) for field in schema], schema=schema)


def merge_blocks(blocks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Merge blocks into larger ones, which cost less in total. Long texts limit the number of rows."""
    buffer: list[pa.Table] = []
    rows = size = 0
    for block in blocks:
        for part in _parts(block):
            buffer.append(part)
            rows, size = rows + len(part), size + part.nbytes
            if rows >= _BLOCK_ROWS or size >= _BLOCK_BYTES:
                yield pa.concat_tables(buffer)
                buffer, rows, size = [], 0, 0
    if buffer:
        yield pa.concat_tables(buffer)


def _parts(block: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, min(_BLOCK_ROWS, len(block) * _BLOCK_BYTES // max(block.nbytes, 1)))
    yield from (block.slice(start, rows) for start in range(0, len(block), rows))


_STORED = {
    "image_filename": (*LOCATION, *OF_VIDEOS.names, "media_id"),
    "file_path": LOCATION,
    "url": (*LOCATION, "frame_time_s", "media_id"),
    "media_type": ("kind",),
    "file_name": ("path",),
    "video_name": ("path", "kind"),
    "frame_timestamp": ("frame_time_s",),
    "file_size_bytes": ("size_bytes",),
    "uniqueness_score": ("uniqueness",),
    "cluster_id": ("cluster_0",),
    "tags": (TAGS,),
    "label": ("labels",),
    "bbox": BOX,
}


def required_columns(media: Media, schema: pa.Schema) -> list[str]:
    """Return the stored columns that a schema depends on. Columns of edits exist after the first edit only."""
    values = {name for field in schema if (name := _value_column(field)) is not None}
    names = {stored_name(field) or field.name for field in schema if _value_column(field) is None}
    stored = values | {stored for name in names for stored in _STORED.get(name, (name,))}
    if "issues" in names:
        stored |= {DUPLICATES[0], *(issue.confidence_column for issue in issue_types().values())}
    without = frozenset() if media.has_videos else frozenset(OF_VIDEOS.names)
    return sorted((stored & set(media.table.schema.names)) - without) or ["media_id"]


def column_of(media: Media, block: pa.Table, field: pa.Field) -> Any:
    """Return a column, computed from a block with the stored columns of :func:`required_columns`."""
    if (edited := edited_column(media, block, field)) is not None:
        return edited
    if (stored := _value_column(field)) is not None:
        return block[stored] if stored in block.column_names else pa.nulls(len(block), field.type)
    match field.name:
        case name if name in _PATHS:
            return _PATHS[name](media, block)
        case "file_size_bytes" | "uniqueness_score" as name:
            return block[_STORED[name][0]]
        case "cluster_id":
            return group_ids(media, block, "cluster_0", Kind.CLUSTER, 0)
        case name if name in CLUSTERS:
            return group_ids(media, block, name, Kind.CLUSTER, CLUSTERS.index(name))
        case "labels":
            return _without_nulls(column(block, "labels"))
        case "issues":
            return _issues(media, block)
        case "label" | "bbox" as name:
            return _of_boxes(block, name)
        case "media_type" | "video_id" | "video_name" | "frame_number" | "frame_timestamp":
            return _of_videos(media, block, field)
        case name:  # a table of an older version may lack it
            return block[name] if name in block.column_names else pa.nulls(len(block), field.type)


def _of_videos(media: Media, block: pa.Table, field: pa.Field) -> Any:
    """Return a column about video frames. An image has the type ``image``, and nulls in all other columns."""
    if not media.has_videos:
        return pa.repeat("image", len(block)) if field.name == "media_type" else pa.nulls(len(block), field.type)
    if field.name == "media_type":
        return pc.fill_null(column(block, "kind"), "image")
    if field.name == "video_name":
        names = pc.replace_substring_regex(column(block, "path"), "(?s)^.*/", "")
        return pc.if_else(pc.is_valid(column(block, "kind")), names, None)
    return block["frame_time_s" if field.name == "frame_timestamp" else field.name]


def _without_nulls(lists: pa.ListArray) -> pa.ListArray:
    """Return lists with an empty list in the place of each null (``coalesce`` takes ten times as long for lists)."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = np.concatenate([[0], np.cumsum(lengths.to_numpy())])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), lists.flatten())


def _of_boxes(block: pa.Table, name: str) -> pa.Array:
    """Return a column about boxes that is not stored under its name."""
    if name == "label":
        return _first_values(column(block, "labels"))
    corners = np.stack([block[side].to_numpy() for side in BOX], axis=1)
    return pa.FixedSizeListArray.from_arrays(pa.array(corners.ravel()), len(BOX))


def _first_values(lists: pa.ListArray) -> pa.Array:
    """Return the first value of each list; null for empty lists and nulls."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    starts = np.cumsum(lengths) - lengths
    return lists.flatten().take(pa.array(starts, mask=lengths == 0))


def group_ids(media: Media, block: pa.Table, name: str, kind: Kind, level: int) -> pa.Array:
    """Return the group ids for a column of group numbers; null for null numbers."""
    numbers = column(block, name)
    has_number = (
        np.ones(len(block), bool) if not numbers.null_count else pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    )
    return _ids(group_prefix(media.dataset_id, kind, level), numbers.drop_null().to_numpy(), has_number)


def _ids(prefix: str, numbers: npt.NDArray[np.int32], has_number: npt.NDArray[np.bool_]) -> pa.StringArray:
    """Return a prefix and eight hexadecimal digits for each number; null in rows without a number."""
    octets = np.ascontiguousarray(numbers, ">u4").view(np.uint8).reshape(-1, 4)
    text = np.empty((len(numbers), len(prefix) + 8), np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), np.uint8)
    text[:, len(prefix) :] = _HEX[octets].view(np.uint8)
    ends = np.zeros(len(has_number) + 1, np.int32)
    np.cumsum(has_number, out=ends[1:])
    ends *= text.shape[1]
    bits = None if len(numbers) == len(has_number) else pa.py_buffer(np.packbits(has_number, bitorder="little"))
    return pa.StringArray.from_buffers(len(has_number), pa.py_buffer(ends), pa.py_buffer(text), bits)


def _issues(media: Media, block: pa.Table) -> pa.ListArray:
    """Return the issues of each row as a list of structs, in the order of their types."""
    types = list(issue_types().values())
    row, kind, sure = _issue_entries(block, types)
    is_duplicate = kind == types.index(DUPLICATE_ISSUE)
    numbers = column(block, DUPLICATES[0]).take(pa.array(row[is_duplicate]))
    in_group = is_duplicate.copy()
    in_group[is_duplicate] = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    structs = pa.StructArray.from_arrays(
        [
            pa.array([issue.name for issue in types], pa.string()).take(pa.array(kind)),
            pa.array(sure, pa.float32()),
            _ids(group_prefix(media.dataset_id, Kind.DUPLICATE_GROUP, 0), numbers.drop_null().to_numpy(), in_group),
            pa.array(np.full(len(kind), DUPLICATE_LEVELS[0], np.float32), mask=~is_duplicate),
        ],
        fields=list(ISSUE_STRUCT),
    )
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)


def _issue_entries(
    block: pa.Table, types: Sequence[IssueType]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return (row, number of the type, confidence) of each issue, by row and then by type."""
    rows, kinds, sure = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for kind, name in enumerate(issue.confidence_column for issue in types):
        # A dataset that was indexed before an issue type existed has no column for it. Most types are rare, and most
        # blocks have no issue of them.
        if name not in block.column_names or block[name].null_count == len(block):
            continue
        values = _floats(block[name])
        positions = np.flatnonzero(~np.isnan(values))
        rows.append(positions)
        kinds.append(np.full(len(positions), kind))
        sure.append(values[positions])
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate(kinds)[order], np.concatenate(sure)[order]


def _floats(column: Any) -> npt.NDArray[np.float32]:
    return np.asarray(column.to_numpy(), dtype=np.float32)


assert len(CLUSTERS) == CLUSTER_LEVELS
