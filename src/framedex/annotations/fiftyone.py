"""FiftyOne datasets: ``samples.json`` beside ``metadata.json`` and ``data/`` (the type FiftyOneDataset).

A sample has its ``filepath`` relative to the folder, ``tags``, and fields. Fields of detections, classifications and
polylines are read by their ``_cls``; boxes are [x, y, width, height] in fractions of the image's sides.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framedex.annotations.attributes import NO_ATTRIBUTES, TRACK, Attributes, attributes_of
from framedex.annotations.boxes import finite_number, is_confidence, label_of
from framedex.annotations.json_items import read_items
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_of
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.core.regular_files import has_file
from framedex.errors import InvalidInput

FILE = "samples.json"
_LISTS = {"Detections": "detections", "Polylines": "polylines"}
_LABELS = {"Classification": None, "Classifications": "classifications"}
_SINGLE = ("Detection", "Polyline")
_FIELDS = "fields of FiftyOne that are not read"
_SHAPES = "masks and further outlines of FiftyOne, of which the box is read"
_PLAIN = (str, int, float, bool)
_OF_LABEL = frozenset({
    "_id", "id", "_cls", "label", "bounding_box", "mask", "mask_path", "confidence", "index", "attributes", "points",
    "closed", "filled",
})  # fmt: skip
"""Keys of a detection or a polyline that are no attributes."""
_OWN = frozenset({"filepath", "tags", "metadata", "id", "created_at", "last_modified_at"})


def is_fiftyone(folder: Path) -> bool:
    """Return whether a folder has the samples of a FiftyOne dataset."""
    return has_file(folder / FILE) and has_file(folder / "metadata.json")


def find_files(folder: Path) -> list[str]:
    """Return the file of the samples, if the folder is a FiftyOne dataset."""
    return [FILE] if is_fiftyone(folder) else []


def _samples(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]] | AnnotationProblem]:
    """Yield (place, path of the image within the folder, sample)."""
    for key, position, item in read_items(folder / FILE):
        if key != "samples" or position is None:
            continue
        location = f"{FILE}: samples[{position}]"
        path = item.get("filepath") if isinstance(item, dict) else None
        if not isinstance(path, str) or not path:
            yield problem(location, item, "a sample needs its 'filepath', a text")
            continue
        yield location, path, item


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the labels, tags and further values of each sample."""
    if not is_fiftyone(folder):
        return
    try:
        for row in _samples(folder):
            yield row if isinstance(row, AnnotationProblem) else _labels(row[1], row[2])
    except InvalidInput as error:
        yield problem(FILE, FILE, str(error))


def _kind(value: Any) -> str:
    """Return the class of a field's value; an empty text for a plain one."""
    kind = value.get("_cls") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _labels(path: str, sample: dict[str, Any]) -> ImageLabels:
    labels, values = list[str](), dict[str, Any]()
    for name, value in sample.items():
        if (kind := _kind(value)) in _LABELS:
            inner = _LABELS[kind]
            items = [value] if inner is None else value.get(inner)
            listed = items if isinstance(items, list) else []
            labels += [label_of(each.get("label")) for each in listed if isinstance(each, dict)]
        elif isinstance(value, _PLAIN) and name not in _OWN and not name.startswith("_"):
            values[name] = value
    given = sample.get("tags") if isinstance(sample.get("tags"), list) else []
    tags = tuple(part_of(each.strip()) or each for each in given or [] if isinstance(each, str) and each.strip())
    return ImageLabels(path, tuple(each for each in labels if each), tags=tags, values=values or None)


def read_boxes(folder: Path, problems: Problems) -> Iterator[RelativeBox]:
    """Yield the detections and the closed polylines of each sample; malformed ones are problems.

    Raises:
        InvalidInput: the file cannot be read.
    """
    for row in _samples(folder):
        if not isinstance(row, AnnotationProblem):  # which is one of the labels
            yield from without_problems(_boxes(*row), problems)


def _boxes(location: str, path: str, sample: dict[str, Any]) -> Iterator[RelativeBox | AnnotationProblem]:
    for name, value in sample.items():
        kind = _kind(value)
        key = _LISTS.get(kind)
        found = value.get(key) if key is not None else None
        items = [value] if kind in _SINGLE else found if isinstance(found, list) else []
        if kind and kind not in (*_LISTS, *_SINGLE, *_LABELS):
            reason = "only detections, polylines and classifications are read"
            yield problem(f"{location}: {name}", kind, reason, _FIELDS)
        for number, item in enumerate(items):
            place = f"{location}: {name}" if key is None else f"{location}: {name}.{key}[{number}]"
            kept = _attributes(item) if isinstance(item, dict) else NO_ATTRIBUTES
            yield _box(place, path, item, kept)
            if kept.dropped:
                yield kept.problem(place)
            points = item.get("points") if isinstance(item, dict) else None
            if isinstance(points, list) and len(points) > 1:
                yield problem(place, f"{len(points)} outlines", "the one with the most corners is read", _SHAPES)
            elif isinstance(item, dict) and (item.get("mask") or item.get("mask_path")):
                yield problem(place, item.get("label"), "only its box is read", _SHAPES)


def _attributes(item: dict[str, Any]) -> Attributes:
    """Return the attributes of an object: further keys, and ``attributes`` with their ``value``, as older files have.

    Its ``index`` is the track.
    """
    given = item.get("attributes")
    listed = given if isinstance(given, dict) else {}
    values = {
        name: each["value"] if isinstance(each, dict) and "value" in each else each for name, each in listed.items()
    }
    further = {name: value for name, value in item.items() if name not in _OF_LABEL}
    return attributes_of({TRACK: item.get("index"), **values, **further})


def _box(location: str, path: str, item: Any, kept: Attributes) -> RelativeBox | AnnotationProblem:
    if not isinstance(item, dict) or not (label := label_of(item.get("label"))):
        return problem(location, item, "needs a 'label'")
    confidence = finite_number(item.get("confidence"))
    if item.get("confidence") is not None and not is_confidence(confidence):
        return problem(location, item["confidence"], "'confidence' must be a number from 0 to 1")
    outline: tuple[float, ...] = ()
    if "points" in item:
        outline = _outline(item["points"])
        sides = _bounds(outline)
    else:
        sides = _numbers(item.get("bounding_box"))
    if sides is None:
        return problem(location, item, "'bounding_box' must be [x, y, width, height], fractions of the image's sides")
    x, y, width, height = sides
    return RelativeBox(
        path, x + width / 2, y + height / 2, width, height, label, confidence, location=location,
        source="fiftyone", outline=outline, **kept.of_box,
    )  # fmt: skip


def _numbers(value: Any) -> tuple[float, float, float, float] | None:
    found = [finite_number(each) for each in value] if isinstance(value, list) else []
    x, y, width, height = found if len(found) == 4 else (None,) * 4
    return None if x is None or y is None or width is None or height is None else (x, y, width, height)


def _outline(points: Any) -> tuple[float, ...]:
    """Return the corners of the longest polygon; nothing if it has fewer than three."""
    shapes = [shape for shape in points if isinstance(shape, list)] if isinstance(points, list) else []
    found: list[tuple[float, ...]] = []
    for shape in shapes:
        numbers = [finite_number(each) for pair in shape if isinstance(pair, list) for each in pair]
        if None not in numbers and len(numbers) >= 6 and len(numbers) % 2 == 0:
            found.append(tuple(each for each in numbers if each is not None))
    return max(found, key=len, default=())


def _bounds(outline: tuple[float, ...]) -> tuple[float, float, float, float] | None:
    if not outline:
        return None
    across, down = outline[::2], outline[1::2]
    return min(across), min(down), max(across) - min(across), max(down) - min(down)
