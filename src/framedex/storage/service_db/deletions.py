"""Deletions that have begun. Each function takes an open connection of the service's database.

A dataset is in the catalog, and to whom it belongs is in the service's database. A user may have an account at an
identity provider, beside the one here. A row says who deletes a dataset or a user, so that a deletion whose process is
killed between the two places is finished later.
"""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from framedex.storage.datasets import now
from framedex.storage.service_db.schema import deletions, user_deletions


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


class UserDeletion(NamedTuple):
    """A deletion of a user that has begun: the user is disabled.

    Attributes:
        user_id: the user.
        actor_id: who deletes the user; None for nobody with an account.
        was_enabled: whether the user could log in before.
        begun_at: the time at which it began.
    """

    user_id: str
    actor_id: str | None
    was_enabled: bool
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


def begin_user_deletion(connection: sa.Connection, user_id: str, actor_id: str | None, *, was_enabled: bool) -> None:
    """Note that a user is being deleted; an earlier attempt knows whether the user could log in."""
    earlier = connection.execute(sa.select(user_deletions).where(user_deletions.c.user_id == user_id)).one_or_none()
    end_user_deletion(connection, user_id)
    values = {"was_enabled": was_enabled if earlier is None else earlier.was_enabled, "begun_at": now()}
    connection.execute(user_deletions.insert().values(user_id=user_id, actor_id=actor_id, **values))


def end_user_deletion(connection: sa.Connection, user_id: str) -> UserDeletion | None:
    """Forget the deletion of a user and return it; None if none had begun, or it has ended."""
    row = connection.execute(sa.select(user_deletions).where(user_deletions.c.user_id == user_id)).one_or_none()
    connection.execute(user_deletions.delete().where(user_deletions.c.user_id == user_id))
    return None if row is None else UserDeletion(*row)


def begun_user_deletions(connection: sa.Connection) -> list[UserDeletion]:
    """Return the deletions of users that have begun and not ended."""
    return [UserDeletion(*row) for row in connection.execute(sa.select(user_deletions)).all()]
