"""Conversion of the catalog's stored values into Python's, with one error for a value that cannot be converted."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic import ValidationError

_MOST_TEXT = 60


class WrongValue(Exception):
    """A value in a row of the catalog that Framedex never writes.

    The catalog raises it to its callers as a WorkspaceError with the path of the catalog.
    """


def stored_json(text: Any) -> Any:
    """Return the object in a stored JSON text, or None; columns hold nothing else.

    Raises:
        WrongValue: the text is something else.
    """
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise WrongValue(f"{short_repr(text)} is no JSON: {error}") from error
    if value is not None and not isinstance(value, dict):
        raise WrongValue(f"{short_repr(text)} is no JSON object")
    return value


def stored_time(text: Any) -> datetime:
    """Return a stored time.

    Raises:
        WrongValue: the text is no time with a time zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except (ValueError, TypeError) as error:
        raise WrongValue(f"{short_repr(text)} is no time in ISO 8601") from error
    if time.tzinfo is None:
        raise WrongValue(f"{short_repr(text)} is a time without a time zone")
    return time


@contextmanager
def reading_row(table: str, row_id: object) -> Iterator[None]:
    """Raise the errors of values that do not fit into a record as WrongValue with the name of the row.

    Args:
        table: name of the row's table.
        row_id: id of the row.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WrongValue(f"row {short_repr(row_id)} of table {table}: {_line(error)}") from error


def short_repr(value: object) -> str:
    """Return a value as text for a message, shortened."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def _line(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {short_repr(first['input'])}: {first['msg']}"
