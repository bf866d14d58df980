"""The ZIP file of an export: the files of a format and, on request, the images. It appears when it is complete."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from framedex.annotations.progress import part
from framedex.core.arrays import RowIds
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput
from framedex.export.annotation_files import images_left_out
from framedex.export.contents import ExportContents
from framedex.export.files import whole_file
from framedex.export.formats import ExportFormat, find_format, formats_with_splits
from framedex.export.image_names import with_clashes
from framedex.export.images import CopyResult, write_images
from framedex.export.locations import display_path
from framedex.export.objects import ObjectsByMedia, media_of, objects_in
from framedex.export.options import NO_OPTIONS, ExportOptions
from framedex.export.single_file import SingleFile
from framedex.export.splits import Splits, divide
from framedex.export.zip_writer import ZipWriter
from framedex.records import DatasetRecord, ExportResult
from framedex.settings import Settings, load_settings
from framedex.storage.classes import classes_of
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import objects_of

_METADATA_SHARE = 0.2  # of an export with images


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
    options: ExportOptions = NO_OPTIONS,
) -> ExportResult:
    """Write media to a ZIP file, or to one file of the format, by the path's suffix; return the result.

    The new file replaces an existing one when it is complete.

    Args:
        media: the media of the dataset, with all objects in them.
        dataset: the dataset.
        rows: the selected media, or the selected objects if *boxes_only* is true.
        path: the file.
        format: the name of an export format, such as one of :data:`framedex.export.formats.FORMATS`.
        include_images: whether the image files are written, too, under ``images/``.
        exported_by: the exporter's name.
        progress: called with the fraction that is done. If it raises, the export stops and leaves no file.
        boxes_only: whether *rows* selects objects. Their media are then exported, too.
        begin: called with the number of media, or of objects, before writing.
        settle: called after the last write, before the file appears. If it raises, the export is discarded.
        settings: limits, and access to buckets; by default from the environment.
        options: options of some formats.

    Raises:
        InvalidInput: the format does not exist or lacks an option, or the file cannot be written.
        Unavailable: images are in a bucket that cannot be reached.
    """
    format_ = find_format(format)
    include_images = include_images or format_.has_always_images
    check_options(format_, options, path, include_images=include_images)
    media = replace(media, media_url=options.media_url)
    objects = _objects(media, rows, boxes_only=boxes_only)
    if boxes_only:
        rows = np.empty(0, np.uint64) if objects is None else media_of(objects.objects, objects.rows)
    splits = None
    if options.split is not None:
        splits = divide(media, rows, options.split)
        if splits.left_out:
            rows = splits.rows
            objects = None if objects is None else ObjectsByMedia(objects.objects, _within(objects, rows))
    total = media.count(rows) if isinstance(rows, Condition) else len(rows)
    settings = settings or load_settings()
    crops = boxes_only and format_.crops_objects
    contents = ExportContents(
        media, dataset, rows, total, include_images, exported_by, settings, objects, boxes_only, options, splits, crops
    )
    with whole_file(path, settle=settle) as file:
        begin(contents.entities)
        contents = with_clashes(contents) if include_images or format_.is_file_each else contents
        alone = format_.alone if format_.is_alone_in(path) else None
        write = _write if alone is None else partial(_write_alone, name=alone)
        copied, notes = write(file, contents, format_, progress)
        if not boxes_only:
            notes += images_left_out(contents, format_.lacks)
        if splits is not None:
            notes = [*_sizes(splits), *notes]
    empty = _empty(contents, format_)
    return ExportResult(
        path=display_path(path),
        total_media_items=total,
        total_objects=contents.n_objects,
        images=copied.count,
        missing_images=copied.missing,
        message=_message(contents, copied, notes),
        warnings=empty,
    )


def _objects(media: Media, rows: Condition | RowIds, *, boxes_only: bool) -> ObjectsByMedia | None:
    """Return the selected objects, or the objects in the selected media; None if the dataset has no objects."""
    objects = objects_of(media)
    if objects is None:
        return None
    is_all = isinstance(rows, Condition) and rows == EVERYTHING
    return ObjectsByMedia(objects, rows if boxes_only or is_all else objects_in(objects, rows))


def check_options(format_: ExportFormat, options: ExportOptions, path: Path, *, include_images: bool) -> None:
    """Check that a format has the options of an export.

    Raises:
        InvalidInput: it lacks one.
    """
    if options.split is not None and not format_.with_splits:
        raise InvalidInput(f"the format {format_.name!r} has no split; {formats_with_splits()} have one")
    for name in ("confidences", "outlines", "keypoints"):
        if getattr(options, name) and format_.name != "yolo":
            raise InvalidInput(f"{name}=True is for the format 'yolo', not {format_.name!r}")
    if options.confidences and options.outlines:
        raise InvalidInput(
            "a line of YOLO has either an outline or a confidence: confidences and outlines exclude each other"
        )
    if options.keypoints and options.outlines:
        raise InvalidInput(
            "a line of YOLO has either an outline or key points: keypoints and outlines exclude each other"
        )
    include_images = include_images or format_.has_always_images
    if options.strip_metadata and not include_images:
        raise InvalidInput("strip_metadata=True is for exports with include_images=True: there are no files to strip")
    if options.media_url is not None and "{media_id}" not in options.media_url:
        raise InvalidInput(f"media_url needs {{media_id}} in the place of the id of an item: {options.media_url!r}")
    if format_.is_alone_in(path) and (include_images or options.split is not None):
        what = "images" if include_images else "parts"
        raise InvalidInput(f"{path.name!r} is one file, which has no room for {what}; give a path that ends with .zip")


def _within(objects: ObjectsByMedia, rows: RowIds) -> RowIds:
    """Return the rows of the exported objects that are in some media."""
    inside = objects_in(objects.objects, rows)
    if objects.rows == EVERYTHING:
        return inside
    return np.intersect1d(inside, objects.objects.row_ids(objects.rows))


def _sizes(splits: Splits) -> list[str]:
    """Return sentences about the numbers of images in each part, and in none."""
    counts = np.bincount(splits.codes, minlength=len(splits.names)).tolist()
    sizes = ", ".join(f"{name} {count:,}" for name, count in zip(splits.names, counts, strict=True))
    left_out = [f"{counted(splits.left_out, 'media', 'are')} in no part and left out"] if splits.left_out else []
    return [sizes, *left_out]


def _write_alone(
    file: BinaryIO, contents: ExportContents, format_: ExportFormat, progress: ShareProgress, *, name: str
) -> tuple[CopyResult, list[str]]:
    """Write one file of a format; return as :func:`_write`."""
    target = SingleFile(file, name)
    assert format_.write is not None, "formats with a file alone write it"
    _, notes = format_.write(cast("ZipWriter", target), contents, progress)  # formats with a file alone take both
    left_out = [f"{each} is left out: it needs a ZIP file" for each in target.left_out]
    return CopyResult(), [*notes, *left_out]


def _write(
    file: BinaryIO,
    contents: ExportContents,
    format_: ExportFormat,
    progress: ShareProgress,
) -> tuple[CopyResult, list[str]]:
    """Write the ZIP file; return the result of copying the images, and sentences about data that is left out.

    Two exports of the same state have the same bytes, except for ``export_time`` in JSON: members without a source file
    have the time of the state.
    """
    copied, share = CopyResult(), _METADATA_SHARE if contents.include_images else 1.0
    with ZipWriter(file, modified=contents.media.generation.created_at) as archive:
        if format_.pack is not None:
            return format_.pack(archive, contents, progress)
        assert format_.write is not None, "a format writes or packs"
        names, notes = format_.write(archive, contents, part(progress, 0.0, share))
        if contents.include_images:
            shares, folder = part(progress, share, 1.0), format_.images_folder
            copied = write_images(archive, contents, names, shares, folder=folder)
    return copied, notes


def _empty(contents: ExportContents, format_: ExportFormat) -> list[str]:
    """Return sentences about what is empty although the export is whole."""
    if not contents.entities:
        return ["the export is empty: nothing was selected"]
    if not format_.has_classes:
        return []
    classes = classes_of(contents.media)
    if contents.with_objects and not contents.n_objects:
        return [f"{format_.name} files have no boxes: no exported image has one"]
    if not len(classes.filter(classes["of_boxes"]) if contents.with_objects else classes):
        return [f"{format_.name} files have no classes (nc: 0): the dataset has neither labels nor bounding boxes"]
    return []


def _message(contents: ExportContents, copied: CopyResult, notes: list[str]) -> str:
    """Return a summary of the written and the missing files."""
    message = (
        f"{counted(contents.n_objects, 'objects')} in {counted(contents.total, 'media')}"
        if contents.boxes_only
        else counted(contents.total, "media")
    )
    if contents.with_objects and not contents.boxes_only:
        message += f", {counted(contents.n_objects, 'objects')}"
    message += f", {counted(copied.count, 'images')}" if contents.include_images else ""
    missing = [f"{counted(copied.failed, 'images')} could not be read"] if copied.failed else []
    missing += [f"{count:,} left out: {reason}" for reason, count in copied.left_out.items()]
    return "; ".join([message, *missing, *notes])
