"""Definitions of custom fields in steps of the journal: added, renamed and taken away again."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from framedex.errors import Conflict
from framedex.jobs.edits.tags import NewState, next_number, with_next_number
from framedex.records import FieldType
from framedex.storage import tables
from framedex.storage.definitions import FIELDS, FieldDefinition, read_fields, write_fields
from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table


def field_facts(field: FieldDefinition) -> dict[str, Any]:
    """Return a field as JSON."""
    return {**asdict(field), "type": field.type.value, "created_at": field.created_at.isoformat()}


def with_field(media: Media, state: NewState, facts: Mapping[str, Any], *, has_values: bool) -> NewState:
    """Return a state with a field again, and with its column if it had values.

    Raises:
        Conflict: another field has its name.
    """
    versions, summary = state
    fields = read_fields(media.table.path, versions)
    if any(each.name == facts["name"] for each in fields):
        raise Conflict(f"another field is named {facts['name']!r} now")
    created_at = datetime.fromisoformat(facts["created_at"])
    field = FieldDefinition(**{**facts, "type": FieldType(facts["type"]), "created_at": created_at})
    versions = {**versions, FIELDS: write_fields(media.table.path, [*fields, field])}
    if has_values:
        table = Table(media.table.path, versions[MEDIA])
        versions[MEDIA] = tables.add_empty_columns(table, pa.schema([field.column]))
    return versions, summary


def without_field(media: Media, state: NewState, facts: Mapping[str, Any]) -> NewState:
    """Return a state without a field that was added, and without its column.

    Raises:
        Conflict: it was renamed or deleted meanwhile, or has values that a later edit wrote.
    """
    versions, summary = state
    fields = read_fields(media.table.path, versions)
    field = next((each for each in fields if each.field_id == facts["field_id"]), None)
    if field is None or field.name != facts["name"]:
        raise Conflict(f"the field {facts['name']!r} was renamed or deleted meanwhile")
    table, name = Table(media.table.path, versions[MEDIA]), field.column.name
    if name in table.schema.names:
        if any(batch.column(0).null_count < batch.num_rows for batch in table.scan([name])):
            raise Conflict(f"a later edit gave the field {facts['name']!r} values")
        versions = {**versions, MEDIA: tables.drop_columns(table, [name])}
        tables.sync(table.path)
    head = media.generation.model_copy(update={"summary": summary})
    number = next_number(head, FIELDS, [each.number for each in fields])
    kept = [each for each in fields if each is not field]
    return {**versions, FIELDS: write_fields(table.path, kept)}, with_next_number(head, FIELDS, number)


def with_field_name(media: Media, state: NewState, renamed: Mapping[str, str], *, forward: bool) -> NewState:
    """Return a state in which a field has the name after a step that renamed it, or the name before.

    Raises:
        Conflict: it was renamed or deleted meanwhile, or another field has the name.
    """
    versions, summary = state
    old, new = (renamed[name] for name in (("before", "after") if forward else ("after", "before")))
    fields = read_fields(media.table.path, versions)
    if not any(each.field_id == renamed["field_id"] and each.name == old for each in fields):
        raise Conflict(f"the field {old!r} was renamed or deleted meanwhile")
    if any(each.name == new and each.field_id != renamed["field_id"] for each in fields):
        raise Conflict(f"another field is named {new!r} now")
    changed = [replace(each, name=new) if each.field_id == renamed["field_id"] else each for each in fields]
    return {**versions, FIELDS: write_fields(media.table.path, changed)}, summary
