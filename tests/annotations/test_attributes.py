"""Attributes of objects: what is kept of names and values, and what is a flag."""

from typing import Any

import pytest

from framedex.annotations.attributes import all_attributes, attributes_of
from framedex.annotations.boxes import Box


@pytest.mark.parametrize(
    ("values", "kept", "dropped"),
    [
        ({"color": "red", "n": 2, "x": 0.5, "is": False}, {"color": "red", "n": 2, "x": 0.5, "is": False}, []),
        ({"occluded": "1"}, {"occluded": True}, []),
        ({"occluded": 0, "truncated": "false", "empty": [], "nothing": None}, None, []),
        ({"truncated": 1, "difficult": "true"}, {"truncated": True, "difficult": True}, []),
        ({"difficult": "perhaps", "ü\ud800": "猫"}, {"difficult": "perhaps", "ü\ud800": "猫"}, []),
        ({"a": [1], "b": {"c": 1}, "c": float("nan"), "d": 2**63, "occluded": [1]}, None, [*"abcd", "occluded"]),
    ],
)  # fmt: skip
def test_attributes_of__values(values: dict[str, Any], kept: dict[str, Any] | None, dropped: list[str]) -> None:
    """Texts, numbers and booleans are kept; flags only if they are true; the others are dropped."""
    found = attributes_of(values)
    box = Box("a.png", 0, 0, 1, 1, "cat", **found.of_box)
    assert (all_attributes(box) or None) == kept
    assert list(found.dropped) == dropped
