"""Rows of notifications. Each function takes an open connection of the service's database."""

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from framedex.core.ids import new_id
from framedex.records import Alert, Notification
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import notifications

SAVED_VIEW = "saved_view"


class Inbox(NamedTuple):
    """Notifications of a user.

    Attributes:
        user_id: the user.
        datasets: the ids of the datasets that the user may view; notifications of others are left out.
    """

    user_id: str
    datasets: Collection[str]

    def condition(self) -> sa.ColumnElement[bool]:
        """Return the condition of the rows."""
        visible = sa.text("SELECT value FROM json_each(:visible_datasets)").bindparams(
            visible_datasets=json.dumps(list(self.datasets))
        )
        of_dataset = notifications.c.dataset_id
        is_visible = sa.or_(of_dataset.is_(None), of_dataset.in_(visible.columns(sa.column("value"))))
        return sa.and_(notifications.c.user_id == self.user_id, is_visible)


def put_notification(connection: sa.Connection, user_id: str, alert: Alert, *, message: str, time: datetime) -> bool:
    """Add a notification of an alert, unless the user has it; return whether it is new."""
    metadata = {
        "batch_id": alert.batch_id,
        "is_alert": True,
        "view_name": alert.view_name,
        "dataset_name": alert.dataset_name,
        "result_count": alert.result_count,
    }
    row = insert(notifications).values(
        id=new_id(),
        user_id=user_id,
        entity_type=SAVED_VIEW,
        entity_id=alert.view_id,
        batch_id=alert.batch_id,
        title="",
        message=message,
        metadata=metadata,
        dataset_id=alert.dataset_id,
        created_at=time,
    )
    return bool(connection.execute(row.on_conflict_do_nothing()).rowcount)


def list_notifications(
    connection: sa.Connection, inbox: Inbox, *, unread_only: bool, limit: int, offset: int
) -> tuple[list[Notification], int]:
    """Return a page of notifications, newest first, and the number of all of them."""
    condition = inbox.condition()
    if unread_only:
        condition &= notifications.c.read_at.is_(None)
    total = connection.execute(sa.select(sa.func.count()).select_from(notifications).where(condition)).scalar_one()
    query = notifications.select().where(condition).order_by(notifications.c.number.desc())
    rows = connection.execute(query.limit(limit).offset(offset)).all()
    return [_record(row) for row in rows], total


def count_unread(connection: sa.Connection, inbox: Inbox) -> int:
    """Return the number of notifications that were not read."""
    condition = inbox.condition() & notifications.c.read_at.is_(None)
    query = sa.select(sa.func.count()).select_from(notifications).where(condition)
    return int(connection.execute(query).scalar_one())


def mark_read(connection: sa.Connection, inbox: Inbox, notification_id: str | None = None) -> int:
    """Mark notifications that were not read as read; return their number.

    Args:
        connection: of the service's database.
        inbox: the notifications.
        notification_id: one of them; None for all.
    """
    condition = inbox.condition() & notifications.c.read_at.is_(None)
    if notification_id is not None:
        condition &= notifications.c.id == notification_id
    return int(connection.execute(notifications.update().where(condition).values(read_at=now())).rowcount)


def notifications_after(
    connection: sa.Connection, inbox: Inbox, number: int, *, limit: int
) -> list[tuple[int, Notification]]:
    """Return the notifications with greater numbers, oldest first, each with its number."""
    condition = inbox.condition() & (notifications.c.number > number)
    rows = connection.execute(notifications.select().where(condition).order_by(notifications.c.number).limit(limit))
    return [(row.number, _record(row)) for row in rows.all()]


def last_number(connection: sa.Connection) -> int:
    """Return the greatest number of a notification that exists; 0 for none. Numbers are never used again."""
    return connection.execute(sa.select(sa.func.max(notifications.c.number))).scalar_one() or 0


def number_of(connection: sa.Connection, user_id: str, notification_id: str) -> int | None:
    """Return the number of a user's notification; None if there is none."""
    own = (notifications.c.user_id == user_id, notifications.c.id == notification_id)
    number: int | None = connection.execute(sa.select(notifications.c.number).where(*own)).scalar_one_or_none()
    return number


def users_after(connection: sa.Connection, number: int) -> tuple[set[str], int]:
    """Return the users of the notifications with greater numbers, and the greatest number that exists."""
    new = sa.select(notifications.c.user_id, sa.func.max(notifications.c.number)).where(notifications.c.number > number)
    rows = connection.execute(new.group_by(notifications.c.user_id)).all()
    return {user_id for user_id, _ in rows}, max((last for _, last in rows), default=number)


def _record(row: Any) -> Notification:
    return Notification.model_validate({name: row._mapping[name] for name in Notification.model_fields})
