"""Images with what is known of them, one by one, for formats whose files hold the images."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.progress import ShareProgress
from framedex.export.columns import EXPORTED
from framedex.export.contents import ExportContents
from framedex.export.image_names import readable_names
from framedex.export.images import CopyResult, image_files
from framedex.export.object_columns import BBOX, CONFIDENCE, FLAGS, LABEL, ORIGINAL_ID
from framedex.export.objects import objects_field
from framedex.storage.classes import classes_of

_OBJECTS = objects_field(pa.schema([LABEL, BBOX, CONFIDENCE, ORIGINAL_ID, FLAGS[0]]))
_OF_IMAGES = ("width", "height", "labels", "caption", "tags")
_FRAME = "jpg"
_SUFFIXES: dict[str, str] = {"jpeg": "jpg", "tiff": "tif", "jpeg2000": "jp2"}


@dataclass(frozen=True)
class Sample:
    """An image with what is known of it.

    Attributes:
        name: the path within the source, or what stands for it.
        suffix: of the file, by its content, such as ``jpg``.
        data: the content of the image file.
        about: ``media_id``, ``width``, ``height``, ``labels``, ``caption``, ``tags`` and, if the dataset has objects,
            ``objects``.
    """

    name: str
    suffix: str
    data: bytes
    about: dict[str, Any]


def parts_of(contents: ExportContents) -> Iterator[tuple[str | None, ExportContents]]:
    """Yield the name of each part with its contents; None with all contents if there are no parts."""
    if contents.splits is None:
        yield None, contents
        return
    for code, name in enumerate(contents.splits.names):
        rows = contents.splits.rows[contents.splits.codes == code]
        yield name, replace(contents, rows=rows, total=len(rows), splits=None)


def samples(contents: ExportContents, copied: CopyResult, progress: ShareProgress) -> Iterator[Sample]:
    """Yield the images whose file can be read, in the order of ingestion; *copied* counts them and the others."""
    rows = _rows(contents)
    for row, data in image_files(contents, rows, copied, progress):
        yield Sample(row["_name"], _suffix(row), data, row["_about"])


def class_names(contents: ExportContents) -> list[str]:
    """Return the classes of the dataset by number; in an export of objects, those of objects."""
    classes = classes_of(contents.media)
    names: list[str] = (classes.filter(classes["of_boxes"]) if contents.boxes_only else classes)["name"].to_pylist()
    return names


def _rows(contents: ExportContents) -> Iterator[dict[str, Any]]:
    media, fields = contents.media, contents.media.table.schema
    location = [fields.field(name) for name in dict.fromkeys([*media.location, "media_id", "format", "error"])]
    own = [EXPORTED.field(name) for name in _OF_IMAGES]
    objects = [_OBJECTS] if contents.with_objects else []
    schema = pa.schema([*location, *own, *objects])
    names = ["media_id", *_OF_IMAGES, *[each.name for each in objects]]
    for block in contents.blocks(schema, lambda _share: None):
        stored = block.select([each.name for each in location])
        texts = readable_names(media, stored).to_pylist()
        about = block.select(names).to_pylist()
        for row, name, each in zip(stored.to_pylist(), texts, about, strict=True):
            if contents.boxes_only:  # whose labels are those of objects
                each |= {"labels": [], "caption": None}
            yield {**row, "_name": name, "_about": each}


def _suffix(row: dict[str, Any]) -> str:
    if row.get("frame_number") is not None:
        return _FRAME
    kind = row["format"] or str(row["_name"]).rpartition(".")[2].lower()
    return _SUFFIXES.get(kind, kind)


def has_one_label(contents: ExportContents) -> bool:
    """Return whether each image has exactly one label, and labels of images are exported."""
    if contents.boxes_only:
        return False
    blocks = contents.blocks(pa.schema([EXPORTED.field("labels")]), lambda _share: None)
    return all((np.diff(block["labels"].combine_chunks().offsets.to_numpy()) == 1).all() for block in blocks)


def has_captions(contents: ExportContents) -> bool:
    """Return whether some image has a caption, and captions are exported."""
    if contents.boxes_only:
        return False
    blocks = contents.blocks(pa.schema([EXPORTED.field("caption")]), lambda _share: None)
    return any(block["caption"].null_count < len(block) for block in blocks)
