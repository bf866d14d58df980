"""The ZIP of an export: the files of a format, and the pictures if wanted; a stream, visible when whole."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from framedex.annotations.progress import part
from framedex.arrays import RowIds
from framedex.export.chosen import Chosen
from framedex.export.files import whole_file
from framedex.export.formats import ExportFormat, find_format
from framedex.export.objects import ObjectsByMedia, media_of, objects_in
from framedex.export.picture_names import with_clashes
from framedex.export.pictures import Copied, write_pictures
from framedex.export.places import shown_text
from framedex.export.zip_writer import ZipWriter
from framedex.progress import ShareProgress
from framedex.records import Condition, DatasetRecord, ExportResult
from framedex.settings import Settings, load_settings
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import objects_of

_METADATA_SHARE = 0.2  # of an export with pictures
_OUTSIDE = "a link leads out of their source folder, and not to an image that was indexed"


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
        format: the name of one of :data:`framedex.export.formats.FORMATS`.
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
    format_ = find_format(format)
    objects = _objects(media, rows, boxes_only=boxes_only)
    if boxes_only:
        rows = np.empty(0, np.uint64) if objects is None else media_of(objects.objects, objects.rows)
    total = media.count(rows) if isinstance(rows, Condition) else len(rows)
    settings = settings or load_settings()
    chosen = Chosen(media, dataset, rows, total, include_images, exported_by, settings, objects, boxes_only)
    with whole_file(path, settle=settle) as file:
        begin(chosen.entities)
        chosen = with_clashes(chosen) if include_images or format_.is_file_each else chosen
        copied, notes = _write(file, chosen, format_, progress)
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
    format_: ExportFormat,
    progress: ShareProgress,
) -> tuple[Copied, list[str]]:
    """Write the ZIP; return the pictures that were copied, and what the format does not hold.

    The same export of the same state is the same bytes, but for ``export_time`` in JSON: what is no file has the time
    of the state.
    """
    copied, share = Copied(), _METADATA_SHARE if chosen.include_images else 1.0
    with ZipWriter(file, modified=chosen.media.generation.created_at) as archive:
        names, notes = format_.write(archive, chosen, part(progress, 0.0, share))
        if chosen.include_images:
            copied = write_pictures(archive, chosen, names, part(progress, share, 1.0))
    return copied, notes


def _message(chosen: Chosen, copied: Copied, notes: list[str]) -> str:
    """Return in words what was written and what was not."""
    written = (
        f"{chosen.n_objects:,} objects in {chosen.total:,} media" if chosen.boxes_only else f"{chosen.total:,} media"
    )
    if chosen.with_objects and not chosen.boxes_only:
        written += f", {chosen.n_objects:,} objects"
    written += f", {copied.count:,} images" if chosen.include_images else ""
    missing = [f"{copied.failed:,} images could not be read"] if copied.failed else []
    if copied.outside:
        missing.append(f"{copied.outside:,} left out: {_OUTSIDE}")
    return "; ".join([written, *missing, *notes])
