"""Attributes of objects: names and values that annotation files give beside label and place.

A value is a text, a finite number or a boolean. ``truncated``, ``difficult`` and ``occluded`` are flags: only true ones
are kept. The first two are values of their own of a box; formats without a place for them have them among the
attributes, as COCO files of CVAT and datumaro do. ``track_id`` is the track of an object in a video.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from framedex.annotations.boxes import Box
from framedex.annotations.problems import AnnotationProblem, problem

TRACK, OCCLUDED = "track_id", "occluded"
NOT_KEPT = "attributes of objects that are neither a text, a number nor a boolean"
_OF_BOX = ("truncated", "difficult")
_FLAGS = (*_OF_BOX, OCCLUDED)
_TRUE = (True, "1", "true", "True", "yes")
_FALSE = (False, "0", "false", "False", "no", "")
_LARGEST = 2**63


class Attributes(NamedTuple):
    """The attributes of an object.

    Attributes:
        text: a JSON object with names and values; None for none.
        truncated: the object extends beyond the image.
        difficult: the object is hard to recognise.
        dropped: names and values that cannot be kept.
    """

    text: str | None = None
    truncated: bool = False
    difficult: bool = False
    dropped: Mapping[str, Any] = {}

    @property
    def of_box(self) -> dict[str, Any]:
        """The arguments of a box."""
        return {"attributes": self.text, "truncated": self.truncated, "difficult": self.difficult}

    def problem(self, location: str) -> AnnotationProblem:
        """Return the problem of an object whose attributes are not all kept."""
        return problem(location, dict(self.dropped), "is neither a text, a finite number nor a boolean", NOT_KEPT)


NO_ATTRIBUTES = Attributes()


def attributes_of(values: Mapping[str, Any]) -> Attributes:
    """Return the attributes of an object, given names and values of a file. None and empty lists count as missing."""
    kept, dropped, flags = dict[str, Any](), dict[str, Any](), set[str]()
    for name, value in values.items():
        if name in _FLAGS and not isinstance(value, list | dict) and value in _TRUE:
            flags.add(name)
        elif (
            value is None
            or value in ([], {})
            or (name in _FLAGS and not isinstance(value, list | dict) and value in _FALSE)
        ):
            continue
        elif _is_kept(value):
            kept[name] = value
        else:
            dropped[name] = value
    if OCCLUDED in flags:
        kept[OCCLUDED] = True
    text = json.dumps(kept, separators=(",", ":")) if kept else None
    return Attributes(text, "truncated" in flags, "difficult" in flags, dropped)


def _is_kept(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-_LARGEST <= value < _LARGEST)
    return kind is str or kind is bool or (kind is float and math.isfinite(value))


def all_attributes(box: Box) -> dict[str, Any]:
    """Return the attributes of a box for a format without a place for flags: the true ones are among them."""
    values = {} if box.attributes is None else json.loads(box.attributes)
    return {**values, **{name: True for name in _OF_BOX if getattr(box, name)}}
