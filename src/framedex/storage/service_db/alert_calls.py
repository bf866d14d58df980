"""Rows of alerts that are passed to a command or a URL. Each function takes a connection of the service's database."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from framedex.storage.service_db.schema import alert_calls


class AlertCall(NamedTuple):
    """An alert that is to be passed on.

    Attributes:
        id: the alert, the same in each attempt.
        target: ``command`` or ``url``.
        body: the alert as a JSON object.
        created_at: the time of the alert.
        attempts: the number of attempts that have begun.
        next_at: the time of the next attempt.
    """

    id: str
    target: str
    body: dict[str, Any]
    created_at: datetime
    attempts: int
    next_at: datetime


def put_call(connection: sa.Connection, call_id: str, target: str, body: dict[str, Any], time: datetime) -> None:
    """Add a call that is due now, unless it was there before, even if it is done."""
    row = {"id": call_id, "target": target, "body": body, "created_at": time, "attempts": 0, "next_at": time}
    connection.execute(insert(alert_calls).values(**row).on_conflict_do_nothing())


def due_call(connection: sa.Connection, now: datetime, *, besides: Collection[str] = ()) -> AlertCall | None:
    """Return the call that is due for the longest time; None if there is none.

    Args:
        connection: of the service's database.
        now: the present time.
        besides: the receivers whose calls are left out.
    """
    due = alert_calls.select().where(alert_calls.c.next_at <= now, alert_calls.c.target.not_in(besides))
    row = connection.execute(due.order_by(alert_calls.c.next_at, alert_calls.c.id).limit(1)).one_or_none()
    return None if row is None else AlertCall(*row)


def next_time(connection: sa.Connection, *, besides: Collection[str] = ()) -> datetime | None:
    """Return the time of the next attempt, but for some receivers; None if no call waits."""
    query = sa.select(sa.func.min(alert_calls.c.next_at)).where(alert_calls.c.target.not_in(besides))
    time: datetime | None = connection.execute(query).scalar_one()
    return time


def begin_attempt(connection: sa.Connection, call: AlertCall, next_at: datetime) -> bool:
    """Count an attempt and set the time of the next one; return False if another process has done it."""
    own = _key(call) & (alert_calls.c.attempts == call.attempts) & alert_calls.c.next_at.is_not(None)
    update = alert_calls.update().where(own).values(attempts=call.attempts + 1, next_at=next_at)
    return bool(connection.execute(update).rowcount)


def set_next(connection: sa.Connection, call: AlertCall, next_at: datetime) -> None:
    """Set the time of the next attempt, after one that failed."""
    connection.execute(alert_calls.update().where(_key(call)).values(next_at=next_at))


def end_call(connection: sa.Connection, call: AlertCall) -> None:
    """Mark a call as done: it stays for a time, so that it is not made again."""
    connection.execute(alert_calls.update().where(_key(call)).values(next_at=None))


def delete_calls(connection: sa.Connection, *, before: datetime) -> None:
    """Delete the calls that are done, of alerts before a time."""
    is_old = alert_calls.c.created_at < before
    connection.execute(alert_calls.delete().where(is_old, alert_calls.c.next_at.is_(None)))


def _key(call: AlertCall) -> sa.ColumnElement[bool]:
    return sa.and_(alert_calls.c.id == call.id, alert_calls.c.target == call.target)
