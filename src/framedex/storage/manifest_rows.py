"""Conversion of a dataset's catalog rows to the JSON of its manifest and back."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa

from framedex.storage.generation import Generation
from framedex.storage.schema import Timestamp, datasets, generations, snapshots, source_roots

_ROOTS = "SELECT path FROM source_roots WHERE dataset_id = ? ORDER BY number"
_SNAPSHOTS = (
    "SELECT id, name, description FROM snapshots WHERE dataset_id = ? AND deleted_at IS NULL ORDER BY created_at, id"
)

Plain = dict[str, Any]
"""A row in JSON, by column name."""


@dataclass(frozen=True)
class KeptSnapshot:
    """A snapshot and its generation.

    Attributes:
        snapshot, generation: the rows.
    """

    snapshot: Plain
    generation: Plain


def describe_dataset(connection: sa.Connection, dataset_id: str) -> Plain | None:
    """Return a dataset's part of its manifest, without the snapshot files; None before the first commit."""
    row = _row(connection, datasets, dataset_id)
    head = None if row is None or row["head"] is None else _row(connection, generations, row["head"])
    if row is None or head is None:
        return None
    del row["status"], row["progress"]
    roots = connection.exec_driver_sql(_ROOTS, (dataset_id,)).scalars()
    return {"dataset": row, "head": head, "roots": [os.fsdecode(path) for path in roots]}


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
    """
    described, head = list(described), body["head"]
    status = Generation.model_validate(_values(generations, head)).status
    row = {**_values(datasets, body["dataset"]), "name": name, "status": status, "progress": 100, "head": head["id"]}
    present = {each.snapshot["id"] for each in described}
    if row.get("current_snapshot") not in present:
        row["current_snapshot"] = None
    connection.execute(datasets.insert().values(**row))
    states = {each.generation["id"]: each.generation for each in described} | {head["id"]: head}
    for state in states.values():
        connection.execute(generations.insert().values(**_values(generations, state)))
    for each in described:
        connection.execute(snapshots.insert().values(**_values(snapshots, each.snapshot)))
    for number, root in enumerate(body["roots"]):
        values = {"dataset_id": row["id"], "number": number, "path": os.fsencode(root)}
        connection.execute(source_roots.insert().values(**values))


def remove_dataset_rows(connection: sa.Connection, dataset_id: str) -> None:
    """Delete a dataset's row, generations and snapshots before they are inserted from its manifest."""
    connection.execute(datasets.delete().where(datasets.c.id == dataset_id))


def _row(connection: sa.Connection, table: sa.Table, row_id: str) -> Plain | None:
    """Return a row with SQLite's values and parsed JSON; without SQLAlchemy's types this takes a tenth of the time."""
    row = connection.exec_driver_sql(f"SELECT * FROM {table.name} WHERE id = ?", (row_id,)).one_or_none()
    if row is None:
        return None
    return {name: _parsed(table, name, value) for name, value in row._mapping.items()}


def _parsed(table: sa.Table, name: str, value: Any) -> Any:
    column = table.columns.get(name)
    return json.loads(value) if value is not None and column is not None and isinstance(column.type, sa.JSON) else value


def _values(table: sa.Table, plain: Mapping[str, Any]) -> Plain:
    """Return the values of a row for the columns that exist in the table."""
    return {
        column.name: datetime.fromisoformat(value) if isinstance(column.type, Timestamp) else value
        for column in table.columns
        if (value := plain.get(column.name)) is not None
    }
