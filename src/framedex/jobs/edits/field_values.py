"""Values of custom fields: from what people write to what a column holds. A row that is wrong fails alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from framedex.jobs.edits.rows import Places, find_ids
from framedex.records import FieldError, FieldType
from framedex.storage.definitions import FieldDefinition
from framedex.storage.tables import Table

_ROWS = 65536
_SAMPLES = 100
_SCHEMES = ("http", "https", "file", "s3")
Share = Callable[[float], None]


@dataclass
class RowOutcome:
    """What became of rows.

    Attributes:
        inserted: how many went in.
        errors: how many did not.
        samples: the first of these, at most 100, in the order of rows.
    """

    inserted: int = 0
    errors: int = 0
    samples: list[FieldError] = field(default_factory=list)

    def fail(self, row_index: int, reason: str) -> None:
        """Note that a row did not go in."""
        self.errors += 1
        self.samples.append(FieldError(reason=reason, row_index=row_index))
        if len(self.samples) >= 4 * _SAMPLES:
            self.trim()

    def trim(self) -> None:
        """Keep the first samples."""
        self.samples = sorted(self.samples, key=lambda error: error.row_index)[:_SAMPLES]


@dataclass(frozen=True)
class NewValues:
    """Values for some rows of the media table.

    Attributes:
        values: as the field's column holds them; null clears.
        place: int64, shape (N,): which of them a row gets; -1 where the old one stays.
        outcome: what became of the rows that people gave.
    """

    values: pa.Array
    place: Places
    outcome: RowOutcome


def read_values(table: Table, definition: FieldDefinition, rows: Sequence[Any], *, progress: Share) -> NewValues:
    """Return the values that rows bring for media.

    Args:
        table: the media table.
        definition: the field.
        rows: pairs (media id, value), or mappings with ``media_id`` and ``value``.
        progress: called with the share that is done; raises to stop.
    """
    outcome, parse = RowOutcome(), _parser(definition)
    ids: list[str] = []
    numbers: list[int] = []
    parts: list[pa.Array] = []
    for start in range(0, len(rows), _ROWS):
        values = []
        for number, row in enumerate(rows[start : start + _ROWS], start):
            try:
                media_id, value = _pair(row)
                values.append(None if value is None else parse(value))
            except ValueError as error:
                outcome.fail(number, str(error))
                continue
            ids.append(media_id)
            numbers.append(number)
        parts.append(pa.array(values, definition.column.type))
        progress(0.8 * min(1, (start + _ROWS) / len(rows)))
    found = find_ids(table, ids)
    for place in np.flatnonzero(~found.known | found.repeated).tolist():
        again = found.known[place]
        outcome.fail(
            numbers[place],
            f"media {ids[place]!r} has a value in an earlier row" if again else f"no media {ids[place]!r}",
        )
    outcome.trim()
    outcome.inserted = len(rows) - outcome.errors
    progress(1.0)
    values = pa.concat_arrays(parts) if parts else pa.array([], definition.column.type)
    return NewValues(values, found.place, outcome)


def _pair(row: Any) -> tuple[str, Any]:
    if isinstance(row, Mapping):
        if "media_id" not in row or "value" not in row:
            raise ValueError(f"a row has 'media_id' and 'value', not {_shown(list(row))}")
        row = row["media_id"], row["value"]
    if not isinstance(row, tuple) or len(row) != 2:
        raise ValueError(f"a row is an object with 'media_id' and 'value', not {_shown(row)}")
    if not isinstance(row[0], str):
        raise ValueError(f"a media id is text, not {_shown(row[0])}")
    return row


def _parser(definition: FieldDefinition) -> Callable[[Any], Any]:
    """Return what makes a stored value of a given one, or raises ValueError with the reason why it cannot."""
    options = frozenset(definition.enum_options or ())
    one: Callable[[Any], Any] = {
        FieldType.STRING: _text,
        FieldType.FLOAT: _number,
        FieldType.DATETIME: _time,
        FieldType.ENUM: lambda value: _option(value, options, definition),
        FieldType.LINK: _link,
    }[definition.type]
    if not definition.is_multi:
        return one

    def several(value: Any) -> list[Any] | None:
        parts = value if isinstance(value, list | tuple) else [value]
        return [one(part) for part in parts] or None

    return several


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a string is text, not {_shown(value)}")
    if not value.isascii():
        _check_unicode(value)
    return value


def _check_unicode(value: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"text must be valid Unicode, without lone surrogates: {_shown(value)}")


def _number(value: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"a float is a number, not {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # a huge whole number
        raise ValueError(f"a float is a number that 64 bits hold, not {_shown(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"a float is finite, not {number}")
    return number


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(time, datetime):
            raise TypeError
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"a datetime is ISO 8601 text such as '2024-05-17T09:30:00Z', or a datetime, not {_shown(value)}"
        ) from None


def _option(value: Any, options: frozenset[str], definition: FieldDefinition) -> str:
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, (definition.enum_options or [])[:10]))
        raise ValueError(f"{_shown(value)} is none of the options {known}")
    return value


def _link(value: Any) -> str:
    reason = ValueError(f"a link is a URI of http, https, file or s3, not {_shown(value)}")
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        raise reason
    try:
        parts = urlsplit(value)
    except ValueError:  # brackets that hold no IPv6 address
        raise reason from None
    if parts.scheme not in _SCHEMES or not (parts.path.startswith("/") if parts.scheme == "file" else parts.netloc):
        raise reason
    return value


def _shown(value: Any) -> str:
    """Return a value as messages show it, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
