"""Rows of snapshots. Each function takes an open connection of the catalog."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict, NotFound
from framedex.ids import new_id
from framedex.records import EmbeddingConfig, Snapshot, SnapshotReason, TaskType
from framedex.storage import task_rows
from framedex.storage.datasets import find_dataset, now
from framedex.storage.generation import Generation
from framedex.storage.manifest import note_change
from framedex.storage.schema import Timestamp, datasets, generations, snapshots

CURRENT = "current"
"""What may stand for the id of the snapshot that represents the active state of a dataset."""
_SHOWN = 5  # snapshots that a message names


def insert_snapshot(
    connection: sa.Connection,
    generation: Generation,
    *,
    created_by: str,
    reason: SnapshotReason,
    name: str | None = None,
    description: str = "",
) -> str:
    """Keep a generation as a snapshot, which becomes the current one; return its id.

    Args:
        connection: of the catalog.
        generation: what is kept.
        created_by: who made it.
        reason: why.
        name: by default that of the dataset, and the id.
        description: free text.
    """
    snapshot_id = new_id()
    if name is None:
        query = sa.select(datasets.c.name).where(datasets.c.id == generation.dataset_id)
        name = f"{connection.execute(query).scalar_one()}_snapshot_{snapshot_id}"
    connection.execute(
        snapshots.insert().values(
            id=snapshot_id,
            dataset_id=generation.dataset_id,
            generation=generation.id,
            name=name,
            description=description,
            created_at=now(),
            created_by=created_by,
            reason=reason,
            n_images=generation.n_pictures,
            n_videos=generation.n_videos,
        )
    )
    set_current(connection, generation.dataset_id, snapshot_id)
    return snapshot_id


def set_current(connection: sa.Connection, dataset_id: str, snapshot_id: str) -> None:
    """Make a snapshot the one that represents the active state of its dataset."""
    connection.execute(datasets.update().where(datasets.c.id == dataset_id).values(current_snapshot=snapshot_id))
    note_change(connection, dataset_id)


def find_snapshot(connection: sa.Connection, dataset_id: str, snapshot_id: str) -> Snapshot:
    """Return a snapshot of a dataset, or its current one for ``current``.

    Raises:
        NotFound: the dataset has none of that id.
    """
    if snapshot_id == CURRENT:
        query = sa.select(datasets.c.current_snapshot).where(datasets.c.id == dataset_id)
        snapshot_id = connection.execute(query).scalar_one_or_none() or CURRENT
    try:
        row = connection.execute(_select(dataset_id).where(snapshots.c.id == snapshot_id)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair; no snapshot is called so
        row = None
    if row is None:
        find_dataset(connection, dataset_id)  # what was deleted meanwhile has none
        known = [f"{each.snapshot_id} ({each.snapshot_name!r})" for each in list_snapshots(connection, dataset_id)]
        shown = ", ".join(known[:_SHOWN]) + (" and more" if len(known) > _SHOWN else "")
        raise NotFound(f"no snapshot {snapshot_id!r} of this dataset; there are: {shown or 'none yet'}")
    return _record(row, _restoring(connection, dataset_id))


def list_snapshots(connection: sa.Connection, dataset_id: str) -> list[Snapshot]:
    """Return the snapshots of a dataset, newest first."""
    rows = connection.execute(_select(dataset_id).order_by(snapshots.c.created_at.desc(), snapshots.c.id)).all()
    restoring = _restoring(connection, dataset_id)
    return [_record(row, restoring) for row in rows]


def generation_of(connection: sa.Connection, snapshot_id: str) -> Generation:
    """Return what a snapshot keeps."""
    query = generations.select().join(snapshots, snapshots.c.generation == generations.c.id)
    row = connection.execute(query.where(snapshots.c.id == snapshot_id)).one()
    found = Generation.model_validate(dict(row._mapping))
    if found.embedding_config is None:  # kept by an older version, when it was the dataset's alone
        config = connection.execute(
            sa.select(datasets.c.embedding_config).where(datasets.c.id == found.dataset_id)
        ).scalar_one()
        found = found.model_copy(update={"embedding_config": EmbeddingConfig.model_validate(config)})
    return found


def update_snapshot(connection: sa.Connection, snapshot_id: str, **values: str) -> None:
    """Set the name or the description of a snapshot."""
    connection.execute(snapshots.update().where(snapshots.c.id == snapshot_id).values(**values))
    _note_change(connection, snapshot_id)


def hide_snapshot(connection: sa.Connection, record: Snapshot) -> None:
    """Delete a snapshot: it is not shown any more, and what it alone needs may be cleaned up.

    Raises:
        Conflict: it is the current one, or it is being restored.
    """
    if record.is_current:
        raise Conflict(
            f"snapshot {record.snapshot_id} is the current one and cannot be deleted; make another one first"
        )
    if record.is_restoring:
        raise Conflict(f"snapshot {record.snapshot_id} cannot be deleted while it is restored")
    connection.execute(snapshots.update().where(snapshots.c.id == record.snapshot_id).values(deleted_at=now()))
    _note_change(connection, record.snapshot_id)


def kept_generations(connection: sa.Connection, dataset_id: str, since: datetime | None = None) -> list[Generation]:
    """Return the generations that a dataset needs: its head, those of its snapshots, and heads after a time.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        since: what was the head after that is needed, too; None for the present one alone.
    """
    kept = generations.c.id.not_in(_superseded(dataset_id, since))
    query = generations.select().where(generations.c.dataset_id == dataset_id, kept)
    return [Generation.model_validate(dict(row._mapping)) for row in connection.execute(query).all()]


def has_superseded(connection: sa.Connection, dataset_id: str, since: datetime | None = None) -> bool:
    """Return whether there are others than :func:`kept_generations`."""
    return connection.execute(_superseded(dataset_id, since).limit(1)).first() is not None


def prune(connection: sa.Connection, dataset_id: str, since: datetime | None = None) -> int:
    """Delete the rows of generations and snapshots of a dataset that nothing needs any more; return how many.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        since: what was the head after that is needed.
    """
    gone = connection.execute(generations.delete().where(generations.c.id.in_(_superseded(dataset_id, since)))).rowcount
    connection.execute(
        snapshots.delete().where(snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_not(None))
    )
    return gone


def _note_change(connection: sa.Connection, snapshot_id: str) -> None:
    query = sa.select(snapshots.c.dataset_id).where(snapshots.c.id == snapshot_id)
    note_change(connection, connection.execute(query).scalar_one())


def _superseded(dataset_id: str, since: datetime | None) -> sa.Select[Any]:
    """Return what selects the ids of the generations that a dataset does not need."""
    # A generation is the head until the next one is committed.
    until = sa.func.lead(generations.c.created_at, type_=Timestamp).over(order_by=generations.c.created_at)
    each = sa.select(generations.c.id, until.label("until")).where(generations.c.dataset_id == dataset_id).subquery()
    kept = sa.select(snapshots.c.generation).where(
        snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_(None)
    )
    head = sa.select(datasets.c.head).where(datasets.c.id == dataset_id, datasets.c.head.is_not(None))
    query = sa.select(each.c.id).where(each.c.until.is_not(None), each.c.id.not_in(kept), each.c.id.not_in(head))
    return query if since is None else query.where(each.c.until <= since)


def _select(dataset_id: str) -> sa.Select[Any]:
    return (
        sa.select(snapshots, datasets.c.name.label("dataset_name"), datasets.c.current_snapshot)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_(None))
    )


def _restoring(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return the id of the snapshot that is being restored; None if none is."""
    config = task_rows.running_config(connection, dataset_id, TaskType.SNAPSHOT_RESTORE)
    return None if config is None else config.get("snapshot_id")


def _record(row: Any, restoring: str | None) -> Snapshot:
    return Snapshot(
        snapshot_id=row.id,
        snapshot_name=row.name,
        source_dataset_name=row.dataset_name,
        created_at=row.created_at,
        created_by=row.created_by,
        n_images=row.n_images,
        n_videos=row.n_videos,
        description=row.description,
        reason=SnapshotReason(row.reason),
        training_model_id=row.training_model_id,
        training_model_name=row.training_model_name,
        is_current=row.current_snapshot == row.id,
        is_restoring=restoring == row.id,
    )
