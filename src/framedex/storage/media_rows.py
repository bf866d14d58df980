"""The columns of the media table and of the objects table."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from framedex.errors import Fault
from framedex.issue_types import issue_types, measure_columns
from framedex.records import CLUSTER_LEVELS, DUPLICATE_LEVELS

CLUSTERS = tuple(f"cluster_{level}" for level in range(CLUSTER_LEVELS))
DUPLICATES = tuple(f"duplicate_{level}" for level in range(len(DUPLICATE_LEVELS)))
NEAR = "near"
"""The column of groups of images that are alike, whether they are copies or not: bursts, frames, renders of a scene."""
NEAR_SIMILARITY = 0.95
"""The similarity of pairs that are alike and were not shown to be copies: below all levels."""
GROUPS = (NEAR, *DUPLICATES)
"""The columns of groups, from the widest to the closest ones."""
GROUP_LEVELS = (NEAR_SIMILARITY, *DUPLICATE_LEVELS)
"""Their similarities where pairs of copies are known."""
ALIKE_LEVELS = (DUPLICATE_LEVELS[0], *DUPLICATE_LEVELS)
"""Their similarities in other tables, in which all that are alike are duplicates."""
NEIGHBOURS = 20
"""Number of stored neighbours per row."""
NO_EMBEDDING = 0
"""The cluster number of media without an embedding, at every level; real clusters count from 1."""


VIDEO_FRAME, VIDEO = "video_frame", "video"
"""Values of ``kind`` for a frame, and for a damaged video, whose ``error`` says what is lost; null for images."""
OF_VIDEOS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("video_id", pa.string()),
        pa.field("frame_number", pa.int64()),
        pa.field("frame_time_s", pa.float64()),
    ]
)
"""Columns about frames, null for images; older tables without videos lack them.

``frame_number`` counts from 0 in the order of presentation, ``frame_time_s`` is the presentation time in seconds from
the start. The path, size, time and hash of a frame are those of its video.
"""
DAMAGED: Fault = "damaged"
"""The value of ``fault`` for files whose content is damaged."""
OF_FAULTS = pa.schema([pa.field("fault", pa.string()), pa.field("gaps", pa.string())])
"""Columns about files that are not shown, or not wholly; tables of older versions lack them.

``fault`` is the kind of the reason, a :data:`framedex.errors.Fault`; null for a sound file. ``gaps`` is the description
of damage of a file that was decoded nevertheless; of others, ``error`` has the reason.
"""
CONTENT = pa.field("content", pa.string())
"""The kind of content of an image, a :class:`framedex.issue_types.Content`; null for what was not measured, as in
tables of older versions.
"""
OF_RANGE = pa.schema([pa.field("shown_from", pa.float64()), pa.field("shown_to", pa.float64())])
"""The values that are shown black and white, of images of more than 8 bits; null where values are shown as they are.

Tables of older versions lack them.
"""
N_PAGES = pa.field("n_pages", pa.int32())
"""The number of pages or frames in the file of an image, of which the first is read; null for one, and for what is no
image. Tables of older versions lack it.
"""
MODEL_CAPTION = pa.field("model_caption", pa.string())
"""The caption written by a model, null for none; only captioned tables have the column.

A caption counts as the model's while it equals this value, so any edit of the caption ends that.
"""

SOURCE_ID = pa.field("source_id", pa.string())
"""The id of the image in a COCO file, as text, null for none; only tables of images with ids have the column."""
ID_LOCATION = pa.field("id_location", pa.binary())
"""The text from which the id of a media item, or of its video, is computed where it is not its location; else null.

Only tables of which a file was moved have the column: the id of a file stays when the file moves. Bytes, as paths are.
"""
MISSING_SINCE = pa.field("missing_since", pa.timestamp("us", tz="UTC"))
"""When a file was first marked as missing; null for files that were there. Only tables with such files have it."""
COPY_DESCRIPTOR, PANEL_DESCRIPTORS, LOCAL_FEATURES = "copy_descriptor", "panel_descriptors", "local_features"
"""Columns for finding copies: the copy descriptor of the whole image, where it is not the embedding, those of its
panels, one after another, and the bytes of its local features (:mod:`framedex.analysis.local_features`); null for none.
Tables of vectors, of objects and of older versions lack them.
"""
BOX = ("box_x", "box_y", "box_width", "box_height")
OF_OBJECTS = pa.schema(
    [
        pa.field("parent_id", pa.string(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in BOX),
        pa.field("confidence", pa.float64()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("original_id", pa.string()),
        pa.field("iscrowd", pa.bool_(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("difficult", pa.bool_(), nullable=False),
        pa.field("segmentation", pa.string()),
        pa.field("keypoints", pa.string()),
        pa.field("area", pa.float64()),
        pa.field("attributes", pa.string()),
    ]
)
"""Columns of objects in addition to those of media.

``parent_id`` is the media item that contains the box; ``box_x`` to ``box_height`` are in its pixels. ``source`` is the
annotation format, or the id of the model that detected the object. ``media_id`` is the object's own id, and ``labels``
has its only label. ``segmentation``, ``keypoints`` and ``area`` are those of
:class:`framedex.annotations.shapes.ObjectShape`; ``attributes`` is a JSON object, see
:mod:`framedex.annotations.attributes`. Tables of older versions lack these four. ``width`` and ``height`` are those
of the crop in whole pixels, and measures and embedding are computed from the crop. The location of the file and the
frame of a video are copied from the media item.
"""

LOCATION_OF_OBJECTS = (
    "path", "path_raw", "root", "batch", "size_bytes", "modified_at", "content_hash", "format", *OF_VIDEOS.names,
    *OF_RANGE.names, N_PAGES.name,
)  # fmt: skip
"""The columns that an object copies from its media item: the location of the pixels."""


def object_schema(dimension: int) -> pa.Schema:
    """Return the columns written once for each object; *dimension* is the length of the embeddings."""
    return pa.schema([*media_schema(dimension), *OF_OBJECTS])


def copy_schema(dimension: int, *, is_embedding: bool) -> pa.Schema:
    """Return the columns for finding copies.

    Args:
        dimension: of a copy descriptor.
        is_embedding: whether the embedding of an image is its copy descriptor.
    """
    whole = () if is_embedding else (pa.field(COPY_DESCRIPTOR, pa.list_(pa.float32(), dimension)),)
    panels, features = pa.field(PANEL_DESCRIPTORS, pa.list_(pa.float32())), pa.field(LOCAL_FEATURES, pa.binary())
    return pa.schema([*whole, panels, features])


def media_schema(dimension: int, *, of_videos: bool = True, of_copies: pa.Schema | None = None) -> pa.Schema:
    r"""Return the columns that ingestion writes once for each row.

    ``path`` is relative to source root number ``root``, or a URI where that is null. Bytes that are no UTF-8 are
    shown as ``\\xNN`` there, and ``path_raw`` then holds the name as the file system has it.

    Args:
        dimension: length of the embeddings.
        of_videos: include the columns :data:`OF_VIDEOS`.
        of_copies: include these columns, of :func:`copy_schema`.
    """
    return pa.schema(
        [
            pa.field("media_id", pa.string(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("path_raw", pa.binary()),
            pa.field("root", pa.int32()),
            pa.field("batch", pa.int32(), nullable=False),
            pa.field("size_bytes", pa.int64()),
            pa.field("modified_at", pa.timestamp("us", tz="UTC")),
            pa.field("content_hash", pa.binary(16)),
            pa.field("format", pa.string()),
            pa.field("width", pa.int32()),
            pa.field("height", pa.int32()),
            pa.field("labels", pa.list_(pa.string())),
            pa.field("caption", pa.string()),
            pa.field("error", pa.string()),
            *OF_FAULTS,
            CONTENT,
            *OF_RANGE,
            N_PAGES,
            *(pa.field(name, pa.float32()) for name in measure_columns()),
            *(OF_VIDEOS if of_videos else ()),
            *(of_copies or ()),
            pa.field("embedding", pa.list_(pa.float32(), dimension)),
        ]
    )


STANDING = (
    "keep_detail", "keep_surplus", "keep_altered", "keep_step", "keep_colour", "keep_metadata", "keep_derived",
    "keep_recompressed", "keep_distance", "keep_sources", "keep_sharpness",
    "keep_closest", "keep_cropped", "keep_doubt", "keep_clipped",
)  # fmt: skip
"""Columns of members of near-duplicate groups that decide which one is the original; null for other rows.

They are the values of :class:`framedex.analysis.fidelity.Standing` and :class:`framedex.analysis.fidelity.Fidelity`,
``keep_colour`` the share of colour values, 0 for grey images, ``keep_sharpness`` the acutance, but at most that of the
upper half of the copies, and ``keep_metadata``, ``keep_derived``, ``keep_recompressed`` and ``keep_cropped``, whether
it is a part of another member, 1 or 0. ``keep_clipped`` is the share of blocks in which values were cut off; tables of
older versions lack it.
"""


def index_schema() -> pa.Schema:
    """Return the columns that indexing writes: cluster and group numbers, scores, and a confidence for each issue.

    Each indexing replaces them. The last four store the neighbour graph for rows that are added later. They refer to
    rows by position in the table. ``original`` is the first row with the same embedding; rows that are not their own
    original have null in the other three.
    """
    return pa.schema(
        [
            *(pa.field(name, pa.int32()) for name in CLUSTERS),
            *(pa.field(name, pa.int32()) for name in GROUPS),
            pa.field("duplicate_similarity", pa.float32()),
            pa.field("uniqueness", pa.float32()),
            pa.field("outlier_distance", pa.float32()),
            *(pa.field(name, _TEXTS.get(name, pa.float32())) for name in _computed_columns()),
            *(pa.field(each.confidence_column, pa.float32()) for each in issue_types().values()),
            *(pa.field(name, pa.float32()) for name in STANDING),
            pa.field("original", pa.int32()),
            pa.field("cell", pa.int32()),
            pa.field("neighbours", pa.list_(pa.int32(), NEIGHBOURS)),
            pa.field("neighbour_similarity", pa.list_(pa.float32(), NEIGHBOURS)),
        ]
    )


_TEXTS = {"suggested_label": pa.string()}
"""Types of the computed columns that are not numbers."""


def _computed_columns() -> list[str]:
    return [name for each in issue_types().values() for name in each.computed_columns]


def judged_columns() -> list[str]:
    """Return the index columns that are recomputed whenever rows change, from values and thresholds."""
    return [*_computed_columns(), *(each.confidence_column for each in issue_types().values())]


def index_columns_of(names: Iterable[str]) -> list[str]:
    """Return the columns of a table that indexing wrote, including those of issue types no longer installed."""
    written = set(index_schema().names)
    return [name for name in names if name in written or name.startswith("issue_")]


def text_of_path(path: str) -> tuple[str, bytes | None]:
    """Return a path as valid UTF-8 text, and its raw bytes if the text alone does not restore it."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), raw


def path_of_text(text: str, raw: bytes | None) -> str:
    """Return the original path from the result of :func:`text_of_path`."""
    return text if raw is None else os.fsdecode(raw)


def time_of_ns(nanoseconds: int) -> datetime | None:
    """Return a file time as datetime; None for times outside the range of datetime."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def file_time_us(nanoseconds: int) -> int:
    """Return a file time as :func:`time_of_ns` stores it, in microseconds since 1970; -1 if out of range."""
    time = time_of_ns(nanoseconds)
    return -1 if time is None else (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def is_relative(uri: str) -> bool:
    """Return whether a URI is a relative path: without a scheme and not absolute."""
    scheme, colon, _ = uri.partition(":")
    return not (uri.startswith(("/", "\\")) or (colon and len(scheme) > 1 and scheme.replace("+", "").isalnum()))
