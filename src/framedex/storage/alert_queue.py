"""Alerts that wait for the service, which notifies users. Each function takes an open connection of the catalog.

A row is written by the transaction that stores the point of a trend, and deleted once the notifications are in the
database of the service. So a process that is killed between both files loses no alert, and the database of the service
refuses a second notification of the same batch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from framedex.records import Alert
from framedex.storage.datasets import now
from framedex.storage.row_values import reading_row
from framedex.storage.schema import alert_queue, datasets, saved_views, trend_points
from framedex.storage.view_rows import alert_of_row


class QueuedAlert(NamedTuple):
    """An alert that waits for the service.

    Attributes:
        alert: the alert.
        creator_id: the user who saved the view; None without an account.
    """

    alert: Alert
    creator_id: str | None


def queue_alerts(connection: sa.Connection, alerts: Sequence[tuple[str, int]]) -> None:
    """Add alerts.

    Args:
        connection: of the catalog.
        alerts: pairs of a view and the number of a batch.
    """
    rows = [{"view_id": view_id, "batch": batch, "queued_at": now()} for view_id, batch in alerts]
    if rows:
        connection.execute(alert_queue.insert(), rows)


def queued_alerts(connection: sa.Connection, *, limit: int) -> list[QueuedAlert]:
    """Return the alerts that wait, the oldest first, up to a number."""
    point = (trend_points.c.view_id == alert_queue.c.view_id) & (trend_points.c.batch == alert_queue.c.batch)
    columns = (saved_views.c.name, saved_views.c.dataset_id, saved_views.c.creator_id)
    query = (
        sa.select(trend_points, *columns, datasets.c.name.label("dataset_name"))
        .select_from(alert_queue)
        .join(trend_points, point)
        .join(saved_views, saved_views.c.id == alert_queue.c.view_id)
        .join(datasets, datasets.c.id == saved_views.c.dataset_id)
        .order_by(sa.literal_column("alert_queue.rowid"))
        .limit(limit)
    )
    with reading_row("alert_queue", "of alerts"):
        rows = connection.execute(query).all()
        return [QueuedAlert(alert_of_row(row, row.dataset_id), row.creator_id) for row in rows]


def has_queued_alerts(connection: sa.Connection) -> bool:
    """Return whether alerts wait."""
    return connection.execute(sa.select(alert_queue.c.batch).limit(1)).first() is not None


def remove_queued(connection: sa.Connection, alerts: Sequence[Alert]) -> None:
    """Delete alerts whose users were notified."""
    for each in alerts:
        own = (alert_queue.c.view_id == each.view_id, alert_queue.c.batch == each.batch)
        connection.execute(alert_queue.delete().where(*own))


def clear_queue(connection: sa.Connection) -> None:
    """Delete all alerts that wait, because there are no users."""
    connection.execute(alert_queue.delete())


def stored_queue(connection: sa.Connection, dataset_id: str) -> list[tuple[Any, ...]]:
    """Return the alerts of a dataset as SQLite stores them, for :func:`restore_queue`."""
    text = "SELECT q.* FROM alert_queue q JOIN saved_views v ON v.id = q.view_id WHERE v.dataset_id = ?"
    return [tuple(row) for row in connection.exec_driver_sql(text, (dataset_id,)).all()]


def restore_queue(connection: sa.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows again, as far as their views exist."""
    text = "INSERT OR IGNORE INTO alert_queue SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM saved_views WHERE id = ?)"
    for row in rows:
        connection.exec_driver_sql(text, (*row, row[0]))
