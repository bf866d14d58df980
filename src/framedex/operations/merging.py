"""Merges of two datasets into a new one."""

from collections.abc import Mapping
from typing import Any

from framedex.core.counts import counted
from framedex.core.naming import check_dataset_name
from framedex.errors import Conflict, InvalidInput, NotIndexed
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.content import PRECOMPUTED
from framedex.jobs.merge.definitions import MergedDefinitions
from framedex.jobs.merge.merge import Sources, merge
from framedex.operations.context import Context
from framedex.operations.names import Operation
from framedex.operations.starting import SETTLED, delete_if_stopped, load_job_context
from framedex.records import EmbeddingConfig, TaskType
from framedex.storage import datasets
from framedex.tasks import Commit, Job, Task, TaskProgress, start_task


def start_merge(context: Context, dataset_id: str, other_id: str, name: str) -> tuple[str, Task]:
    """Start the merge of two datasets; return the new dataset's id and the task. See :meth:`framedex.Dataset.merge`."""
    check_dataset_name(name)
    if dataset_id == other_id:
        raise InvalidInput("a dataset is merged with another one, not with itself; clone() copies it")
    sources = _sources(context, dataset_id, other_id)
    MergedDefinitions.of((sources.first.table, sources.second.table), sources.heads)
    with context.catalog.write() as connection:
        for each in (dataset_id, other_id):
            _check_settled(datasets.find_dataset(connection, each))
        new_id = datasets.insert_dataset(
            connection,
            name,
            owned_by=context.settings.user,
            namespace=datasets.namespace_of(connection, dataset_id),
            source_dataset_id=dataset_id,
            creator_id=context.creator_id,
        )
        config = {"operation": Operation.MERGE, "source": dataset_id, "other": other_id}
        record = datasets.find_dataset(connection, new_id)
        task_id = context.runner.insert(
            connection, record, TaskType.DATASET_CREATION, config, created_by=context.settings.user
        )
    with delete_if_stopped(context, new_id, task_id):
        return new_id, start_task(context.runner, task_id, new_id, merge_job(context, new_id, config))


def merge_job(context: Context, new_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job of a merge; a retry merges the present states.

    Raises:
        NotFound: one of the datasets does not exist any more.
    """
    with context.catalog.read() as connection:
        for each in (config["source"], config["other"]):
            datasets.find_dataset(connection, each)

    def run(progress: TaskProgress) -> Commit:
        sources = _sources(context, config["source"], config["other"])
        return merge(sources, layout=context.layout, dataset_id=new_id, progress=progress)

    return run


def _sources(context: Context, dataset_id: str, other_id: str) -> Sources:
    """Return two datasets that can be merged.

    Raises:
        InvalidInput: they have different encoders.
        Conflict: one has no index yet.
    """
    with context.catalog.read() as connection:
        records = [datasets.find_dataset(connection, each) for each in (dataset_id, other_id)]
    jobs: list[JobContext] = []
    for record in records:
        try:
            jobs.append(load_job_context(context, record.id))
        except NotIndexed:
            _check_settled(record)
            raise
    ours, theirs = (each.config for each in jobs)
    if _space(ours) != _space(theirs):
        names = " and ".join(f"{each.encoder!r} ({counted(each.dimension, 'values')})" for each in (ours, theirs))
        raise InvalidInput(
            f"datasets are merged if their embeddings are of the same encoder, not of {names}; encode one of them "
            f"again as the other one: create_dataset(…, encoder={theirs.encoder!r}), or enrich() with its model"
        )
    return Sources(jobs[0], jobs[1], ours.encoder != PRECOMPUTED)


def _space(config: EmbeddingConfig) -> tuple[Any, ...]:
    """Return what is equal for configs whose embeddings can be compared."""
    return config.encoder, config.dimension, config.weights


def _check_settled(record: Any) -> None:
    if record.status_new not in SETTLED:
        allowed = " or ".join(SETTLED)
        raise Conflict(
            f"Operation '{Operation.MERGE}' needs the dataset status {allowed}; that of {record.display_name!r} is "
            f"{record.status_new}"
        )
