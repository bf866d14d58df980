"""Tags and custom fields that the files of a source give to new media, as columns of the media table."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from framedex.core.ids import new_id
from framedex.core.naming import check_name
from framedex.core.printable import is_printable, is_visible
from framedex.errors import Conflict, InvalidInput
from framedex.export.table_columns import reserved_names
from framedex.jobs.ingest.placement import SourcePlacement, path_in_source
from framedex.records import FieldType
from framedex.storage import tables
from framedex.storage.definitions import (
    FIELDS,
    TAGGED_SCHEMA,
    TAGS,
    FieldDefinition,
    TagDefinition,
    read_fields,
    read_tags,
    write_fields,
    write_tags,
)
from framedex.storage.generation import Summary
from framedex.storage.table_versions import Table

FactsOf = Callable[[str], tuple[tuple[str, ...], Mapping[str, Any]]]
"""Return the tags and the further values of the image at a path within the source."""
_PATH = ("path", "path_raw", "root")
_ROWS = 65_536
_LINK = re.compile(r"(?:https?|s3)://[^\s]+|file:///[^\s]*")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_OTHER_DATE = re.compile(r"^([0-9]{4})([/:])([0-9]{2})\2([0-9]{2})")
_ZONE = re.compile(r"(.*[0-9])(?: ([A-Z][A-Za-z]+(?:/[A-Za-z_]+)*)|\[[A-Za-z_/]+\])")
_BOOLEANS = ("false", "true")


@dataclass(frozen=True)
class WrittenFacts:
    """Tables with the tags and fields of new media.

    Attributes:
        version: of the media table.
        others: versions of the tables of definitions.
        next_numbers: the next free numbers of tags and fields.
        notes: sentences about columns that are left out.
    """

    version: int
    others: Mapping[str, int] = field(default_factory=dict)
    next_numbers: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def applied_to(self, summary: Summary) -> Summary:
        """Return the summary of a generation with the next free numbers."""
        return summary.with_(next_numbers={**summary.next_numbers, **self.next_numbers})


def write_facts(
    table: Table,
    facts_of: FactsOf,
    *,
    before: Mapping[str, int],
    summary: Summary,
    created_by: str,
    first: int = 0,
    placement: SourcePlacement | None = None,
) -> WrittenFacts:
    """Write the tags and the custom fields that a source gives to new media.

    A field of the dataset takes the values of its name that suit its type; else a new field gets the type that suits
    all its values. Names that no field can have are left out.

    Args:
        table: the media table, at its newest version.
        facts_of: returns what a source says of a path.
        before: versions of the tables of the previous generation; empty for a new dataset.
        summary: of the previous generation.
        created_by: the user.
        first: first row to write.
        placement: placement of the paths; None if they are relative to the dataset's own roots.
    """
    tags_of_rows, columns = _found(table, facts_of, first, placement)
    version, others, numbers = table.version, dict[str, int](), dict[str, int]()
    names = list(dict.fromkeys(tag for tags in dict.fromkeys(tags_of_rows) for tag in tags))
    at = datetime.now(UTC)
    if names:
        tags, number = _tags(table.path, before, summary, names, created_by, at)
        version = _write_tags(table, tags_of_rows, {each.name: each.number for each in tags}, at)
        others[TAGS], numbers[TAGS] = write_tags(table.path, tags), number
    fields, notes = _fields(table.path, before, summary, columns, created_by, at)
    if fields.written:
        version = _write_fields(Table(table.path, version), fields.written)
        others[FIELDS], numbers[FIELDS] = write_fields(table.path, fields.every), fields.next_number
    return WrittenFacts(version, others, numbers, notes)


def _found(
    table: Table, facts_of: FactsOf, first: int, placement: SourcePlacement | None
) -> tuple[list[tuple[str, ...]], dict[str, list[Any]]]:
    """Return the tags of each row, and by name the values of each row; equal tags are in memory once."""
    number = 0
    known: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    tags_of_rows: list[tuple[str, ...]] = []
    columns: dict[str, list[Any]] = {}
    for batch in table.scan(list(_PATH)):
        for row in batch.to_pylist():
            tags: tuple[str, ...] = ()
            if number >= first and (path := path_in_source(row, placement)) is not None:
                tags, values = facts_of(path)
                for name, value in values.items():
                    column = columns.setdefault(name, [])
                    column.extend([None] * (number - len(column)))
                    column.append(value)
            tags_of_rows.append(known.setdefault(tags, tags))
            number += 1
    for column in columns.values():
        column.extend([None] * (number - len(column)))
    return tags_of_rows, columns


# Tags


def _tags(
    path: Path, before: Mapping[str, int], summary: Summary, names: Sequence[str], user: str, at: datetime
) -> tuple[list[TagDefinition], int]:
    """Return all tags, with new ones of some names, and the next free number."""
    tags = read_tags(path, before)
    known = {each.name for each in tags}
    number = max(summary.next_numbers.get(TAGS, 0), *(each.number + 1 for each in tags), 0)
    for name in names:
        if name not in known:
            tags.append(TagDefinition(new_id(), number, name, at, user))
            number += 1
    return tags, number


def _write_tags(table: Table, found: Sequence[tuple[str, ...]], numbers: Mapping[str, int], at: datetime) -> int:
    present = [name for name in TAGGED_SCHEMA.names if name in table.schema.names]
    old = table.scan(present).read_all().to_pylist() if present else [{}] * len(found)

    def rows() -> Iterator[dict[str, Any]]:
        for before, tags in zip(old, found, strict=True):
            own = list(before.get(TAGS) or [])
            dates = list(before.get(TAGGED_SCHEMA.names[1]) or [])
            new = [numbers[tag] for tag in tags if numbers[tag] not in own]
            both = own + new
            yield dict(zip(TAGGED_SCHEMA.names, (both or None, (dates + [at] * len(new)) or None), strict=True))

    return tables.put_columns(table, _batches(rows(), TAGGED_SCHEMA), TAGGED_SCHEMA)


def _batches(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    block: list[dict[str, Any]] = []
    for row in rows:
        block.append(row)
        if len(block) >= _ROWS:
            yield pa.RecordBatch.from_pylist(block, schema=schema)
            block = []
    if block:
        yield pa.RecordBatch.from_pylist(block, schema=schema)


# Fields


@dataclass(frozen=True)
class _Fields:
    """Fields with values to write.

    Attributes:
        every: all fields of the dataset.
        written: pairs of a field and a value for each row; null keeps the old value.
        next_number: the next free number.
    """

    every: list[FieldDefinition]
    written: list[tuple[FieldDefinition, pa.Array]]
    next_number: int


def _fields(
    path: Path,
    before: Mapping[str, int],
    summary: Summary,
    columns: Mapping[str, Sequence[Any]],
    user: str,
    at: datetime,
) -> tuple[_Fields, list[str]]:
    every = read_fields(path, before)
    known = {each.name: each for each in every}
    number = max(summary.next_numbers.get(FIELDS, 0), *(each.number + 1 for each in every), 0)
    written, notes = list[tuple[FieldDefinition, pa.Array]](), list[str]()
    for name, values in columns.items():
        if all(each is None for each in values):
            continue
        definition = known.get(name)
        kind, options, is_multi, stored = typed_values(values)
        if definition is not None:
            suiting = _suiting(definition, values)
            if suiting is None:
                notes.append(f"the column {name!r} is left out: the field of this name is of type {definition.type}")
                continue
            stored = suiting
        else:
            try:
                check_name("field", name, taken=list(known), reserved=reserved_names())
            except (InvalidInput, Conflict) as error:
                notes.append(f"the column {name!r:.80} is left out: {error}")
                continue
            definition = FieldDefinition(new_id(), number, name, kind, options, is_multi, at, user)
            number += 1
            every.append(definition)
            known[name] = definition
        written.append((definition, pa.array(stored, definition.column.type)))
    return _Fields(every, written, number), notes


def _write_fields(table: Table, written: Sequence[tuple[FieldDefinition, pa.Array]]) -> int:
    schema = pa.schema([each.column for each, _ in written])
    present = [name for name in schema.names if name in table.schema.names]
    old = table.scan(present).read_all() if present else None
    columns = []
    for each, values in written:
        name = each.column.name
        before = old[name].combine_chunks().to_pylist() if old is not None and name in present else None
        new = values.to_pylist()
        merged = new if before is None else [b if n is None else n for b, n in zip(before, new, strict=True)]
        columns.append(pa.array(merged, each.column.type))
    whole = pa.RecordBatch.from_arrays(columns, schema=schema)
    return tables.put_columns(
        table, (whole.slice(start, _ROWS) for start in range(0, max(whole.num_rows, 1), _ROWS)), schema
    )


def _suiting(definition: FieldDefinition, values: Sequence[Any]) -> list[Any] | None:
    """Return values as a field stores them; None if one does not suit its type."""
    options = set(definition.enum_options or ())

    def option(value: Any) -> str | None:
        text = _boolean(value) or _text(value)
        return text if text in options else None

    converters: dict[FieldType, Callable[[Any], Any]] = {kind: each for kind, _, each in _KINDS}
    converters |= {FieldType.ENUM: option, FieldType.STRING: _text}
    convert = converters[definition.type]
    stored: list[Any] = []
    for each in values:
        several = each if isinstance(each, list | tuple) else [each]
        found = [None if one is None else convert(one) for one in several]
        if any(new is None and old is not None for new, old in zip(found, several, strict=True)):
            return None
        own = [one for one in found if one is not None]
        if len(own) > 1 and not definition.is_multi:
            return None
        stored.append((own if definition.is_multi else own[0]) if own else None)
    return stored


def typed_values(values: Sequence[Any]) -> tuple[FieldType, list[str] | None, bool, list[Any]]:
    """Return the type of a field that holds some values, its options, whether it has lists, and the stored values.

    Numbers are floats, dates and times datetimes, truth values options, and addresses links, also where a CSV file has
    them as text. Everything else is text; nested values are JSON.
    """
    is_multi = any(isinstance(each, list | tuple) for each in values if each is not None)
    is_multi = is_multi and all(isinstance(each, list | tuple) for each in values if each is not None)
    flat = [one for each in values if each is not None for one in (each if is_multi else (each,)) if one is not None]
    for kind, options, convert in _KINDS:
        if flat and all(convert(each) is not None for each in flat):
            return kind, options, is_multi, [_converted(each, convert, is_multi=is_multi) for each in values]
    return FieldType.STRING, None, is_multi, [_converted(each, _text, is_multi=is_multi) for each in values]


def _converted(value: Any, convert: Callable[[Any], Any], *, is_multi: bool) -> Any:
    if value is None:
        return None
    return [convert(each) for each in value if each is not None] or None if is_multi else convert(value)


def _boolean(value: Any) -> str | None:
    if isinstance(value, bool):
        return _BOOLEANS[value]
    return value.lower() if isinstance(value, str) and value.lower() in _BOOLEANS else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):  # "007" is an identifier
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) or hasattr(value, "__float__") else math.nan
    except (OverflowError, ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


def _time(value: Any) -> datetime | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    try:
        time = _parsed(value) if isinstance(value, str) and len(value) >= len("2024-01-01") else value
        if not isinstance(time, datetime):
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        return None


def _parsed(text: str) -> datetime:
    """Return a time in the order of ISO 8601, also with slashes, with the colons of Exif, or with the name of a zone.

    Raises:
        ValueError: it is none; a date in another order, such as 01/02/2026, may have two meanings.
        ZoneInfoNotFoundError: no zone has the name.
    """
    text, zone = _OTHER_DATE.sub(r"\1-\3-\4", text.strip(), count=1), None
    if found := _ZONE.fullmatch(text):
        text, zone = found[1], found[2]
    time = datetime.fromisoformat(text)
    return time if zone is None or time.tzinfo else time.replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone))


def _link(value: Any) -> str | None:
    return value if isinstance(value, str) and _LINK.fullmatch(value) and value.isprintable() else None


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")


_KINDS: tuple[tuple[FieldType, list[str] | None, Callable[[Any], Any]], ...] = (
    (FieldType.ENUM, list(_BOOLEANS), _boolean),
    (FieldType.FLOAT, None, _number),
    (FieldType.DATETIME, None, _time),
    (FieldType.LINK, None, _link),
)
assert all(is_printable(each) and is_visible(each) for each in _BOOLEANS)
