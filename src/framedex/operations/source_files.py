"""The files that the rows of a dataset were read from: each once, with what its row says of it."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
from framedex.storage.videos import VIDEOS, open_videos

_OF_FILES = ("path", "path_raw", "root", "size_bytes", "modified_at", "content_hash")
FILES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("path_raw", pa.binary()),
        pa.field("root", pa.int32()),
        pa.field("size_bytes", pa.int64()),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("content_hash", pa.binary(16)),
        pa.field("table", pa.string(), nullable=False),
    ]
)
"""The columns of :func:`file_blocks`: ``id`` is the id of the image, or of the video in the table ``videos``."""


def file_blocks(media: Media) -> Iterator[pa.Table]:
    """Yield the files of a dataset in blocks, images first: a row for each image and for each video."""
    for batch in media.table.scan(["media_id", *_OF_FILES, *(["video_id"] if media.has_videos else [])]):
        images = batch.filter(pc.is_null(batch["video_id"])) if media.has_videos else batch
        yield _block(images, "media_id", MEDIA)
    videos = open_videos(media.table.path, media.generation.tables)
    for batch in videos.scan(["video_id", *_OF_FILES]) if videos is not None else ():
        yield _block(batch, "video_id", VIDEOS)


def _block(batch: pa.RecordBatch, own_id: str, table: str) -> pa.Table:
    columns = [batch[own_id], *(batch[name] for name in _OF_FILES), pa.repeat(pa.scalar(table), batch.num_rows)]
    return pa.Table.from_arrays(
        [each.cast(field.type) for each, field in zip(columns, FILES, strict=True)], schema=FILES
    )
