"""COCO files (``annotations.json``): labels, captions and boxes, read item by item and written as columns.

Image and category names are held in memory by id. Annotations are not, so memory does not grow with their number.
"""

import json as plain_json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.json_items import read_items
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels
from framedex.annotations.output import (
    OBJECTS,
    AnnotatedImages,
    Files,
    all_labels,
    column,
    file_names,
    label_numbers,
    labels_without_box,
    omissions,
)
from framedex.annotations.problems import Problem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput

FILE = "annotations.json"
_ARRAYS = ("images", "categories", "annotations")
_ID = "an 'id', a number or a text that no other has"
_AMBIGUOUS = ""  # replaces the name of images that share an id; no file has this name
_NUMBER = "^(0|-?[1-9][0-9]{0,17})$"
"""Pattern of annotation ids that are numbers in the file."""


# Reading labels and captions


@dataclass(frozen=True)
class _Names:
    """Names of images and categories by id, and the label lists of images."""

    images: dict[str, str]
    categories: dict[str, str]
    listed: dict[str, tuple[str, ...]]


def read_labels(path: Path) -> Iterator[ImageLabels]:
    """Yield one row for each image, and one for each annotation with its category or caption.

    If an image has ``labels``, a list of names, they are its labels, and categories of its annotations do not count.
    Otherwise the categories of boxes are labels of their image, too. A box with an unknown image or category is
    skipped here; :func:`read_boxes` adds it to the problems.

    Raises:
        InvalidInput: the file is not in COCO format, or an image, a category or an annotation without a box is
            malformed.
    """
    names = _Names({}, {}, {})
    for key, index, item in _images_and_categories(path):
        _add_unique(names, path, key, index, item)
    for image, name in names.images.items():
        yield ImageLabels(name, names.listed.get(image, ()), complete=image in names.listed)
    for array, position, item in read_items(path):
        if (
            array == "annotations"
            and position is not None
            and (row := _labels_of(path, position, item, names)) is not None
        ):
            yield row


def _images_and_categories(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield (array, position, item) of the images and categories, and check that the file is in COCO format."""
    arrays = set()
    for key, position, item in read_items(path):
        if key not in _ARRAYS:
            continue
        if position is None:
            if item is not None and item != []:
                raise InvalidInput(f"{os.fspath(path)!r}: {key!r} must be an array, not {type(item).__name__}")
            arrays.add(key if item is not None else "")
            if key == "annotations" and arrays >= set(_ARRAYS):
                break  # most files have the long array last, so it is read only once
        elif key != "annotations":
            yield key, position, item
    if "images" not in arrays:
        raise InvalidInput(f"{os.fspath(path)!r} is not in COCO format: an object with {', '.join(map(repr, _ARRAYS))}")


def _add_unique(names: _Names, path: Path, array: str, position: int, item: Any) -> None:
    names_by_id, key = (names.images, "file_name") if array == "images" else (names.categories, "name")
    identifier, name = (_id(item.get("id")), item.get(key)) if isinstance(item, dict) else (None, None)
    if identifier is None or name is None:
        raise InvalidInput(f"{os.fspath(path)!r}: {array}[{position}] needs {_ID}, and {key!r}")
    if (other := names_by_id.setdefault(identifier, str(name))) != str(name):
        raise InvalidInput(
            f"{os.fspath(path)!r}: {array}[{position}] has the id {identifier!r} of {other!r}; it needs {_ID}"
        )
    if array == "images" and isinstance(item.get("labels"), list):
        names.listed[identifier] = parse_labels(item["labels"])


def _labels_of(path: Path, position: int, item: Any, names: _Names) -> ImageLabels | None:
    """Return the label or caption of an annotation's image, or None for a box without a valid image or category."""
    parts = item if isinstance(item, dict) else {}
    image, category, caption = _id(parts.get("image_id")), parts.get("category_id"), parts.get("caption")
    name, label = names.images.get(image or ""), names.categories.get(_id(category) or "")
    if name is None or (category is not None and label is None):
        if parts.get("bbox"):
            return None
        what = f"category_id {category!r}, which 'categories' lacks"
        reason = "names no image of 'images'" if name is None else f"has {what}"
        raise InvalidInput(f"{os.fspath(path)!r}: annotations[{position}] {reason}")
    labels = () if label is None or image in names.listed else (label,)
    return ImageLabels(name, labels, None if caption is None else str(caption))


# Reading boxes


def read_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a COCO file in file order. Annotations without ``bbox`` are captions or image labels.

    ``bbox`` is ``[x, y, width, height]`` in pixels, ``score`` is the confidence, and ``id`` is stored as text. The file
    is read item by item, and twice if the annotations come first. Outlines (``segmentation``) are not stored.

    Args:
        path: the file.
        problems: collects the problems of images, categories and annotations.

    Raises:
        InvalidInput: the file is not in COCO format: a JSON object with an array ``images``.
    """
    names = _Names({}, {}, {})
    for key, position, item in _images_and_categories(path):
        _add_usable(names, f"{path.name}: {key}[{position}]", key, item, problems)
    rows = (
        _box(f"{path.name}: annotations[{position}]", item, names.images, names.categories)
        for key, position, item in read_items(path)
        if key == "annotations" and position is not None and not _without_box(item)
    )
    yield from without_problems(rows, problems)


def _add_usable(names: _Names, location: str, array: str, item: Any, problems: Problems) -> None:
    names_by_id, key = (names.images, "file_name") if array == "images" else (names.categories, "name")
    identifier, name = (_id(item.get("id")), item.get(key)) if isinstance(item, dict) else (None, None)
    name = label_of(name) if key == "name" else name
    if identifier is None or not isinstance(name, str) or not name:
        problems.add(problem(location, item, f"needs 'id', a number or a text, and {key!r}, a text"))
    elif (other := names_by_id.setdefault(identifier, name)) != name:
        problems.add(problem(location, item, f"its id is that of {other or 'others'!r}, too; ids must differ"))
        names_by_id[identifier] = _AMBIGUOUS


def _without_box(item: Any) -> bool:
    return isinstance(item, dict) and item.get("bbox") in (None, [])


def _box(location: str, item: Any, images: Mapping[str, str], categories: Mapping[str, str]) -> Box | Problem:
    if not isinstance(item, dict):
        return problem(location, item, "an annotation must be an object")
    original = _id(item.get("id"))
    location = location if original is None else f"{location} (id {original})"
    if not (name := images.get(_id(item.get("image_id")) or "")):
        return _unknown(location, item, "image_id", "images", name)
    if not (label := categories.get(_id(item.get("category_id")) or "")):
        return _unknown(location, item, "category_id", "categories", label)
    numbers = item["bbox"] if isinstance(item["bbox"], list) else []
    x, y, width, height = map(_number, numbers) if len(numbers) == 4 else (None,) * 4
    if x is None or y is None or width is None or height is None:
        return problem(location, item["bbox"], "'bbox' must be [x, y, width, height], finite numbers of pixels")
    confidence = _number(item.get("score"))
    if item.get("score") is not None and not is_confidence(confidence):
        return problem(location, item["score"], "'score' must be a number from 0 to 1")
    crowd = bool(item.get("iscrowd"))
    return Box(name, x, y, width, height, label, confidence, original, "coco", iscrowd=crowd, location=location)


def _unknown(location: str, item: Any, key: str, array: str, name: str | None) -> Problem:
    several = "several have" if name == _AMBIGUOUS else "none has"
    return problem(location, item.get(key), f"{key!r} must be the id of one of {array!r}; {several} this one")


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) else finite_number(value)


def _id(value: Any) -> str | None:
    """Return an id as text. Equal whole numbers give equal texts (1, 1.0, "1")."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write ``annotations.json``, and return sentences about the data that it cannot hold.

    Images and categories are numbered from 1. Annotations keep their ids. Labels, captions and boxes without an id get
    higher numbers. If boxes are written, each image also lists all its ``labels``, because the categories of its boxes
    may be others. Labels that no box of the image has are written as annotations, too.
    """
    labels = all_labels(images, part(progress, 0.0, 0.1))
    info = {"description": images.title, "contributor": images.author}
    numbers = json.integers(pa.array(np.arange(1, len(labels) + 1)))
    categories = json.join_rows(json.object_texts({"id": numbers, "name": json.strings(labels)}, end=json.LINE_END))
    with files.member(FILE, compressed=True) as member:
        member.write(b'{"info": ' + plain_json.dumps(info, ensure_ascii=False).encode() + b', "categories": [')
        member.write(categories)
        member.write(b"]")
        for name, rows in (
            ("images", _image_texts(images, part(progress, 0.1, 0.5))),
            ("annotations", _annotation_texts(images, labels, part(progress, 0.5, 1.0))),
        ):
            member.write(f', "{name}": ['.encode())
            separator = b"\n"
            for texts in rows:
                if len(texts):
                    member.write(separator)
                    member.write(json.join_rows(texts))
                    separator = json.LINE_END.encode()
            member.write(b"\n]")
        member.write(b"}\n")
    return omissions(images, ("truncated", "difficult"), "COCO") if images.with_boxes else []


def _image_texts(images: AnnotatedImages, progress: ShareProgress) -> Iterator[pa.Array]:
    done, with_labels = 0, images.with_boxes and images.with_labels
    for block in images.blocks(["file_name", "media_id", "width", "height", *["labels"] * with_labels], progress):
        fields = {
            "id": json.integers(pa.array(np.arange(done + 1, done + len(block) + 1))),
            "file_name": json.strings(file_names(images, block)),
            "width": json.integers(column(block, "width")),
            "height": json.integers(column(block, "height")),
            "media_id": json.quoted(column(block, "media_id")),
        }
        if with_labels:
            fields["labels"] = json.arrays(column(block, "labels"))
        yield json.object_texts(fields, end=json.LINE_END)
        done += len(block)


def _annotation_texts(images: AnnotatedImages, labels: pa.Array, progress: ShareProgress) -> Iterator[pa.Array]:
    """Yield annotations as JSON texts: labels, boxes, then captions of a block of some thousand images."""
    columns = [*["labels", "caption"] * images.with_labels, *[OBJECTS] * images.with_boxes]
    done, ids = 0, _Ids(images)
    for block in images.blocks(["file_name", *columns], progress):
        image = np.arange(done + 1, done + len(block) + 1)
        if images.with_labels:
            lists = labels_without_box(block) if images.with_boxes else column(block, "labels")
            of_label = np.repeat(image, pc.list_value_length(lists).to_numpy())
            categories = json.integers(pc.add(label_numbers(lists, labels), 1))
            yield _annotations(ids.new(len(of_label)), of_label, {"category_id": categories})
        if images.with_boxes:
            yield _box_texts(column(block, OBJECTS), image, labels, ids)
        if images.with_labels:
            caption = column(block, "caption")
            of_caption = image[pc.is_valid(caption).to_numpy(zero_copy_only=False)]
            yield _annotations(ids.new(len(of_caption)), of_caption, {"caption": json.strings(caption.drop_null())})
        done += len(block)


class _Ids:
    """Generator of annotation ids above the existing ones."""

    def __init__(self, images: AnnotatedImages) -> None:
        self._last = max(images.highest_id(_NUMBER), 0) if images.with_boxes else 0

    def new(self, count: int) -> pa.Array:
        """Return *count* new ids as JSON."""
        first, self._last = self._last + 1, self._last + count
        return json.integers(pa.array(np.arange(first, first + count)))


def _box_texts(objects: pa.ListArray, image: np.ndarray, labels: pa.Array, ids: _Ids) -> pa.Array:
    values = objects.flatten()
    original, confidence, bbox = (values.field(name) for name in ("original_id", "confidence", "bbox"))
    is_number = pc.fill_null(pc.match_substring_regex(original, _NUMBER), False)
    texts = pc.if_else(is_number, original, json.strings(original))
    lacking = pc.is_null(original)
    texts = pc.replace_with_mask(texts, lacking, ids.new(pc.sum(lacking, min_count=0).as_py()))
    edges = bbox.flatten().to_numpy().reshape(-1, 4)
    fields = {
        "category_id": json.integers(pc.add(pc.index_in(values.field("label"), value_set=labels), 1)),
        "bbox": pc.binary_join_element_wise("[", json.join_lists(json.exact(bbox.flatten()), bbox), "]", ""),
        "area": json.exact(pa.array(edges[:, 2] * edges[:, 3])),
        "iscrowd": json.integers(pc.cast(values.field("iscrowd"), pa.int8())),
    }
    of_box = np.repeat(image, pc.list_value_length(objects).to_numpy())
    scored = _annotations(texts, of_box, fields | {"score": json.exact(confidence)})
    return pc.if_else(pc.is_valid(confidence), scored, _annotations(texts, of_box, fields))


def _annotations(ids: pa.Array, image: np.ndarray, values: dict[str, pa.Array]) -> pa.Array:
    return json.object_texts({"id": ids, "image_id": json.integers(pa.array(image)), **values}, end=json.LINE_END)
