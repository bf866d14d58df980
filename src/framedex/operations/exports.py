"""Exports of a dataset: their start, and the records of all processes' exports."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from framedex.core.arrays import RowIds
from framedex.core.empty import warn_empty
from framedex.errors import InvalidInput
from framedex.export.archive import check_options, export_archive
from framedex.export.formats import ExportFormat, find_format
from framedex.export.options import NO_OPTIONS, ExportOptions
from framedex.export.selection import select
from framedex.export.splits import check_request
from framedex.operations.context import Context, open_media
from framedex.operations.empty_results import why_empty
from framedex.operations.steps import Steps
from framedex.records import EntityType, ExportRecord, ExportResult
from framedex.render.progress import progress_bar
from framedex.settings import user_path
from framedex.storage import datasets, export_rows
from framedex.storage.condition import Condition
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view, open_objects
from framedex.tasks import ExportTask

_OF_OTHERS = frozenset((".json", ".jsonl", ".parquet", ".csv", ".txt", ".xml", ".yaml", ".yml", ".html", ".tar", ".gz"))
"""Suffixes of files that are no ZIP files."""
Selector = Callable[[Media], Condition | RowIds]
"""Returns the rows to export, given a dataset's media or objects; called on the export's thread."""


class Exportable(ABC):
    """A selection of media that can be exported: a view, or a dataset."""

    @overload
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = ...,
        include_images: bool = ...,
        media_selection: Sequence[Any] | None = ...,
        wait: Literal[True] = ...,
        *,
        entity_type: str | None = ...,
        vql: Sequence[Any] | None = ...,
        split: Mapping[str, Any] | None = ...,
        confidences: bool = ...,
        outlines: bool = ...,
        keypoints: bool = ...,
        strip_metadata: bool = ...,
        media_url: str | None = ...,
    ) -> ExportResult: ...
    @overload
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = ...,
        include_images: bool = ...,
        media_selection: Sequence[Any] | None = ...,
        *,
        wait: Literal[False],
        entity_type: str | None = ...,
        vql: Sequence[Any] | None = ...,
        split: Mapping[str, Any] | None = ...,
        confidences: bool = ...,
        outlines: bool = ...,
        keypoints: bool = ...,
        strip_metadata: bool = ...,
        media_url: str | None = ...,
    ) -> ExportTask: ...
    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "json",  # noqa: A002 - the interface's word
        include_images: bool = False,
        media_selection: Sequence[Any] | None = None,
        wait: bool = True,
        *,
        entity_type: str | None = None,
        vql: Sequence[Any] | None = None,
        split: Mapping[str, Any] | None = None,
        confidences: bool = False,
        outlines: bool = False,
        keypoints: bool = False,
        strip_metadata: bool = False,
        media_url: str | None = None,
    ) -> ExportResult | ExportTask:
        """Write the media to a ZIP file, which appears under its name only when it is whole.

        A path that ends with ``.json`` (formats json and coco) or ``.parquet`` gets the one file of the format instead.

        The formats, with the files that they write, are :data:`framedex.export.formats.FORMATS` and in docs/exports.md:
        metadata with all that is known of the media and of the objects in them, or annotations that other tools read.

        Image files lie under ``images/``. A dataset that is made of an unpacked file of annotations, with image files,
        has the same images, labels, captions and boxes, as far as the format holds them; blank captions are none.
        Without image files, annotations name paths within the source, so that they can be put there.

        Args:
            path: the file; an existing one is replaced.
            format: the name of a format.
            include_images: also put the image files into it.
            media_selection: only these, in the form of the interface's selective export; replaces the view's filter.
                Media and objects may be named whichever are exported: an object stands for its media item, a media item
                for the objects in it.
            wait: return what was written when it is done, showing progress; else the export at once.
            entity_type: ``IMAGES``; ``VIDEOS``, for media of videos; or ``OBJECTS``: then all filters are about
                objects, which are exported with the media that they are in. By default what a view is of, and the
                images of a dataset.
            vql: a further filter; instead of *media_selection*.
            split: divides the images for training, in coco, yolo and voc: the share of each part, as
                ``{"train": 0.8, "val": 0.2}``, or a filter for each, as ``{"train": vql.tags("train"), …}``, or a view
                for each, as :meth:`View.split` returns them. By shares, near-duplicates and frames of one video stay
                together.
            confidences: in yolo, write confidences as the last number of each line.
            outlines: in yolo, write outlines (segmentation) instead of boxes.
            keypoints: in yolo, write key points after each box, as for the training of pose models.
            strip_metadata: with *include_images*, write JPEG, PNG, WebP, GIF and BMP files without what they say beside
                the pixels: Exif with the place (GPS), XMP, IPTC, comments. Only orientation and color profile stay.
                Image files of other formats are left out.
            media_url: a URL with ``{media_id}`` in the place of an id, for exports that leave this machine: it replaces
                the URLs of files, and ``file_path`` is the path within the source.

        Raises:
            InvalidInput: an argument cannot be used.
            InvalidFilter: the filter cannot be understood.
            NotFound: a selected media item or cluster does not exist.
            Conflict: the dataset has nothing to show yet.
            TaskFailed: something else went wrong, such as a full disk.

        Examples:
            >>> ds.export("cats.zip", "coco", vql=vql.labels("cat"))
            ExportResult(path='.../cats.zip', total_media_items=9, total_objects=4, images=0, message='9 media, 4
              objects; 3 tags of images are left out...')
        """
        options = ExportOptions(
            None if split is None else check_request(split, self._selector_of),
            confidences,
            outlines,
            keypoints,
            strip_metadata,
            media_url,
        )
        task = self._export(path, format, include_images, media_selection, entity_type, vql, options)
        return wait_for_export(task) if wait else task

    @abstractmethod
    def _export(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002 - the interface's word
        include_images: bool,
        media_selection: Sequence[Any] | None,
        entity_type: str | None,
        vql: Sequence[Any] | None,
        options: ExportOptions,
    ) -> ExportTask:
        """Start an export."""

    @abstractmethod
    def _selector_of(self, vql: Any) -> Selector:
        """Return the function that selects the media of the dataset that pass a filter."""


def start_export(
    context: Context,
    dataset_id: str,
    path: str | os.PathLike[str],
    select_media: Selector,
    *,
    entity_type: str,
    format: str,  # noqa: A002 - the interface's word
    include_images: bool,
    options: ExportOptions = NO_OPTIONS,
    steps: Steps = (),
) -> ExportTask:
    """Start an export of the dataset's current state; later changes do not affect it.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        path: the file.
        select_media: returns the media to export; for ``OBJECTS``, the objects.
        entity_type: type of the selected entities.
        format: one of :data:`framedex.export.formats.FORMATS`.
        include_images: whether to include the image files.
        options: options of some formats.
        steps: of the selection, to say why it is empty.

    Raises:
        InvalidInput: the format is unknown or lacks an option, or the path is one of the workspace's own files.
        Conflict: the dataset has no head yet.
    """
    target, settings = _absolute(path), context.settings
    # Refuse an unknown format, and options that it lacks, before the start.
    chosen = find_format(format)
    check_options(chosen, options, target, include_images=include_images)
    _check_suffix(chosen, target)
    _check_target(context.layout, target)
    media = open_media(context, dataset_id)
    with context.catalog.read() as connection:
        dataset = datasets.find_dataset(connection, dataset_id)

    def job(
        *, begin: Callable[[int], None], progress: Callable[[float], None], settle: Callable[[], None]
    ) -> ExportResult:
        boxes_only = entity_type == EntityType.OBJECTS
        candidates = open_objects(media) if boxes_only else media
        result = export_archive(
            media,
            dataset,
            select_media(candidates),
            target,
            format=format,
            include_images=include_images,
            exported_by=settings.user,
            boxes_only=boxes_only,
            begin=begin,
            progress=progress,
            settle=settle,
            settings=settings,
            options=options,
        )
        reasons = [] if result.total_media_items else why_empty(context, candidates, steps)
        return result.model_copy(update={"warnings": [*result.warnings, *reasons]})

    return context.exports.start(dataset_id, target, job, created_by=settings.user)


def count_export(context: Context, dataset_id: str, select_media: Selector, *, entity_type: str) -> int:
    """Return the number of media, or of objects, that an export would select.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        select_media: as for :func:`start_export`.
        entity_type: type of the selected entities.

    Raises:
        InvalidInput: the selection is malformed.
        NotFound: a selected media item or cluster does not exist.
        Conflict: the dataset has no head yet.
    """
    media = open_media(context, dataset_id)
    candidates = open_objects(media) if entity_type == EntityType.OBJECTS else media
    rows = select_media(candidates)
    if is_empty_object_view(candidates):
        return 0
    return candidates.count(rows) if isinstance(rows, Condition) else len(rows)


def _absolute(path: str | os.PathLike[str]) -> Path:
    # The working directory may change before the file is written.
    return user_path(path).absolute()


def _check_suffix(chosen: ExportFormat, target: Path) -> None:
    """Check that a file that is no ZIP file, by its name, is the one file of the format.

    Raises:
        InvalidInput: the name says something else than what would be in the file.
    """
    if target.suffix.lower() in _OF_OTHERS and not chosen.is_alone_in(target):
        raise InvalidInput(
            f"the format {chosen.name!r} writes a ZIP file, which {target.name!r} is not by its name; "
            f"name it {target.with_suffix('.zip').name!r}"
        )


def _check_target(layout: Layout, target: Path) -> None:
    """Check that an export does not replace a file of the workspace.

    Raises:
        InvalidInput: it would.
    """
    if "\0" in str(target):
        return  # opening the file raises the error
    root, folder = (Path(os.path.realpath(path)) for path in (layout.root, target.parent))
    if not folder.is_relative_to(root):
        return
    first = (folder / target.name).relative_to(root).parts[0]
    if first in (layout.marker.name, layout.datasets.name) or first.startswith(layout.catalog.name):
        raise InvalidInput(f"cannot write {target}: that place is the workspace's own; choose another one")


def make_selector(
    condition: Selector, *, entity_type: str, filtered: bool, media_selection: Sequence[Mapping[str, Any]] | None
) -> Selector:
    """Return the function that selects the media, or the objects, of an export.

    Args:
        condition: the selector if there is no *media_selection*.
        entity_type: ``IMAGES`` for all media; ``VIDEOS`` for those of videos; or ``OBJECTS``.
        filtered: whether a filter was given with the export.
        media_selection: replaces *condition*.

    Raises:
        InvalidInput: the type is unknown, or both a filter and a selection were given.
    """
    if entity_type not in list(EntityType):
        raise InvalidInput(f"entity_type must be one of {', '.join(EntityType)}, not {entity_type!r}")
    if filtered and media_selection is not None:
        raise InvalidInput("an export takes either vql or media_selection, not both")
    if entity_type == EntityType.VIDEOS and media_selection is None:
        return lambda media: _of_videos(media, condition(media))
    if media_selection is None:
        return condition
    return lambda media: _selected(media, media_selection)


def _selected(media: Media, selection: Sequence[Mapping[str, Any]]) -> RowIds:
    """Return the selected rows; for a dataset without objects, validate the selection and return no rows."""
    if not is_empty_object_view(media) or media.parents is None:
        return select(media, selection)
    select(media.parents, selection)
    return np.empty(0, np.uint64)


def _of_videos(media: Media, selection: Condition | RowIds) -> RowIds:
    """Return the rows of a selection that belong to videos."""
    if not media.has_videos:
        return np.empty(0, np.uint64)
    rows = media.row_ids(Condition("video_id IS NOT NULL", (), frozenset({"video_id"})))
    return np.intersect1d(rows, media.row_ids(selection) if isinstance(selection, Condition) else selection)


def wait_for_export(task: ExportTask) -> ExportResult:
    """Wait for an export, showing its progress, and return its result.

    Raises:
        Error: it was rejected, failed or aborted.
    """
    with progress_bar("Exporting") as progress:
        task.wait(progress=progress)
    for sentence in task.result.warnings:
        warn_empty(sentence)
    return task.result


def get_export(context: Context, dataset_id: str, export_id: str) -> ExportRecord:
    """Return the record of a dataset's export, of any process.

    Raises:
        NotFound: the dataset has no such export.
    """
    _fail_interrupted(context)
    with context.catalog.read() as connection:
        return export_rows.find_export(connection, export_id, dataset_id=dataset_id)


def list_exports(context: Context, dataset_id: str) -> list[ExportRecord]:
    """Return the exports of a dataset, of all processes, newest first."""
    _fail_interrupted(context)
    with context.catalog.read() as connection:
        return export_rows.list_exports(connection, dataset_id=dataset_id)


def _fail_interrupted(context: Context) -> None:
    """Mark the exports of processes that died as failed."""
    if context.catalog.read_only:
        return
    with context.catalog.read() as connection:
        interrupted = export_rows.has_interrupted_exports(connection)
    if interrupted:
        with context.catalog.write() as connection:
            export_rows.fail_interrupted_exports(connection)
