"""labelme: a JSON file beside each image, with polygons, rectangles, circles, masks, and flags of the whole image.

Points are in pixels from the upper left corner. Polygons of one label and ``group_id`` are one object; a mask is a PNG
file within the two corners of its ``points``, of which the second is a pixel of it (labelme 5, ``_label_file.py`` and
``utils/shape.py``). True flags of an image are its labels.
"""

import base64
import binascii
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from framedex.annotations.attributes import all_attributes, attributes_of
from framedex.annotations.boxes import Box, finite_number, has_other_bounds, is_confidence, label_of
from framedex.annotations.declared_sizes import size_of
from framedex.annotations.folders import image_finder, list_files_below, stem
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.masks import MOST_PIXELS, bounds_of_mask, mask_of_pixels, pixels_of
from framedex.annotations.output import IMAGES, AnnotatedImages, Files, boxes_by_image, omissions, other_bounds
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, are_numbers, bounds_of_shape
from framedex.annotations.tables import write_label_table
from framedex.core.name_forms import normal_name
from framedex.core.progress import ShareProgress
from framedex.core.regular_files import TooLarge, open_binary, read_bytes
from framedex.errors import InvalidInput

JSON_FILES = "JSON files of labelme"
_SUFFIX = ".json"
_HEAD, _MOST_HEADS = 2**16, 20  # bytes of a file, and files, that are looked at
_LARGEST = 2**28  # bytes of a file, which may hold the image
_SIZE = slice(16, 24)  # the bytes of a PNG file with its width and height
_CORNERS = 32  # of the outline of a circle
_POINTS = "points and lines of labelme, which are not read"
_PLACED = frozenset({"label", "points", "group_id", "shape_type", "flags", "mask", "attributes", "score"})
"""Keys of a shape that are no attributes; programs made after labelme, as X-AnyLabeling, write the last two."""
_OF_GROUP = "attributes of shapes of labelme that differ within their group, of which those of the first are read"
_VERSION = "5.5.0"
_Outline = list[float] | ObjectShape | tuple[float, float, float, float]
"""The corners x1, y1, x2, … of a polygon, a mask, or the edges left, top, right and bottom of a box."""

Image = tuple[str, str, dict[str, Any]]
"""The path of a file, the name of its image, and its content."""


def is_labelme(folder: Path) -> bool:
    """Return whether there are files of labelme below a folder."""
    return next(_files(folder), None) is not None


def find_files(folder: Path) -> list[str]:
    """Return what a folder has of labelme, in words."""
    return [JSON_FILES] if is_labelme(folder) else []


def _files(folder: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder, none if the first twenty JSON files are of another kind."""
    looks, is_found = 0, False
    try:
        for path in list_files_below(os.fspath(folder), _SUFFIX):
            if not is_found and looks >= _MOST_HEADS:
                return
            looks += 1
            if is_labelme_file(folder / path):
                is_found = True
                yield path
    except OSError:
        return


def label_file_finder(folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether a path within a folder is that of a file of labelme."""
    return lambda path: path.endswith(_SUFFIX) and is_labelme_file(folder / path)


def is_labelme_file(path: Path) -> bool:
    """Return whether a JSON file begins as one of labelme.

    Raises:
        OSError: it cannot be read.
    """
    with open_binary(path) as file:
        head = file.read(_HEAD)
    return b'"shapes"' in head and (b'"shape_type"' in head or b'"imagePath"' in head)


def _images(folder: Path) -> Iterator[Image | AnnotationProblem]:
    images_in = image_finder(os.fspath(folder))
    for path in _files(folder):
        try:
            content = json.loads(read_bytes(folder / path, _LARGEST))
            if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
                raise ValueError("a file of labelme is an object with a list of 'shapes'")
        except TooLarge:
            yield problem(path, os.path.basename(path), f"has more than {_LARGEST:,} bytes")  # noqa: PTH119
        except (OSError, ValueError, RecursionError) as error:
            yield problem(path, os.path.basename(path), str(error))  # noqa: PTH119
        else:
            yield path, _name(path, content.get("imagePath"), images_in), content


def _name(path: str, image: Any, images_in: Callable[[str], Mapping[str, list[str]]]) -> str:
    """Return the name of the image of a file: as the file says if that is there, else that with its own name."""
    folder, base = os.path.split(path.removesuffix(_SUFFIX))
    beside = images_in(folder).get(base, ())
    own = os.path.join(folder, beside[0]) if len(beside) == 1 else None  # noqa: PTH118
    if not isinstance(image, str) or not image:
        return own or path
    said = normal_name(os.path.join(folder, image))  # noqa: PTH118
    return said if own is None or _is_there(said, images_in) else own


def _is_there(name: str, images_in: Callable[[str], Mapping[str, list[str]]]) -> bool:
    """Return whether an image within the folder has a name; False also for a path that leads out of it."""
    home, base = os.path.split(name)
    try:
        return not name.startswith(("../", "/")) and base in images_in(home).get(stem(base), ())
    except (OSError, ValueError):  # such as a name that is too long
        return False


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the true flags of each image as its labels, and the part that its folder names, as ``images/train``.

    Broken files are problems of its boxes.
    """
    for each in _images(folder):
        if not isinstance(each, AnnotationProblem):
            _, name, content = each
            flags = content.get("flags")
            labels = (
                [label_of(flag) for flag, is_true in flags.items() if is_true is True]
                if isinstance(flags, dict)
                else []
            )
            tags = part_tags(name.removeprefix(IMAGES).partition("/")[0]) if "/" in name else ()
            if labels or tags:
                yield ImageLabels(name, tuple(labels), tags=tags)


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the objects of each image; points, lines and broken shapes are problems.

    Raises:
        InvalidInput: the folder has no file of labelme.
    """
    n_files = 0
    for each in _images(folder):
        n_files += 1
        if isinstance(each, AnnotationProblem):
            problems.add(each)
        else:
            yield from without_problems(_boxes(*each), problems)
    if not n_files:
        raise InvalidInput(f"{os.fspath(folder)!r} holds no file of labelme: JSON with 'shapes' and 'imagePath'")


def _boxes(path: str, name: str, content: dict[str, Any]) -> Iterator[Box | AnnotationProblem]:
    size = size_of(content.get("imageWidth"), content.get("imageHeight"))
    objects: dict[tuple[str, str], tuple[str, dict[str, Any], list[_Outline]]] = {}
    for number, shape in enumerate(content["shapes"]):
        place = f"{path}: shape {number}"
        if not isinstance(shape, dict) or not (label := label_of(shape.get("label"))):
            yield problem(place, shape, "needs a 'label'")
            continue
        kind = shape.get("shape_type") or "polygon"
        if kind in ("point", "points", "line", "linestrip"):
            yield problem(place, label, f"a {kind} is no object", _POINTS)
            continue
        try:
            outline = _shape(kind, shape, size)
        except ValueError as error:
            yield problem(place, shape.get("points"), str(error))
            continue
        group = shape.get("group_id") if isinstance(outline, list) else None
        key = place if group is None else repr(group)
        kept = attributes_of(_attributes(shape))
        if kept.dropped:
            yield kept.problem(place)
        confidence = finite_number(shape.get("score"))
        if shape.get("score") is not None and not is_confidence(confidence):
            yield problem(place, shape["score"], "'score' must be a number from 0 to 1; the shape is read without it")
            confidence = None
        further = kept.of_box | {"confidence": confidence}
        first = objects.setdefault((label, key), (place, further, []))
        first[2].append(outline)
        if further != first[1]:
            yield problem(place, _attributes(shape), f"those of {first[0]}, of the same group, are others", _OF_GROUP)
    for (label, _), (place, further, outlines) in objects.items():
        yield _box(name, label, outlines, size, place, further)


def _attributes(shape: dict[str, Any]) -> dict[str, Any]:
    """Return the flags, the description and further values of a shape."""
    found = {name: value for name, value in shape.items() if name not in _PLACED}
    if not found.get("description"):
        found.pop("description", None)
    for key in ("attributes", "flags"):
        found |= shape[key] if isinstance(shape.get(key), dict) else {}
    return found


def _shape(kind: Any, shape: dict[str, Any], size: tuple[int, int] | None) -> _Outline:
    """Return the outline of a shape in an image of a size in pixels.

    Raises:
        ValueError: it is malformed, or of a kind that is not known.
    """
    points = shape.get("points")
    pairs = points if isinstance(points, list) else []
    found = [each for pair in pairs if isinstance(pair, list) for each in pair]
    if len(found) != 2 * len(pairs) or not found or not are_numbers(found):
        raise ValueError("'points' must be [[x1, y1], [x2, y2], …], finite numbers of pixels")
    if kind in ("rectangle", "mask", "circle") and len(found) == 4:
        left, top, right, bottom = found
        if kind == "circle":
            return _circle(left, top, math.dist(found[:2], found[2:]))
        if kind == "mask":
            return _mask(shape.get("mask"), left, top, size)
        return min(left, right), min(top, bottom), max(left, right), max(top, bottom)
    if kind not in ("polygon", "rectangle", "rotation", "oriented_rectangle") or len(found) < 6:
        raise ValueError(f"a {kind!r} of {len(pairs)} points is not known")
    return found


def _circle(x: float, y: float, radius: float) -> list[float]:
    angles = [2 * math.pi * number / _CORNERS for number in range(_CORNERS)]
    return [each for angle in angles for each in (x + radius * math.cos(angle), y + radius * math.sin(angle))]


def _mask(text: Any, left: float, top: float, size: tuple[int, int] | None) -> ObjectShape:
    """Return the mask of a PNG file, as pixels of an image of a size; without one, of an image that ends with it."""
    x, y = round(left), round(top)
    try:
        data = base64.b64decode(text or "", validate=True)
        width, height = struct.unpack(">II", data[_SIZE]) if len(data) >= _SIZE.stop else (0, 0)
        is_small = x >= 0 <= y and (x + width) * (y + height) <= MOST_PIXELS
        read = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if data and is_small else None
    except (binascii.Error, TypeError, ValueError, cv2.error):
        read = None
    if read is None or read.ndim != 2 or read.shape != (height, width):
        raise ValueError("'mask' must be a PNG file of one channel in base64, within the image")
    height, width = read.shape
    right, lower = (0, 0) if size is None else (size[0] - x - width, size[1] - y - height)
    if right < 0 or lower < 0 or (x + width + right) * (y + height + lower) > MOST_PIXELS:
        raise ValueError(f"'mask' must be within the image, which has at most {MOST_PIXELS:,} pixels")
    pixels = np.pad(read > 0, ((y, lower), (x, right)))
    return ObjectShape(json.dumps(mask_of_pixels(pixels), separators=(",", ":")))


def _box(
    name: str,
    label: str,
    outlines: list[_Outline],
    size: tuple[int, int] | None,
    place: str,
    further: dict[str, Any],
) -> Box | AnnotationProblem:
    shape = outlines[0]
    if isinstance(shape, list):  # so are the others
        shape = ObjectShape(json.dumps(outlines, separators=(",", ":")))
    if isinstance(shape, ObjectShape):
        bounds, outline = bounds_of_shape(shape), shape
        if bounds is None:
            return problem(place, label, "its outline or mask is empty")
        x, y, width, height = bounds
    else:
        (x, y, right, bottom), outline = shape, NO_SHAPE
        width, height = right - x, bottom - y
    return Box(
        name, x, y, width, height, label, source="labelme", **further, shape=outline, image_size=size, location=place
    )


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write a file beside each image with boxes or labels; return sentences about the data that they cannot hold.

    Labels of whole images are true flags. A table has them with the captions. If the images are divided, each has a
    file, whose folder is its part.
    """
    inexact = 0
    further = [*(["labels"] if images.with_labels else []), *(["objects"] if images.with_boxes else [])]
    for block in images.blocks(["file_name", "width", "height", *further], part(progress, 0.0, 0.9)):
        boxes_of = {name: boxes for name, _, boxes in boxes_by_image(block)} if images.with_boxes else {}
        for row in block.drop_columns([name for name in block.column_names if name == "objects"]).to_pylist():
            name, boxes, flags = row["file_name"], boxes_of.get(row["file_name"], ()), row.get("labels")
            if not boxes and not flags and not images.splits:
                continue
            inexact += sum(map(has_other_bounds, boxes))
            content = {
                "version": _VERSION,
                "imagePath": os.path.basename(name),  # noqa: PTH119 - before what may be long: the head shows the kind
                "shapes": [shape for number, box in enumerate(boxes) for shape in _shapes(box, number)],
                "flags": dict.fromkeys(flags or (), True),
                "imageData": None,
                "imageHeight": row["height"],
                "imageWidth": row["width"],
            }
            files.add(f"{images.folder}{stem(name)}{_SUFFIX}", json.dumps(content).encode())
    write_label_table(files, images, part(progress, 0.9, 1.0))
    if not images.with_boxes:
        return []
    return omissions(images, ("original_id", "confidence", "iscrowd", "keypoints"), "labelme") + other_bounds(inexact)


def _shapes(box: Box, number: int) -> Iterator[dict[str, Any]]:
    """Yield the shapes of an object; several polygons have a group."""
    outline = json.loads(box.shape.segmentation) if box.shape.segmentation else None
    if isinstance(outline, dict) and (bounds := bounds_of_mask(outline)) is not None:
        x, y, width, height = map(int, bounds)
        pixels = pixels_of(outline)[y : y + height, x : x + width].astype(np.uint8)
        text = base64.b64encode(cv2.imencode(".png", pixels)[1].tobytes()).decode()
        yield _of(box, "mask", [[x, y], [x + width - 1, y + height - 1]], mask=text)
    elif isinstance(outline, list):
        for polygon in outline:
            pairs = [list(pair) for pair in zip(polygon[::2], polygon[1::2], strict=True)]
            yield _of(box, "polygon", pairs, group=number if len(outline) > 1 else None)
    else:
        yield _of(box, "rectangle", [[box.x, box.y], [box.x + box.width, box.y + box.height]])


def _of(box: Box, kind: str, points: list[Any], *, group: int | None = None, mask: str | None = None) -> dict[str, Any]:
    further = all_attributes(box)
    description = further.get("description")
    description = further.pop("description") if description and isinstance(description, str) else ""
    flags = {name: further.pop(name) for name in [*further] if isinstance(further[name], bool)}
    return {
        "label": box.label, "points": points, "group_id": group, "description": description, "shape_type": kind,
        "flags": flags, "mask": mask, **({"attributes": further} if further else {}),
    }  # fmt: skip
