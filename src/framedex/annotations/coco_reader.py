"""Reader of COCO files: labels, captions and boxes, item by item.

Image and category names are held in memory by id. Annotations are not, so memory does not grow with their number.
"""

import json as plain_json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framedex.annotations.attributes import NO_ATTRIBUTES, Attributes, attributes_of
from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.coco import CAPTIONS_FILE, DETAILS, IMAGE_LABEL, NUMBER
from framedex.annotations.declared_sizes import Size, size_of
from framedex.annotations.json_items import read_items
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, bounds_of_shape, keypoints_text, segmentation_text
from framedex.annotations.source_lists import SourceClass, SourceImage
from framedex.core.regular_files import has_file
from framedex.errors import InvalidInput

_ARRAYS = ("images", "categories", "annotations")
_SHAPES = {"segmentation": segmentation_text, "keypoints": keypoints_text}
"""Keys of the shape of an object, and their readers."""
_OWN = frozenset({
    "id", "image_id", "category_id", "bbox", "area", "segmentation", "iscrowd", "score", "keypoints", "num_keypoints",
    "caption", "attributes", IMAGE_LABEL,
})  # fmt: skip
"""Keys of an annotation that are no attributes of its object."""
_TWICE = "images that a file lists several times"
_NUMBERS = frozenset((int, float))
_AMBIGUOUS = ""  # replaces the name of images that share an id; no file has this name


# Labels and captions


@dataclass(frozen=True)
class _Names:
    """Names of images and categories by id, and the label lists and the sizes in pixels of images."""

    images: dict[str, str] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)
    listed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)


def read_labels(path: Path, location: str = "", *, alone: bool = False) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield one row for each image, and one for each annotation that says something of its whole image.

    If an image has ``labels``, a list of names, they are its labels, and categories of its annotations do not count.
    Otherwise the category of an annotation without a box, an outline, a mask and key points is a label of its image.

    Args:
        path: the file.
        location: its name in problems; by default that of *path*.
        alone: whether images, categories and items that cannot be used are problems here, because :func:`read_boxes`
            does not read the file.

    Raises:
        InvalidInput: the file is not in COCO format.
    """
    location, found = location or path.name, list[AnnotationProblem]()
    names = _names_of(path, location, found.append)
    if alone:
        yield from found
    for image, name in names.images.items():
        if name != _AMBIGUOUS:
            yield ImageLabels(name, names.listed.get(image, ()), complete=image in names.listed)
    for array, position, item in read_items(path):
        if array == "annotations" and position is not None and (alone or isinstance(item, dict)):
            row = _label(f"{location}: annotations[{position}]", item, names)
            if row is not None:
                yield row


def read_captions(path: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the captions of a COCO file, without labels: one row for each annotation with a caption.

    A file without an array ``images`` is of another kind, as some tools write captions under the same name. It has no
    captions.

    Raises:
        InvalidInput: the file cannot be read to its end.
    """
    for row in read_labels(path, alone=True) if _has_images(path) else ():
        if isinstance(row, AnnotationProblem):
            yield row
        elif row.caption is not None:
            yield row._replace(labels=(), complete=False)


def _names_of(path: Path, location: str, report: Callable[[AnnotationProblem], None]) -> _Names:
    """Return the names in a COCO file, and report the images and categories that cannot be used."""
    names = _Names()
    for array, position, item in images_and_categories(path):
        if (found := _add_name(names, f"{location}: {array}[{position}]", array, item)) is not None:
            report(found)
    several = Counter(name for name in names.images.values() if name != _AMBIGUOUS)
    for name in (name for name, count in several.items() if count > 1):
        report(
            problem(
                location, name, f"{several[name]} of 'images' have this name; it gets all their annotations", _TWICE
            )
        )
    return names


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


def _label(location: str, item: Any, names: _Names) -> ImageLabels | AnnotationProblem | None:
    """Return the label or the caption of an annotation; None for one of an object alone."""
    if not isinstance(item, dict):
        return problem(location, item, "an annotation must be an object")
    is_object, caption = _is_object(item), item.get("caption")
    if is_object and caption is None:
        return None
    image = _id(item.get("image_id")) or ""
    if not (name := names.images.get(image)):
        return _unknown(location, item, "image_id", "images", name)
    label = None if is_object else names.categories.get(_id(item.get("category_id")) or "")
    if not is_object and not label and (item.get("category_id") is not None or caption is None):
        return _unknown(location, item, "category_id", "categories", label)
    if caption is not None and not isinstance(caption, str):
        return problem(location, caption, "a 'caption' must be a text")
    return ImageLabels(name, (label,) if label and image not in names.listed else (), caption)


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


def read_boxes(path: Path, problems: Problems, location: str = "", *, home: str = "") -> Iterator[Box]:
    """Yield the boxes of a COCO file in file order: those of annotations with a box, an outline, a mask or key points.

    ``bbox`` is ``[x, y, width, height]`` in pixels, ``score`` is the confidence, and ``id`` is stored as text. A box
    that is missing is that of the outline or the mask, or else of the key points. ``segmentation``, ``keypoints`` and
    the ``area`` of a segmentation are the shape; one that cannot be used is a problem, and its box is yielded without
    it. The file is read item by item, and twice if the annotations come first.

    Args:
        path: the file.
        problems: collects the problems of images, categories and annotations.
        location: the name of the file in problems; by default that of *path*.
        home: the folder of the images, which goes before their names, with a slash at its end.

    Raises:
        InvalidInput: the file is not in COCO format: a JSON object with an array ``images``.
    """
    location = location or path.name
    names = _names_of(path, location, problems.add)
    for key, index, item in read_items(path):
        if key == "annotations" and index is not None and (not isinstance(item, dict) or _is_object(item)):
            yield from without_problems(_objects(f"{location}: annotations[{index}]", item, names, home), problems)


def _is_object(item: dict[str, Any]) -> bool:
    """Return whether an annotation is of an object. One without any place is of the image, unless it has a ``bbox``."""
    if item.get(IMAGE_LABEL) is True:
        return False
    is_placed = bool(item.get("bbox")) or any(item.get(key) for key in _SHAPES)
    return is_placed or ("bbox" in item and item.get("caption") is None)


def _add_name(names: _Names, location: str, array: str, item: Any) -> AnnotationProblem | None:
    """Add an image or a category to the names; return the problem of one that cannot be used."""
    names_by_id, key = (names.images, "file_name") if array == "images" else (names.categories, "name")
    identifier, name = (_id(item.get("id")), item.get(key)) if isinstance(item, dict) else (None, None)
    name = label_of(name) if key == "name" else name
    if identifier is None or not isinstance(name, str) or not name:
        return problem(location, item, f"needs 'id', a number or a text, and {key!r}, a text")
    if (other := names_by_id.setdefault(identifier, name)) != name:
        names_by_id[identifier] = _AMBIGUOUS
        return problem(location, item, f"its id is that of {other or 'others'!r}, too; ids must differ")
    if array == "images":
        if isinstance(item.get("labels"), list):
            names.listed[identifier] = parse_labels(item["labels"])
        if (size := size_of(item.get("width"), item.get("height"))) is not None:
            names.sizes[identifier] = size
    return None


def _objects(location: str, item: Any, names: _Names, home: str) -> Iterator[Box | AnnotationProblem]:
    """Yield the box of an annotation with its shape, and a problem for each part that cannot be used."""
    if not isinstance(item, dict):
        yield problem(location, item, "an annotation must be an object")
        return
    original = _id(item.get("id"))
    location = location if original is None else f"{location} (id {original})"
    image = _id(item.get("image_id")) or ""
    if not (name := names.images.get(image)):
        yield _unknown(location, item, "image_id", "images", name)
        return
    if not (label := names.categories.get(_id(item.get("category_id")) or "")):
        yield _unknown(location, item, "category_id", "categories", label)
        return
    texts: dict[str, str | None] = {}
    for key, parse in _SHAPES.items():
        if item.get(key):
            try:
                texts[key] = parse(item[key])
            except ValueError as error:
                yield problem(location, item[key], str(error))
    shape, outline = NO_SHAPE, texts.get("segmentation")
    if any(texts.values()):
        area = _number(item.get("area"))
        shape = ObjectShape(outline, texts.get("keypoints"), area if area is not None and area >= 0 else None)
    sides, size = _sides(item["bbox"]) if item.get("bbox") else bounds_of_shape(shape), names.sizes.get(image)
    if not item.get("bbox") and isinstance(item.get("segmentation"), dict):
        size = size_of(*reversed(item["segmentation"]["size"])) if outline else None
    if sides is None:
        reason = "'bbox' must be [x, y, width, height], finite numbers of pixels"
        yield problem(location, item.get("bbox"), reason if item.get("bbox") else f"{reason}, or follow from a shape")
        return
    confidence = _number(item.get("score"))
    if item.get("score") is not None and not is_confidence(confidence):
        yield problem(location, item["score"], "'score' must be a number from 0 to 1")
        return
    kept = _attributes(item)
    if kept.dropped:
        yield kept.problem(location)
    yield Box(
        home + name, *sides, label, confidence, original, "coco",
        iscrowd=bool(item.get("iscrowd")), **kept.of_box, shape=shape, image_size=size, location=location,
    )  # fmt: skip


def _attributes(item: dict[str, Any]) -> Attributes:
    """Return the attributes of an object: those of ``attributes``, as CVAT writes it, and all further keys."""
    if _OWN.issuperset(item) and not item.get("attributes"):  # the usual case
        return NO_ATTRIBUTES
    further, given = {key: value for key, value in item.items() if key not in _OWN}, item.get("attributes")
    return attributes_of(further | (given if isinstance(given, dict) else {"attributes": given}))


def _sides(value: Any) -> tuple[float, float, float, float] | None:
    if not isinstance(value, list) or len(value) != 4 or not _NUMBERS.issuperset(map(type, value)):
        return None
    try:
        x, y, width, height = map(float, value)
    except OverflowError:
        return None
    return (x, y, width, height) if all(map(math.isfinite, (x, y, width, height))) else None


def _unknown(location: str, item: Any, key: str, array: str, name: str | None) -> AnnotationProblem:
    several = "several have" if name == _AMBIGUOUS else "none has"
    return problem(location, item.get(key), f"{key!r} must be the id of one of {array!r}; {several} this one")


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) else finite_number(value)


def _id(value: Any) -> str | None:
    """Return an id as text. Equal whole numbers give equal texts (1, 1.0, "1")."""
    if type(value) is int:  # the usual case
        return str(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
