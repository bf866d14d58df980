"""Starting exports, and looking at those of all processes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from framedex.arrays import RowIds
from framedex.errors import InvalidInput
from framedex.export.archive import export_archive
from framedex.export.formats import find_format
from framedex.export.selection import select
from framedex.operations.context import Context, open_media
from framedex.records import EntityType, ExportRecord, ExportResult
from framedex.render.progress import progress_bar
from framedex.settings import user_path
from framedex.storage import datasets, export_rows
from framedex.storage.condition import Condition
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view, open_objects
from framedex.tasks import ExportTask

Chooser = Callable[[Media], Condition | RowIds]
"""Given a dataset's media, or its objects, says which of them are exported; called on the export's thread."""


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
    ) -> ExportResult | ExportTask:
        """Write the media to a ZIP file, which appears under its name only when it is whole.

        The formats, with the files that they write, are :data:`framedex.export.formats.FORMATS` and in docs/exports.md:
        metadata with all that is known of the media and of the objects in them, or annotations that other tools read.

        Image files lie under ``images/``. A dataset that is made of an unpacked file of annotations, with image files,
        has the same images, labels, captions and boxes, as far as the format holds them; blank captions are none.
        Without image files, annotations name paths within the source, so that they can be put there.

        Args:
            path: the file; an existing one is replaced.
            format: the name of a format.
            include_images: also put the pictures' files into it.
            media_selection: only these, in the form of the interface's selective export; replaces the view's filter.
                Media and objects may be named whichever are exported: an object stands for its media item, a media item
                for the objects in it.
            wait: return what was written when it is done, showing progress; else the export at once.
            entity_type: ``IMAGES``; ``VIDEOS``, for media of videos; or ``OBJECTS``: then all filters are about
                objects, which are exported with the media that they are in. By default what a view is of, and the
                images of a dataset.
            vql: a further filter; instead of *media_selection*.

        Raises:
            InvalidInput: an argument cannot be used.
            InvalidFilter: the filter cannot be understood.
            NotFound: a selected media item or cluster does not exist.
            Conflict: the dataset has nothing to show yet.
            TaskFailed: something else went wrong, such as a full disk.
        """
        task = self._export(path, format, include_images, media_selection, entity_type, vql)
        return finished(task) if wait else task

    @abstractmethod
    def _export(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002 - the interface's word
        include_images: bool,
        media_selection: Sequence[Any] | None,
        entity_type: str | None,
        vql: Sequence[Any] | None,
    ) -> ExportTask:
        """Start an export."""


def start_export(
    context: Context,
    dataset_id: str,
    path: str | os.PathLike[str],
    choose: Chooser,
    *,
    entity_type: str,
    format: str,  # noqa: A002 - the interface's word
    include_images: bool,
) -> ExportTask:
    """Start an export of the dataset's present state, which it reads whatever is changed meanwhile.

    Args:
        context: the workspace.
        dataset_id: whose media are exported.
        path: the file.
        choose: says which media; or, for ``OBJECTS``, which objects.
        entity_type: what is chosen.
        format: one of :data:`framedex.export.formats.FORMATS`.
        include_images: also put the pictures' files into it.

    Raises:
        InvalidInput: there is no such format, or the place is one of the workspace's own files.
        Conflict: the dataset has nothing to show yet.
    """
    find_format(format)  # an unknown one is refused before anything is started
    target = _absolute(path)
    _check_place(context.layout, target)
    media = open_media(context, dataset_id)
    with context.catalog.read() as connection:
        dataset = datasets.find_dataset(connection, dataset_id)

    def job(
        *, begin: Callable[[int], None], progress: Callable[[float], None], settle: Callable[[], None]
    ) -> ExportResult:
        boxes_only = entity_type == EntityType.OBJECTS
        chosen_from = open_objects(media) if boxes_only else media
        return export_archive(
            media,
            dataset,
            choose(chosen_from),
            target,
            format=format,
            include_images=include_images,
            exported_by=context.settings.user,
            boxes_only=boxes_only,
            begin=begin,
            progress=progress,
            settle=settle,
            settings=context.settings,
        )

    return context.exports.start(dataset_id, target, job)


def _absolute(path: str | os.PathLike[str]) -> Path:
    # The present folder may be another one by the time that the file is written.
    return user_path(path).absolute()


def _check_place(layout: Layout, target: Path) -> None:
    """Check that an export does not replace a file by which a workspace lives.

    Raises:
        InvalidInput: it would.
    """
    if "\0" in str(target):
        return  # no file can be named so, which is said when it is opened
    root, folder = (Path(os.path.realpath(path)) for path in (layout.root, target.parent))
    if not folder.is_relative_to(root):
        return
    first = (folder / target.name).relative_to(root).parts[0]
    if first in (layout.marker.name, layout.datasets.name) or first.startswith(layout.catalog.name):
        raise InvalidInput(f"cannot write {target}: that place is the workspace's own; choose another one")


def chooser(
    condition: Chooser, *, entity_type: str, filtered: bool, media_selection: Sequence[Mapping[str, Any]] | None
) -> Chooser:
    """Return what chooses the media of an export, or the objects.

    Args:
        condition: what chooses without a selection.
        entity_type: ``IMAGES`` for all media; ``VIDEOS`` for those of videos; or ``OBJECTS``.
        filtered: whether a filter was given with the export.
        media_selection: what is chosen instead.

    Raises:
        InvalidInput: there is no such type, or both a filter and a selection were given.
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
    """Return what is selected; nothing, once it was looked at, where there are no objects to be selected from."""
    if not is_empty_object_view(media) or media.parents is None:
        return select(media, selection)
    select(media.parents, selection)
    return np.empty(0, np.uint64)


def _of_videos(media: Media, chosen: Condition | RowIds) -> RowIds:
    """Return those of some rows that are of videos."""
    if not media.has_videos:
        return np.empty(0, np.uint64)
    rows = media.row_ids(Condition("video_id IS NOT NULL", (), frozenset({"video_id"})))
    return np.intersect1d(rows, media.row_ids(chosen) if isinstance(chosen, Condition) else chosen)


def finished(task: ExportTask) -> ExportResult:
    """Wait until an export is done, showing how far it is, and return what was written.

    Raises:
        Error: it was rejected, failed or aborted.
    """
    with progress_bar("Exporting") as progress:
        task.wait(progress=progress)
    return task.result


def get_export(context: Context, dataset_id: str, export_id: str) -> ExportRecord:
    """Return an export of a dataset, of whichever process.

    Raises:
        NotFound: the dataset has none of that id.
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
    """Fail the exports of processes that died."""
    if context.catalog.read_only:
        return
    with context.catalog.read() as connection:
        interrupted = export_rows.has_interrupted_exports(connection)
    if interrupted:
        with context.catalog.write() as connection:
            export_rows.fail_interrupted_exports(connection)
