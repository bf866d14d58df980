"""Rows of saved views and of their trends. Each function takes an open connection of the catalog.

Totals of a trend are not stored: they follow from its points.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from framedex.core.ids import batch_id, new_id
from framedex.core.naming import name_key
from framedex.core.printable import is_printable
from framedex.errors import Conflict, NotFound
from framedex.records import Alert, SavedViewRecord, TrendPoint, ViewFilters, ViewStats
from framedex.storage.datasets import now
from framedex.storage.manifest import note_change
from framedex.storage.row_values import reading_row
from framedex.storage.schema import datasets, saved_views, trend_points

MAX_VIEWS = 200
"""The maximum number of saved views of a dataset."""
_ERROR_CHARACTERS = 1000
_ROW_ID: sa.ColumnElement[int] = sa.literal_column("trend_points.rowid", sa.Integer)
_OF_VIEW = trend_points.c.view_id == saved_views.c.id
_TOTAL = (
    sa.select(sa.func.coalesce(sa.func.sum(trend_points.c.count), 0))
    .where(_OF_VIEW)
    .scalar_subquery()
    .label("total_results")
)
_LAST = (
    sa.select(sa.func.max(trend_points.c.timestamp))
    .where(_OF_VIEW, trend_points.c.count > 0)
    .scalar_subquery()
    .label("last_results")
)


def insert_view(
    connection: sa.Connection,
    dataset_id: str,
    name: str,
    filters: ViewFilters,
    *,
    created_by: str,
    creator_id: str | None = None,
    first_batch: int,
) -> str:
    """Add a saved view of a dataset and return its id.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        name: the name.
        filters: the filters.
        created_by: the user who saves it.
        creator_id: id of the user; None without one.
        first_batch: the number of the next batch of media.

    Raises:
        Conflict: the dataset has a saved view of that name, or as many as it can have.
    """
    count = connection.execute(
        sa.select(sa.func.count()).select_from(saved_views).where(saved_views.c.dataset_id == dataset_id)
    ).scalar_one()
    if count >= MAX_VIEWS:
        raise Conflict(f"A dataset has at most {MAX_VIEWS} saved views; delete one first")
    view_id = new_id()
    values = {
        "id": view_id,
        "dataset_id": dataset_id,
        "name": name,
        "name_key": name_key(name),
        "created_at": now(),
        "created_by": created_by,
        "creator_id": creator_id,
        "entity_type": filters.entity_type,
        "threshold": filters.threshold,
        "caption": filters.caption,
        "vql": json.dumps(filters.vql),
        "sort_column": filters.sort_by,
        "is_descending": filters.descending,
        "monitoring_started_at": now(),
        "first_batch": first_batch,
        "first_alert": first_batch,
    }
    _check_free(connection, dataset_id, name)
    connection.execute(saved_views.insert().values(**values))
    note_change(connection, dataset_id)
    return view_id


def _check_free(connection: sa.Connection, dataset_id: str, name: str, *, but: str | None = None) -> None:
    row = connection.execute(
        sa.select(saved_views.c.id, saved_views.c.name).where(
            saved_views.c.dataset_id == dataset_id, saved_views.c.name_key == name_key(name)
        )
    ).one_or_none()
    if row is not None and row.id != but:
        raise Conflict(f"A view named {row.name!r} exists already in this dataset")


def find_view(connection: sa.Connection, dataset_id: str, name_or_id: str) -> SavedViewRecord:
    """Return the saved view of a dataset with that id, or else with that name, in any case.

    Raises:
        NotFound: the dataset has no such view.
    """
    if isinstance(name_or_id, str) and is_printable(name_or_id):  # what is not printable can have no key
        key = sa.or_(saved_views.c.id == name_or_id, saved_views.c.name_key == name_key(name_or_id))
        rows = connection.execute(_select().where(saved_views.c.dataset_id == dataset_id, key)).all()
        if rows:
            return _record(next((row for row in rows if row.id == name_or_id), rows[0]))
    names = connection.execute(
        sa.select(saved_views.c.name)
        .where(saved_views.c.dataset_id == dataset_id)
        .order_by(saved_views.c.created_at.desc(), saved_views.c.id)
        .limit(10)
    ).scalars()
    raise NotFound(f"no saved view {name_or_id!r} in this dataset; there are: {', '.join(map(repr, names)) or 'none'}")


def list_views(connection: sa.Connection, dataset_id: str) -> list[SavedViewRecord]:
    """Return the saved views of a dataset, newest first."""
    order = saved_views.c.created_at.desc(), saved_views.c.id
    rows = connection.execute(_select().where(saved_views.c.dataset_id == dataset_id).order_by(*order)).all()
    return [_record(row) for row in rows]


def rename_view(connection: sa.Connection, view: SavedViewRecord, name: str) -> None:
    """Rename a saved view.

    Raises:
        Conflict: another view of the dataset has that name.
    """
    _check_free(connection, view.dataset_id, name, but=view.id)
    _update(connection, view, name=name, name_key=name_key(name))


def set_view_alerting(connection: sa.Connection, view: SavedViewRecord, *, enabled: bool) -> None:
    """Set whether later batches with results of a view raise an alert."""
    _update(connection, view, alerting_enabled=enabled)


def remove_view(connection: sa.Connection, view: SavedViewRecord) -> None:
    """Delete a saved view with its trend and its alerts."""
    connection.execute(saved_views.delete().where(saved_views.c.id == view.id))
    note_change(connection, view.dataset_id)


def _update(connection: sa.Connection, view: SavedViewRecord, **values: Any) -> None:
    connection.execute(saved_views.update().where(saved_views.c.id == view.id).values(**values))
    note_change(connection, view.dataset_id)


def has_monitored_views(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether a dataset has saved views that are monitored."""
    query = sa.select(
        sa.exists().where(saved_views.c.dataset_id == dataset_id, saved_views.c.monitoring_enabled.is_(True))
    )
    return bool(connection.execute(query).scalar())


def monitored_datasets(connection: sa.Connection) -> list[str]:
    """Return the ids of the datasets that have saved views which are monitored."""
    query = sa.select(saved_views.c.dataset_id).where(saved_views.c.monitoring_enabled.is_(True)).distinct()
    return list(connection.execute(query.order_by(saved_views.c.dataset_id)).scalars())


@dataclass(frozen=True)
class DueView:
    """A saved view with batches to evaluate.

    Attributes:
        record: the view.
        batches: the numbers of the batches, ascending.
    """

    record: SavedViewRecord
    batches: tuple[int, ...]


def due_views(connection: sa.Connection, dataset_id: str, batches: Sequence[int]) -> list[DueView]:
    """Return the monitored views of a dataset that have batches to evaluate, oldest first.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        batches: the numbers of the batches in its head.
    """
    query = _select().where(saved_views.c.dataset_id == dataset_id, saved_views.c.monitoring_enabled.is_(True))
    result = []
    for row in connection.execute(query.order_by(saved_views.c.created_at, saved_views.c.id)).all():
        known = set(
            connection.execute(sa.select(trend_points.c.batch).where(trend_points.c.view_id == row.id)).scalars()
        )
        record = _record(row)
        with reading_row("saved_views", row.id):
            due = tuple(sorted(batch for batch in batches if batch >= row.first_batch and batch not in known))
        if due:
            result.append(DueView(record, due))
    return result


@dataclass(frozen=True)
class ViewEvaluation:
    """The evaluation of a saved view.

    Attributes:
        view_id: the view.
        counts: the number of results by the number of the batch: zeros if the view cannot be evaluated; empty if the
            batches stay due.
        stats: the results in the whole dataset; None if the evaluation failed.
        error: the reason of the failure; None if there is none.
    """

    view_id: str
    counts: Mapping[int, int]
    stats: ViewStats | None
    error: str | None = None


def store_evaluations(
    connection: sa.Connection, dataset_id: str, evaluations: Sequence[ViewEvaluation], added: Mapping[int, datetime]
) -> list[Alert]:
    """Store the results of evaluations; return the alerts that they raise.

    A batch that was evaluated before keeps its point and raises no second alert. Views that were deleted meanwhile are
    left out.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        evaluations: the results.
        added: times in UTC at which the batches were added, by number.
    """
    query = saved_views.select().where(
        saved_views.c.dataset_id == dataset_id, saved_views.c.monitoring_enabled.is_(True)
    )
    present = {row.id: row for row in connection.execute(query)}
    new = set()
    for each in evaluations:
        if (row := present.get(each.view_id)) is None:
            continue
        is_late = bool(each.counts)  # until a point of this evaluation is the first one
        for batch, count in sorted(each.counts.items()):
            with reading_row("saved_views", row.id):
                is_alert = row.alerting_enabled and count > 0 and batch >= row.first_alert
            point = {"view_id": row.id, "batch": batch, "timestamp": added[batch], "count": count, "is_alert": is_alert}
            result = connection.execute(insert(trend_points).values(**point).on_conflict_do_nothing())
            is_late = is_late and not result.rowcount
            if result.rowcount and is_alert:
                new.add((row.id, batch))
        if is_late:  # another process evaluated the same batches, in the same generation or a later one
            continue
        values: dict[str, Any] = {"evaluation_error": None if each.error is None else each.error[:_ERROR_CHARACTERS]}
        if each.stats is not None:
            values |= each.stats.model_dump()
        connection.execute(saved_views.update().where(saved_views.c.id == row.id).values(**values))
    return [each for each in list_alerts(connection, dataset_id) if (each.view_id, each.batch) in new] if new else []


def list_points(connection: sa.Connection, view: SavedViewRecord) -> list[TrendPoint]:
    """Return the points of a view's trend, in the order of the batches."""
    rows = connection.execute(
        trend_points.select().where(trend_points.c.view_id == view.id).order_by(trend_points.c.batch)
    ).all()
    points, cumulative = [], 0
    with reading_row("trend_points", view.id):
        for row in rows:
            count = row._mapping["count"]  # rows have a method of that name
            cumulative += count
            point = TrendPoint(
                timestamp=row.timestamp,
                batch_id=batch_id(view.dataset_id, row.batch),
                batch=row.batch,
                count=count,
                cumulative=cumulative,
            )
            points.append(point)
    return points


def list_alerts(connection: sa.Connection, dataset_id: str, view_id: str | None = None) -> list[Alert]:
    """Return the alerts of a dataset's saved views, oldest first.

    Args:
        connection: of the catalog.
        dataset_id: the dataset.
        view_id: one view; None for all.
    """
    query = (
        sa.select(trend_points, saved_views.c.name, datasets.c.name.label("dataset_name"))
        .join(saved_views, _OF_VIEW)
        .join(datasets, datasets.c.id == saved_views.c.dataset_id)
        .where(saved_views.c.dataset_id == dataset_id, trend_points.c.is_alert.is_(True))
        .order_by(trend_points.c.batch, saved_views.c.created_at, saved_views.c.id)
    )
    if view_id is not None:
        query = query.where(saved_views.c.id == view_id)
    with reading_row("trend_points", dataset_id):
        return [alert_of_row(row, dataset_id) for row in connection.execute(query).all()]


def last_alert(connection: sa.Connection) -> int:
    """Return the number up to which :func:`alerts_after` has nothing new; numbers ascend in time."""
    return connection.execute(sa.select(sa.func.max(_ROW_ID)).select_from(trend_points)).scalar_one() or 0


def alerts_after(connection: sa.Connection, number: int) -> list[Alert]:
    """Return the alerts of all datasets that were raised after a number of :func:`last_alert`, oldest first."""
    query = (
        sa.select(trend_points, saved_views.c.name, saved_views.c.dataset_id, datasets.c.name.label("dataset_name"))
        .join(saved_views, _OF_VIEW)
        .join(datasets, datasets.c.id == saved_views.c.dataset_id)
        .where(number < _ROW_ID, trend_points.c.is_alert.is_(True))
        .order_by(_ROW_ID)
    )
    with reading_row("trend_points", f"after {number}"):
        return [alert_of_row(row, row.dataset_id) for row in connection.execute(query).all()]


def alert_of_row(row: Any, dataset_id: str) -> Alert:
    """Return the alert of a row of a trend, which also has the names of the view and of the dataset."""
    return Alert(
        view_id=row.view_id,
        view_name=row.name,
        dataset_id=dataset_id,
        dataset_name=row.dataset_name,
        batch_id=batch_id(dataset_id, row.batch),
        batch=row.batch,
        timestamp=row.timestamp,
        result_count=row._mapping["count"],
    )


def stored_points(connection: sa.Connection, dataset_id: str) -> list[tuple[Any, ...]]:
    """Return the rows of the trends of a dataset as SQLite stores them, for :func:`restore_points`."""
    text = "SELECT p.* FROM trend_points p JOIN saved_views v ON v.id = p.view_id WHERE v.dataset_id = ?"
    return [tuple(row) for row in connection.exec_driver_sql(text, (dataset_id,)).all()]


def restore_points(connection: sa.Connection, points: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of trends again, as far as their views exist."""
    text = (
        "INSERT OR IGNORE INTO trend_points SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM saved_views WHERE id = ?)"
    )
    for point in points:
        connection.exec_driver_sql(text, (*point, point[0]))


def _select() -> sa.Select[Any]:
    return sa.select(saved_views, _TOTAL, _LAST)


def _record(row: Any) -> SavedViewRecord:
    with reading_row("saved_views", row.id):
        filters = ViewFilters(
            entity_type=row.entity_type,
            threshold=row.threshold,
            caption=row.caption,
            vql=json.loads(row.vql),
            sort_by=row.sort_column,
            descending=row.is_descending,
        )
        return SavedViewRecord(
            id=row.id,
            dataset_id=row.dataset_id,
            name=row.name,
            created_at=row.created_at,
            created_by=row.created_by,
            creator_id=row.creator_id,
            filters=filters,
            stats=ViewStats(n_images=row.n_images, n_objects=row.n_objects, n_video_frames=row.n_video_frames),
            monitoring_enabled=row.monitoring_enabled,
            monitoring_started_at=row.monitoring_started_at,
            alerting_enabled=row.alerting_enabled,
            total_results=row.total_results,
            last_results=row.last_results,
            evaluation_error=row.evaluation_error,
        )
