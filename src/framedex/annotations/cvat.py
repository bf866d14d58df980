"""CVAT for images 1.1: ``annotations.xml``, with the boxes, polygons and tags of each image.

The file is read image by image, with a parser that refuses declarations of entities. Edges are in pixels, counted from
0 (docs.cvat.ai, XML annotation format).
"""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from framedex.annotations.boxes import Box, finite_number, label_of
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.shapes import NO_SHAPE, ObjectShape
from framedex.core.regular_files import has_file, open_binary
from framedex.errors import InvalidInput

FILE = "annotations.xml"
_PART = 2**16  # bytes
_HEAD = 2**16
_MOST_SHAPES = 10**6  # of one image
_OTHERS = frozenset({"polyline", "points", "cuboid", "ellipse", "mask", "skeleton"})
_EDGES = ("xtl", "ytl", "xbr", "ybr")
_Shape = tuple[str, dict[str, str]]


def is_cvat(folder: Path) -> bool:
    """Return whether a folder has a file of CVAT for images."""
    path = folder / FILE
    try:
        if not has_file(path):
            return False
        with open_binary(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return b"<annotations" in head and b"<annotation>" not in head


def find_files(folder: Path) -> list[str]:
    """Return the file of CVAT in a folder."""
    return [FILE] if is_cvat(folder) else []


class _Reader:
    """A parser that collects one image at a time.

    Attributes:
        images: the images that are complete: attributes and shapes.
    """

    def __init__(self) -> None:
        self.images: list[tuple[dict[str, str], list[_Shape]]] = []
        self._image: dict[str, str] | None = None
        self._shapes: list[_Shape] = []
        self._depth, self._is_checked = 0, False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = _refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if not self._is_checked:
            self._is_checked = True
            if name != "annotations":
                raise InvalidInput(f"is no file of CVAT: <annotations> must be outermost, not <{name}>")
        if self._depth == 2 and name == "image":
            self._image, self._shapes = attributes, []
        elif self._depth == 3 and self._image is not None:
            if len(self._shapes) >= _MOST_SHAPES:
                raise InvalidInput(f"an image has more than {_MOST_SHAPES:,} shapes")
            self._shapes.append((name, attributes))

    def _end(self, _name: str) -> None:
        if self._depth == 2 and self._image is not None:
            self.images.append((self._image, self._shapes))
            self._image = None
        self._depth -= 1


def _refuse(*_declaration: Any) -> None:
    raise InvalidInput("declares entities, which are refused")


def _images(folder: Path) -> Iterator[tuple[dict[str, str], list[_Shape]]]:
    """Yield the attributes and the shapes of each image.

    Raises:
        InvalidInput: the file cannot be read.
    """
    reader, path = _Reader(), folder / FILE
    try:
        with open_binary(path) as file:
            while data := file.read(_PART):
                reader.parser.Parse(data, False)
                yield from reader.images
                reader.images.clear()
            reader.parser.Parse(b"", True)
            yield from reader.images
    except (OSError, expat.ExpatError, ValueError) as error:
        raise InvalidInput(f"{os.fspath(path)!r}: {error}") from error


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the tags of each image as labels, and its subset as the part."""
    if not is_cvat(folder):
        return
    try:
        for image, shapes in _images(folder):
            if not (name := image.get("name")):
                yield problem(FILE, image, "an image needs a 'name'")
                continue
            labels = tuple(label_of(each.get("label")) for kind, each in shapes if kind == "tag")
            yield ImageLabels(_path(folder, name), labels, tags=part_tags(image.get("subset", "")))
    except InvalidInput as error:
        yield problem(FILE, FILE, str(error))


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes and polygons of each image; other shapes and malformed ones are problems.

    Raises:
        InvalidInput: the file cannot be read.
    """
    for image, shapes in _images(folder):
        name = image.get("name")
        if name:
            yield from without_problems(_boxes(_path(folder, name), f"{FILE}: {name}", shapes), problems)


def _path(folder: Path, name: str) -> str:
    """Return the path of an image: exports have images in ``images``, beside the file."""
    below = f"images/{name}"
    return below if not has_file(folder / name) and has_file(folder / below) else name


def _boxes(name: str, location: str, shapes: list[_Shape]) -> Iterator[Box | AnnotationProblem]:
    for number, (kind, item) in enumerate(shapes):
        place = f"{location}: {kind} {number}"
        if kind in ("box", "polygon"):
            yield (_box if kind == "box" else _polygon)(name, place, item)
        elif kind in _OTHERS:
            yield problem(place, item.get("label"), "only boxes, polygons and tags are read")


def _box(name: str, location: str, item: dict[str, str]) -> Box | AnnotationProblem:
    left, top, right, bottom = (finite_number(item.get(edge)) for edge in _EDGES)
    if left is None or top is None or right is None or bottom is None:
        return problem(location, item, f"needs {', '.join(_EDGES)}, finite numbers of pixels")
    angle = math.radians(finite_number(item.get("rotation")) or 0.0)
    if angle:  # the box around the box that is turned about its centre
        across, down = right - left, bottom - top
        width = abs(across * math.cos(angle)) + abs(down * math.sin(angle))
        height = abs(across * math.sin(angle)) + abs(down * math.cos(angle))
        left, top = (left + right - width) / 2, (top + bottom - height) / 2
        right, bottom = left + width, top + height
    return _made(name, location, item, (left, top, right, bottom), NO_SHAPE)


def _polygon(name: str, location: str, item: dict[str, str]) -> Box | AnnotationProblem:
    numbers = [finite_number(each) for pair in item.get("points", "").split(";") for each in pair.split(",")]
    found = [each for each in numbers if each is not None]
    if len(found) != len(numbers) or len(found) < 6 or len(found) % 2:
        return problem(location, item.get("points"), "'points' must be x1,y1;x2,y2;x3,y3;…, finite numbers of pixels")
    across, down = found[::2], found[1::2]
    edges = (min(across), min(down), max(across), max(down))
    return _made(name, location, item, edges, ObjectShape(json.dumps([found], separators=(",", ":"))))


def _made(
    name: str, location: str, item: dict[str, str], edges: tuple[float, float, float, float], shape: ObjectShape
) -> Box | AnnotationProblem:
    if not (label := label_of(item.get("label"))):
        return problem(location, item.get("label"), "needs a 'label'")
    left, top, right, bottom = edges
    return Box(name, left, top, right - left, bottom - top, label, source="cvat", shape=shape, location=location)
