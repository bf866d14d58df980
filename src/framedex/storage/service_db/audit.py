"""Rows of the audit: who did what. Each function takes an open connection of the service's database."""

from datetime import datetime

import sqlalchemy as sa

from framedex.records import AuditEntry
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import audit


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
    """Add an entry."""
    connection.execute(
        audit.insert().values(
            at=now(), user_id=user_id, action=action, target=target, dataset_id=dataset_id, ip=ip, outcome=outcome
        )
    )


def list_entries(connection: sa.Connection, *, limit: int, offset: int = 0) -> list[AuditEntry]:
    """Return a page of entries, the newest first."""
    rows = connection.execute(sa.select(audit).order_by(audit.c.number.desc()).limit(limit).offset(offset)).all()
    return [AuditEntry.model_validate({name: row._mapping[name] for name in AuditEntry.model_fields}) for row in rows]


def delete_old(connection: sa.Connection, before: datetime) -> int:
    """Delete the entries before a time; return their number."""
    return int(connection.execute(audit.delete().where(audit.c.at < before)).rowcount)
