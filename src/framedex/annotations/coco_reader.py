"""Reader of COCO files: labels, captions and boxes, item by item.

Image and category names are held in memory by id. Annotations are not, so memory does not grow with their number.
"""

import json as plain_json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.coco import CAPTIONS_FILE, DETAILS, IMAGE_LABEL, NUMBER
from framedex.annotations.json_items import read_items
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.shapes import ObjectShape, keypoints_text, segmentation_text
from framedex.annotations.source_lists import SourceClass, SourceImage
from framedex.core.regular_files import has_file
from framedex.errors import InvalidInput

_ARRAYS = ("images", "categories", "annotations")
_ID = "an 'id', a number or a text that no other has"
_AMBIGUOUS = ""  # replaces the name of images that share an id; no file has this name


# Labels and captions


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
    for key, index, item in images_and_categories(path):
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


class ImageNames:
    """Names of the images and categories of a COCO file by id; items that cannot be used are problems."""

    def __init__(self) -> None:
        self._names = _Names({}, {}, {})

    @property
    def images(self) -> Mapping[str, str]:
        """The names of the images by id; empty for ids that several images have."""
        return {key: name for key, name in self._names.images.items() if name}

    def add_usable(self, location: str, array: str, item: Any, problems: Problems) -> None:
        """Add an image or a category."""
        _add_usable(self._names, location, array, item, problems)

    def image_of(self, item: Mapping[str, Any]) -> str | None:
        """Return the name of the image of an annotation, or None."""
        return self._names.images.get(_id(item.get("image_id")) or "") or None

    def category_of(self, item: Mapping[str, Any]) -> str | None:
        """Return the name of the category of an annotation, or None."""
        return self._names.categories.get(_id(item.get("category_id")) or "") or None


def images_and_categories(path: Path) -> Iterator[tuple[str, int, Any]]:
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


def find_captions(folder: Path) -> list[str]:
    """Return the file of captions in a folder, if it is in COCO format."""
    return [CAPTIONS_FILE] if has_file(folder / CAPTIONS_FILE) and _has_images(folder / CAPTIONS_FILE) else []


def _has_images(path: Path) -> bool:
    try:
        return any(key == "images" for key, _, _ in read_items(path))
    except InvalidInput:
        return False


# Classes and ids of images


def read_lists(path: Path) -> Iterator[SourceClass | SourceImage]:
    """Yield the categories and the images of a COCO file, as far as they have an id and a name.

    Categories come in the order of the file. The names of key points and the skeleton are their details.

    Raises:
        InvalidInput: the file is not in COCO format.
    """
    for key, _, item in images_and_categories(path):
        identifier = _id(item.get("id")) if isinstance(item, dict) else None
        if identifier is None:
            continue
        if key == "images":
            if isinstance(item.get("file_name"), str) and item["file_name"]:
                yield SourceImage(item["file_name"], identifier)
        elif name := label_of(item.get("name")):
            number = int(identifier) if re.fullmatch(NUMBER, identifier) else None
            above = item.get("supercategory")
            details = {each: item[each] for each in DETAILS if item.get(each) and isinstance(item[each], list)}
            yield SourceClass(
                name,
                number,
                storable(above) if isinstance(above, str) and above else None,
                storable(plain_json.dumps(details)) if details else None,
            )


def read_caption_lists(path: Path) -> Iterator[SourceClass | SourceImage]:
    """Yield the images of a file of captions as :func:`read_lists` does; nothing for a file of another kind."""
    return read_lists(path) if _has_images(path) else iter(())


# Boxes


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
    for key, position, item in images_and_categories(path):
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
    return isinstance(item, dict) and (item.get("bbox") in (None, []) or item.get(IMAGE_LABEL) is True)


def _with_shape(row: Box | AnnotationProblem, location: str, item: Any) -> Iterator[Box | AnnotationProblem]:
    """Yield a box with its shape, and a problem for each invalid part of the shape."""
    if isinstance(row, AnnotationProblem) or not ("segmentation" in item or "keypoints" in item):
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


def _box(location: str, item: Any, images: Mapping[str, str], categories: Mapping[str, str]) -> Box | AnnotationProblem:
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


def _unknown(location: str, item: Any, key: str, array: str, name: str | None) -> AnnotationProblem:
    several = "several have" if name == _AMBIGUOUS else "none has"
    return problem(location, item.get(key), f"{key!r} must be the id of one of {array!r}; {several} this one")


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) else finite_number(value)


def _id(value: Any) -> str | None:
    """Return an id as text. Equal whole numbers give equal texts (1, 1.0, "1")."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
