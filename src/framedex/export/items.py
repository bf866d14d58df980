"""Media as the items of the JSON export."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.export.columns import EXPORTED, URL
from framedex.export.edited import TAG_DATES, custom_fields, edited_items
from framedex.export.object_columns import FLAGS, OBJECT_ITEM
from framedex.export.objects import OBJECTS, objects_field
from framedex.export.places import column
from framedex.storage.media import Media
from framedex.storage.media_rows import MODEL_CAPTION

_UNITS = ((30, "GB"), (20, "MB"), (10, "KB"))


def item_columns(media: Media, objects: Media | None = None) -> pa.Schema:
    """Return the columns that items are made of, as :class:`framedex.export.chosen.Chosen` has them.

    Args:
        media: whose items they are.
        objects: those in them that are exported, too.
    """
    written = _model_caption(media)
    lists = [] if objects is None else [objects_field(pa.schema([*OBJECT_ITEM, *_model_caption(objects)]))]
    return pa.schema([*EXPORTED, URL, *written, TAG_DATES, *custom_fields(media), *lists])


def _model_caption(media: Media) -> list[pa.Field]:
    return [MODEL_CAPTION] if MODEL_CAPTION.name in media.table.schema.names else []


def media_items(block: pa.Table) -> pa.Array:
    """Return the JSON text of an item, and the end of its line, for each row of a block of :func:`item_columns`."""
    return json.objects(
        {
            "media_id": json.quoted(column(block, "media_id")),
            "media_type": json.quoted(column(block, "media_type")),
            "file_name": json.strings(column(block, "image_filename")),  # so that images/<file_name> is the picture
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
    """Return the arrays of what is known of each picture: all of one type, then those of the next."""
    by_model = column(block, MODEL_CAPTION.name) if MODEL_CAPTION.name in block.column_names else None
    captions = _captions(column(block, "caption"), by_model)
    objects = [_objects(column(block, OBJECTS))] if OBJECTS in block.column_names else []
    kinds = [_issues(column(block, "issues")), _labels(block), *objects, *edited_items(block), captions]
    return _arrays([*kinds, _video_infos(block)])


def _arrays(kinds: list[pa.Array]) -> pa.Array:
    """Return the arrays of what is known of each row, given the items of each type, null where there are none."""
    found, *others = kinds
    for items in others:
        # Joining that passes over nulls returns no rows at all where all are null (PyArrow 26.0.1).
        found = pc.coalesce(pc.binary_join_element_wise(found, items, ", "), found, items)
    return pc.binary_join_element_wise("[", pc.fill_null(found, ""), "]", "")


def _issues(issues: pa.ListArray) -> pa.Array:
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
    found = pc.if_else(pc.is_valid(group), json.objects(properties | of_group), json.objects(properties))
    return json.grouped(_item("issue", found), issues)


def _labels(block: pa.Table) -> pa.Array:
    labels = column(block, "labels")
    names = json.strings(labels.flatten())
    found = json.objects({"original_id": "null", "category_name": names, "source": '"import"'})
    return json.grouped(_item("image_label", found), labels)


def _captions(caption: pa.Array, by_model: pa.Array | None) -> pa.Array:
    source: pa.Array | str = '"import"'
    if by_model is not None:
        source = pc.if_else(pc.fill_null(pc.equal(caption, by_model), False), '"model"', source)
    found = _item("caption", json.objects({"text": json.strings(caption), "source": source}))
    return pc.if_else(pc.is_valid(caption), found, None)


def _objects(objects: pa.ListArray) -> pa.Array:
    values = objects.flatten()
    edges = values.field("bbox")
    numbers = json.grouped(json.exact(edges.flatten()), edges)
    is_told = values.type.get_field_index(MODEL_CAPTION.name) >= 0
    captions = _captions(values.field("caption"), values.field(MODEL_CAPTION.name) if is_told else None)
    properties = {
        "object_id": json.quoted(values.field("object_id")),
        "original_id": json.strings(values.field("original_id")),
        "category_name": json.strings(values.field("label")),
        "source": json.strings(values.field("source")),
        "bbox": pc.binary_join_element_wise("[", numbers, "]", ""),
        "confidence": json.exact(values.field("confidence")),
        **{flag.name: pc.cast(values.field(flag.name), pa.string()) for flag in FLAGS},
        "uniqueness_score": json.decimals(values.field("uniqueness_score")),
        "url": json.strings(values.field("url")),
        "cluster_id": json.quoted(values.field("cluster_id")),
        "metadata_items": _arrays([_issues(values.field("issues")), captions]),
    }
    return json.grouped(_item("object_label", json.objects(properties)), objects)


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
    return pc.if_else(pc.is_valid(numbers), _item("video_info", json.objects(properties)), None)


def _item(kind: str, properties: pa.Array) -> pa.Array:
    return json.objects({"type": f'"{kind}"', "properties": properties})


def size_texts(sizes: pa.Array) -> pa.Array:
    """Return sizes as people read them, for example ``48.27KB``; one KB is 1024 bytes; null where unknown.

    Args:
        sizes: int64, in bytes.
    """
    if sizes.null_count == len(sizes):
        return pa.nulls(len(sizes), pa.string())
    size = pc.fill_null(sizes, 0).to_numpy()
    text = pc.binary_join_element_wise(pc.cast(sizes, pa.string()), "B", "")
    for bits, unit in reversed(_UNITS):
        # A hundredth of a unit is a binary fraction that a double holds, so halves are rounded as in print.
        cents = np.rint(size * 100 / 2**bits).astype(np.int64)
        whole, part = (pc.cast(pa.array(value), pa.string()) for value in np.divmod(cents, 100))
        in_unit = pc.binary_join_element_wise(whole, ".", pc.utf8_lpad(part, 2, "0"), unit, "")
        text = pc.if_else(pc.greater_equal(sizes, 2**bits), in_unit, text)
    return text
