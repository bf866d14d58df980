"""Conversion of a dataset's catalog rows to the JSON of its manifest and back."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa

from framedex.errors import WorkspaceError
from framedex.records import DatasetStatus
from framedex.storage.generation import Generation
from framedex.storage.row_checks import Plain, check_plain, plain_row
from framedex.storage.row_values import WrongValue
from framedex.storage.schema import (
    Timestamp,
    alert_queue,
    datasets,
    generations,
    journal,
    leases,
    saved_views,
    snapshots,
    source_roots,
    trend_points,
    uploads,
)

_ROOTS = "SELECT path FROM source_roots WHERE dataset_id = ? ORDER BY number"
_SNAPSHOTS = (
    "SELECT id, name, description FROM snapshots WHERE dataset_id = ? AND deleted_at IS NULL ORDER BY created_at, id"
)
_VIEWS = "SELECT * FROM saved_views WHERE dataset_id = ? ORDER BY created_at, id"
_OF_EVALUATIONS = ("n_images", "n_objects", "n_video_frames", "evaluation_error")


@dataclass(frozen=True)
class KeptSnapshot:
    """A snapshot and its generation.

    Attributes:
        snapshot, generation: the rows.
    """

    snapshot: Plain
    generation: Plain


def describe_dataset(connection: sa.Connection, dataset_id: str) -> Plain | None:
    """Return a dataset's part of its manifest, without the snapshot files; None before the first commit.

    A dataset that was made as a draft has a manifest from the start, without a head until its first commit.
    """
    row = _row(connection, datasets, dataset_id)
    if row is None:
        return None
    head = None if row["head"] is None else _row(connection, generations, row["head"])
    if head is None and (row["head"] is not None or not _is_draft(connection, row)):
        return None
    del row["status"], row["progress"], row["n_objects"]  # the head has these
    for name in ("namespace", "description", "source_dataset_id"):
        if not row[name]:  # as in manifests of older versions
            del row[name]
    roots = connection.exec_driver_sql(_ROOTS, (dataset_id,)).scalars()
    views = _describe_views(connection, dataset_id)
    return {"dataset": row, "head": head, "roots": [os.fsdecode(path) for path in roots], "views": views}


def _describe_views(connection: sa.Connection, dataset_id: str) -> list[Plain]:
    """Return the saved views of a dataset without the results of evaluations, which are repeated after a recovery."""
    rows = connection.exec_driver_sql(_VIEWS, (dataset_id,)).all()
    views = [plain_row(saved_views, dict(row._mapping)) for row in rows]
    return [{name: value for name, value in view.items() if name not in _OF_EVALUATIONS} for view in views]


def _is_draft(connection: sa.Connection, row: Plain) -> bool:
    """Return whether a dataset without a head is a draft, or is being made of one."""
    if row["status"] == DatasetStatus.DRAFT:
        return True
    query = sa.select(sa.exists().where(uploads.c.dataset_id == row["id"]))
    return bool(connection.execute(query).scalar())


def snapshot_files(connection: sa.Connection, dataset_id: str) -> dict[str, str]:
    """Return the ids of a dataset's snapshots by file name.

    A file name contains a hash of the snapshot's name and description, the only values that can change.
    """
    return {
        f"{snapshot_id}-{blake2b(_text(name, description), digest_size=8).hexdigest()}.json": snapshot_id
        for snapshot_id, name, description in connection.exec_driver_sql(_SNAPSHOTS, (dataset_id,)).all()
    }


def _text(name: str, description: str) -> bytes:
    return f"{name}\0{description}".encode("utf-8", "surrogatepass")


def describe_snapshot(connection: sa.Connection, snapshot_id: str) -> Plain:
    """Return the manifest entry of a snapshot."""
    row = _row(connection, snapshots, snapshot_id)
    assert row is not None, "the transaction has it"
    return {"snapshot": row, "generation": _row(connection, generations, row["generation"])}


def insert_described(connection: sa.Connection, body: Plain, described: Iterable[KeptSnapshot], *, name: str) -> None:
    """Insert the rows of a dataset from its manifest, with the status that its head supports.

    Args:
        connection: of a catalog without these rows.
        body: the manifest's body, as returned by :func:`describe_dataset`.
        described: the snapshots.
        name: name of the dataset.

    Raises:
        WorkspaceError: a row contradicts one that is there, for example by its id.
    """
    try:
        _insert(connection, body, list(described), name)
    except sa.exc.IntegrityError as error:
        raise WorkspaceError(f"the rows of dataset {name!r} contradict others in the catalog: {error.orig}") from error


def _insert(connection: sa.Connection, body: Plain, described: list[KeptSnapshot], name: str) -> None:
    head = body["head"]
    row = {**_values(datasets, body["dataset"]), "name": name}
    if head is None:
        row |= {"status": DatasetStatus.DRAFT, "progress": 0, "head": None, "n_objects": 0}
    else:
        generation = Generation.model_validate(_values(generations, head))
        row |= {"status": generation.status, "progress": 100, "head": head["id"], "n_objects": generation.n_objects}
    present = {each.snapshot["id"] for each in described}
    if row.get("current_snapshot") not in present:
        row["current_snapshot"] = None
    connection.execute(datasets.insert().values(**row))
    states = {each["id"]: each for each in states_of(body, described)}
    for state in states.values():
        connection.execute(generations.insert().values(**_values(generations, state)))
    for each in described:
        connection.execute(snapshots.insert().values(**_values(snapshots, each.snapshot)))
    for number, root in enumerate(body["roots"]):
        values = {"dataset_id": row["id"], "number": number, "path": os.fsencode(root)}
        connection.execute(source_roots.insert().values(**values))
    for view in body.get("views", ()) if head is not None else ():
        # The evaluations of the batches are repeated; they raised their alerts before.
        first_alert = max(view["first_batch"], head["summary"].get("batches", 1))
        connection.execute(saved_views.insert().values(**_values(saved_views, view) | {"first_alert": first_alert}))


def states_of(body: Plain, described: Iterable[KeptSnapshot]) -> list[Plain]:
    """Return the generations in a manifest: the head, if there is one, and those of the snapshots."""
    head = [] if body["head"] is None else [body["head"]]
    return [*head, *(each.generation for each in described)]


def remove_dataset_rows(connection: sa.Connection, body: Plain, described: Iterable[KeptSnapshot]) -> None:
    """Delete all rows that :func:`insert_described` inserts, with those that the dataset has beside them.

    Rows whose dataset is damaged or missing in the catalog are found by their own ids.

    Args:
        connection: of the catalog.
        body: the manifest's body.
        described: the snapshots.
    """
    described, dataset_id = list(described), body["dataset"]["id"]
    states = {each["id"] for each in states_of(body, described)}
    views = {each["id"] for each in body.get("views", ())}
    snapshot_ids = {each.snapshot["id"] for each in described}
    for table, ids in ((generations, states), (snapshots, snapshot_ids), (saved_views, views)):
        connection.execute(table.delete().where(table.c.dataset_id == dataset_id))
        for row_id in ids:
            connection.execute(table.delete().where(table.c.id == row_id))
    connection.execute(source_roots.delete().where(source_roots.c.dataset_id == dataset_id))
    connection.execute(datasets.delete().where(datasets.c.id == dataset_id))


def remove_orphans(connection: sa.Connection, returns: Callable[[str], bool]) -> None:
    """Delete rows that nobody needs without their dataset or saved view, which is missing.

    Args:
        connection: of the catalog.
        returns: tells of a dataset whether its entry can be rebuilt; its rows stay.
    """
    present = sa.select(datasets.c.id)
    for table in (journal, leases, saved_views, uploads):
        query = sa.select(table.c.dataset_id).distinct().where(table.c.dataset_id.not_in(present))
        for dataset_id in connection.execute(query).scalars().all():
            if not returns(dataset_id):
                connection.execute(table.delete().where(table.c.dataset_id == dataset_id))
    for table in (trend_points, alert_queue):
        connection.execute(table.delete().where(table.c.view_id.not_in(sa.select(saved_views.c.id))))


def check_described(body: Plain, described: Iterable[KeptSnapshot] = ()) -> None:
    """Check the values of the rows in a manifest.

    Raises:
        WrongValue: a value cannot be stored in the catalog or read from there, or is missing.
    """
    try:
        check_plain(datasets, body["dataset"])
        if body["head"] is not None:
            check_plain(generations, body["head"])
        for view in body.get("views", ()):
            check_plain(saved_views, view)
        for each in described:
            check_plain(snapshots, each.snapshot)
            check_plain(generations, each.generation)
        if not all(isinstance(each, str) for each in (*body["roots"], *body["snapshots"])):
            raise WrongValue("a source root or the file of a snapshot is no text")
    except (KeyError, TypeError, AttributeError) as error:
        raise WrongValue(f"{error!r}") from error


def _row(connection: sa.Connection, table: sa.Table, row_id: str) -> Plain | None:
    """Return a row with SQLite's values and parsed JSON; without SQLAlchemy's types this takes a tenth of the time.

    Raises:
        WrongValue: a value is damaged, and must not get into a manifest.
    """
    row = connection.exec_driver_sql(f"SELECT * FROM {table.name} WHERE id = ?", (row_id,)).one_or_none()
    return None if row is None else plain_row(table, dict(row._mapping))


def _values(table: sa.Table, plain: Mapping[str, Any]) -> Plain:
    """Return the values of a row for the columns that exist in the table."""
    return {
        column.name: datetime.fromisoformat(value) if isinstance(column.type, Timestamp) else value
        for column in table.columns
        if (value := plain.get(column.name)) is not None
    }
