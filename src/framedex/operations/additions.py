"""Additions of media and objects to a dataset; files are uploaded before the task starts."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from framedex.annotations.sources import BoxSource, resolve_box_sources
from framedex.encoders import Encoder
from framedex.errors import Conflict, Forbidden, InvalidInput, NotIndexed
from framedex.jobs.add import add
from framedex.jobs.add_objects import add_objects
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.content import (
    AdditionRequest,
    Content,
    FilesInput,
    encoder_for_images,
    open_addition,
    with_interpolation,
)
from framedex.jobs.ingest.uploads import UploadSource
from framedex.media.files import allowed_folders, below
from framedex.media.remote import is_remote
from framedex.operations.context import Context
from framedex.operations.names import Operation
from framedex.operations.starting import SETTLED, check_available, start, with_job_context
from framedex.records import DatasetStatus, EmbeddingConfig, TaskType
from framedex.render.progress import progress_bar
from framedex.settings import user_path
from framedex.storage import datasets
from framedex.storage.blobs import remove_upload
from framedex.storage.media_rows import text_of_path
from framedex.storage.schema import BLOBS_ROOT
from framedex.tasks import Commit, Job, Task, TaskProgress

_LOST = (
    "the source folder {!r} of this dataset is not there; if it was moved, `framedex relocate {} NEW` (in Python: "
    "Workspace.relocate) changes its place for all datasets"
)


def start_addition(
    context: Context, dataset_id: str, request: AdditionRequest, *, auto_reindex: bool, show_progress: bool
) -> Task:
    """Open the media, upload files if needed, and start the task; see :meth:`framedex.Dataset.add_media`.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        request: the media.
        auto_reindex: rebuild the whole index.
        show_progress: whether to show the progress of an upload.

    Raises:
        InvalidInput: there are no media, or their embeddings are incompatible with those of the dataset.
    """
    config = _config(context, dataset_id, Operation.ADD_MEDIA)
    with context.catalog.write() as connection:  # what cannot start is not uploaded first
        check_available(connection, dataset_id, Operation.ADD_MEDIA)
    with progress_bar("Uploading", shown=None if show_progress else False) as progress:
        try:
            content = open_addition(
                request,
                config,
                dataset_id=dataset_id,
                layout=context.layout,
                settings=context.settings,
                progress=lambda share: progress("files", share) if progress else None,
            )
        except InvalidInput as error:
            if (root := _lost_root(context, dataset_id, request.path)) is not None:
                raise InvalidInput(_LOST.format(shown := text_of_path(root)[0], shlex.quote(shown))) from error
            raise
    content = with_interpolation(content, interpolate=request.interpolate)
    task_config = {"operation": Operation.ADD_MEDIA, "content": content.config, "auto_reindex": auto_reindex}
    try:
        return start(
            context,
            dataset_id,
            TaskType.MEDIA_ADDITION,
            lambda job, progress: add(job, content, auto_reindex=auto_reindex, progress=progress),
            operation=Operation.ADD_MEDIA,
            config=None if content.config is None else task_config,
        )
    except BaseException:
        _remove_upload(context, dataset_id, content)
        raise


def _lost_root(context: Context, dataset_id: str, path: Any) -> str | None:
    """Return the source folder of a dataset in which a path lies, if that folder is not there; None otherwise."""
    if not isinstance(path, str | os.PathLike):
        return None
    with context.catalog.read() as connection:
        roots = datasets.get_roots(connection, dataset_id)
    place = os.path.abspath(user_path(path))  # noqa: PTH100 - keeps links, unlike resolve
    local = [root for root in roots if root != BLOBS_ROOT and not is_remote(root) and below(root, place) is not None]
    return next((root for root in local if not os.path.exists(root)), None)  # noqa: PTH110 - any bytes


def start_objects(context: Context, dataset_id: str, boxes: Any, *, interpolate: bool) -> Task:
    """Start the task that adds objects to a dataset; see :meth:`framedex.Dataset.add_objects`."""
    sources = _box_sources(context, boxes, interpolate=interpolate)
    _encoder(context, dataset_id)
    paths = list(dict.fromkeys(os.fspath(each.path) for each in sources))
    return start(
        context,
        dataset_id,
        TaskType.MEDIA_ADDITION,
        _add_objects_job(context, sources),
        operation=Operation.ADD_OBJECTS,
        config={"operation": Operation.ADD_OBJECTS, "boxes": paths, "interpolate": interpolate},
    )


def _box_sources(context: Context, boxes: Any, *, interpolate: bool) -> list[BoxSource]:
    return [
        replace(each, interpolate=interpolate) for each in resolve_box_sources(boxes, allowed_folders(context.settings))
    ]


def objects_job(context: Context, dataset_id: str, paths: Sequence[str], *, interpolate: bool) -> Job:
    """Return the job of a task that adds objects, for a retry."""
    sources = _box_sources(context, paths, interpolate=interpolate)
    return with_job_context(context, dataset_id, _add_objects_job(context, sources))


def _add_objects_job(context: Context, sources: Sequence[BoxSource]) -> Callable[[JobContext, TaskProgress], Commit]:
    return lambda job, progress: add_objects(
        job, sources, encoder_for_images(job.config, context.settings), progress=progress
    )


def _encoder(context: Context, dataset_id: str) -> Encoder:
    return encoder_for_images(_config(context, dataset_id, Operation.ADD_OBJECTS), context.settings)


def _config(context: Context, dataset_id: str, operation: Operation) -> EmbeddingConfig:
    """Return the embedding config of a dataset that was indexed.

    Raises:
        Conflict: it is a draft, to which files are uploaded first.
        NotIndexed: it was never indexed.
    """
    with context.catalog.read() as connection:
        config = datasets.embedding_config(connection, dataset_id)
        status = datasets.find_dataset(connection, dataset_id).status_new
    if config is not None:
        return config
    if status is DatasetStatus.DRAFT:
        raise Conflict(f"Operation '{operation}' needs the dataset status {' or '.join(SETTLED)}; it is {status}")
    raise NotIndexed("Dataset has no embedding config")


def _remove_upload(context: Context, dataset_id: str, content: Content) -> None:
    if isinstance(content, FilesInput) and isinstance(content.source, UploadSource):
        remove_upload(context.layout.dataset(dataset_id), content.source.upload_id)


def check_allowed(context: Context) -> None:
    """Check that the settings allow additions.

    Raises:
        Forbidden: they do not.
    """
    if not context.settings.add_media_enabled:
        raise Forbidden("Add media feature is not enabled")
