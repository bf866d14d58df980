"""JSON exports of Label Studio: an array of tasks, each with its image and its annotations.

Rectangles and polygons are in percent of the image's sides (labelstud.io, task format). Of several annotations of a
task the one marked as ground truth counts, or else the first that was not cancelled.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from framedex.annotations.boxes import Box, finite_number, is_confidence, label_of
from framedex.annotations.json_items import read_array
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.shapes import NO_SHAPE, ObjectShape
from framedex.core.regular_files import has_file, open_text, scan
from framedex.core.suffixes import is_image
from framedex.errors import InvalidInput

_HEAD = 2**20  # characters
_UPLOADED = re.compile(r"[0-9a-f]{8}-")
_ANNOTATIONS = ("annotations", "completions")
_IMAGES = "images"
_OTHERS = frozenset({"keypointlabels", "brushlabels", "ellipselabels"})


def find_files(folder: Path) -> list[str]:
    """Return the names of the exports of Label Studio at the top of a folder."""
    try:
        with scan(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".json") and not entry.is_dir())
    except OSError:
        return []
    return [name for name in names if _is_export(folder / name)]


def has_boxes(folder: Path) -> bool:
    """Return whether a folder has exports of Label Studio."""
    return bool(find_files(folder))


def _is_export(path: Path) -> bool:
    try:
        if not has_file(path):
            return False
        with open_text(path) as file:
            head = file.read(_HEAD).lstrip()
    except (OSError, ValueError):
        return False
    return head.startswith("[") and '"data"' in head and any(f'"{name}"' in head for name in _ANNOTATIONS)


def _tasks(folder: Path, name: str) -> Iterator[tuple[str, str, list[dict[str, Any]]] | AnnotationProblem]:
    """Yield (place, path of the image, results of its annotation) of each task."""
    for number, task in enumerate(read_array(folder / name)):
        location = f"{name}: task {number}"
        data = task.get("data") if isinstance(task, dict) else None
        image = _image(data) if isinstance(data, dict) else None
        if image is None:
            yield problem(location, task, "a task needs 'data' with the address of an image")
            continue
        yield location, _path(folder, image), _results(task)


def _image(data: dict[str, Any]) -> str | None:
    texts = [data["image"], *data.values()] if "image" in data else list(data.values())
    for each in texts:
        if isinstance(each, str):
            try:
                parts = urlsplit(each)
            except ValueError:
                continue
            path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]
            if is_image(path):
                return path
    return None


def _path(folder: Path, image: str) -> str:
    """Return the path of an image within the folder: its own, a shorter one, or its name without a mark of uploads."""
    parts = PurePosixPath(image.replace("\\", "/")).parts
    parts = tuple(each for each in parts if each not in ("/", ".", ".."))
    names = ["/".join(parts[start:]) for start in range(len(parts))]
    plain = _UPLOADED.sub("", parts[-1], count=1)
    for name in (*names, plain):
        for path in (name, f"{_IMAGES}/{name}"):
            if has_file(folder / path):
                return path
    return plain


def _results(task: dict[str, Any]) -> list[dict[str, Any]]:
    given: list[Any] = next((task[key] for key in _ANNOTATIONS if isinstance(task.get(key), list)), [])
    usable = [each for each in given if isinstance(each, dict) and not each.get("was_cancelled")]
    chosen = next((each for each in usable if each.get("ground_truth")), usable[0] if usable else {})
    results = chosen.get("result")
    return [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the choices of each task as labels, and its texts as captions."""
    for name in find_files(folder):
        try:
            for row in _tasks(folder, name):
                yield row if isinstance(row, AnnotationProblem) else _labels(row[1], row[2])
        except InvalidInput as error:
            yield problem(name, name, str(error))


def _labels(path: str, results: list[dict[str, Any]]) -> ImageLabels:
    labels, captions = list[str](), list[str]()
    for each in results:
        value = each.get("value") if isinstance(each.get("value"), dict) else {}
        assert isinstance(value, dict), "it was checked"
        if each.get("type") == "choices" and isinstance(value.get("choices"), list):
            labels += map(label_of, value["choices"])
        if each.get("type") == "textarea" and "x" not in value:
            texts = value.get("text")
            captions += [text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)]
    return ImageLabels(path, tuple(filter(None, labels)), "\n".join(captions) or None)


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the rectangles and polygons of each task; malformed ones, and other shapes, are problems."""
    for name in find_files(folder):
        try:
            for row in _tasks(folder, name):
                if not isinstance(row, AnnotationProblem):  # which is one of the labels
                    yield from without_problems(_boxes(*row), problems)
        except InvalidInput:
            continue


def _boxes(location: str, path: str, results: list[dict[str, Any]]) -> Iterator[Box | AnnotationProblem]:
    for number, each in enumerate(results):
        kind, place = each.get("type"), f"{location}: result {number}"
        if kind in ("rectanglelabels", "polygonlabels"):
            yield _box(place, path, each, str(kind))
        elif kind in _OTHERS:
            yield problem(place, kind, "only rectangles, polygons, choices and texts are read")


def _box(location: str, path: str, result: dict[str, Any], kind: str) -> Box | AnnotationProblem:
    value = result.get("value")
    size = finite_number(result.get("original_width")), finite_number(result.get("original_height"))
    if not isinstance(value, dict) or size[0] is None or size[1] is None:
        return problem(location, result, "needs a 'value', 'original_width' and 'original_height'")
    labels = value.get(kind)
    label = label_of(labels[0]) if isinstance(labels, list) and labels else ""
    if not label:
        return problem(location, labels, f"needs {kind!r}, a list with the label")
    confidence = finite_number(result.get("score"))
    if result.get("score") is not None and not is_confidence(confidence):
        return problem(location, result["score"], "'score' must be a number from 0 to 1")
    scale = size[0] / 100, size[1] / 100
    made = _rectangle(value, scale) if kind == "rectanglelabels" else _polygon(value, scale)
    if made is None:
        return problem(location, value, "must be x, y, width and height, or 'points', in percent of the image's sides")
    (x, y, width, height), shape = made
    original = result.get("id")
    return Box(
        path, x, y, width, height, label, confidence, original if isinstance(original, str) else None,
        "label-studio", shape=shape, location=location,
    )  # fmt: skip


_Made = tuple[tuple[float, float, float, float], ObjectShape]


def _rectangle(value: dict[str, Any], scale: tuple[float, float]) -> _Made | None:
    """Return a rectangle in pixels; the box around one that is turned about its upper left corner."""
    x, y, width, height = (finite_number(value.get(name)) for name in ("x", "y", "width", "height"))
    if x is None or y is None or width is None or height is None:
        return None
    x, y, width, height = x * scale[0], y * scale[1], width * scale[0], height * scale[1]
    angle = math.radians(finite_number(value.get("rotation")) or 0.0)
    if angle:
        cos, sin = math.cos(angle), math.sin(angle)
        corners = [(x + a * cos - b * sin, y + a * sin + b * cos) for a in (0.0, width) for b in (0.0, height)]
        left, top = min(a for a, _ in corners), min(b for _, b in corners)
        return (left, top, max(a for a, _ in corners) - left, max(b for _, b in corners) - top), NO_SHAPE
    return (x, y, width, height), NO_SHAPE


def _polygon(value: dict[str, Any], scale: tuple[float, float]) -> _Made | None:
    points = value.get("points")
    pairs = [each for each in points if isinstance(each, list) and len(each) == 2] if isinstance(points, list) else []
    numbers = [(finite_number(x), finite_number(y)) for x, y in pairs]
    corners = [(x * scale[0], y * scale[1]) for x, y in numbers if x is not None and y is not None]
    if not isinstance(points, list) or len(corners) != len(points) or len(corners) < 3:
        return None
    left, top = min(x for x, _ in corners), min(y for _, y in corners)
    flat = [side for corner in corners for side in corner]
    sides = (left, top, max(x for x, _ in corners) - left, max(y for _, y in corners) - top)
    return sides, ObjectShape(json.dumps([flat], separators=(",", ":")))
