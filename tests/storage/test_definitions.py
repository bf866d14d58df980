"""Tags and custom fields are stored in narrow tables of the generation and read back unchanged."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.records import FieldType
from framedex.storage.definitions import (
    FieldDefinition,
    TagDefinition,
    read_fields,
    read_tags,
    tag_names,
    tag_numbers,
    write_fields,
    write_tags,
)
from tests.laws import examples

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
times = st.integers(0, 10**15).map(lambda us: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(microseconds=us))
numbers = st.integers(0, 2**31 - 1)
tags = st.builds(TagDefinition, texts, numbers, texts, times, texts)
fields = st.builds(
    FieldDefinition,
    texts,
    numbers,
    texts,
    st.sampled_from(FieldType),
    st.one_of(st.none(), st.lists(texts)),
    st.booleans(),
    times,
    texts,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a media table."""
    return tmp_path_factory.mktemp("definitions") / "media.lance"


@examples(20)
@given(st.lists(tags, max_size=3), st.lists(fields, max_size=3))
def test_definitions__come_back(table: Path, some: list[TagDefinition], others: list[FieldDefinition]) -> None:
    """Definitions are read as they were written, in order; former versions stay."""
    written = {"tags": write_tags(table, some), "fields": write_fields(table, others)}
    write_tags(table, [])
    write_fields(table, [])
    assert read_tags(table, written) == some
    assert read_fields(table, written) == others


def test_definitions__of_a_generation_that_names_no_table(table: Path) -> None:
    """A dataset whose tags and fields were never edited has none."""
    assert read_tags(table, {"media": 3}) == []
    assert read_fields(table, {"media": 3}) == []


def test_tags__by_number_and_by_name() -> None:
    """Numbers map to names and names to numbers; an id takes precedence over an equal name."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    some = [TagDefinition("id 1", 4, "a", now, "me"), TagDefinition("id 2", 1, "id 1", now, "me")]
    assert tag_names(some).to_pylist() == [None, "id 1", None, None, "a"]
    assert tag_numbers(some) == {"id 1": 4, "a": 4, "id 2": 1}
    assert tag_names([]).to_pylist() == []
