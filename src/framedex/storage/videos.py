"""The table of a dataset's videos: what is known of each as a whole. Its frames are rows of the media table."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage import tables
from framedex.storage.tables import Table

VIDEOS = "videos"
"""Its name in a generation."""
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
"""Its columns.

The first ones are as in the media table. ``duration_s`` is the presentation time of the last frame and its length,
``frames`` are those that were decoded, ``kept_frames`` those of them that became media. ``error`` says why a video gave
no frames, or fewer than it should have; null for those that are whole.
"""


def videos_path(media: Path) -> Path:
    """Return the folder of the table of videos beside that of media."""
    return media.with_name(f"{VIDEOS}.lance")


def roll_back_videos(media: Path, version: int | None) -> int | None:
    """Make a version of the table of videos its newest, for the next writer; return that, None where there is none.

    Args:
        media: folder of the media table.
        version: that the state begun with names; None if it has no videos, though others of the dataset may.
    """
    path = videos_path(media)
    if version is not None:
        return tables.roll_back(path, version)
    return tables.replace(path, [], SCHEMA) if path.exists() else None


def append_videos(media: Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows of videos behind the others; return the table's new version."""
    return tables.append(videos_path(media), [pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)], SCHEMA)


def open_videos(media: Path, versions: Mapping[str, int]) -> Table | None:
    """Return the table of videos of a generation; None if that has no videos.

    Args:
        media: folder of the media table.
        versions: of the generation's tables.
    """
    return Table(videos_path(media), versions[VIDEOS]) if VIDEOS in versions else None


def keep_video_rows(table: Table, kept: npt.NDArray[np.bool_]) -> int:
    """Delete all rows but some; return the version of the table that has these alone."""
    return table.version if kept.all() else tables.delete_rows(table, ~kept)


def last_of_each(table: Table) -> int:
    """Delete the rows of videos that come again further behind; return the version without them."""
    ids = table.scan(["video_id"]).read_all().column(0).to_pylist()
    last = {each: place for place, each in enumerate(ids)}
    return keep_video_rows(table, np.array([last[each] == place for place, each in enumerate(ids)], dtype=bool))


def with_media(table: Table, media: Table) -> int:
    """Delete the rows of videos of which no media are left; return the version without them.

    Args:
        table: the videos, at the newest version.
        media: the media table.
    """
    left: set[str] = set()
    for batch in media.scan(["video_id"]):
        left.update(pc.unique(batch.column(0)).to_pylist())
    ids = table.scan(["video_id"]).read_all().column(0).to_pylist()
    return keep_video_rows(table, np.array([each in left for each in ids], dtype=bool))


def media_of_videos(media: Table) -> int:
    """Return how many rows of a media table are of videos."""
    if "kind" not in media.schema.names:
        return 0
    return sum(batch.num_rows - batch.column(0).null_count for batch in media.scan(["kind"]))


@lru_cache(maxsize=8)
def read_videos(path: Path, version: int, columns: tuple[str, ...]) -> pa.Table:
    """Return columns of all videos of a version of their table, which never changes: held for the next caller."""
    return Table(path, version).scan(columns).read_all()
