"""Checks of single rows of the catalog against the types of their columns and the records that are made of them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from framedex.core.ids import is_id
from framedex.records import (
    DatasetStatus,
    EmbeddingConfig,
    EntityType,
    ExportStatus,
    SnapshotReason,
    TaskStatus,
    TaskType,
)
from framedex.storage.generation import Generation
from framedex.storage.journal_names import names_journal_file
from framedex.storage.row_values import WrongValue, reading_row, short_repr, stored_json, stored_time
from framedex.storage.schema import Timestamp

Plain = dict[str, Any]
"""A row in JSON, by column name."""
_TYPES: dict[type[sa.types.TypeEngine[Any]], tuple[type, str]] = {
    Timestamp: (str, "a time"),
    sa.JSON: (dict, "a JSON object"),
    sa.Boolean: (int, "0 or 1"),
    sa.Integer: (int, "a whole number"),
    sa.LargeBinary: (bytes, "bytes"),
    sa.String: (str, "text"),
}
_OWNERS = {"datasets": "id", "trend_points": "view_id", "alert_queue": "view_id"}
"""The columns that name the dataset or the view of a row, where it is not ``dataset_id``."""


def plain_row(table: sa.Table, stored: Mapping[str, Any]) -> Plain:
    """Return a row with SQLite's values and parsed JSON, after a check of all its values.

    Args:
        table: the table of the row.
        stored: SQLite's values by column name.

    Raises:
        WrongValue: a value has another type than its column, or does not fit into a record.
    """
    plain = {name: _parsed(table, name, value, _row_id(stored)) for name, value in stored.items()}
    check_plain(table, plain)
    return plain


def check_columns(table: sa.Table, stored: Mapping[str, Any]) -> None:
    """Check that SQLite's values of a row, by column name, have the types of their columns.

    Raises:
        WrongValue: a value has another type.
    """
    row_id = _row_id(stored)
    if row_id is None:
        row_id = next((stored.get(column.name) for column in table.primary_key), None)
    for column in table.columns:
        if column.name in stored:
            _check_value(table, column, _parsed(table, column.name, stored[column.name], row_id), row_id)


def check_plain(table: sa.Table, plain: Mapping[str, Any]) -> None:
    """Check the values of a row with parsed JSON; columns that are not there are not checked.

    Raises:
        WrongValue: a value has another type than its column, or does not fit into a record.
    """
    row_id = _row_id(plain)
    key = _OWNERS.get(table.name, "dataset_id")
    if not is_id(plain.get(key)):
        owner = "view" if key == "view_id" else "dataset"
        raise WrongValue(f"row {short_repr(row_id)} of table {table.name}: {key} is not the id of a {owner}")
    for column in table.columns:
        if column.name in plain:
            _check_value(table, column, plain[column.name], row_id)
    with reading_row(table.name, row_id):
        _RECORDS[table.name](plain)


def _row_id(stored: Mapping[str, Any]) -> object:
    """Return the id of a row for messages: its own, with the number of a step, or that of its dataset or view."""
    row_id = stored.get("id", stored.get("dataset_id", stored.get("view_id")))
    return f"{row_id}/{stored['step']}" if "step" in stored else row_id


def _parsed(table: sa.Table, name: str, value: Any, row_id: object) -> Any:
    column = table.columns.get(name)
    if value is None or column is None or not isinstance(column.type, sa.JSON):
        return value
    try:
        return stored_json(value)
    except WrongValue as error:
        raise WrongValue(f"row {short_repr(row_id)} of table {table.name}: {name}: {error}") from error


def _check_value(table: sa.Table, column: sa.Column[Any], value: Any, row_id: object) -> None:
    where = f"row {short_repr(row_id)} of table {table.name}: {column.name}"
    if value is None:
        if column.nullable or isinstance(column.type, sa.JSON):
            return
        raise WrongValue(f"{where} has no value")
    kind, name = next(each for base, each in _TYPES.items() if isinstance(column.type, base))
    if not isinstance(value, kind) or (isinstance(value, str) and not _is_text(value)):
        raise WrongValue(f"{where} is {short_repr(value)}, not {name}")
    if isinstance(column.type, Timestamp):
        try:
            stored_time(value)
        except WrongValue as error:
            raise WrongValue(f"{where}: {error}") from error


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_dataset(plain: Mapping[str, Any]) -> None:
    if "status" in plain:
        DatasetStatus(plain["status"])
    if plain.get("embedding_config") is not None:
        EmbeddingConfig.model_validate(plain["embedding_config"])


def _check_task(plain: Mapping[str, Any]) -> None:
    TaskStatus(plain["status"])
    TaskType(plain["task_type"])


def _check_upload(plain: Mapping[str, Any]) -> None:
    if any(plain[name] < 0 for name in ("n_files", "n_bytes", "list_bytes")):
        raise ValueError("a number of files or bytes is below 0")


def _check_view(plain: Mapping[str, Any]) -> None:
    if plain["entity_type"] not in tuple(EntityType):
        raise ValueError(f"entity_type is {short_repr(plain['entity_type'])}")
    vql = json.loads(plain["vql"])
    if not isinstance(vql, list) or not all(isinstance(element, dict) for element in vql):
        raise ValueError(f"vql is {short_repr(plain['vql'])}, not an array of objects")


def _check_point(plain: Mapping[str, Any]) -> None:
    if plain["batch"] < 0 or plain["count"] < 0:
        raise ValueError("the number of a batch or a count is below 0")


def _check_queued(plain: Mapping[str, Any]) -> None:
    if plain["batch"] < 0:
        raise ValueError("the number of a batch is below 0")


def _check_step(plain: Mapping[str, Any]) -> None:
    if plain["step"] < 1 or plain["n_media"] < 0 or plain["n_bytes"] < 0:
        raise ValueError("the number of a step, of media or of bytes is too small")
    if plain["file"] is not None and not names_journal_file(plain["file"]):
        raise ValueError(f"file is {short_repr(plain['file'])}, not the name of a file of the journal")


_RECORDS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "datasets": _check_dataset,
    "generations": lambda plain: Generation.model_validate({name: plain.get(name) for name in Generation.model_fields}),
    "snapshots": lambda plain: SnapshotReason(plain["reason"]),
    "source_roots": lambda _plain: None,
    "tasks": _check_task,
    "exports": lambda plain: ExportStatus(plain["status"]),
    "uploads": _check_upload,
    "leases": lambda _plain: None,
    "lease_requests": lambda _plain: None,
    "journal": _check_step,
    "saved_views": _check_view,
    "trend_points": _check_point,
    "alert_queue": _check_queued,
}
