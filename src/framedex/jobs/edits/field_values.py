"""Values of custom fields: parsing of user input into column values. An invalid row fails alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from framedex.core.checks import has_lone_surrogate
from framedex.jobs.edits.rows import Indices, find_ids
from framedex.records import FieldError, FieldType
from framedex.storage.definitions import FieldDefinition
from framedex.storage.media import Media

_ROWS = 65536
_SAMPLES = 100
_SCHEMES = ("http", "https", "file", "s3")
Share = Callable[[float], None]


@dataclass
class RowOutcome:
    """Counts of written and failed rows.

    Attributes:
        inserted: number of rows that were written.
        errors: number of rows that failed.
        samples: the first errors in row order, at most 100.
    """

    inserted: int = 0
    errors: int = 0
    samples: list[FieldError] = field(default_factory=list)

    def fail(self, row_index: int, reason: str) -> None:
        """Count a failed row."""
        self.errors += 1
        self.samples.append(FieldError(reason=reason, row_index=row_index))
        if len(self.samples) >= 4 * _SAMPLES:
            self.trim()

    def trim(self) -> None:
        """Keep the first 100 samples."""
        self.samples = sorted(self.samples, key=lambda error: error.row_index)[:_SAMPLES]


@dataclass(frozen=True)
class NewValues:
    """Values for some rows of the media table.

    Attributes:
        values: in the type of the field's column; null clears the old value.
        indices: int64, shape (rows,): index into *values* for each row; -1 keeps the old value.
        outcome: counts of the input rows.
    """

    values: pa.Array
    indices: Indices
    outcome: RowOutcome


def read_values(media: Media, definition: FieldDefinition, rows: Sequence[Any], *, progress: Share) -> NewValues:
    """Return the values that input rows give to media.

    Args:
        media: the media.
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
    positions = find_ids(media, ids)
    for index in np.flatnonzero(~positions.exists | positions.is_repeated).tolist():
        is_known_id = positions.exists[index]
        outcome.fail(
            numbers[index],
            f"media {ids[index]!r} has a value in an earlier row" if is_known_id else f"no media {ids[index]!r}",
        )
    outcome.trim()
    outcome.inserted = len(rows) - outcome.errors
    progress(1.0)
    values = pa.concat_arrays(parts) if parts else pa.array([], definition.column.type)
    return NewValues(values, positions.indices, outcome)


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
    _check_unicode(value)
    return value


def _check_unicode(value: str) -> None:
    if has_lone_surrogate(value):
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
        exists = ", ".join(map(repr, (definition.enum_options or [])[:10]))
        raise ValueError(f"{_shown(value)} is none of the options {exists}")
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
    """Return a value for an error message, shortened to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
