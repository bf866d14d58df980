"""What the formats for boxes have in common: their columns, all classes, boxes as records, and what is left out."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.export.chosen import Chosen
from framedex.export.label_columns import all_labels
from framedex.export.object_columns import BBOX, CONFIDENCE, FLAGS, LABEL, ORIGINAL_ID
from framedex.export.objects import OBJECTS, ObjectsByMedia, objects_field
from framedex.export.places import column
from framedex.media.boxes import Box
from framedex.progress import ShareProgress

BOXES = objects_field(pa.schema([LABEL, BBOX, CONFIDENCE, ORIGINAL_ID, *FLAGS]))
"""The objects of each media item, as annotation files have them."""
_WORDS = {
    "original_id": ("count(original_id)", "ids"),
    "confidence": ("count(confidence)", "confidences"),
    "iscrowd": ("count_if(iscrowd)", "crowd flags"),
    "truncated": ("count_if(truncated)", "truncated flags"),
    "difficult": ("count_if(difficult)", "difficult flags"),
}


def left_out(objects: ObjectsByMedia | None, names: Sequence[str], kind: str) -> list[str]:
    """Return in words what is known of boxes that a kind of files has no place for.

    Args:
        objects: those that are exported.
        names: what the files have no place for.
        kind: what they are called.
    """
    if objects is None:
        return []
    parts = ", ".join(f"{_WORDS[name][0]} AS {name}" for name in names)
    counts = objects.values(f"SELECT {parts} FROM chosen", *names).to_pylist()[0]
    return [
        f"{counts[name]:,} {_WORDS[name][1]} are left out: {kind} files hold none" for name in names if counts[name]
    ]


def classes(objects: ObjectsByMedia | None) -> pa.Array:
    """Return the labels of objects, each once, sorted."""
    if objects is None:
        return pa.array([], pa.string())
    found = objects.values("SELECT DISTINCT labels[1] AS label FROM chosen", "labels")["label"].combine_chunks()
    return found.take(pc.sort_indices(found))


def all_names(chosen: Chosen, progress: ShareProgress) -> pa.Array:
    """Return the labels of media, and those of their objects, each once, sorted."""
    known = classes(chosen.objects)
    if not chosen.boxes_only:
        known = pc.unique(pa.concat_arrays([known, all_labels(chosen, progress)]))
    return known.take(pc.sort_indices(known))


def boxes_in(block: pa.Table, names: pa.Array) -> Iterator[tuple[str, tuple[int, int] | None, list[Box]]]:
    """Yield (name, (width, height) in pixels, boxes) of each media item in a block that has some.

    Of one that could not be read the size is None.

    Args:
        block: with :data:`BOXES`, ``width`` and ``height``.
        names: of the pictures.
    """
    lists = column(block, OBJECTS)
    some = pc.greater(pc.list_value_length(lists), 0)
    sizes = (column(block, name).filter(some).to_pylist() for name in ("width", "height"))
    for name, width, height, found in zip(
        names.filter(some).to_pylist(), *sizes, lists.filter(some).to_pylist(), strict=True
    ):
        size = None if width is None or height is None else (width, height)
        yield name, size, [_box(name, each) for each in found]


def _box(name: str, values: dict[str, Any]) -> Box:
    x, y, width, height = values.pop("bbox")
    return Box(name, x, y, width, height, **values)


def unsaid(block: pa.Table) -> pa.ListArray:
    """Return the labels of each media item that none of its boxes has.

    Args:
        block: with :data:`BOXES` and ``labels``.
    """
    labels, objects = column(block, "labels"), column(block, OBJECTS)
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(objects).to_numpy())])
    names = objects.flatten().field("label").to_pylist()
    rows = zip(labels.to_pylist(), ends[:-1], ends[1:], strict=True)
    told = [[each for each in own if each not in names[start:end]] for own, start, end in rows]
    return pa.array(told, labels.type)
