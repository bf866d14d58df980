"""The Parquet export: all data of the media and of the objects in them, as ``metadata.parquet``."""

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from framedex.core.progress import ShareProgress
from framedex.export.columns import EXPORTED, value_fields
from framedex.export.contents import ExportContents
from framedex.export.image_names import Names
from framedex.export.locations import image_names
from framedex.export.object_columns import OBJECT, OBJECT_ROWS
from framedex.export.objects import N_OBJECTS, objects_field
from framedex.export.single_file import Archive, FileMember
from framedex.export.user_edits import custom_fields
from framedex.export.zip_writer import Member

FILE = "metadata.parquet"
REPEATED = [
    "width", "height", "cluster_id", "labels.list.element", "tags.list.element", "issues.list.element.issue_type",
    "issues.list.element.duplicate_group_id", "issues.list.element.duplicate_threshold",
]  # fmt: skip
"""Columns that dictionary encoding makes smaller. Others hardly repeat, and the attempt costs time."""

ORDERED = ["file_size_bytes", "width", "height", "uniqueness_score"]
"""Columns whose minimum and maximum readers use; computing them for texts takes long."""
_BLOCKS_A_GROUP = 4
_BUFFERED_BYTES = 4 * 2**20


def write_parquet(archive: Archive, contents: ExportContents, progress: ShareProgress) -> tuple[Names, list[str]]:
    """Write the file; return the names of the images, and an empty list: the format holds all data."""
    objects = [] if contents.objects is None else value_fields(contents.objects.objects)
    values = objects if contents.boxes_only else value_fields(contents.media)
    of_objects = [N_OBJECTS, objects_field(pa.schema([*OBJECT, *objects]))] if contents.with_objects else []
    others = [] if contents.boxes_only else [*custom_fields(contents.media), *of_objects]
    schema = pa.schema([*(OBJECT_ROWS if contents.boxes_only else EXPORTED), *values, *others])
    ordered = [*ORDERED, *(field.name for field in values)]
    blocks = contents.object_blocks if contents.boxes_only else contents.blocks
    with (
        archive.member(FILE) as member,
        # Each write of Arrow waits for the interpreter lock, which the reading thread needs, too.
        pa.BufferedOutputStream(pa.PythonFile(MemberSink(member), mode="w"), _BUFFERED_BYTES) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=REPEATED, write_statistics=ordered) as writer,
    ):
        # Prepare the next row group while one is written.
        for rows in _row_groups(blocks(schema, progress, ahead=_BLOCKS_A_GROUP)):
            writer.write_table(rows)
    return image_names, []


def _row_groups(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield several blocks at a time without a copy. A single block would be a small row group."""
    while group := list(islice(blocks, _BLOCKS_A_GROUP)):
        yield pa.concat_tables(group)


class MemberSink(io.RawIOBase):
    """A ZIP member as an output file of Arrow."""

    def __init__(self, member: Member | FileMember) -> None:
        self._member = member

    def writable(self) -> bool:
        """Return True: bytes can be appended."""
        return True

    def write(self, data: Any) -> int:
        """Append bytes, and return their number."""
        return self._member.write(data)

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._member.size
