"""User edits as columns and as JSON items: tags with their dates, and custom fields."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.output import column
from framedex.editable_values import editable_values
from framedex.storage.definitions import TAGGED_AT, TAGGED_SCHEMA, TAGS, fields_of, tag_names, tags_of
from framedex.storage.media import Media

TAG_DATES = TAGGED_SCHEMA.field(TAGGED_AT)
"""The dates of the tags, parallel to ``tags``; a column of the JSON export only."""
_VALUES = {each.name: each for each in editable_values().values() if not each.from_source}
_STORED, _TYPE = b"custom_field", b"field_type"  # metadata that mark the columns of custom fields


def custom_fields(media: Media) -> list[pa.Field]:
    """Return a column for each custom field, named like it."""
    return [
        pa.field(each.name, each.column.type, metadata={_STORED: each.column.name, _TYPE: each.type.value})
        for each in fields_of(media)
    ]


def stored_name(field: pa.Field) -> str | None:
    """Return the name of the stored column of a custom field; None for other columns."""
    name = (field.metadata or {}).get(_STORED)
    return None if name is None else name.decode()


def edited_column(media: Media, block: pa.Table, field: pa.Field) -> Any:
    """Return a column of user edits; None if the field is another column.

    Args:
        media: the dataset's media.
        block: rows with the stored columns that exist in the table.
        field: ``tags`` (the names, in the order of assignment), ``TAG_DATES``, a custom field, or an editable value
            that is in no source.
    """
    if field.name in _VALUES:
        return block[field.name] if field.name in block.column_names else pa.nulls(len(block), field.type)
    if (stored := stored_name(field)) is not None:
        return block[stored] if stored in block.column_names else pa.nulls(len(block), field.type)
    if field.name not in (TAGS, TAG_DATES.name):
        return None
    if field.name not in block.column_names:
        return _lists(np.zeros(len(block), dtype=np.int64), pa.array([], field.type.value_type))
    lists = column(block, field.name)
    values = tag_names(tags_of(media)).take(lists.flatten()) if field.name == TAGS else lists.flatten()
    return _lists(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), values)


def _lists(lengths: Any, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), values)


def edited_items(block: pa.Table) -> list[pa.Array]:
    """Return the JSON items of user edits, one array for each kind; null for rows without a value.

    Items of tags are ``user_tag`` with tag_name and assigned_date. Items of fields are ``custom_field`` with
    field_name, field_type and value. Other items have the name of the editable value as type, and its value.
    """
    fields = [field for field in block.schema if stored_name(field) is not None]
    return [
        _user_tags(block),
        *(_custom_field(block, field) for field in fields),
        *(_editable(block, name) for name in _VALUES),
    ]


def _user_tags(block: pa.Table) -> pa.Array:
    tags, dates = column(block, TAGS), column(block, TAGGED_AT)
    properties = json.object_texts({"tag_name": json.strings(tags.flatten()), "assigned_date": _plain(dates.flatten())})
    return json.join_lists(json.object_texts({"type": '"user_tag"', "properties": properties}), tags)


def _custom_field(block: pa.Table, field: pa.Field) -> pa.Array:
    values = column(block, field.name)
    name, kind = json.strings(pa.array([field.name, field.metadata[_TYPE].decode()])).to_pylist()
    return _item("custom_field", values, {"field_name": name, "field_type": kind, "value": _texts(values)})


def _editable(block: pa.Table, name: str) -> pa.Array:
    values = column(block, name)
    return _item(name, values, {"value": _texts(values)})


def _item(kind: str, values: pa.Array, properties: dict[str, Any]) -> pa.Array:
    """Return the JSON item of each row; null for rows without a value."""
    item = json.object_texts({"type": f'"{kind}"', "properties": json.object_texts(properties)})
    return pc.if_else(pc.is_valid(values), item, None)


def _texts(values: pa.Array) -> pa.Array:
    """Return values, or lists of values, as JSON."""
    if pa.types.is_list(values.type):
        return pc.binary_join_element_wise("[", json.join_lists(_plain(values.flatten()), values), "]", "")
    return _plain(values)


def _plain(values: pa.Array) -> pa.Array:
    """Return texts, numbers or times as JSON."""
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return json.or_null(pc.cast(values, pa.string()))
    if pa.types.is_timestamp(values.type):
        return json.quoted(pc.replace_substring(pc.cast(values, pa.string()), " ", "T"))
    if pa.types.is_floating(values.type):
        return json.or_null(pc.cast(values, pa.string()))
    return json.strings(values)
