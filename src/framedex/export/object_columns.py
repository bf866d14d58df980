"""Objects as columns of exports."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.export.columns import EXPORTED, ISSUE_STRUCT, OF_BOXES, URL, column_of, required_columns
from framedex.export.locations import media_urls, uris
from framedex.storage.media import LOCATION, Media
from framedex.storage.media_rows import BOX, OF_VIDEOS

OBJECT_ID = pa.field("object_id", pa.string())
LABEL, BBOX, CONFIDENCE = map(OF_BOXES.field, ("label", "bbox", "confidence"))
"""Confidences are 0 to 1 for objects of a detector and of annotations with a confidence, otherwise null."""
ORIGINAL_ID = pa.field("original_id", pa.string())
FLAGS = tuple(pa.field(name, pa.bool_()) for name in ("iscrowd", "truncated", "difficult"))
ATTRIBUTES = pa.field("attributes", pa.string())
"""Further names and values as a JSON object, see :mod:`framedex.annotations.attributes`; null for none."""
SHAPE = (pa.field("segmentation", pa.string()), pa.field("keypoints", pa.string()), pa.field("area", pa.float64()))
"""Outline or mask, and key points, as :class:`framedex.annotations.shapes.ObjectShape` has them."""
OBJECT = pa.schema(
    [
        OBJECT_ID,
        LABEL,
        BBOX,
        CONFIDENCE,
        OF_BOXES.field("source"),
        ORIGINAL_ID,
        *FLAGS,
        *SHAPE,
        ATTRIBUTES,
        pa.field("uniqueness_score", pa.float32()),
        pa.field("cluster_id", pa.string()),
        pa.field("caption", pa.string()),
        pa.field("issues", pa.list_(ISSUE_STRUCT)),
    ]
)
"""Fields of each object of an image in ``metadata.parquet``; ``cluster_id`` is that of the finest object level."""
_OF_MEDIA = (
    "media_type",
    "video_id",
    "video_name",
    "frame_number",
    "frame_timestamp",
)
OBJECT_ROWS = pa.schema(
    [
        OBJECT_ID,
        pa.field("media_id", pa.string()),
        pa.field("image_filename", pa.string()),
        pa.field("file_path", pa.string()),
        *(field for field in OBJECT if field != OBJECT_ID),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        *map(EXPORTED.field, _OF_MEDIA),
    ]
)
"""Columns of ``metadata.parquet`` in an export of objects, one row for each object.

``media_id``, ``image_filename`` and ``file_path`` are those of the image. ``width`` and ``height`` are those of the
box, in whole pixels.
"""
OBJECT_ITEM = pa.schema([*OBJECT, URL])
"""Fields of each object in the JSON export; the URL is that of the image, with the box."""

_STORED = {
    "object_id": ("media_id",),
    "media_id": ("parent_id",),
    "url": (*LOCATION, "frame_time_s", "media_id", *BOX),
    "image_filename": (*LOCATION, *OF_VIDEOS.names, "parent_id", "media_id"),
}


def stored_columns(objects: Media, schema: pa.Schema) -> list[str]:
    """Return the stored columns that columns of objects depend on."""
    own = {name for field in schema for name in _STORED.get(field.name, ())}
    others = pa.schema([field for field in schema if field.name not in _STORED])
    without = frozenset() if objects.has_videos else frozenset(OF_VIDEOS.names)
    return sorted((own - without) | set(required_columns(objects, others)))


def object_columns(objects: Media, rows: pa.Table, schema: pa.Schema) -> list[pa.Array]:
    """Return columns of objects, each as one array.

    Args:
        objects: the dataset's objects.
        rows: with the columns of :func:`stored_columns`.
        schema: some columns of :data:`OBJECT_ROWS` and :data:`OBJECT_ITEM`.
    """
    return [_in_one_piece(_column(objects, rows, field)).cast(field.type) for field in schema]


def _in_one_piece(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _column(objects: Media, rows: pa.Table, field: pa.Field) -> Any:
    match field.name:
        case "object_id":
            return rows["media_id"]
        case "media_id":
            return rows["parent_id"]
        case "url":
            return _urls(objects, rows)
        case "image_filename":  # the image's name, which may contain a part of its id
            position = rows.schema.get_field_index("media_id")
            return column_of(objects, rows.set_column(position, "media_id", rows["parent_id"]), field)
        case "segmentation" | "keypoints" | "area" | "attributes" as name if name not in rows.column_names:
            return pa.nulls(len(rows), field.type)  # a table of an older version
        case _:
            return column_of(objects, rows, field)


def _urls(objects: Media, rows: pa.Table) -> pa.Array:
    """Return the URIs of the images, with the whole pixels that the boxes touch (Media Fragments URI 1.0, 4.2.2)."""
    if objects.media_url is not None:
        return media_urls(objects, rows)
    x, y, width, height = (rows[name].to_numpy() for name in BOX)
    left, top = (np.floor(np.maximum(start, 0)) for start in (x, y))
    edges = (left, top, np.ceil(x + width) - left, np.ceil(y + height) - top)
    box = pc.binary_join_element_wise(*(pc.cast(pa.array(edge.astype(np.int64)), pa.string()) for edge in edges), ",")
    between: Any = "#xywh="
    if objects.has_videos:
        between = pc.if_else(pc.is_valid(column(rows, "frame_time_s")), "&xywh=", "#xywh=")
    return pc.binary_join_element_wise(uris(objects, rows), between, box, "")
