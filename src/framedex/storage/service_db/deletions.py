"""Deletions of datasets that have begun. Each function takes an open connection of the service's database.

A dataset is in the catalog, and to whom it belongs is in the service's database. A row here says who deletes a dataset,
so that a deletion whose process is killed between the two is finished later.
"""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from framedex.storage.datasets import now
from framedex.storage.service_db.schema import deletions


class Deletion(NamedTuple):
    """A deletion that has begun.

    Attributes:
        dataset_id: the dataset.
        user_id: who deletes it; None for nobody with an account.
        begun_at: the time at which it began.
    """

    dataset_id: str
    user_id: str | None
    begun_at: datetime


def begin_deletion(connection: sa.Connection, dataset_id: str, user_id: str | None) -> None:
    """Note that a user deletes a dataset, in the place of an earlier attempt."""
    end_deletion(connection, dataset_id)
    connection.execute(deletions.insert().values(dataset_id=dataset_id, user_id=user_id, begun_at=now()))


def end_deletion(connection: sa.Connection, dataset_id: str) -> bool:
    """Forget the deletion of a dataset; return whether one had begun and not ended."""
    return bool(connection.execute(deletions.delete().where(deletions.c.dataset_id == dataset_id)).rowcount)


def begun_deletions(connection: sa.Connection) -> list[Deletion]:
    """Return the deletions that have begun and not ended."""
    return [Deletion(*row) for row in connection.execute(sa.select(deletions)).all()]
