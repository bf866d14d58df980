"""Rows of the audit: who did what. Each function takes an open connection of the service's database."""

from datetime import datetime, timedelta

import sqlalchemy as sa

from framedex.records import AuditEntry
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import audit, users

_LONGEST_TARGET = 320


def insert_entry(
    connection: sa.Connection,
    user_id: str | None,
    action: str,
    *,
    target: str | None = None,
    dataset_id: str | None = None,
    ip: str | None = None,
    outcome: str = "done",
) -> None:
    """Add an entry; of a long target its beginning, and lone surrogates, which are no text, as escapes."""
    if target is not None:
        target = target[:_LONGEST_TARGET].encode("utf-8", "backslashreplace").decode()
    connection.execute(
        audit.insert().values(
            at=now(), user_id=user_id, action=action, target=target, dataset_id=dataset_id, ip=ip, outcome=outcome
        )
    )


def list_entries(
    connection: sa.Connection,
    *,
    limit: int,
    offset: int = 0,
    user_id: str | None = None,
    action: str | None = None,
    dataset_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[list[AuditEntry], int]:
    """Return a page of entries, the newest first, and the number of all.

    Args:
        connection: of the service's database.
        limit: of the page.
        offset: of the page.
        user_id: who did it; None for all, as for each further condition.
        action: the beginning of the action's name.
        dataset_id: the dataset.
        since: the earliest time.
        until: the time before which it was done.
    """
    equal = ((audit.c.user_id, user_id), (audit.c.dataset_id, dataset_id))
    conditions = [column == value for column, value in equal if value is not None]
    if action is not None:
        conditions.append(audit.c.action.startswith(action, autoescape=True))
    if since is not None:
        conditions.append(audit.c.at >= since)
    if until is not None:
        conditions.append(audit.c.at < until)
    query = (
        sa.select(audit, users.c.username)
        .join(users, users.c.id == audit.c.user_id, isouter=True)
        .where(*conditions)
        .order_by(audit.c.number.desc())
    )
    total = connection.execute(sa.select(sa.func.count()).select_from(audit).where(*conditions)).scalar_one()
    rows = connection.execute(query.limit(limit).offset(offset)).all()
    entries = [{name: row._mapping[name] for name in AuditEntry.model_fields} for row in rows]
    return [AuditEntry.model_validate(entry) for entry in entries], int(total)


def recent(connection: sa.Connection, user_id: str, action: str, period: timedelta) -> tuple[int, timedelta]:
    """Return the number of a user's entries of an action within a period until now, and the age of the oldest one.

    Args:
        connection: of the service's database.
        user_id: the user.
        action: the beginning of the action's name.
        period: the length of the period.
    """
    time = now()
    own = (audit.c.at > time - period, audit.c.user_id == user_id, audit.c.action.startswith(action, autoescape=True))
    times = connection.execute(sa.select(audit.c.at).where(*own)).scalars().all()
    return len(times), time - min(times, default=time)


def delete_old(connection: sa.Connection, before: datetime) -> int:
    """Delete the entries before a time; return their number."""
    return int(connection.execute(audit.delete().where(audit.c.at < before)).rowcount)
