"""The COCO export: boxes, image-level labels and captions as ``annotations.json``, which ingestion reads."""

import json as plain_json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.export import json_text as json
from framedex.export.box_lists import BOXES, all_names, left_out, unsaid
from framedex.export.chosen import Chosen, part
from framedex.export.label_columns import IMAGES, columns, numbers_of
from framedex.export.objects import OBJECTS
from framedex.export.picture_names import readable_names
from framedex.export.places import column
from framedex.export.zip_writer import ZipWriter
from framedex.progress import ShareProgress

NAME = "annotations.json"
_NUMBER = "^(0|-?[1-9][0-9]{0,17})$"
"""Ids of annotations that are numbers in the file."""


def write_coco(archive: ZipWriter, chosen: Chosen, progress: ShareProgress) -> list[str]:
    """Write the file; return what it does not hold.

    Images and categories are numbered from 1. The name of an image is its place in the archive with pictures, else the
    path within the source, so that the file can be put beside the pictures. Ids of annotations stay; those of labels,
    captions and boxes without one are above them. Where there are objects, an image has all its ``labels`` beside its
    name, as boxes say others; those that no box says are annotations too. Of boxes alone, there are no labels and
    captions.
    """
    known = all_names(chosen, part(progress, 0.0, 0.1))
    info = {"description": chosen.dataset.display_name, "contributor": chosen.exported_by}
    numbers = json.integers(pa.array(np.arange(1, len(known) + 1)))
    categories = json.text_of(json.objects({"id": numbers, "name": json.strings(known)}, end=json.LINE_END))
    with archive.member(NAME, compressed=True) as member:
        member.write(b'{"info": ' + _json(info) + b', "categories": [')
        member.write(categories)
        member.write(b"]")
        for name, rows in (
            ("images", _images(chosen, part(progress, 0.1, 0.5))),
            ("annotations", _annotations(chosen, known, part(progress, 0.5, 1.0))),
        ):
            member.write(f', "{name}": ['.encode())
            separator = b"\n"
            for texts in rows:
                if len(texts):
                    member.write(separator)
                    member.write(json.text_of(texts))
                    separator = json.LINE_END.encode()
            member.write(b"\n]")
        member.write(b"}\n")
    return left_out(chosen.objects, ("truncated", "difficult"), "COCO")


def _images(chosen: Chosen, progress: ShareProgress) -> Iterator[pa.Array]:
    """Yield the texts of the images."""
    folder, done = IMAGES if chosen.include_images else "", 0
    with_labels = chosen.with_objects and not chosen.boxes_only
    for block in chosen.blocks(columns(chosen, "width", "height", *["labels"] * with_labels), progress):
        names = pc.binary_join_element_wise(folder, readable_names(chosen.media, block), "")
        fields = {
            "id": json.integers(pa.array(np.arange(done + 1, done + len(block) + 1))),
            "file_name": json.strings(names),
            "width": json.integers(column(block, "width")),
            "height": json.integers(column(block, "height")),
            "media_id": json.quoted(column(block, "media_id")),
        }
        if with_labels:
            fields["labels"] = json.arrays(column(block, "labels"))
        yield json.objects(fields, end=json.LINE_END)
        done += len(block)


def _annotations(chosen: Chosen, known: pa.Array, progress: ShareProgress) -> Iterator[pa.Array]:
    """Yield the texts of the annotations: the labels, the boxes and then the captions of some thousand images."""
    schema = columns(chosen, "labels", "caption")
    if chosen.with_objects:
        schema = schema.append(BOXES)
    done, ids = 0, _Ids(chosen)
    for block in chosen.blocks(schema, progress):
        image = np.arange(done + 1, done + len(block) + 1)
        if not chosen.boxes_only:
            labels = unsaid(block) if chosen.with_objects else column(block, "labels")
            of_label = np.repeat(image, pc.list_value_length(labels).to_numpy())
            categories = json.integers(pc.add(numbers_of(labels, known), 1))
            yield _objects(ids.new(len(of_label)), of_label, {"category_id": categories})
        if chosen.with_objects:
            yield _boxes(column(block, OBJECTS), image, known, ids)
        if not chosen.boxes_only:
            caption = column(block, "caption")
            of_caption = image[pc.is_valid(caption).to_numpy(zero_copy_only=False)]
            yield _objects(ids.new(len(of_caption)), of_caption, {"caption": json.strings(caption.drop_null())})
        done += len(block)


class _Ids:
    """Gives annotations without an id of their own the numbers above all that others have."""

    def __init__(self, chosen: Chosen) -> None:
        self._last = 0
        if chosen.objects is not None:
            highest = "max(TRY_CAST(original_id AS BIGINT)) AS highest"
            text = f"SELECT {highest} FROM chosen WHERE regexp_matches(original_id, '{_NUMBER}')"
            found = chosen.objects.values(text, "original_id")["highest"][0].as_py()
            self._last = max(found or 0, 0)

    def new(self, count: int) -> pa.Array:
        """Return so many ids as JSON."""
        first, self._last = self._last + 1, self._last + count
        return json.integers(pa.array(np.arange(first, first + count)))


def _boxes(objects: pa.ListArray, image: np.ndarray, known: pa.Array, ids: _Ids) -> pa.Array:
    found = objects.flatten()
    original, confidence, bbox = (found.field(name) for name in ("original_id", "confidence", "bbox"))
    is_number = pc.fill_null(pc.match_substring_regex(original, _NUMBER), False)
    texts = pc.if_else(is_number, original, json.strings(original))
    lacking = pc.is_null(original)
    texts = pc.replace_with_mask(texts, lacking, ids.new(pc.sum(lacking, min_count=0).as_py()))
    edges = bbox.flatten().to_numpy().reshape(-1, 4)
    fields = {
        "category_id": json.integers(pc.add(pc.index_in(found.field("label"), value_set=known), 1)),
        "bbox": pc.binary_join_element_wise("[", json.grouped(json.exact(bbox.flatten()), bbox), "]", ""),
        "area": json.exact(pa.array(edges[:, 2] * edges[:, 3])),
        "iscrowd": json.integers(pc.cast(found.field("iscrowd"), pa.int8())),
    }
    of_box = np.repeat(image, pc.list_value_length(objects).to_numpy())
    scored = _objects(texts, of_box, fields | {"score": json.exact(confidence)})
    return pc.if_else(pc.is_valid(confidence), scored, _objects(texts, of_box, fields))


def _objects(ids: pa.Array, image: np.ndarray, values: dict[str, pa.Array]) -> pa.Array:
    return json.objects({"id": ids, "image_id": json.integers(pa.array(image)), **values}, end=json.LINE_END)


def _json(value: object) -> bytes:
    return plain_json.dumps(value, ensure_ascii=False).encode()
