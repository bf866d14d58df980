"""The ZIP of an export: metadata or label files, and the pictures if wanted; a stream, visible when whole."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framedex.errors import InvalidInput
from framedex.export.chosen import Chosen, part
from framedex.export.coco import write_coco
from framedex.export.columns import EXPORTED
from framedex.export.edited import custom_fields
from framedex.export.files import whole_file
from framedex.export.items import item_columns, media_items
from framedex.export.json_text import LINE_END, text_of
from framedex.export.label_table import write_csv
from framedex.export.object_columns import OBJECT, OBJECT_ROWS
from framedex.export.objects import N_OBJECTS, ObjectsByMedia, media_of, objects_field, objects_in
from framedex.export.picture_names import Names, readable_names, voc_names, yolo_names
from framedex.export.pictures import Copied, write_pictures
from framedex.export.places import image_names, shown_text
from framedex.export.voc import write_voc
from framedex.export.yolo import write_yolo
from framedex.export.zip_writer import Member, ZipWriter
from framedex.progress import ShareProgress
from framedex.records import Condition, DatasetRecord, ExportResult
from framedex.settings import Settings, load_settings
from framedex.storage.media import EVERYTHING, Media, RowIds
from framedex.storage.objects import objects_of

SCHEMA_VERSION = "1.1"
Format = Literal["json", "parquet", "coco", "csv", "yolo", "voc"]
FORMATS: tuple[str, ...] = ("json", "parquet", "coco", "csv", "yolo", "voc")
_BLOCKS_A_GROUP = 4
_BUFFERED_BYTES = 4 * 2**20
_METADATA_SHARE = 0.2  # of an export with pictures
REPEATED = [
    "width", "height", "cluster_id", "labels.list.element", "tags.list.element", "issues.list.element.issue_type",
    "issues.list.element.duplicate_group_id", "issues.list.element.duplicate_threshold",
]  # fmt: skip
"""Columns of Parquet that a dictionary makes smaller. Others hardly repeat, and looking for that takes time."""

ORDERED = ["file_size_bytes", "width", "height", "uniqueness_score"]
"""Columns of which readers look at the least and the greatest value; for texts, working these out takes long."""


def check_format(format: str) -> None:  # noqa: A002 - the public name
    """Check the name of a format.

    Raises:
        InvalidInput: there is none of that name.
    """
    if format not in FORMATS:
        *others, last = map(repr, FORMATS)
        raise InvalidInput(f"format must be {', '.join(others)} or {last}, not {format!r}")


def export_archive(
    media: Media,
    dataset: DatasetRecord,
    rows: Condition | RowIds,
    path: Path,
    *,
    format: str,  # noqa: A002 - the public name
    include_images: bool,
    exported_by: str,
    progress: ShareProgress,
    boxes_only: bool = False,
    begin: Callable[[int], None] = lambda _total: None,
    settle: Callable[[], None] = lambda: None,
    settings: Settings | None = None,
) -> ExportResult:
    """Write media to a ZIP file and return what was written. An existing file is replaced when the new one is whole.

    Args:
        media: what is exported, with all objects in them.
        dataset: whose media they are.
        rows: which of them; or which objects.
        path: the ZIP file.
        format: one of ``FORMATS``.
        include_images: also put the pictures' files under ``images/``.
        exported_by: who is named as the exporter.
        progress: called with the share that is done; raises to stop, which leaves nothing behind.
        boxes_only: whether objects are chosen, with the media that they are in.
        begin: called with the number of media, or of objects, when writing begins.
        settle: called when all is written, before the file appears; raises to give it up.
        settings: limits, and how buckets are reached; by default those of the environment.

    Raises:
        InvalidInput: the format is another one, or the file cannot be written there.
        Unavailable: pictures are wanted that lie in a bucket that cannot be reached.
    """
    check_format(format)
    objects = _objects(media, rows, boxes_only=boxes_only)
    if boxes_only:
        rows = np.empty(0, np.uint64) if objects is None else media_of(objects.objects, objects.rows)
    total = media.count(rows) if isinstance(rows, Condition) else len(rows)
    settings = settings or load_settings()
    chosen = Chosen(media, dataset, rows, total, include_images, exported_by, settings, objects, boxes_only)
    with whole_file(path, settle=settle) as file:
        begin(chosen.entities)
        copied, notes = _write(file, chosen, format, progress)
    return ExportResult(
        path=shown_text(path),
        total_media_items=total,
        total_objects=chosen.n_objects,
        images=copied.count,
        missing_images=copied.missing,
        message=_message(chosen, copied, notes),
    )


def _objects(media: Media, rows: Condition | RowIds, *, boxes_only: bool) -> ObjectsByMedia | None:
    """Return the objects that were chosen, or those in media that were; None if the dataset has none."""
    objects = objects_of(media)
    if objects is None:
        return None
    is_all = isinstance(rows, Condition) and rows == EVERYTHING
    return ObjectsByMedia(objects, rows if boxes_only or is_all else objects_in(objects, rows))


def _write(
    file: BinaryIO,
    chosen: Chosen,
    format: str,  # noqa: A002 - the public name
    progress: ShareProgress,
) -> tuple[Copied, list[str]]:
    """Write the ZIP; return the pictures that were copied, and what the format does not hold.

    The same export of the same state is the same bytes, but for ``export_time`` in JSON: what is no file has the time
    of the state.
    """
    copied, share = Copied(), _METADATA_SHARE if chosen.include_images else 1.0
    with ZipWriter(file, modified=chosen.media.generation.created_at) as archive:
        names, notes = _write_metadata(archive, chosen, format, part(progress, 0.0, share))
        if chosen.include_images:
            copied = write_pictures(archive, chosen, names, part(progress, share, 1.0))
    return copied, notes


def _write_metadata(
    archive: ZipWriter,
    chosen: Chosen,
    format: str,  # noqa: A002 - the public name
    progress: ShareProgress,
) -> tuple[Names, list[str]]:
    """Write all but the pictures; return the pictures' names, and what the format does not hold."""
    match format:
        case "parquet":
            _write_parquet(archive, chosen, progress)
        case "json":
            _write_json(archive, chosen, progress)
        case "coco":
            return readable_names, write_coco(archive, chosen, progress)
        case "csv":
            return readable_names, write_csv(archive, chosen, progress)
        case "voc":
            names = voc_names(chosen, part(progress, 0.0, 0.2))
            return names, write_voc(archive, chosen, names, part(progress, 0.2, 1.0))
        case _:
            names = yolo_names(chosen, part(progress, 0.0, 0.2))
            return names, write_yolo(archive, chosen, names, part(progress, 0.2, 1.0))
    return image_names, []


def _message(chosen: Chosen, copied: Copied, notes: list[str]) -> str:
    """Return in words what was written and what was not."""
    written = (
        f"{chosen.n_objects:,} objects in {chosen.total:,} media" if chosen.boxes_only else f"{chosen.total:,} media"
    )
    if chosen.with_objects and not chosen.boxes_only:
        written += f", {chosen.n_objects:,} objects"
    written += f", {copied.count:,} pictures" if chosen.include_images else ""
    missing = [f"{copied.failed:,} pictures could not be read"] if copied.failed else []
    return "; ".join([written, *missing, *notes])


class _Sink(io.RawIOBase):
    """What Arrow needs of a file, over a member of a ZIP."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._member.write(data)

    def tell(self) -> int:
        return self._member.size


def _write_parquet(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> None:
    of_objects = [N_OBJECTS, objects_field(OBJECT)] if chosen.with_objects else []
    schema = OBJECT_ROWS if chosen.boxes_only else pa.schema([*EXPORTED, *custom_fields(chosen.media), *of_objects])
    blocks = chosen.object_blocks if chosen.boxes_only else chosen.blocks
    with (
        archive.member("metadata.parquet") as member,
        # Each write of Arrow's own waits for the interpreter lock, which the thread that reads ahead wants too.
        pa.BufferedOutputStream(pa.PythonFile(_Sink(member), mode="w"), _BUFFERED_BYTES) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=REPEATED, write_statistics=ORDERED) as writer,
    ):
        # A group is made while the last is written; with less, either would wait for the other.
        for rows in _row_groups(blocks(schema, progress, ahead=_BLOCKS_A_GROUP)):
            writer.write_table(rows)


def _row_groups(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield some blocks at a time, without a copy: each of their own would be a small row group."""
    while held := list(islice(blocks, _BLOCKS_A_GROUP)):
        yield pa.concat_tables(held)


def _write_json(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> None:
    with archive.member("metadata.json", compressed=True) as member:
        member.write(b'{"info": ' + json.dumps(_info(chosen), ensure_ascii=False).encode() + b', "media_items": [')
        separator = "\n"
        schema = item_columns(chosen.media, None if chosen.objects is None else chosen.objects.objects)
        for text in chosen.made_of(schema, lambda block: text_of(media_items(block)), progress):
            member.write(separator.encode())
            member.write(text)
            separator = LINE_END
        member.write(b"\n]}\n")


def _info(chosen: Chosen) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "dataset": chosen.dataset.display_name,
        "description": "",
        "dataset_url": "",
        "export_time": datetime.now(UTC).isoformat(),
        "dataset_creation_time": chosen.dataset.created_at.isoformat(),
        "exported_by": chosen.exported_by,
        "total_media_items": chosen.total,
    }
