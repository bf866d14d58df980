"""Snapshots of a dataset: creation, listing, restoring, cloning and deletion, by the rules of the interface."""

from collections.abc import Mapping
from typing import Any

from framedex.core.checks import has_lone_surrogate
from framedex.core.naming import check_name
from framedex.errors import Conflict, Forbidden, InvalidInput, NotFound, NotIndexed
from framedex.jobs.restore import clone, restore
from framedex.operations.context import Context
from framedex.operations.names import Operation
from framedex.operations.starting import (
    check_available,
    delete_if_stopped,
    insert_copy,
    load_job_context,
    start,
    with_job_context,
)
from framedex.operations.states import PRESENT
from framedex.records import DatasetStatus, Snapshot, SnapshotReason, TaskType
from framedex.storage import datasets, snapshot_rows
from framedex.tasks import Commit, Job, Task, TaskProgress, start_task

_RESTORABLE = (DatasetStatus.READY, DatasetStatus.PARTIAL_INDEX, DatasetStatus.ERROR)
_MAX_NAME = 400


def create_snapshot(context: Context, dataset_id: str, name: str | None, description: str | None) -> Snapshot:
    """Create a snapshot of the current head; see :meth:`framedex.Dataset.snapshot`."""
    _check_enabled(context)
    if description is None:
        raise InvalidInput("the description of a snapshot is text; leave it out for none")
    _check_texts(name, description)
    with context.catalog.write() as connection:
        check_available(connection, dataset_id, "snapshot", (DatasetStatus.READY,))
        generation = datasets.head(connection, dataset_id)
        assert generation is not None, "a dataset that is READY has a head"
        snapshot_id = snapshot_rows.insert_snapshot(
            connection,
            generation,
            created_by=context.settings.user,
            reason=SnapshotReason.MANUAL,
            name=name,
            description=description,
        )
        return snapshot_rows.find_snapshot(connection, dataset_id, snapshot_id)


def list_snapshots(context: Context, dataset_id: str) -> list[Snapshot]:
    """Return the snapshots of a dataset, newest first."""
    _check_enabled(context)
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, dataset_id)
        return snapshot_rows.list_snapshots(connection, dataset_id)


def update_snapshot(
    context: Context, dataset_id: str, snapshot: Snapshot | str, *, name: str | None, description: str | None
) -> Snapshot:
    """Change the name or the description of a snapshot; see :meth:`framedex.Dataset.update_snapshot`."""
    _check_enabled(context)
    if name is None and description is None:
        raise InvalidInput("a snapshot is updated by a name, a description, or both; neither was given")
    _check_texts(name, description)
    values = {key: value for key, value in (("name", name), ("description", description)) if value is not None}
    with context.catalog.write() as connection:
        record = snapshot_rows.find_snapshot(connection, dataset_id, _id_of(snapshot))
        snapshot_rows.set_snapshot_texts(connection, record.snapshot_id, **values)
        return snapshot_rows.find_snapshot(connection, dataset_id, record.snapshot_id)


def delete_snapshot(context: Context, dataset_id: str, snapshot: Snapshot | str) -> None:
    """Delete a snapshot; see :meth:`framedex.Dataset.delete_snapshot`."""
    _check_enabled(context)
    with context.catalog.write() as connection:
        record = snapshot_rows.find_snapshot(connection, dataset_id, _id_of(snapshot))
        snapshot_rows.hide_snapshot(connection, record)


def start_restore(context: Context, dataset_id: str, snapshot: Snapshot | str | None) -> Task:
    """Start the restore of a snapshot; see :meth:`framedex.Dataset.restore`."""
    _check_enabled(context)
    context.catalog.check_writable()
    with context.catalog.read() as connection:
        _check_no_draft(connection, dataset_id, Operation.RESTORE)
        if snapshot is None:
            error = InvalidInput if snapshot_rows.list_snapshots(connection, dataset_id) else NotFound
            names = snapshot_rows.named_snapshots(connection, dataset_id)
            raise error(f"a restore needs the id or the name of a snapshot; there are: {names}")
        snapshot_id = snapshot_rows.find_snapshot(connection, dataset_id, _id_of(snapshot)).snapshot_id
        generation = snapshot_rows.generation_of(connection, snapshot_id)
    return start(
        context,
        dataset_id,
        TaskType.SNAPSHOT_RESTORE,
        lambda job, progress: restore(job, snapshot_id, generation, progress=progress),
        operation=Operation.RESTORE,
        allowed=_RESTORABLE,
        config={"operation": Operation.RESTORE, "snapshot_id": snapshot_id},
    )


def restore_job(context: Context, dataset_id: str, snapshot_id: str) -> Job:
    """Return the job of a restore, for a retry."""
    with context.catalog.read() as connection:
        snapshot_rows.find_snapshot(connection, dataset_id, snapshot_id)
        generation = snapshot_rows.generation_of(connection, snapshot_id)
    return with_job_context(
        context, dataset_id, lambda job, progress: restore(job, snapshot_id, generation, progress=progress)
    )


def start_clone(context: Context, dataset_id: str, snapshot: Snapshot | str) -> tuple[str, Task]:
    """Start cloning a state; return the new dataset's id and the task. See :meth:`framedex.Dataset.clone`."""
    _check_enabled(context)
    with context.catalog.write() as connection:
        _check_no_draft(connection, dataset_id, Operation.CLONE)
        state = _state_to_clone(connection, dataset_id, snapshot)
        source = datasets.find_dataset(connection, dataset_id)
        if source.status_new not in _RESTORABLE:
            allowed = " or ".join(_RESTORABLE)
            raise Conflict(
                f"Operation '{Operation.CLONE}' needs the dataset status {allowed}; it is {source.status_new}"
            )
        new_id, user = insert_copy(connection, context, source, "cloned"), context.settings.user
        config = {"operation": Operation.CLONE, "source": dataset_id, **state}
        task_id = context.runner.insert(
            connection, datasets.find_dataset(connection, new_id), TaskType.SNAPSHOT_CLONE, config, created_by=user
        )

    def job(progress: TaskProgress) -> Commit:  # read the state within the task: a snapshot may be deleted before
        return clone_job(context, new_id, config)(progress)

    with delete_if_stopped(context, new_id, task_id):
        return new_id, start_task(context.runner, task_id, new_id, job)


def _state_to_clone(connection: Any, dataset_id: str, snapshot: Snapshot | str) -> dict[str, str]:
    """Return the state that a clone is of, for the config of its task.

    The present state is that at the start of the task: while the task runs, its generation is retained.

    Raises:
        NotFound: there is no such dataset or snapshot.
        NotIndexed: the dataset has no present state, because its creation failed.
    """
    if snapshot != PRESENT:
        return {"snapshot_id": snapshot_rows.find_snapshot(connection, dataset_id, _id_of(snapshot)).snapshot_id}
    if (head := datasets.head(connection, dataset_id)) is None:
        raise NotIndexed("the dataset has nothing to clone: its creation has not ended well")
    return {"generation": head.id}


def clone_job(context: Context, new_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job that clones a state of a dataset into a new dataset.

    Raises:
        NotFound: the source or its snapshot does not exist any more, or the state was freed after a failure.
    """
    dataset_id = config["source"]
    with context.catalog.read() as connection:
        if "snapshot_id" in config:
            snapshot_rows.find_snapshot(connection, dataset_id, config["snapshot_id"])
            generation = snapshot_rows.generation_of(connection, config["snapshot_id"])
        else:
            datasets.find_dataset(connection, dataset_id)
            generation = datasets.find_generation(connection, dataset_id, config["generation"])
    source, user = load_job_context(context, dataset_id), context.settings.user
    return lambda progress: clone(
        source, generation, layout=context.layout, dataset_id=new_id, created_by=user, progress=progress
    )


def _id_of(snapshot: Snapshot | str) -> str:
    if isinstance(snapshot, Snapshot):
        return snapshot.snapshot_id
    if not _is_text(snapshot):
        raise InvalidInput(f"a snapshot is given by its record, its id, its name or 'current', not {snapshot!r}")
    return snapshot


def _check_no_draft(connection: Any, dataset_id: str, operation: Operation) -> None:
    """Check that a dataset is no draft, which has no snapshots yet.

    Raises:
        Conflict: it is a draft.
    """
    status = datasets.find_dataset(connection, dataset_id).status_new
    if status is DatasetStatus.DRAFT:
        allowed = " or ".join(_RESTORABLE)
        raise Conflict(f"Operation '{operation}' needs the dataset status {allowed}; it is {status}")


def _check_enabled(context: Context) -> None:
    if not context.settings.dataset_snapshots_enabled:
        raise Forbidden("Snapshot feature is not enabled")


def _check_texts(name: str | None, description: str | None) -> None:
    if name is not None:
        check_name("snapshot", name, max_length=_MAX_NAME)
    if description is not None and not _is_text(description):
        raise InvalidInput(f"the description of a snapshot is text, not {description!r}")


def _is_text(value: object) -> bool:
    """Return whether a value is text that UTF-8 can encode."""
    return isinstance(value, str) and not has_lone_surrogate(value)
