"""Retries of tasks: jobs rebuilt from the stored config of a task, in any process."""

from collections.abc import Callable, Mapping
from typing import Any

from framedex.cleanup.removal import removal_job
from framedex.errors import NotRetryable
from framedex.jobs.add import add, reindex
from framedex.jobs.ingest.content import content_from_config
from framedex.jobs.remove import remove
from framedex.operations.additions import objects_job
from framedex.operations.context import Context
from framedex.operations.creation import creation_job
from framedex.operations.edits import field_job
from framedex.operations.enrichment import enrichment_job
from framedex.operations.maps import map_job
from framedex.operations.merging import merge_job
from framedex.operations.names import Operation
from framedex.operations.snapshots import clone_job, restore_job
from framedex.operations.starting import with_job_context
from framedex.records import DatasetStatus, EmbeddingConfig, TaskRecord
from framedex.storage import datasets
from framedex.tasks import Job

_Config = Mapping[str, Any]


def rebuild_job(context: Context, record: TaskRecord, config: _Config) -> Job:
    """Return the job of a task, which acts for the user who started the task.

    Args:
        context: the open workspace.
        record: the record of the task.
        config: the stored config of the task.

    Raises:
        NotRetryable: the task was started by a newer version of Framedex.
        InvalidInput: the source of the task is gone.
        NotFound: its dataset or snapshot is gone.
    """
    try:
        operation = Operation(str(config.get("operation")))
    except ValueError:
        raise NotRetryable(
            f"task {record.task_id} is of a kind that this version of Framedex does not have: {config!r}"
        ) from None
    return _JOBS[operation](context.acting_as(record.created_by), record.dataset_id, config)


def _create(context: Context, dataset_id: str, config: _Config) -> Job:
    embedding = EmbeddingConfig.model_validate(config["embedding_config"])
    content = content_from_config(config["content"], embedding, context.layout, context.settings)
    return creation_job(context, dataset_id, content, embedding, force=config.get("force", False))


def _add(context: Context, dataset_id: str, config: _Config) -> Job:
    with context.catalog.read() as connection:
        embedding = datasets.embedding_config(connection, dataset_id)
    if embedding is None:
        raise NotRetryable("Dataset has no embedding config")
    content = content_from_config(config["content"], embedding, context.layout, context.settings)
    auto_reindex = bool(config["auto_reindex"])
    return with_job_context(
        context, dataset_id, lambda job, progress: add(job, content, auto_reindex=auto_reindex, progress=progress)
    )


def _add_objects(context: Context, dataset_id: str, config: _Config) -> Job:
    return objects_job(context, dataset_id, config["boxes"], interpolate=config.get("interpolate", False))


def _reindex(context: Context, dataset_id: str, config: _Config) -> Job:
    return with_job_context(
        context,
        dataset_id,
        lambda job, progress: reindex(
            job.forced() if config.get("force") else job,
            progress=progress,
            measure_images=config.get("measure_images", False),
        ),
        status_shown=DatasetStatus.INDEXING,
        thresholds=config["thresholds"],
    )


def _remove(context: Context, dataset_id: str, config: _Config) -> Job:
    ids = config["media_ids"]
    return with_job_context(context, dataset_id, lambda job, progress: remove(job, ids, progress=progress))


_JOBS: dict[Operation, Callable[[Context, str, _Config], Job]] = {
    Operation.CREATE: _create,
    Operation.ADD_MEDIA: _add,
    Operation.ADD_OBJECTS: _add_objects,
    Operation.REINDEX: _reindex,
    Operation.DELETE_MEDIA: _remove,
    Operation.CLEANUP: removal_job,
    Operation.ADD_FIELD: field_job,
    Operation.SET_FIELD: field_job,
    Operation.ENRICH: enrichment_job,
    Operation.RESTORE: lambda context, dataset_id, config: restore_job(context, dataset_id, config["snapshot_id"]),
    Operation.MAP: lambda context, dataset_id, config: map_job(context, dataset_id, objects=config["objects"]),
    Operation.MERGE: merge_job,
    Operation.CLONE: clone_job,
}
