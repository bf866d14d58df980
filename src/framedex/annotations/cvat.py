"""CVAT for images or videos 1.1: ``annotations.xml``, with the boxes, polygons and tags of each image or track.

The file is read image by image, and track by track, with a parser that refuses declarations of entities. Edges are in
pixels, counted from 0 (docs.cvat.ai, XML annotation format). Frames of a track are images that CVAT names by their
number, ``frame_000012.png``; of a track the boxes of its key frames are read, with its id as ``track_id``, and on
request those between them. Attributes are texts, and a box that is turned has its corners as outline.
"""

import json
import math
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

from framedex.annotations.attributes import OCCLUDED, TRACK, attributes_of
from framedex.annotations.boxes import Box, finite_number, label_of
from framedex.annotations.declared_sizes import Size, size_of
from framedex.annotations.folders import image_finder
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.shapes import NO_SHAPE, ObjectShape
from framedex.core.regular_files import has_file, open_binary
from framedex.errors import InvalidInput

FILE = "annotations.xml"
_CHUNK = 2**16  # bytes
_HEAD = 2**16
_MOST_SHAPES = 10**6  # of one image
_HOMES = ("images/", "")
_OTHERS = frozenset({"polyline", "points", "cuboid", "ellipse", "mask", "skeleton"})
_BETWEEN = "boxes of tracks between key frames"
_NO_FRAME = "boxes of tracks in frames that are no images"
_ATTRIBUTES = "images whose tags have attributes, which are not read"
_GROUP = "group_id"
_EDGES = ("xtl", "ytl", "xbr", "ybr")
_FRAME = re.compile(r"frame_([0-9]{6,12})")  # an image, without its suffix
_ImagesIn = Callable[[str], Mapping[str, list[str]]]
_label = lru_cache(1024)(label_of)  # the few names of classes
_Shape = tuple[str, dict[str, str], dict[str, Any]]
"""The name of an element, its own attributes, and those of the object."""


def is_cvat(folder: Path) -> bool:
    """Return whether a folder has a file of CVAT."""
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


@dataclass
class _Part:
    """An image or a track of the file.

    Attributes:
        kind: ``image`` or ``track``.
        attributes: those of the element.
        shapes: the elements in it.
        further: the number of attributes that its tags have.
    """

    kind: str
    attributes: dict[str, str]
    shapes: list[_Shape] = field(default_factory=list)
    further: int = 0


class _Reader:
    """A parser that collects one image or track at a time.

    Attributes:
        parts: the images and tracks that are complete.
    """

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self._part: _Part | None = None
        self._depth, self._is_checked = 0, False
        self._name, self._text = "", list[str]()  # of the attribute that is open
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
        if self._depth == 2 and name in ("image", "track"):
            self._part = _Part(name, attributes)
        elif self._part is not None and self._depth == 3:
            if len(self._part.shapes) >= _MOST_SHAPES:
                raise InvalidInput(f"an image has more than {_MOST_SHAPES:,} shapes")
            self._part.shapes.append((name, attributes, {}))
        elif self._part is not None and self._depth == 4 and name == "attribute":
            self._name, self._text = attributes.get("name", ""), []
            self.parser.CharacterDataHandler = self._text.append

    def _end(self, name: str) -> None:
        if self._depth == 4 and self._part is not None and name == "attribute":
            self.parser.CharacterDataHandler = None
            kind, _, further = self._part.shapes[-1]
            further[self._name] = "".join(self._text)
            self._part.further += kind == "tag"
        if self._depth == 2 and self._part is not None:
            self.parts.append(self._part)
            self._part = None
        self._depth -= 1


def _refuse(*_declaration: Any) -> None:
    raise InvalidInput("declares entities, which are refused")


def _parts(folder: Path) -> Iterator[_Part]:
    """Yield the images and tracks.

    Raises:
        InvalidInput: the file cannot be read.
    """
    reader, path = _Reader(), folder / FILE
    try:
        with open_binary(path) as file:
            while data := file.read(_CHUNK):
                reader.parser.Parse(data, False)
                yield from reader.parts
                reader.parts.clear()
            reader.parser.Parse(b"", True)
            yield from reader.parts
    except (OSError, expat.ExpatError, ValueError) as error:
        raise InvalidInput(f"{os.fspath(path)!r}: {error}") from error


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the tags of each image as labels, and its subset as the part."""
    if not is_cvat(folder):
        return
    try:
        for image in _parts(folder):
            if image.kind != "image":
                continue
            if not (name := image.attributes.get("name")):
                yield problem(FILE, image.attributes, "an image needs a 'name'")
                continue
            labels = tuple(label_of(each.get("label")) for kind, each, _ in image.shapes if kind == "tag")
            yield ImageLabels(_path(folder, name), labels, tags=part_tags(image.attributes.get("subset", "")))
    except InvalidInput as error:
        yield problem(FILE, FILE, str(error))


def read_boxes(folder: Path, problems: Problems, *, interpolate: bool = False) -> Iterator[Box]:
    """Yield the boxes and polygons of each image, and of the key frames of each track; all else is a problem.

    Args:
        folder: with the file.
        problems: collects malformed parts.
        interpolate: yield those between key frames, too, see :func:`_interpolated`.

    Raises:
        InvalidInput: the file cannot be read.
    """
    images_in = image_finder(os.fspath(folder))
    frames = _frames(images_in) if interpolate else None
    for part in _parts(folder):
        name = part.attributes.get("name")
        if part.kind == "track":
            yield from without_problems(_track(part, images_in, frames), problems)
        elif name:
            size = size_of(part.attributes.get("width"), part.attributes.get("height"))
            boxes = _boxes(_path(folder, name), f"{FILE}: {name}", part.shapes, size)
            yield from without_problems(boxes, problems)
        if part.further:
            problems.add(AnnotationProblem(f"{FILE}: {name}", f"{part.further:,}", "labels have none", _ATTRIBUTES))


def _frames(images_in: _ImagesIn) -> list[int]:
    """Return the numbers of the frames that are images, ascending."""
    stems = {stem for home in _HOMES for stem in images_in(home.rstrip("/"))}
    return sorted(int(found[1]) for stem in stems if (found := _FRAME.fullmatch(stem)))


def _track(track: _Part, images_in: _ImagesIn, frames: Sequence[int] | None) -> Iterator[Box | AnnotationProblem]:
    """Yield the boxes of the key frames of a track in the images of these frames.

    Args:
        track: the track.
        images_in: returns the images in a folder by stem.
        frames: the frames that are images, to yield the boxes between key frames, too; None for key frames alone.
    """
    identifier = track.attributes.get("id", "")
    location, label = f"{FILE}: track {identifier}", track.attributes.get("label", "")
    of_track = {TRACK: int(identifier) if identifier.isascii() and identifier.isdigit() else identifier}
    for kind, item, further in track.shapes if frames is None else _interpolated(track.shapes, frames):
        if item.get("outside") == "1" or kind not in ("box", "polygon", *_OTHERS):
            continue
        frame = item.get("frame", "")
        place = f"{location}: frame {frame}"
        if frames is None and item.get("keyframe") == "0":
            yield problem(place, kind, "only key frames are read", _BETWEEN)
            continue
        stem = f"frame_{frame:0>6}" if frame else frame
        names = [f"{home}{name}" for home in _HOMES for name in images_in(home.rstrip("/")).get(stem, ())]
        if len(names) != 1:
            yield problem(place, stem, "must be the name of one image, without its suffix", _NO_FRAME)
        else:
            yield from _boxes(names[0], place, [(kind, {**item, "label": label}, further | of_track)])


def _interpolated(shapes: Sequence[_Shape], frames: Sequence[int]) -> Iterator[_Shape]:
    """Yield the shapes of a track, with boxes in all frames between its key frames.

    The edges and the angle of a box change evenly from key frame to key frame. All else is that of the key frame
    before, also whether the object is outside, so that it has no box. Polygons, and boxes behind the last key frame,
    are those that the file has. CVAT does the same (docs.cvat.ai, track mode).

    Args:
        shapes: the shapes, by frame.
        frames: the frames that are images, ascending.
    """
    before, written = None, list[_Shape]()
    for shape in shapes:
        if shape[1].get("keyframe") == "0":
            written.append(shape)
            continue
        between = list[_Shape]() if before is None else list(_between(before, shape, frames))
        filled = {item["frame"] for _, item, _ in between}
        yield from (each for each in written if each[1].get("frame") not in filled)
        yield from between
        yield shape
        before, written = shape, []
    yield from written


def _between(start: _Shape, end: _Shape, frames: Sequence[int]) -> Iterator[_Shape]:
    """Yield the boxes between two key frames; none if a shape is no box, or the object is outside."""
    (kind, item, further), (last_kind, last, _) = start, end
    numbers = [finite_number(each.get(name)) for each in (item, last) for name in ("frame", *_EDGES)]
    if kind != "box" or last_kind != "box" or item.get("outside") == "1" or None in numbers:
        return
    first, *edges = [each for each in numbers[:5] if each is not None]
    final, *targets = [each for each in numbers[5:] if each is not None]
    angle, target = (finite_number(each.get("rotation")) or 0.0 for each in (item, last))
    turn = (target - angle + 180) % 360 - 180  # the shorter way
    for frame in frames[bisect_right(frames, first) : bisect_left(frames, final)]:
        share = (frame - first) / (final - first)
        sides = {
            name: repr(edge + (goal - edge) * share) for name, edge, goal in zip(_EDGES, edges, targets, strict=True)
        }
        yield kind, {**item, **sides, "frame": str(frame), "rotation": repr(angle + turn * share)}, further


def _path(folder: Path, name: str) -> str:
    """Return the path of an image: exports have images in ``images``, beside the file."""
    root, below = os.path.join(folder, ""), f"images/{name}"  # noqa: PTH118 - paths as objects take five times as long
    return below if not has_file(root + name) and has_file(root + below) else name


def _boxes(
    name: str, location: str, shapes: list[_Shape], size: Size | None = None
) -> Iterator[Box | AnnotationProblem]:
    for number, (kind, item, further) in enumerate(shapes):
        place = f"{location}: {kind} {number}"
        if kind in ("box", "polygon"):
            yield (_box if kind == "box" else _polygon)(name, place, item, further, size)
        elif kind in _OTHERS:
            yield problem(place, item.get("label"), "only boxes, polygons and tags are read")


def _box(
    name: str, location: str, item: dict[str, str], further: dict[str, Any], size: Size | None
) -> Box | AnnotationProblem:
    try:
        left, top, right, bottom = float(item["xtl"]), float(item["ytl"]), float(item["xbr"]), float(item["ybr"])
    except (KeyError, ValueError):
        left = top = right = bottom = math.nan
    if not (math.isfinite(left) and math.isfinite(top) and math.isfinite(right) and math.isfinite(bottom)):
        return problem(location, item, "needs xtl, ytl, xbr and ybr, finite numbers of pixels")
    angle = math.radians(finite_number(item["rotation"]) or 0.0) if "rotation" in item else 0.0
    if angle:  # clockwise about its centre
        x, y, cos, sin = (left + right) / 2, (top + bottom) / 2, math.cos(angle), math.sin(angle)
        corners = [
            (across - x, down - y) for across, down in ((left, top), (right, top), (right, bottom), (left, bottom))
        ]
        turned = [(x + across * cos - down * sin, y + across * sin + down * cos) for across, down in corners]
        return _outlined(name, location, item, further, [each for corner in turned for each in corner], size)
    return _made(name, location, item, further, (left, top, right, bottom), NO_SHAPE, size)


def _polygon(
    name: str, location: str, item: dict[str, str], further: dict[str, Any], size: Size | None
) -> Box | AnnotationProblem:
    numbers = [finite_number(each) for pair in item.get("points", "").split(";") for each in pair.split(",")]
    found = [each for each in numbers if each is not None]
    if len(found) != len(numbers) or len(found) < 6 or len(found) % 2:
        return problem(location, item.get("points"), "'points' must be x1,y1;x2,y2;x3,y3;…, finite numbers of pixels")
    return _outlined(name, location, item, further, found, size)


def _outlined(
    name: str, location: str, item: dict[str, str], further: dict[str, Any], corners: list[float], size: Size | None
) -> Box | AnnotationProblem:
    across, down = corners[::2], corners[1::2]
    edges = (min(across), min(down), max(across), max(down))
    shape = ObjectShape(json.dumps([corners], separators=(",", ":")))
    return _made(name, location, item, further, edges, shape, size)


def _made(
    name: str,
    location: str,
    item: dict[str, str],
    further: dict[str, Any],
    edges: tuple[float, float, float, float],
    shape: ObjectShape,
    size: Size | None,
) -> Box | AnnotationProblem:
    if not (label := _label(item.get("label"))):
        return problem(location, item.get("label"), "needs a 'label'")
    left, top, right, bottom = edges
    kept: dict[str, Any] = {}
    if further or item.get(OCCLUDED, "0") != "0" or item.get(_GROUP, "0") != "0":
        own = {key: value for key in (OCCLUDED, _GROUP) if (value := item.get(key, "0")) != "0"}
        kept = attributes_of(own | further).of_box
    return Box(
        name, left, top, right - left, bottom - top, label, source="cvat", **kept,
        shape=shape, image_size=size, location=location,
    )  # fmt: skip
