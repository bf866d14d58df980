"""Key points of YOLO folders: their number in ``data.yaml``, and the part of a line that holds them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.annotations.class_names import yaml_files, yaml_value
from framedex.errors import InvalidInput

_MOST = 10_000  # key points of an object
_MISSING, _VISIBLE = 0.0, 2.0


@dataclass(frozen=True)
class KeypointShape:
    """The key points of each line of a folder, as ``kpt_shape: [17, 3]`` in ``data.yaml``.

    Attributes:
        count: the number of points.
        numbers: those of a point: 2 for x and y, or 3 with the visibility.
    """

    count: int
    numbers: int

    @property
    def length(self) -> int:
        """The numbers of all points of a line."""
        return self.count * self.numbers

    def points(self, values: Sequence[float]) -> tuple[float, ...]:
        """Return the points of a line as x, y and visibility each; empty if all are missing.

        A point without a visibility is missing where it is in the upper left corner or outside of the image above or
        left of it, and visible elsewhere.

        Args:
            values: the numbers of the points, as many as :attr:`length`.
        """
        points: list[float] = []
        for start in range(0, self.length, self.numbers):
            x, y, *visibility = values[start : start + self.numbers]
            points += [x, y, visibility[0] if visibility else _VISIBLE if x > 0 or y > 0 else _MISSING]
        return tuple(points) if any(points) else ()


def keypoint_shape_of(folder: Path) -> KeypointShape | None:
    """Return the key points of each line of a YOLO folder; None if its lines have none.

    Raises:
        InvalidInput: the file cannot be read, or its ``kpt_shape`` is not [number of points, 2 or 3].
    """
    for path in yaml_files(folder):
        shape = yaml_value(path, "kpt_shape")
        if shape is not None:
            sides = [int(each) for each in shape if _is_count(each)] if isinstance(shape, list) else []
            if len(sides) != 2 or len(shape) != 2 or sides[1] not in (2, 3) or not 0 < sides[0] <= _MOST:
                raise InvalidInput(
                    f"{path}: 'kpt_shape' must be [number of key points, 2 or 3 numbers for each], not {shape!r:.80}"
                )
            return KeypointShape(*sides)
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10


def keypoint_names_of(folder: Path) -> dict[int, list[str]]:
    """Return the names of the key points of classes by the number of the class; without those of other forms.

    Raises:
        InvalidInput: a file cannot be read.
    """
    for path in yaml_files(folder):
        names = yaml_value(path, "kpt_names")
        if isinstance(names, dict):
            return {int(number): each for number, each in names.items() if _is_count(number) and _are_names(each)}
    return {}


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def names_of_details(details: str | None) -> list[str]:
    """Return the names of the key points in the details of a class, see :class:`~.source_lists.SourceClass`."""
    names = json.loads(details or "{}").get("keypoints")
    return names if _are_names(names) else []


def details_of_names(names: Mapping[int, list[str]], number: int) -> str | None:
    """Return the details of a class with the names of its key points; None without any."""
    return json.dumps({"keypoints": names[number]}) if names.get(number) else None
