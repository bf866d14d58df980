"""Media as items of the JSON export."""

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.output import column
from framedex.export.columns import EXPORTED, URL, is_value, value_fields
from framedex.export.object_columns import FLAGS, OBJECT_ITEM
from framedex.export.objects import OBJECTS, objects_field
from framedex.export.user_edits import TAG_DATES, custom_fields, edited_items
from framedex.issue_types import MISLABELS
from framedex.storage.media import Media
from framedex.storage.media_rows import MODEL_CAPTION

_SUGGESTION = pa.field(next(iter(MISLABELS.details)), pa.string())
"""The label that a mislabelled row should have."""
_UNITS = ((30, "GB"), (20, "MB"), (10, "KB"))


def item_columns(media: Media, objects: Media | None = None) -> pa.Schema:
    """Return the columns that items consist of, as :class:`framedex.export.contents.ExportContents` reads them.

    Args:
        media: the dataset's media.
        objects: the exported objects in them, or None.
    """
    lists = []
    if objects is not None:
        lists = [objects_field(pa.schema([*OBJECT_ITEM, *_stored(objects), *value_fields(objects)]))]
    own = [*EXPORTED, URL, *_stored(media), TAG_DATES, *value_fields(media), *custom_fields(media)]
    return pa.schema([*own, *lists])


def _stored(media: Media) -> list[pa.Field]:
    """Return the columns that only some tables have; a custom field of an older version comes first."""
    fields = set() if media.parents is not None else {field.name for field in custom_fields(media)}
    present = set(media.table.schema.names) - fields
    return [field for field in (MODEL_CAPTION, _SUGGESTION) if field.name in present]


def media_items(block: pa.Table) -> pa.Array:
    """Return the JSON text of an item with its line end, for each row of a block of :func:`item_columns`."""
    return json.object_texts(
        {
            "media_id": json.quoted(column(block, "media_id")),
            "media_type": json.quoted(column(block, "media_type")),
            "file_name": json.strings(column(block, "image_filename")),  # so that images/<file_name> is the image
            "file_path": json.strings(column(block, "file_path")),
            "file_size": json.quoted(size_texts(column(block, "file_size_bytes"))),
            "uniqueness_score": json.decimals(column(block, "uniqueness_score")),
            "height": json.integers(column(block, "height")),
            "width": json.integers(column(block, "width")),
            "url": json.strings(column(block, "url")),
            "cluster_id": json.quoted(column(block, "cluster_id")),
            "metadata_items": _metadata_items(block),
        },
        end=json.LINE_END,
    )


def _metadata_items(block: pa.Table) -> pa.Array:
    """Return the metadata array of each row, with items ordered by type."""
    by_model = column(block, MODEL_CAPTION.name) if MODEL_CAPTION.name in block.column_names else None
    captions = _captions(column(block, "caption"), by_model)
    objects = [_objects(column(block, OBJECTS))] if OBJECTS in block.column_names else []
    values = _values({field.name: column(block, field.name) for field in block.schema if is_value(field)})
    issues = _issues(column(block, "issues"), column(block, _SUGGESTION.name) if _is_suggested(block.schema) else None)
    kinds = [issues, _labels(block), *objects, *edited_items(block), captions, values]
    return _arrays([*kinds, _video_infos(block)])


def _arrays(kinds: list[pa.Array]) -> pa.Array:
    """Return one JSON array for each row, from the items of each type, which are null in rows without any."""
    joined, *others = kinds
    for items in others:
        # A join that skips nulls returns an empty array if all values are null (PyArrow 26.0.1).
        joined = pc.coalesce(pc.binary_join_element_wise(joined, items, ", "), joined, items)
    return pc.binary_join_element_wise("[", pc.fill_null(joined, ""), "]", "")


def _is_suggested(schema: Any) -> bool:
    """Return whether columns have suggested labels, and not a custom field of that name."""
    place = schema.get_field_index(_SUGGESTION.name)
    return place >= 0 and bool(schema.field(place).equals(_SUGGESTION, check_metadata=True))


def _issues(issues: pa.ListArray, suggestions: pa.Array | None) -> pa.Array:
    """Return the items of the issues of each row.

    Args:
        issues: the issues of each row.
        suggestions: the suggested label of each row; None without any.
    """
    values = issues.flatten()
    group, threshold = values.field("duplicate_group_id"), values.field("duplicate_threshold")
    properties = {
        "issue_type": json.quoted(values.field("issue_type")),
        "confidence": json.decimals(values.field("confidence")),
    }
    of_group = {
        "duplicate_group_id": json.quoted(group),
        "duplicate_threshold": json.decimals(threshold),
    }
    texts = pc.if_else(pc.is_valid(group), json.object_texts(properties | of_group), json.object_texts(properties))
    if suggestions is not None:
        label = suggestions.take(pc.list_parent_indices(issues))
        is_told = pc.and_(pc.equal(values.field("issue_type"), MISLABELS.name), pc.is_valid(label))
        described = json.object_texts(properties | {"issues_description": json.strings(label)})
        texts = pc.if_else(is_told, described, texts)
    return json.join_lists(_item("issue", texts), issues)


def _values(values: dict[str, pa.Array]) -> pa.Array:
    """Return the values of issue types, by name, as one item; null for rows without any value."""
    is_measured = functools.reduce(pc.or_, (pc.is_valid(each) for each in values.values()))
    item = _item("quality", json.object_texts({name: json.decimals(each) for name, each in values.items()}))
    return pc.if_else(is_measured, item, None)


def _labels(block: pa.Table) -> pa.Array:
    labels = column(block, "labels")
    names = json.strings(labels.flatten())
    texts = json.object_texts({"original_id": "null", "category_name": names, "source": '"import"'})
    return json.join_lists(_item("image_label", texts), labels)


def _captions(caption: pa.Array, by_model: pa.Array | None) -> pa.Array:
    source: pa.Array | str = '"import"'
    if by_model is not None:
        source = pc.if_else(pc.fill_null(pc.equal(caption, by_model), False), '"model"', source)
    text = json.strings(caption)
    texts = _item("caption", json.object_texts({"text": text, "caption": text, "source": source}))
    return pc.if_else(pc.is_valid(caption), texts, None)


def _objects(objects: pa.ListArray) -> pa.Array:
    values = objects.flatten()
    edges = values.field("bbox")
    numbers = json.join_lists(json.exact(edges.flatten()), edges)
    is_told = values.type.get_field_index(MODEL_CAPTION.name) >= 0
    captions = _captions(values.field("caption"), values.field(MODEL_CAPTION.name) if is_told else None)
    quality = _values({field.name: values.field(field.name) for field in values.type if is_value(field)})
    suggestions = values.field(_SUGGESTION.name) if _is_suggested(values.type) else None
    properties = {
        "object_id": json.quoted(values.field("object_id")),
        "original_id": json.strings(values.field("original_id")),
        "category_name": json.strings(values.field("label")),
        "source": json.strings(values.field("source")),
        "bbox": pc.binary_join_element_wise("[", numbers, "]", ""),
        "confidence": json.exact(values.field("confidence")),
        **{flag.name: pc.cast(values.field(flag.name), pa.string()) for flag in FLAGS},
        "segmentation": json.or_null(values.field("segmentation")),
        "keypoints": json.or_null(values.field("keypoints")),
        "attributes": json.or_null(values.field("attributes")),
        "area": json.exact(values.field("area")),
        "uniqueness_score": json.decimals(values.field("uniqueness_score")),
        "url": json.strings(values.field("url")),
        "cluster_id": json.quoted(values.field("cluster_id")),
        "metadata_items": _arrays([_issues(values.field("issues"), suggestions), captions, quality]),
    }
    return json.join_lists(_item("object_label", json.object_texts(properties)), objects)


def _video_infos(block: pa.Table) -> pa.Array:
    numbers = column(block, "frame_number")
    if numbers.null_count == len(numbers):
        return pa.nulls(len(numbers), pa.string())
    properties = {
        "video_name": json.strings(column(block, "video_name")),
        "video_id": json.quoted(column(block, "video_id")),
        "frame_number": json.integers(numbers),
        "frame_timestamp": json.decimals(column(block, "frame_timestamp")),
    }
    return pc.if_else(pc.is_valid(numbers), _item("video_info", json.object_texts(properties)), None)


def _item(kind: str, properties: pa.Array) -> pa.Array:
    return json.object_texts({"type": f'"{kind}"', "properties": properties})


def size_texts(sizes: pa.Array) -> pa.Array:
    """Return sizes as readable texts such as ``48.27KB``; one KB is 1024 bytes; null for unknown sizes.

    Args:
        sizes: int64, in bytes.
    """
    if sizes.null_count == len(sizes):
        return pa.nulls(len(sizes), pa.string())
    size = pc.fill_null(sizes, 0).to_numpy()
    text = pc.binary_join_element_wise(pc.cast(sizes, pa.string()), "B", "")
    for bits, unit in reversed(_UNITS):
        # A hundredth of a unit is exact in float64, so halves are rounded as in print.
        cents = np.rint(size * 100 / 2**bits).astype(np.int64)
        whole, part = (pc.cast(pa.array(value), pa.string()) for value in np.divmod(cents, 100))
        in_unit = pc.binary_join_element_wise(whole, ".", pc.utf8_lpad(part, 2, "0"), unit, "")
        text = pc.if_else(pc.greater_equal(sizes, 2**bits), in_unit, text)
    return text
