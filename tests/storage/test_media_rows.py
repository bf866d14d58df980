"""Paths of any bytes are stored as text and restored."""

import os
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.issue_types import issue_types, measure_columns
from framedex.storage.media_rows import (
    index_schema,
    is_relative,
    media_schema,
    path_of_text,
    text_of_path,
    time_of_ns,
)


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
@given(st.binary(max_size=40))
def test_path__law(raw: bytes) -> None:
    """Any bytes become text that can be stored and restored; UTF-8 is stored unchanged."""
    path = os.fsdecode(raw)
    text, kept = text_of_path(path)
    assert pa.array([text]).to_pylist() == [text]
    assert os.fsencode(path_of_text(text, kept)) == raw
    assert (kept is None) == (text.encode() == raw)


def test_path__shows_what_is_no_text() -> None:
    """Bytes that are not UTF-8 are readable in the text."""
    assert text_of_path(os.fsdecode(b"caf\xe9.jpg")) == ("caf\\xe9.jpg", b"caf\xe9.jpg")
    assert text_of_path("naïve.jpg") == ("naïve.jpg", None)


def test_schema__has_the_dimension_and_all_issues() -> None:
    """The embedding has its dimension, and each issue a column; no column is in both parts."""
    assert media_schema(610).field("embedding").type == pa.list_(pa.float32(), 610)
    assert {issue.confidence_column for issue in issue_types().values()} <= set(index_schema().names)
    assert set(measure_columns()) <= set(media_schema(3).names)
    assert not set(media_schema(3).names) & set(index_schema().names)


@pytest.mark.parametrize(
    ("uri", "relative"),
    [
        ("a.jpg", True),
        ("x/y.jpg", True),
        ("./a.jpg", True),
        ("a b.jpg", True),
        ("a?b:c.jpg", True),
        ("/a.jpg", False),
        ("file:///a.jpg", False),
        ("s3://bucket/a.jpg", False),
        ("https://example.org/a.jpg", False),
        ("", True),
    ],
)
def test_is_relative__table(uri: str, relative: bool) -> None:
    """Paths without a scheme that do not start at a root are relative."""
    assert is_relative(uri) == relative


def test_time__of_any_number() -> None:
    """Times outside the range of datetime are None, without an error."""
    assert time_of_ns(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert time_of_ns(-(10**18)) is not None
    assert time_of_ns(10**30) is None
    assert time_of_ns(-(10**25)) is None
