"""COCO files (``annotations.json``): labels, captions and boxes, read item by item and written as columns.

Image and category names are held in memory by id. Annotations are not, so memory does not grow with their number.
"""

import json as plain_json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.json_items import read_items
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.output import (
    OBJECTS,
    SPLIT,
    AnnotatedImages,
    Files,
    column,
    file_names,
    omissions,
)
from framedex.annotations.problems import Problem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.shapes import ObjectShape, keypoints_text, segmentation_text
from framedex.annotations.source_lists import SourceClass, SourceImage
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput

FILE, CAPTIONS_FILE = "annotations.json", "captions.json"
_ARRAYS = ("images", "categories", "annotations")
_IMAGE_LABEL = "image_label"
"""Key of annotations whose box is not an object but the whole image, which has the label."""
_ID = "an 'id', a number or a text that no other has"
_AMBIGUOUS = ""  # replaces the name of images that share an id; no file has this name
_DETAILS = ("keypoints", "skeleton")
"""Further values of categories that are kept."""
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


def read_captions(path: Path) -> Iterator[ImageLabels]:
    """Yield the captions of a COCO file, without labels: one row for each annotation with a caption.

    A file without an array ``images`` is of another kind, as some tools write captions under the same name. It has no
    captions.

    Raises:
        InvalidInput: an image or a caption is malformed.
    """
    rows = read_labels(path) if _has_images(path) else iter(())
    return (row._replace(labels=(), complete=False) for row in rows if row.caption is not None)


def _has_images(path: Path) -> bool:
    try:
        return any(key == "images" for key, _, _ in read_items(path))
    except InvalidInput:
        return False


# Reading classes and ids of images


def read_lists(path: Path) -> Iterator[SourceClass | SourceImage]:
    """Yield the categories and the images of a COCO file, as far as they have an id and a name.

    Categories come in the order of the file. The names of key points and the skeleton are their details.

    Raises:
        InvalidInput: the file is not in COCO format.
    """
    for key, _, item in _images_and_categories(path):
        identifier = _id(item.get("id")) if isinstance(item, dict) else None
        if identifier is None:
            continue
        if key == "images":
            if isinstance(item.get("file_name"), str) and item["file_name"]:
                yield SourceImage(item["file_name"], identifier)
        elif name := label_of(item.get("name")):
            number = int(identifier) if re.fullmatch(_NUMBER, identifier) else None
            above = item.get("supercategory")
            details = {each: item[each] for each in _DETAILS if item.get(each) and isinstance(item[each], list)}
            yield SourceClass(
                name,
                number,
                storable(above) if isinstance(above, str) and above else None,
                storable(plain_json.dumps(details)) if details else None,
            )


def read_caption_lists(path: Path) -> Iterator[SourceClass | SourceImage]:
    """Yield the images of a file of captions as :func:`read_lists` does; nothing for a file of another kind."""
    return read_lists(path) if _has_images(path) else iter(())


# Reading boxes


def read_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a COCO file in file order. Annotations without ``bbox`` are captions or image labels.

    ``bbox`` is ``[x, y, width, height]`` in pixels, ``score`` is the confidence, and ``id`` is stored as text.
    ``segmentation``, ``keypoints`` and the ``area`` of a segmentation are the shape; one that cannot be used is a
    problem, and its box is yielded without it. The file is read item by item, and twice if the annotations come first.

    Args:
        path: the file.
        problems: collects the problems of images, categories and annotations.

    Raises:
        InvalidInput: the file is not in COCO format: a JSON object with an array ``images``.
    """
    names = _Names({}, {}, {})
    for key, position, item in _images_and_categories(path):
        _add_usable(names, f"{path.name}: {key}[{position}]", key, item, problems)
    for key, index, item in read_items(path):
        if key == "annotations" and index is not None and not _without_box(item):
            location = f"{path.name}: annotations[{index}]"
            row = _box(location, item, names.images, names.categories)
            yield from without_problems(_with_shape(row, location, item), problems)


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
    return isinstance(item, dict) and (item.get("bbox") in (None, []) or item.get(_IMAGE_LABEL) is True)


def _with_shape(row: Box | Problem, location: str, item: Any) -> Iterator[Box | Problem]:
    """Yield a box with its shape, and a problem for each invalid part of the shape."""
    if isinstance(row, Problem) or not ("segmentation" in item or "keypoints" in item):
        yield row
        return
    texts: list[str | None] = []
    for key, parse in (("segmentation", segmentation_text), ("keypoints", keypoints_text)):
        try:
            texts.append(parse(item.get(key)))
        except ValueError as error:
            texts.append(None)
            yield problem(row.location or location, item[key], str(error))
    area = _number(item.get("area"))
    has_area = any(texts) and area is not None and area >= 0
    yield replace(row, shape=ObjectShape(texts[0], texts[1], area if has_area else None))


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
    """Write ``annotations.json`` and ``captions.json``, and return sentences about the data that they cannot hold.

    Categories have the ids and the order of the dataset's class list. Images and annotations keep the ids of their
    source; others get higher numbers. If boxes are written, each image lists all its ``labels``, because the categories
    of its boxes may be others. Otherwise each label of an image is an annotation with a box around the whole image and
    ``image_label``. Captions have a file of their own without categories, as readers of COCO expect. If the images are
    divided, each part also has files of its own, such as ``annotations_train.json``.
    """
    classes = images.classes()
    shares = part(progress, 0.0, 0.1)
    captions = _count_captions(images, shares) if images.with_labels else 0
    kinds = [FILE, *[CAPTIONS_FILE] * bool(captions)]
    outputs = [(kind, split) for split in (None, *images.splits) for kind in kinds]
    for number, (kind, split) in enumerate(outputs):
        start, end = (0.1 + 0.9 * (number + step) / len(outputs) for step in (0, 1))
        _write_file(files, images, classes if kind == FILE else None, split, part(progress, start, end))
    return omissions(images, ("truncated", "difficult"), "COCO") if images.with_boxes else []


def split_file(name: str, split: str | None) -> str:
    """Return the name of a file of one part of the images; that of all images for None."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122
    return name if split is None else f"{stem}_{split}{suffix}"


def _count_captions(images: AnnotatedImages, progress: ShareProgress) -> int:
    return sum(len(block) - column(block, "caption").null_count for block in images.blocks(["caption"], progress))


def _write_file(
    files: Files, images: AnnotatedImages, classes: pa.Table | None, split: str | None, progress: ShareProgress
) -> None:
    """Write the annotations of all images or of one part; without classes the captions."""
    info = {"description": images.title, "contributor": images.author}
    rows = _captions if classes is None else partial(_annotation_texts, classes=classes)
    with files.member(split_file(CAPTIONS_FILE if classes is None else FILE, split), compressed=True) as member:
        member.write(b'{"info": ' + plain_json.dumps(info, ensure_ascii=False).encode() + b', "licenses": []')
        if classes is not None:
            member.write(b', "categories": [')
            with_keypoints = images.with_boxes and images.box_counts(["keypoints"])["keypoints"] > 0
            member.write(json.join_rows(_category_texts(classes, with_keypoints=with_keypoints)))
            member.write(b"]")
        with_labels = classes is not None and images.with_boxes and images.with_labels
        for name, texts_of in (
            ("images", _image_texts(images, split, part(progress, 0.0, 0.4), with_labels=with_labels)),
            ("annotations", rows(images, split, part(progress, 0.4, 1.0))),
        ):
            member.write(f', "{name}": ['.encode())
            separator = b"\n"
            for texts in texts_of:
                if len(texts):
                    member.write(separator)
                    member.write(json.join_rows(texts))
                    separator = json.LINE_END.encode()
            member.write(b"\n]")
        member.write(b"}\n")


def _category_texts(classes: pa.Table, *, with_keypoints: bool) -> pa.Array:
    """Return the categories as JSON texts. If there are key points, all have their lists, which readers look up."""
    fields = {
        "id": json.integers(column(classes, "id")),
        "name": json.strings(column(classes, "name")),
        "supercategory": json.strings(pc.fill_null(column(classes, "supercategory"), "")),
    }
    plain = json.object_texts(fields, end=json.LINE_END)
    details = pa.array(
        [
            plain_json.dumps({**{key: [] for key in _DETAILS}, **plain_json.loads(text or "{}")})
            if with_keypoints
            else text
            for text in classes["details"].to_pylist()
        ],
        pa.string(),
    )
    detailed = pc.binary_join_element_wise(
        pc.utf8_rtrim(json.object_texts(fields), "}"), pc.utf8_slice_codeunits(details, 1), ", "
    )
    return pc.coalesce(pc.binary_join_element_wise(detailed, json.LINE_END, ""), plain)


def _in_split(block: pa.Table, split: str | None) -> pa.Array | None:
    """Return the mask of the images of a part; None for all images."""
    return None if split is None else pc.equal(column(block, SPLIT), split)


def _columns(images: AnnotatedImages, *names: str) -> list[str]:
    return ["file_name", "media_id", "source_id", *names, *[SPLIT] * bool(images.splits)]


def _image_texts(
    images: AnnotatedImages, split: str | None, progress: ShareProgress, *, with_labels: bool
) -> Iterator[pa.Array]:
    ids = _ImageIds(images)
    for block in images.blocks(_columns(images, "width", "height", *["labels"] * with_labels), progress):
        fields = {
            "id": ids.of(block),
            "file_name": json.strings(file_names(images, block)),
            "width": json.integers(column(block, "width")),
            "height": json.integers(column(block, "height")),
            "media_id": json.quoted(column(block, "media_id")),
        }
        if with_labels:
            fields["labels"] = json.arrays(column(block, "labels"))
        texts = json.object_texts(fields, end=json.LINE_END)
        chosen = _in_split(block, split)
        yield texts if chosen is None else texts.filter(chosen)


def _annotation_texts(
    images: AnnotatedImages, split: str | None, progress: ShareProgress, *, classes: pa.Table
) -> Iterator[pa.Array]:
    """Yield the boxes, or else the labels, of a block of some thousand images as JSON texts."""
    columns = [OBJECTS] if images.with_boxes else ["labels", "width", "height"]
    ids, image_ids = _Ids(images), _ImageIds(images)
    for block in images.blocks(_columns(images, *columns), progress):
        image = image_ids.of(block)
        lists = column(block, OBJECTS if images.with_boxes else "labels")
        texts = (_box_texts if images.with_boxes else _label_texts)(block, image, classes, ids)
        chosen = _in_split(block, split)
        yield texts if chosen is None else texts.filter(chosen.take(pc.list_parent_indices(lists)))


def _captions(images: AnnotatedImages, split: str | None, progress: ShareProgress) -> Iterator[pa.Array]:
    """Yield the captions of a block of some thousand images as JSON texts."""
    done, image_ids = 0, _ImageIds(images)
    for block in images.blocks(_columns(images, "caption"), progress):
        chosen, lines, rows = _in_split(block, split), [], []
        for row, caption in enumerate(column(block, "caption").to_pylist()):
            of_row = [] if caption is None else _lines(caption)
            lines += of_row
            rows += [row] * len(of_row)
        ids = json.integers(pa.array(np.arange(done + 1, done + len(lines) + 1)))
        owner = pa.array(rows, pa.int64())
        values = {"caption": json.strings(pa.array(lines, pa.string()))}
        texts = _annotations(ids, image_ids.of(block).take(owner), values)
        yield texts if chosen is None else texts.filter(chosen.take(owner))
        done += len(lines)


def _lines(caption: str) -> list[str]:
    """Return the captions that a reader joins to this one: its lines, unless one of them is blank."""
    lines = caption.split("\n")
    return lines if all(line.strip() for line in lines) else [caption]


class _ImageIds:
    """Ids of images block by block: those of the source, and numbers above the highest one for the others."""

    def __init__(self, images: AnnotatedImages) -> None:
        highest, shared = images.image_ids(_NUMBER)
        self._last = max(highest, 0)
        self._shared, self._first = (pa.array(values, pa.string()) for values in (list(shared), list(shared.values())))

    def of(self, block: pa.Table) -> pa.Array:
        """Return the ids of a block's images as JSON. Blocks must come in order."""
        ids = column(block, "source_id")
        repeated = pc.and_not(
            pc.is_in(ids, value_set=self._shared), pc.is_in(column(block, "media_id"), value_set=self._first)
        )
        ids = pc.if_else(repeated, None, ids)
        lacking = pc.is_null(ids)
        count = pc.sum(lacking, min_count=0).as_py()
        new = json.integers(pa.array(np.arange(self._last + 1, self._last + count + 1)))
        self._last += count
        return pc.replace_with_mask(_numbers_or_texts(ids), lacking, new)


class _Ids:
    """Generator of annotation ids above the existing ones."""

    def __init__(self, images: AnnotatedImages) -> None:
        self._last = max(images.highest_id(_NUMBER), 0) if images.with_boxes else 0

    def new(self, count: int) -> pa.Array:
        """Return *count* new ids as JSON."""
        first, self._last = self._last + 1, self._last + count
        return json.integers(pa.array(np.arange(first, first + count)))


def _numbers_or_texts(ids: pa.Array) -> pa.Array:
    """Return ids as JSON: numbers as such, other texts in quotes."""
    is_number = pc.fill_null(pc.match_substring_regex(ids, _NUMBER), False)
    return pc.if_else(is_number, ids, json.strings(ids))


def _box_texts(block: pa.Table, image: pa.Array, classes: pa.Table, ids: _Ids) -> pa.Array:
    objects = column(block, OBJECTS)
    values = objects.flatten()
    original, confidence, bbox = (values.field(name) for name in ("original_id", "confidence", "bbox"))
    lacking = pc.is_null(original)
    texts = _numbers_or_texts(original)
    texts = pc.replace_with_mask(texts, lacking, ids.new(pc.sum(lacking, min_count=0).as_py()))
    edges = bbox.flatten().to_numpy().reshape(-1, 4)
    fields = {
        "category_id": _category_ids(values.field("label"), classes),
        "bbox": pc.binary_join_element_wise("[", json.join_lists(json.exact(bbox.flatten()), bbox), "]", ""),
        "area": json.exact(pc.coalesce(values.field("area"), pa.array(edges[:, 2] * edges[:, 3]))),
        "iscrowd": json.integers(pc.cast(values.field("iscrowd"), pa.int8())),
        "segmentation": pc.fill_null(values.field("segmentation"), "[]"),
    }
    rows = _annotations(texts, image.take(pc.list_parent_indices(objects)), fields)
    keypoints = values.field("keypoints")
    counts = [None if text is None else _count_visible(text) for text in keypoints.to_pylist()]
    further = {"score": (confidence, json.exact(confidence)), "keypoints": (keypoints, keypoints)}
    further["num_keypoints"] = (keypoints, json.integers(pa.array(counts, pa.int64())))
    for name, (column_, text) in further.items():
        if column_.null_count < len(column_):
            rows = pc.if_else(pc.is_valid(column_), _with_field(rows, name, text), rows)
    return rows


def _count_visible(keypoints: str) -> int:
    return sum(each > 0 for each in plain_json.loads(keypoints)[2::3])


def _with_field(rows: pa.Array, name: str, values: pa.Array) -> pa.Array:
    """Return JSON objects with their line ends and a further field."""
    ends = len("}" + json.LINE_END)
    start = pc.utf8_slice_codeunits(rows, 0, stop=-ends)
    return pc.binary_join_element_wise(start, f', "{name}": ', values, "}" + json.LINE_END, "")


def _label_texts(block: pa.Table, image: pa.Array, classes: pa.Table, ids: _Ids) -> pa.Array:
    """Return the labels of images as annotations, each with a box around the whole image."""
    lists = column(block, "labels")
    width, height = (pc.fill_null(column(block, name), 0) for name in ("width", "height"))
    box = pc.binary_join_element_wise("[0, 0, ", json.integers(width), ", ", json.integers(height), "]", "")
    area = json.integers(pc.multiply(pc.cast(width, pa.int64()), pc.cast(height, pa.int64())))
    owner = pc.list_parent_indices(lists)
    fields = {
        "category_id": _category_ids(lists.flatten(), classes),
        "bbox": box.take(owner),
        "area": area.take(owner),
        "iscrowd": "0",
        "segmentation": "[]",
        _IMAGE_LABEL: "true",
    }
    return _annotations(ids.new(len(owner)), image.take(owner), fields)


def _category_ids(labels: pa.Array, classes: pa.Table) -> pa.Array:
    position = pc.index_in(labels, value_set=column(classes, "name"))
    return json.integers(column(classes, "id").take(position))


def _annotations(ids: pa.Array, image: pa.Array, values: Mapping[str, pa.Array | str]) -> pa.Array:
    return json.object_texts({"id": ids, "image_id": image, **values}, end=json.LINE_END)
