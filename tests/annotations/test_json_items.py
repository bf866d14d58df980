"""JSON objects are read item by item, for any division of the text into chunks."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations import json_items
from framedex.errors import InvalidInput
from tests.tuning import Tuning, tuned

_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def whole(found: Any) -> dict[str, Any]:
    """Return the object that the items form."""
    made: dict[str, Any] = {}
    for key, place, value in found:
        if place is None:
            made[key] = value
        else:
            assert place == len(made[key])
            made[key].append(value)
    return made


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), _values, max_size=5), st.sampled_from([None, 1]), st.integers(1, 7))
def test_items__are_the_object(content: dict[str, Any], indent: int | None, chunk: int) -> None:
    """The items equal those of the standard library, in order, for any chunk size."""
    file = io.StringIO(json.dumps(content, indent=indent))
    with tuned() as tuning:
        tuning.json_chunk = chunk
        assert whole(json_items._Items(file, Path("x")).members()) == content


def test_items__come_one_at_a_time(tmp_path: Path) -> None:
    """The first items of a file are yielded although its end is broken."""
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, 2, ' + " " * 2**21 + "oops")
    found = json_items.read_items(path)
    assert [next(found) for _ in range(3)] == [("a", None, []), ("a", 0, 1), ("a", 1, 2)]
    with pytest.raises(InvalidInput, match=f"character {13 + 2**21 + 1}"):
        next(found)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"1", b"{", b'{"a"', b'{"a": }', b'{"a": [1 2]}', b'{"a": [1,]}', b'{"a": 1} x', b'{a: 1}',
     b'{"a": 1,}',
     b'{"a": "\xff"}', b'{"a": ' + b"[" * 99999, b'{"a": {"b": ' + b"[" * 99999,
     b'{"a": ' + b"9" * 9999 + b"}"],
)  # fmt: skip
def test_items__of_what_is_no_object(content: bytes, tmp_path: Path) -> None:
    """Anything but a JSON object is an error that names the file."""
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.json"):
        list(json_items.read_items(path))


def test_items__are_not_endless(tmp_path: Path, tuning: Tuning) -> None:
    """A single item that is too long for memory is rejected."""
    tuning.json_item = 1000
    tuning.json_chunk = 100
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"a": ["x" * 10**6]}))
    with pytest.raises(InvalidInput, match="64 Mi"):
        list(json_items.read_items(path))
