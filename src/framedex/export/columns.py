"""Media as the columns of the Parquet export."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.errors import InvalidInput
from framedex.ids import Kind, group_prefix
from framedex.records import CLUSTER_LEVELS, DUPLICATE_LEVELS, Condition, IssueType
from framedex.storage.media import LOCATION, Media, RowIds
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, ISSUES

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
        pa.field("caption", pa.string()),
        pa.field("labels", pa.list_(pa.string())),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("issues", pa.list_(ISSUE_STRUCT)),
    ]
)
"""The columns of ``metadata.parquet``; ``cluster_id`` is that of the finest level."""
URL = pa.field("url", pa.string())
"""Where the picture is; a column of the JSON export only."""
_ISSUE_NAMES = np.array([issue.value for issue in IssueType])
_DUPLICATES = list(IssueType).index(IssueType.DUPLICATES)


def table_schema(media: Media, columns: Sequence[str] | None) -> pa.Schema:
    """Return the columns of ``to_arrow``: all but the embedding, or those asked for, in that order.

    Raises:
        InvalidInput: a column does not exist.
    """
    schema = EXPORTED
    for name in CLUSTERS:
        schema = schema.append(pa.field(name, pa.string()))
    embedding = media.table.schema.field("embedding")
    if columns is None:
        return schema
    known = {field.name: field for field in [*schema, embedding]}
    unknown = [name for name in columns if name not in known]
    if unknown or isinstance(columns, str):
        raise InvalidInput(f"no columns {unknown or columns!r}; there are: {', '.join(known)}")
    return pa.schema([known[name] for name in columns])


def export_batches(media: Media, condition: Condition | RowIds, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield media as the columns of a schema made by :func:`table_schema`, some thousand rows at a time."""
    needed = _needed(schema.names)
    for block in media.blocks(condition, needed):
        yield pa.table([_column(media, block, field) for field in schema], schema=schema)


_STORED = {
    "image_filename": (*LOCATION, "media_id"),
    "file_path": LOCATION,
    "url": LOCATION,
    "file_size_bytes": ("size_bytes",),
    "uniqueness_score": ("uniqueness",),
    "cluster_id": ("cluster_0",),
    "tags": ("media_id",),
    "issues": (*ISSUES, DUPLICATES[0]),
}


def _needed(names: Sequence[str]) -> list[str]:
    return sorted({stored for name in names for stored in _STORED.get(name, (name,))}) or ["media_id"]


def _column(media: Media, block: pa.Table, field: pa.Field) -> Any:
    match field.name:
        case "image_filename":
            return pa.array(image_names(media, block), pa.string())
        case "file_path":
            return pa.array([_shown_path(media, row) for row in _locations(block)], pa.string())
        case "url":
            return pa.array([media.uri_of(row) for row in _locations(block)], pa.string())
        case "file_size_bytes":
            return block["size_bytes"]
        case "uniqueness_score":
            return block["uniqueness"]
        case "cluster_id":
            return _group_ids(media, block["cluster_0"], Kind.CLUSTER, 0)
        case name if name in CLUSTERS:
            return _group_ids(media, block[name], Kind.CLUSTER, CLUSTERS.index(name))
        case "tags":
            return pa.array([[]] * len(block), field.type)
        case "labels":
            return pc.coalesce(block["labels"], pa.scalar([], pa.list_(pa.string())))
        case "issues":
            return _issues(media, block)
        case name:
            return block[name]


def _locations(block: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = block.select(LOCATION).to_pylist()
    return rows


def _shown_path(media: Media, row: dict[str, Any]) -> str:
    path = media.file_of(row) or row["path"]
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def image_names(media: Media, block: pa.Table) -> list[str]:
    """Return the pictures' names in an export's ``images/`` folder: their paths within the source, which differ."""
    prefix = len(media.roots) > 1
    names = []
    for row, media_id in zip(_locations(block), block["media_id"].to_pylist(), strict=True):
        name = _image_name(row, media_id)
        names.append(f"source-{row['root']}/{name}" if prefix else name)
    return names


def _image_name(row: dict[str, Any], media_id: str) -> str:
    path = row["path"]
    parts = [part for part in (path.partition("://")[2] or path).split("/") if part not in ("", ".", "..")]
    name = "/".join(parts)
    if name == path and row["path_raw"] is None:
        return name
    # Other paths may have been shortened to the same name; the id keeps them apart.
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{media_id[:8]}.{suffix}" if dot and "/" not in suffix else f"{name}-{media_id[:8]}"


def _group_ids(media: Media, numbers: Any, kind: Kind, level: int) -> pa.Array:
    prefix = group_prefix(media.dataset_id, kind, level)
    return pa.array(
        [None if number is None else f"{prefix}{number:08x}" for number in numbers.to_pylist()], pa.string()
    )


def _issues(media: Media, block: pa.Table) -> pa.ListArray:
    """Return the issues of each row as a list of structs, without a Python object for rows that have none."""
    sure = np.stack([_floats(block[name]) for name in ISSUES], axis=1)
    row, kind = np.nonzero(~np.isnan(sure))
    group = block[DUPLICATES[0]].to_numpy()
    prefix = group_prefix(media.dataset_id, Kind.DUPLICATE_GROUP, 0)
    is_duplicate = kind == _DUPLICATES
    structs = pa.StructArray.from_arrays(
        [
            pa.array(_ISSUE_NAMES[kind]),
            pa.array(sure[row, kind], pa.float32()),
            pa.array(
                [f"{prefix}{int(group[r]):08x}" if d else None for r, d in zip(row, is_duplicate, strict=True)],
                pa.string(),
            ),
            pa.array([DUPLICATE_LEVELS[0] if d else None for d in is_duplicate], pa.float32()),
        ],
        fields=list(ISSUE_STRUCT),
    )
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)


def _floats(column: Any) -> npt.NDArray[np.float32]:
    return np.asarray(column.to_numpy(), dtype=np.float32)


assert len(CLUSTERS) == CLUSTER_LEVELS
