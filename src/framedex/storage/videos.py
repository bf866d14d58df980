"""The table of a dataset's videos, with one row for each video. Their frames are rows of the media table."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage import tables
from framedex.storage.table_versions import Table

VIDEOS = "videos"
"""Name of the table in a generation."""
SCHEMA = pa.schema(
    [
        pa.field("video_id", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("path_raw", pa.binary()),
        pa.field("root", pa.int32()),
        pa.field("batch", pa.int32(), nullable=False),
        pa.field("size_bytes", pa.int64()),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("content_hash", pa.binary(16)),
        pa.field("container", pa.string()),
        pa.field("codec", pa.string()),
        pa.field("duration_s", pa.float64()),
        pa.field("fps", pa.float64()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("frames", pa.int64()),
        pa.field("kept_frames", pa.int64()),
        pa.field("error", pa.string()),
    ]
)
"""The columns of the table.

The first ones are as in the media table. ``duration_s`` is the presentation time of the last frame plus its length,
``frames`` is the number of decoded frames, and ``kept_frames`` the number of frames that became media. ``error`` says
what is lost or damaged; null for intact videos. A video with an ``error`` has a row of its own in the media table.
"""


def videos_path(media: Path) -> Path:
    """Return the folder of the videos table beside a media table."""
    return media.with_name(f"{VIDEOS}.lance")


def roll_back_videos(media: Path, version: int | None) -> int | None:
    """Make a version of the videos table its newest for the next writer; return it, or None without a table.

    Args:
        media: folder of the media table.
        version: the version in the state to continue from; None if that has no videos, even if the table exists.
    """
    path = videos_path(media)
    if version is not None:
        return tables.roll_back(path, version)
    return tables.replace(path, [], SCHEMA) if path.exists() else None


def append_videos(media: Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Append rows to the videos table; return its new version."""
    return tables.append(videos_path(media), [pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)], SCHEMA)


def open_videos(media: Path, versions: Mapping[str, int]) -> Table | None:
    """Return the videos table of a generation; None if it has no videos.

    Args:
        media: folder of the media table.
        versions: versions of the generation's tables, by name.
    """
    return Table(videos_path(media), versions[VIDEOS]) if VIDEOS in versions else None


def keep_video_rows(table: Table, mask: npt.NDArray[np.bool_]) -> int:
    """Delete all rows outside of a mask; return the version with the remaining rows."""
    return table.version if mask.all() else tables.delete_rows(table, ~mask)


def drop_repeated_videos(table: Table) -> int:
    """Delete all but the last row of each video; return the resulting version."""
    ids = table.scan(["video_id"]).read_all().column(0).to_pylist()
    last = {each: position for position, each in enumerate(ids)}
    return keep_video_rows(table, np.array([last[each] == position for position, each in enumerate(ids)], dtype=bool))


def with_media(table: Table, media: Table) -> int:
    """Delete the rows of videos without media; return the resulting version.

    Args:
        table: the videos table at its newest version.
        media: the media table.
    """
    present: set[str] = set()
    for batch in media.scan(["video_id"]):
        present.update(pc.unique(batch.column(0)).to_pylist())
    ids = table.scan(["video_id"]).read_all().column(0).to_pylist()
    return keep_video_rows(table, np.array([each in present for each in ids], dtype=bool))


def media_of_videos(media: Table) -> int:
    """Return the number of rows in a media table that belong to videos."""
    if "kind" not in media.schema.names:
        return 0
    return sum(batch.num_rows - batch.column(0).null_count for batch in media.scan(["kind"]))


@lru_cache(maxsize=8)
def read_videos(path: Path, version: int, columns: tuple[str, ...]) -> pa.Table:
    """Return columns of all videos at a version of their table; cached, as a version never changes."""
    return Table(path, version).scan(columns).read_all()
