"""Rows of snapshots. Each function takes an open connection of the catalog."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.core.counts import counted
from framedex.core.ids import new_id
from framedex.errors import Conflict, NotFound
from framedex.records import EmbeddingConfig, Snapshot, SnapshotReason, TaskType
from framedex.storage import task_rows
from framedex.storage.datasets import find_dataset, generation_of_row, now
from framedex.storage.generation import Generation
from framedex.storage.manifest import note_change
from framedex.storage.row_values import reading_row
from framedex.storage.schema import Timestamp, datasets, generations, journal, snapshots

CURRENT = "current"
"""Alias for the id of the snapshot of a dataset's active state."""
_SHOWN = 5  # snapshots listed in a message


def insert_snapshot(
    connection: sa.Connection,
    generation: Generation,
    *,
    created_by: str,
    reason: SnapshotReason,
    name: str | None = None,
    description: str = "",
) -> str:
    """Store a generation as a snapshot, which becomes the current one; return its id.

    Args:
        connection: of the catalog.
        generation: the generation.
        created_by: the user.
        reason: the reason.
        name: by default the dataset's name and the id.
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
            n_images=generation.n_still_images,
            n_videos=generation.n_videos,
        )
    )
    set_current(connection, generation.dataset_id, snapshot_id)
    return snapshot_id


def set_current(connection: sa.Connection, dataset_id: str, snapshot_id: str) -> None:
    """Make a snapshot the current one of its dataset."""
    connection.execute(datasets.update().where(datasets.c.id == dataset_id).values(current_snapshot=snapshot_id))
    note_change(connection, dataset_id)


def find_snapshot(connection: sa.Connection, dataset_id: str, snapshot_id: str) -> Snapshot:
    """Return a snapshot of a dataset by id, or by a name that it alone has; ``current`` stands for the current one.

    Raises:
        NotFound: the dataset has no such snapshot, or several of that name.
    """
    if snapshot_id == CURRENT:
        query = sa.select(datasets.c.current_snapshot).where(datasets.c.id == dataset_id)
        snapshot_id = connection.execute(query).scalar_one_or_none() or CURRENT
    try:
        row = connection.execute(_select(dataset_id).where(snapshots.c.id == snapshot_id)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so not an id
        row = None
    if row is None and len(named := _named(connection, dataset_id, snapshot_id)) == 1:
        return named[0]
    if row is None and named:
        raise NotFound(f"{counted(len(named), 'snapshots', 'are')} named {snapshot_id!r}; give the id of one of them")
    if row is None:
        find_dataset(connection, dataset_id)  # raises if the dataset was deleted meanwhile
        raise NotFound(
            f"no snapshot {snapshot_id!r} of this dataset; there are: {named_snapshots(connection, dataset_id)}"
        )
    return _record(row, _restoring(connection, dataset_id))


def named_snapshots(connection: sa.Connection, dataset_id: str) -> str:
    """Return the ids and names of the newest snapshots of a dataset, for a message."""
    names = [f"{each.snapshot_id} ({each.snapshot_name!r})" for each in list_snapshots(connection, dataset_id)]
    return (", ".join(names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")) or "none yet"


def _named(connection: sa.Connection, dataset_id: str, name: str) -> list[Snapshot]:
    return [each for each in list_snapshots(connection, dataset_id) if each.snapshot_name == name]


def list_snapshots(connection: sa.Connection, dataset_id: str) -> list[Snapshot]:
    """Return the snapshots of a dataset, newest first."""
    rows = connection.execute(_select(dataset_id).order_by(snapshots.c.created_at.desc(), snapshots.c.id)).all()
    restoring = _restoring(connection, dataset_id)
    return [_record(row, restoring) for row in rows]


def generation_of(connection: sa.Connection, snapshot_id: str) -> Generation:
    """Return the generation of a snapshot."""
    query = generations.select().join(snapshots, snapshots.c.generation == generations.c.id)
    row = connection.execute(query.where(snapshots.c.id == snapshot_id)).one()
    generation = generation_of_row(row)
    if generation.embedding_config is None:  # older versions stored it only with the dataset
        config = connection.execute(
            sa.select(datasets.c.embedding_config).where(datasets.c.id == generation.dataset_id)
        ).scalar_one()
        with reading_row("datasets", generation.dataset_id):
            update = {"embedding_config": EmbeddingConfig.model_validate(config)}
        generation = generation.model_copy(update=update)
    return generation


def set_snapshot_texts(connection: sa.Connection, snapshot_id: str, **values: str) -> None:
    """Set the name or the description of a snapshot."""
    connection.execute(snapshots.update().where(snapshots.c.id == snapshot_id).values(**values))
    _note_change(connection, snapshot_id)


def hide_snapshot(connection: sa.Connection, record: Snapshot) -> None:
    """Mark a snapshot as deleted, so that vacuum can remove the data that only it references.

    Raises:
        Conflict: the snapshot is the current one, or is being restored.
    """
    if record.is_current:
        raise Conflict(
            f"snapshot {record.snapshot_id} is the current one and cannot be deleted; make another one first"
        )
    if record.is_restoring:
        raise Conflict(f"snapshot {record.snapshot_id} cannot be deleted while it is restored")
    connection.execute(snapshots.update().where(snapshots.c.id == record.snapshot_id).values(deleted_at=now()))
    _note_change(connection, record.snapshot_id)


def retained_generations(
    connection: sa.Connection, dataset_id: str, since: datetime | None = None, *, of_journal: bool = True
) -> list[Generation]:
    """Return the generations to retain: the head, those of snapshots, and those that were the head after a time.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        since: also retain generations that were the head after this time; None for the present head alone.
        of_journal: also retain those to which steps of the journal return.
    """
    retained = generations.c.id.not_in(_superseded(dataset_id, since, of_journal=of_journal))
    query = generations.select().where(generations.c.dataset_id == dataset_id, retained)
    return [generation_of_row(row) for row in connection.execute(query).all()]


def generation_ids(connection: sa.Connection, dataset_id: str) -> set[str]:
    """Return the ids of all generations of a dataset, also of superseded ones."""
    query = sa.select(generations.c.id).where(generations.c.dataset_id == dataset_id)
    return set(connection.execute(query).scalars())


def has_superseded_generations(connection: sa.Connection, dataset_id: str, since: datetime | None = None) -> bool:
    """Return whether there are generations other than :func:`retained_generations`."""
    return connection.execute(_superseded(dataset_id, since).limit(1)).first() is not None


def prune_generations(connection: sa.Connection, dataset_id: str, since: datetime | None = None) -> int:
    """Delete the rows of a dataset's unreferenced generations and snapshots; return their number.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        since: generations that were the head after this time are retained.
    """
    count = connection.execute(
        generations.delete().where(generations.c.id.in_(_superseded(dataset_id, since)))
    ).rowcount
    connection.execute(
        snapshots.delete().where(snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_not(None))
    )
    return count


def _note_change(connection: sa.Connection, snapshot_id: str) -> None:
    query = sa.select(snapshots.c.dataset_id).where(snapshots.c.id == snapshot_id)
    note_change(connection, connection.execute(query).scalar_one())


def _superseded(dataset_id: str, since: datetime | None, *, of_journal: bool = True) -> sa.Select[Any]:
    """Return a query for the ids of the generations that a dataset does not need."""
    # A generation is the head until the next one is committed.
    until = sa.func.lead(generations.c.created_at, type_=Timestamp).over(order_by=generations.c.created_at)
    each = sa.select(generations.c.id, until.label("until")).where(generations.c.dataset_id == dataset_id).subquery()
    of_snapshots = sa.select(snapshots.c.generation).where(
        snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_(None)
    )
    head = sa.select(datasets.c.head).where(datasets.c.id == dataset_id, datasets.c.head.is_not(None))
    of_steps = sa.select(journal.c.generation).where(
        journal.c.dataset_id == dataset_id, journal.c.generation.is_not(None)
    )
    query = sa.select(each.c.id).where(
        each.c.until.is_not(None), each.c.id.not_in(of_snapshots), each.c.id.not_in(head)
    )
    query = query.where(each.c.id.not_in(of_steps)) if of_journal else query
    return query if since is None else query.where(each.c.until <= since)


def _select(dataset_id: str) -> sa.Select[Any]:
    return (
        sa.select(snapshots, datasets.c.name.label("dataset_name"), datasets.c.current_snapshot)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(snapshots.c.dataset_id == dataset_id, snapshots.c.deleted_at.is_(None))
    )


def _restoring(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return the id of the snapshot that is being restored; None if no restore is running."""
    config = task_rows.running_config(connection, dataset_id, TaskType.SNAPSHOT_RESTORE)
    return None if config is None else config.get("snapshot_id")


def _record(row: Any, restoring: str | None) -> Snapshot:
    with reading_row("snapshots", row.id):
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
