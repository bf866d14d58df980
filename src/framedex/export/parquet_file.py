"""The Parquet export: all that is known of the media and of the objects in them, as ``metadata.parquet``."""

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from framedex.export.chosen import Chosen
from framedex.export.columns import EXPORTED
from framedex.export.edited import custom_fields
from framedex.export.object_columns import OBJECT, OBJECT_ROWS
from framedex.export.objects import N_OBJECTS, objects_field
from framedex.export.picture_names import Names
from framedex.export.places import image_names
from framedex.export.zip_writer import Member, ZipWriter
from framedex.progress import ShareProgress

FILE = "metadata.parquet"
REPEATED = [
    "width", "height", "cluster_id", "labels.list.element", "tags.list.element", "issues.list.element.issue_type",
    "issues.list.element.duplicate_group_id", "issues.list.element.duplicate_threshold",
]  # fmt: skip
"""Columns of Parquet that a dictionary makes smaller. Others hardly repeat, and looking for that takes time."""

ORDERED = ["file_size_bytes", "width", "height", "uniqueness_score"]
"""Columns of which readers look at the least and the greatest value; for texts, working these out takes long."""
_BLOCKS_A_GROUP = 4
_BUFFERED_BYTES = 4 * 2**20


def write_parquet(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Write the file; return the names of the images, and that nothing is left out."""
    of_objects = [N_OBJECTS, objects_field(OBJECT)] if chosen.with_objects else []
    schema = OBJECT_ROWS if chosen.boxes_only else pa.schema([*EXPORTED, *custom_fields(chosen.media), *of_objects])
    blocks = chosen.object_blocks if chosen.boxes_only else chosen.blocks
    with (
        archive.member(FILE) as member,
        # Each write of Arrow's own waits for the interpreter lock, which the thread that reads ahead wants too.
        pa.BufferedOutputStream(pa.PythonFile(_Sink(member), mode="w"), _BUFFERED_BYTES) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=REPEATED, write_statistics=ORDERED) as writer,
    ):
        # A group is made while the last is written; with less, either would wait for the other.
        for rows in _row_groups(blocks(schema, progress, ahead=_BLOCKS_A_GROUP)):
            writer.write_table(rows)
    return image_names, []


def _row_groups(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield some blocks at a time, without a copy: each of their own would be a small row group."""
    while held := list(islice(blocks, _BLOCKS_A_GROUP)):
        yield pa.concat_tables(held)


class _Sink(io.RawIOBase):
    """A member of a ZIP as the file that Arrow writes to."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._member.write(data)

    def tell(self) -> int:
        return self._member.size
