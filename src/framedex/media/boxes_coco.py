"""Boxes of COCO files (``annotations.json``), read item by item and written as they come."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from framedex.errors import InvalidInput
from framedex.media.box_files import whole_file
from framedex.media.boxes import (
    Box,
    Problem,
    Problems,
    Sizes,
    is_confidence,
    label_of,
    number,
    problem,
    without_problems,
)
from framedex.media.json_items import read_items

_AMBIGUOUS = ""  # stands for the name of images that share an id; no file has it


def read_coco_boxes(path: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a COCO file, in its order; annotations without a ``bbox`` are captions or labels of images.

    ``[x, y, width, height]`` in pixels is taken as it is, ``score`` as the confidence, the ``id`` as text. The file is
    read item by item, and twice where the annotations come first: memory is that of the images' names. Outlines
    (``segmentation``) are not kept.

    Args:
        path: of the file.
        problems: what is wrong with images, categories and annotations is added; the rest is yielded.

    Raises:
        InvalidInput: it is no COCO file: a JSON object with an array ``images``.
    """
    images, categories = _names(path, problems)
    rows = (
        _box(f"{path.name}: annotations[{place}]", item, images, categories)
        for key, place, item in read_items(path)
        if key == "annotations" and place is not None and not _without_box(item)
    )
    return without_problems(rows, problems)


def _names(path: Path, problems: Problems) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of images and categories by id."""
    found: dict[str, dict[str, str]] = {"images": {}, "categories": {}}
    arrays = set()
    for key, place, item in read_items(path):
        if key not in ("images", "categories", "annotations"):
            continue
        if place is None:
            if item is not None and item != []:
                raise InvalidInput(f"{os.fspath(path)!r}: {key!r} must be an array, not {type(item).__name__}")
            arrays.add(key if item is not None else "")
            if arrays >= {"images", "categories", "annotations"} and key == "annotations":
                break  # most files have the long array last; it need not be read twice
        elif key != "annotations":
            where = f"{path.name}: {key}[{place}]"
            _add_name(found[key], where, item, "file_name" if key == "images" else "name", problems)
    if "images" not in arrays:
        raise InvalidInput(
            f"{os.fspath(path)!r} is not in COCO format: an object with 'images', 'annotations' and 'categories'"
        )
    return found["images"], found["categories"]


def _add_name(names: dict[str, str], place: str, item: Any, key: str, problems: Problems) -> None:
    number_, name = (_id(item.get("id")), item.get(key)) if isinstance(item, dict) else (None, None)
    name = label_of(name) if key == "name" else name
    if number_ is None or not isinstance(name, str) or not name:
        problems.add(problem(place, item, f"needs 'id', a number or a text, and {key!r}, a text"))
    elif names.setdefault(number_, name) != name:
        problems.add(problem(place, item, f"its id is that of {names[number_] or 'others'!r}, too; ids must differ"))
        names[number_] = _AMBIGUOUS


def _without_box(item: Any) -> bool:
    return isinstance(item, dict) and item.get("bbox") in (None, [])


def _box(place: str, item: Any, images: Mapping[str, str], categories: Mapping[str, str]) -> Box | Problem:
    if not isinstance(item, dict):
        return problem(place, item, "an annotation must be an object")
    original = _id(item.get("id"))
    place = place if original is None else f"{place} (id {original})"
    if not (name := images.get(_id(item.get("image_id")) or "")):
        return _unknown(place, item, "image_id", "images", name)
    if not (label := categories.get(_id(item.get("category_id")) or "")):
        return _unknown(place, item, "category_id", "categories", label)
    numbers = item["bbox"] if isinstance(item["bbox"], list) else []
    x, y, width, height = map(_number, numbers) if len(numbers) == 4 else (None,) * 4
    if x is None or y is None or width is None or height is None:
        return problem(place, item["bbox"], "'bbox' must be [x, y, width, height], finite numbers of pixels")
    confidence = _number(item.get("score"))
    if item.get("score") is not None and not is_confidence(confidence):
        return problem(place, item["score"], "'score' must be a number from 0 to 1")
    crowd = bool(item.get("iscrowd"))
    return Box(name, x, y, width, height, label, confidence, original, "coco", iscrowd=crowd, place=place)


def _unknown(place: str, item: Any, key: str, array: str, found: str | None) -> Problem:
    several = "several have" if found == _AMBIGUOUS else "none has"
    return problem(place, item.get(key), f"{key!r} must be the id of one of {array!r}; {several} this one")


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) else number(value)


def _id(value: Any) -> str | None:
    """Return an id as text; whole numbers are the same however they are written."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def write_coco_boxes(path: Path, boxes: Iterable[Box], sizes: Sizes) -> None:
    """Write a COCO file whose boxes :func:`read_coco_boxes` gives back to the last bit; nothing is left on an error.

    Args:
        path: of the file, which is replaced if there is one.
        boxes: in any order.
        sizes: of the pictures, which all become images; also of those without boxes.

    Raises:
        InvalidInput: a box is of none of the pictures, or the file cannot be written.
    """
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(coco_text(boxes, sizes))


def coco_text(boxes: Iterable[Box], sizes: Sizes) -> Iterator[str]:
    """Yield the parts of a COCO file; see :func:`write_coco_boxes`.

    Images and categories are numbered from 1. Ids of annotations stay, whole numbers as numbers; boxes without one come
    last and get the numbers above those.
    """
    images = {name: place for place, name in enumerate(sizes, 1)}
    categories: dict[str, int] = {}
    yield '{"info": {}, "annotations": ['
    between, highest = "\n", 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as waiting:
        for box in boxes:
            if box.name not in images:
                raise InvalidInput(
                    f"a box of {box.name!r}, which is none of the {len(images):,} pictures to be written"
                )
            text = _annotation(box, images[box.name], categories.setdefault(box.label, len(categories) + 1))
            if box.original_id is None:
                waiting.write(f"{text}\n")
                continue
            original = _as_number(box.original_id)
            highest = max(highest, original) if isinstance(original, int) else highest
            yield f'{between}{{"id": {_json(original)}, {text}'
            between = ",\n"
        waiting.seek(0)
        for place, line in enumerate(waiting, highest + 1):
            yield f'{between}{{"id": {place}, {line[:-1]}'
            between = ",\n"
    yield "\n]"
    yield from _array("categories", ({"id": place, "name": name} for name, place in categories.items()))
    rows = ({"id": images[name], "file_name": name, "width": w, "height": h} for name, (w, h) in sizes.items())
    yield from _array("images", rows)
    yield "}\n"


def _annotation(box: Box, image: int, category: int) -> str:
    bbox = [box.x, box.y, box.width, box.height]
    content: dict[str, Any] = {"image_id": image, "category_id": category, "bbox": bbox}
    content |= {"area": box.width * box.height, "iscrowd": int(box.iscrowd)}
    if box.confidence is not None:
        content["score"] = box.confidence
    return _json(content)[1:]


def _as_number(original: str) -> int | str:
    """Return an id as the number that it is, if it is written as numbers are."""
    digits = original.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 18 and str(int(original)) == original
    return int(original) if is_number else original


def _array(key: str, rows: Iterable[Any]) -> Iterator[str]:
    yield f',\n"{key}": ['
    for place, row in enumerate(rows):
        yield f"{',' if place else ''}\n{_json(row)}"
    yield "\n]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)
