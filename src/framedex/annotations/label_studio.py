"""JSON exports of Label Studio: an array of tasks, each with its image and its annotations.

Rectangles and polygons are in percent of the image's sides (labelstud.io, task format). Of several annotations of a
task the one marked as ground truth is read, or else the first that was not cancelled; the others are counted. Those of
predictions have the score as confidence. A shape with several labels is an object for each. Choices, texts, numbers,
ratings and dates that have the id of a shape are its attributes, by the name of their control.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from framedex.annotations.attributes import attributes_of
from framedex.annotations.boxes import finite_number, is_confidence, label_of
from framedex.annotations.declared_sizes import size_of
from framedex.annotations.json_items import read_array
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.core.name_forms import inner_parts, normal_name
from framedex.core.regular_files import has_file, open_text, scan
from framedex.core.suffixes import is_image
from framedex.errors import InvalidInput

_HEAD = 2**20  # characters
_DEEPEST = 64  # folders of a path, of which the last ones count
_UPLOADED = re.compile(r"[0-9a-f]{8}-")
_ANNOTATIONS = ("annotations", "completions")
_IMAGES = "images"
_LABELLED = ("rectanglelabels", "polygonlabels", "labels")
_PLAIN = ("rectangle", "polygon")
_VALUES = {"choices": "choices", "textarea": "text", "number": "number", "rating": "rating", "datetime": "datetime"}
"""Kinds of results that may be attributes of shapes, with the key of their value."""
_FURTHER = "annotations of further annotators"
_PREDICTED = "predictions that are no shapes with a score"
_UNLABELLED = "shapes without a label"


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


def _tasks(folder: Path, name: str) -> Iterator[tuple[str, str, dict[str, Any]] | AnnotationProblem]:
    """Yield (place, name of the image, task)."""
    for number, task in enumerate(read_array(folder / name)):
        location = f"{name}: task {number}"
        data = task.get("data") if isinstance(task, dict) else None
        image = _image(data) if isinstance(data, dict) else None
        if image is None:
            yield problem(location, task, "a task needs 'data' with the address of an image")
            continue
        yield location, _path(folder, image), task


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
    """Return the name of an image as a path on another machine, without a mark of uploads that its file lacks here.

    A backslash stays: it may be a letter of the name.
    """
    parts = inner_parts(normal_name(image))[-_DEEPEST:]
    plain = _UPLOADED.sub("", parts[-1], count=1)
    if plain != parts[-1] and any(
        has_file(folder.joinpath(home, *parts[at:])) for at in range(len(parts)) for home in ("", _IMAGES)
    ):
        plain = parts[-1]
    if "\\" in image and plain == parts[-1] and image.count("\\") < _DEEPEST:
        return "/".join(["", *inner_parts(image)[-_DEEPEST:]])
    return "/".join(["", *parts[:-1], plain])


def _list(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in a list of an object; nothing for anything else."""
    found = value.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _annotations(task: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the results of the annotation of a task that is read, and the other annotations with results."""
    key = next((key for key in _ANNOTATIONS if isinstance(task.get(key), list)), _ANNOTATIONS[0])
    usable = [each for each in _list(task, key) if not each.get("was_cancelled")]
    chosen = next((each for each in usable if each.get("ground_truth")), usable[0] if usable else {})
    return _list(chosen, "result"), [each for each in usable if each is not chosen and _list(each, "result")]


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the choices of each task as labels, and its texts as captions."""
    for name in find_files(folder):
        try:
            for row in _tasks(folder, name):
                yield row if isinstance(row, AnnotationProblem) else _labels(row[1], _annotations(row[2])[0])
        except InvalidInput as error:
            yield problem(name, name, str(error))


def _labels(path: str, results: list[dict[str, Any]]) -> ImageLabels:
    labels, captions = list[str](), list[str]()
    regions = _attributes(results)
    for each in results:
        if not _is_of_image(each) or _is_of_region(each, regions):
            continue
        value = each["value"]
        if each["type"] == "choices":
            labels += map(label_of, value["choices"])
        else:
            texts = value.get("text")
            captions += [text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)]
    return ImageLabels(path, tuple(filter(None, labels)), "\n".join(captions) or None)


def _is_of_image(result: dict[str, Any]) -> bool:
    """Return whether a result has choices or texts of the whole image, not of a shape in it."""
    kind, value = result.get("type"), result.get("value")
    if not isinstance(value, dict) or "x" in value or "points" in value:
        return False
    return kind == "textarea" or (kind == "choices" and isinstance(value.get("choices"), list))


def _is_of_region(result: dict[str, Any], regions: Mapping[str, Any]) -> bool:
    """Return whether a result is an attribute of one of some shapes, by their id."""
    kind, own = result.get("type"), result.get("id")
    return isinstance(kind, str) and kind in _VALUES and isinstance(own, str) and own in regions


def _attributes(results: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the names and values of the attributes of each shape with a label and an id, by its id."""
    found: dict[str, dict[str, Any]] = {
        each["id"]: {} for each in results if each.get("type") in _LABELLED and isinstance(each.get("id"), str)
    }
    for each in results:
        if _is_of_region(each, found):
            kind, name, value = each["type"], each.get("from_name"), each.get("value")
            given = value.get(_VALUES[kind]) if isinstance(value, dict) else None
            if isinstance(given, list) and (len(given) == 1 or kind == "textarea"):
                given = "\n".join(given) if all(isinstance(text, str) for text in given) else given
            found[each["id"]][name if isinstance(name, str) and name else kind] = given
    return found


def read_boxes(folder: Path, problems: Problems) -> Iterator[RelativeBox]:
    """Yield the rectangles and polygons of each task, those of predictions behind them; all else is a problem."""
    for name in find_files(folder):
        try:
            for row in _tasks(folder, name):
                if not isinstance(row, AnnotationProblem):  # which is one of the labels
                    yield from without_problems(_boxes(*row), problems)
        except InvalidInput:
            continue


def _boxes(location: str, path: str, task: dict[str, Any]) -> Iterator[RelativeBox | AnnotationProblem]:
    results, others = _annotations(task)
    for each in others:
        yield problem(location, each.get("completed_by", each.get("id")), "of a task one annotation is read", _FURTHER)
    yield from _shapes(location, path, results)
    for number, each in enumerate(_list(task, "predictions")):
        place = f"{location}: prediction {number}"
        found = _list(each, "result")
        regions, results = _attributes(found), list[dict[str, Any]]()
        for result in found:
            scored = {"score": each.get("score"), **{key: value for key, value in result.items() if value is not None}}
            if _is_of_region(result, regions):
                results.append(result)
            elif _is_of_image(result):
                yield problem(place, result["value"], "only shapes are read of predictions", _PREDICTED)
            elif scored["score"] is None:
                yield problem(place, result.get("value"), "needs a 'score', from 0 to 1", _PREDICTED)
            else:
                results.append(scored)
        yield from _shapes(place, path, results)


def _shapes(location: str, path: str, results: list[dict[str, Any]]) -> Iterator[RelativeBox | AnnotationProblem]:
    regions = _attributes(results)
    for number, each in enumerate(results):
        kind, own, place = each.get("type"), each.get("id"), f"{location}: result {number}"
        if kind in _LABELLED:
            yield from _labelled(place, path, each, str(kind), regions.get(own, {}) if isinstance(own, str) else {})
        elif kind in _PLAIN and not (isinstance(own, str) and own in regions):
            yield problem(place, each.get("value"), "a shape needs a label", _UNLABELLED)
        elif kind not in _PLAIN and not _is_of_image(each) and not _is_of_region(each, regions):
            yield problem(place, kind, "only rectangles, polygons, their attributes, and choices and texts are read")


def _labelled(
    location: str, path: str, result: dict[str, Any], kind: str, attributes: Mapping[str, Any]
) -> Iterator[RelativeBox | AnnotationProblem]:
    """Yield a box for each label of a shape."""
    value = result.get("value")
    given = value.get(kind) if isinstance(value, dict) else None
    labels = [text for text in map(label_of, given) if text] if isinstance(given, list) else []
    confidence = finite_number(result.get("score"))
    if not isinstance(value, dict):
        yield problem(location, result, "needs a 'value'")
    elif not labels:
        yield problem(location, given, f"needs {kind!r}, a list with the label", _UNLABELLED)
    elif result.get("score") is not None and not is_confidence(confidence):
        yield problem(location, result["score"], "'score' must be a number from 0 to 1")
    elif (outline := _corners(value, result)) is None:
        reason = "must be x, y, width and height, or 'points', in percent of the image's sides"
        yield problem(location, value, f"{reason}; one that is turned needs 'original_width' and 'original_height'")
    else:
        across, down = [x for x, _ in outline], [y for _, y in outline]
        left, top, right, bottom = min(across), min(down), max(across), max(down)
        sides = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
        original = result.get("id")
        corners = tuple(side for corner in outline for side in corner)
        is_box = "points" not in value and not finite_number(value.get("rotation"))
        kept = attributes_of(attributes)
        for label in labels:
            yield RelativeBox(
                path, *sides, label, confidence, original if isinstance(original, str) else None, location,
                "label-studio", () if is_box else corners, **kept.of_box,
            )  # fmt: skip
        if kept.dropped:
            yield kept.problem(location)


def _corners(value: dict[str, Any], result: dict[str, Any]) -> list[tuple[float, float]] | None:
    """Return the corners of a polygon or a rectangle in fractions of the image's sides; None for a malformed one.

    A rectangle is turned about its upper left corner, in pixels.
    """
    if "points" in value:
        points = value["points"] if isinstance(value["points"], list) else []
        pairs = [list(map(finite_number, each)) for each in points if isinstance(each, list) and len(each) == 2]
        found = [(x / 100, y / 100) for x, y in pairs if x is not None and y is not None]
        return found if len(found) == len(points) and len(found) > 2 else None
    x, y, width, height = (finite_number(value.get(name)) for name in ("x", "y", "width", "height"))
    if x is None or y is None or width is None or height is None:
        return None
    angle = math.radians(finite_number(value.get("rotation")) or 0.0)
    size = size_of(result.get("original_width"), result.get("original_height")) if angle else (1, 1)
    if size is None:
        return None
    cos, sin, ratio = math.cos(angle), math.sin(angle), size[1] / size[0]
    return [
        ((x + a * cos - b * sin * ratio) / 100, (y + a * sin / ratio + b * cos) / 100)
        for a, b in ((0.0, 0.0), (width, 0.0), (width, height), (0.0, height))
    ]
