"""Rows of the journal: the steps by which people edited a dataset. Each function takes an open connection."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.errors import NotFound
from framedex.records import JournalStep
from framedex.storage.datasets import now
from framedex.storage.row_values import reading_row
from framedex.storage.schema import datasets, generations, journal

_COLUMNS = ", ".join(f'"{column.name}"' for column in journal.columns)


@dataclass(frozen=True)
class StoredStep:
    """A step with what is needed to undo it.

    Attributes:
        record: as users see it.
        change: what was changed, but for values of media, as JSON.
        file: the file with old and new values of media; None without such values.
        digest: the hash of the file.
        generation: the generation to which undoing it, or doing it again, returns; None for a step that keeps values.
    """

    record: JournalStep
    change: Mapping[str, Any]
    file: str | None
    digest: str | None
    generation: str | None = None


@dataclass(frozen=True)
class StepFile:
    """A file that a step needs: the step's number and operation, and the name and hash of the file."""

    step: int
    operation: str
    name: str
    digest: str | None


def insert_step(
    connection: sa.Connection,
    dataset_id: str,
    *,
    operation: str,
    created_by: str,
    n_media: int,
    change: Mapping[str, Any],
    file: str | None,
    digest: str | None,
    n_bytes: int,
    reason: str | None,
    generation: str | None = None,
) -> int:
    """Add a step to the journal of a dataset and return its number."""
    last = connection.execute(sa.select(sa.func.max(journal.c.step)).where(journal.c.dataset_id == dataset_id)).scalar()
    number = (last or 0) + 1
    connection.execute(
        journal.insert().values(
            dataset_id=dataset_id,
            step=number,
            operation=operation,
            created_by=created_by,
            created_at=now(),
            n_media=n_media,
            change=dict(change),
            file=file,
            digest=digest,
            n_bytes=n_bytes,
            generation=generation,
            reason=reason,
        )
    )
    return number


def list_steps(connection: sa.Connection, dataset_id: str, *, limit: int | None = None) -> list[StoredStep]:
    """Return the steps of a dataset, the last first."""
    query = journal.select().where(journal.c.dataset_id == dataset_id).order_by(journal.c.step.desc()).limit(limit)
    return [_stored(row) for row in connection.execute(query).all()]


def find_step(connection: sa.Connection, dataset_id: str, step: int) -> StoredStep:
    """Return a step of a dataset.

    Raises:
        NotFound: the journal has no such step, or no more.
    """
    query = journal.select().where(journal.c.dataset_id == dataset_id, journal.c.step == step)
    if (row := connection.execute(query).one_or_none()) is None:
        raise NotFound(f"no step {step} in the journal of this dataset; it may be older than the journal goes back")
    return _stored(row)


def mark_step(connection: sa.Connection, dataset_id: str, step: int, *, undone_by: str | None) -> None:
    """Store that a step was undone by a user, or that it was done again (None)."""
    values = {"undone_by": undone_by, "undone_at": None if undone_by is None else now()}
    connection.execute(
        journal.update().where(journal.c.dataset_id == dataset_id, journal.c.step == step).values(**values)
    )


def set_generation(
    connection: sa.Connection, dataset_id: str, step: int, generation: str | None, change: Mapping[str, Any]
) -> None:
    """Store the generation to which a step returns next, and the change with the head from which it can."""
    connection.execute(
        journal.update()
        .where(journal.c.dataset_id == dataset_id, journal.c.step == step)
        .values(generation=generation, change=dict(change))
    )


def generation_step(connection: sa.Connection, dataset_id: str) -> Callable[..., None]:
    """Return what adds a step that returns to the present head to the journal, after the head has changed.

    Call the result after the commit of the new head, in the same transaction.
    """
    before = connection.execute(sa.select(datasets.c.head).where(datasets.c.id == dataset_id)).scalar_one()

    def insert(*, operation: str, created_by: str, n_media: int, facts: Mapping[str, Any]) -> None:
        after = connection.execute(sa.select(datasets.c.head).where(datasets.c.id == dataset_id)).scalar_one()
        insert_step(
            connection,
            dataset_id,
            operation=operation,
            created_by=created_by,
            n_media=n_media,
            change={**facts, "head": after},
            file=None,
            digest=None,
            n_bytes=0,
            reason=None,
            generation=before,
        )

    return insert


def follow_head(connection: sa.Connection, dataset_id: str, before: str) -> None:
    """Let steps that could be undone from a head be undone from the present one, which has the same content."""
    after = connection.execute(sa.select(datasets.c.head).where(datasets.c.id == dataset_id)).scalar_one()
    query = sa.select(journal.c.step, journal.c.generation, journal.c.change).where(
        journal.c.dataset_id == dataset_id, journal.c.generation.is_not(None)
    )
    for row in connection.execute(query).all():
        if row.change.get("head") == before:
            set_generation(connection, dataset_id, row.step, row.generation, {**row.change, "head": after})


def keep_generations(connection: sa.Connection, dataset_id: str, most: int) -> None:
    """Give up the generations of all steps but the last few, which cannot be undone any more."""
    query = sa.select(journal.c.step).where(journal.c.dataset_id == dataset_id, journal.c.generation.is_not(None))
    steps = list(connection.execute(query.order_by(journal.c.step.desc())).scalars())
    if len(steps) > most:
        _release(connection, dataset_id, journal.c.step <= steps[most])


def release_generations(connection: sa.Connection, dataset_id: str, before: datetime) -> None:
    """Give up the generations of steps before a time, which cannot be undone any more."""
    _release(connection, dataset_id, journal.c.created_at <= before)


def _release(connection: sa.Connection, dataset_id: str, chosen: sa.ColumnElement[bool]) -> None:
    connection.execute(
        journal.update()
        .where(journal.c.dataset_id == dataset_id, journal.c.generation.is_not(None), chosen)
        .values(generation=None, reason="the state before it was freed; snapshots are kept")
    )


def prune_steps(connection: sa.Connection, dataset_id: str, *, before: datetime, max_bytes: int) -> list[str]:
    """Delete the steps before a time, and the first ones of a journal that is too large; return their files."""
    rows = connection.execute(
        sa.select(journal.c.step, journal.c.created_at, journal.c.n_bytes, journal.c.file)
        .where(journal.c.dataset_id == dataset_id)
        .order_by(journal.c.step.desc())
    ).all()
    total, gone = 0, []
    for row in rows:
        total += row.n_bytes
        if row.created_at < before or total > max_bytes:
            gone.append(row)
    if gone:
        last = max(row.step for row in gone)
        connection.execute(journal.delete().where(journal.c.dataset_id == dataset_id, journal.c.step <= last))
    return [row.file for row in gone if row.file is not None]


def forget_steps(connection: sa.Connection, dataset_id: str, files: Collection[str]) -> None:
    """Delete the steps whose files are gone, and all before them, as :func:`prune_steps` did elsewhere."""
    query = sa.select(sa.func.max(journal.c.step)).where(
        journal.c.dataset_id == dataset_id, journal.c.file.in_(list(files))
    )
    if (last := connection.execute(query).scalar()) is not None:
        connection.execute(journal.delete().where(journal.c.dataset_id == dataset_id, journal.c.step <= last))


def journal_files(connection: sa.Connection, dataset_id: str) -> set[str]:
    """Return the files that the steps of a dataset need."""
    query = sa.select(journal.c.file).where(journal.c.dataset_id == dataset_id, journal.c.file.is_not(None))
    return set(connection.execute(query).scalars())


def step_files(connection: sa.Connection, dataset_id: str) -> list[StepFile]:
    """Return the files that the steps of a dataset need, in the order of the steps."""
    names = journal.c.step, journal.c.operation, journal.c.file, journal.c.digest
    query = sa.select(*names).where(journal.c.dataset_id == dataset_id, journal.c.file.is_not(None))
    return [StepFile(*row) for row in connection.execute(query.order_by(journal.c.step)).all()]


def steps_without_state(connection: sa.Connection, dataset_id: str) -> list[int]:
    """Return the steps of a dataset that return to a generation which does not exist."""
    exists = sa.exists().where(generations.c.id == journal.c.generation, generations.c.dataset_id == dataset_id)
    query = sa.select(journal.c.step).where(
        journal.c.dataset_id == dataset_id, journal.c.generation.is_not(None), ~exists
    )
    return list(connection.execute(query.order_by(journal.c.step)).scalars())


def steps_to_generations(connection: sa.Connection, dataset_id: str, generation_ids: Collection[str]) -> list[int]:
    """Return the steps of a dataset that return to one of some generations."""
    query = sa.select(journal.c.step).where(
        journal.c.dataset_id == dataset_id, journal.c.generation.in_(list(generation_ids))
    )
    return list(connection.execute(query.order_by(journal.c.step)).scalars())


def give_up_step(connection: sa.Connection, dataset_id: str, step: int, reason: str) -> None:
    """Store why a step can never be undone or done again; it needs no file and no generation any more."""
    connection.execute(
        journal.update()
        .where(journal.c.dataset_id == dataset_id, journal.c.step == step)
        .values(file=None, digest=None, n_bytes=0, generation=None, reason=reason)
    )


def stored_steps(connection: sa.Connection, dataset_id: str) -> list[tuple[Any, ...]]:
    """Return the journal of a dataset as SQLite stores it, for :func:`restore_steps`."""
    text = f"SELECT {_COLUMNS} FROM journal WHERE dataset_id = ?"
    return [tuple(row) for row in connection.exec_driver_sql(text, (dataset_id,)).all()]


def restore_steps(connection: sa.Connection, dataset_id: str, steps: Sequence[tuple[Any, ...]]) -> None:
    """Insert the steps of a journal again; those whose generations are gone cannot be undone any more."""
    text = f"INSERT OR IGNORE INTO journal ({_COLUMNS}) VALUES ({', '.join('?' * len(journal.columns))})"
    for step in steps:
        connection.exec_driver_sql(text, step)
    for number in steps_without_state(connection, dataset_id):
        give_up_step(connection, dataset_id, number, "the state to which it returns was lost")


def _stored(row: Any) -> StoredStep:
    with reading_row("journal", f"{row.dataset_id}/{row.step}"):
        record = JournalStep(
            step=row.step,
            operation=row.operation,
            n_media=row.n_media,
            created_by=row.created_by,
            created_at=row.created_at,
            undone_by=row.undone_by,
            undone_at=row.undone_at,
            reason=row.reason,
        )
        return StoredStep(record, dict(row.change), row.file, row.digest, row.generation)
