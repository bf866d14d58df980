"""Columns as JSON text equal the output of the json module."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations import json_text

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=8)


def parsed(texts: pa.Array) -> list[Any]:
    return [json.loads(text) for text in texts.to_pylist()]


@given(TEXTS)
def test_strings__law(texts: list[str | None]) -> None:
    """Texts are restored, with any characters; a null becomes null."""
    assert parsed(json_text.strings(pa.array(texts, pa.string()))) == texts


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_integers__law(numbers: list[int | None]) -> None:
    """Integers are restored."""
    assert parsed(json_text.integers(pa.array(numbers, pa.int64()))) == numbers


@given(st.lists(st.none() | st.floats(-2, 2, width=32), max_size=8))
def test_decimals__law(numbers: list[float | None]) -> None:
    """Numbers are restored to six decimals."""
    found = parsed(json_text.decimals(pa.array(numbers, pa.float32())))
    assert found == [None if number is None else pytest.approx(number, abs=6e-7) for number in numbers]


def test_decimals__shortest() -> None:
    """A float32 has its own shortest digits; a number that is not finite becomes null."""
    numbers = pa.array(np.array([0.96, 0.1, 1, np.nan, np.inf], np.float32))
    assert json_text.decimals(numbers).to_pylist() == ["0.96", "0.1", "1", "null", "null"]


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=5))
def test_objects__law(rows: list[tuple[str, int]]) -> None:
    """Objects have their fields in order, including shared ones, and form an array without the last separator."""
    texts = json_text.object_texts(
        {
            'a "name"': json_text.strings(pa.array([text for text, _ in rows], pa.string())),
            "shared": "true",
            "n": json_text.integers(pa.array([number for _, number in rows], pa.int64())),
        },
        end=json_text.LINE_END,
    )
    whole = json.loads(b"[" + bytes(json_text.join_rows(texts)) + b"]")
    assert whole == [{'a "name"': text, "shared": True, "n": number} for text, number in rows]
    assert all(list(each) == ['a "name"', "shared", "n"] for each in whole)


@given(st.lists(st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)), max_size=6))
def test_grouped__law(lists: list[list[str] | None]) -> None:
    """The parts of each list are joined; empty lists give null. Slices work, too."""
    column = pa.array([["before"], *lists], pa.list_(pa.string())).slice(1)
    found = json_text.join_lists(json_text.strings(column.flatten()), column)
    assert [None if text is None else json.loads(f"[{text}]") for text in found.to_pylist()] == [
        each or None for each in lists
    ]
