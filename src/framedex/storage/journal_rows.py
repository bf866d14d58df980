"""Rows of the journal: the steps by which people edited a dataset. Each function takes an open connection."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.errors import NotFound
from framedex.records import JournalStep
from framedex.storage.datasets import now
from framedex.storage.row_values import reading_row
from framedex.storage.schema import journal


@dataclass(frozen=True)
class StoredStep:
    """A step with what is needed to undo it.

    Attributes:
        record: as users see it.
        change: what was changed, but for values of media, as JSON.
        file: the file with old and new values of media; None without such values.
        digest: the hash of the file.
    """

    record: JournalStep
    change: Mapping[str, Any]
    file: str | None
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


def journal_files(connection: sa.Connection, dataset_id: str) -> set[str]:
    """Return the files that the steps of a dataset need."""
    query = sa.select(journal.c.file).where(journal.c.dataset_id == dataset_id, journal.c.file.is_not(None))
    return set(connection.execute(query).scalars())


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
        return StoredStep(record, dict(row.change), row.file, row.digest)
