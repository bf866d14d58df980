"""Identifiers are computed, stable, and lead back to what they name."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.ids import Kind, content_group_id, group_id, group_prefix, media_id, new_id, parse_group_id
from framedex.errors import NotFound

DATASET = "7a1c3f6e-0000-4000-8000-000000000001"


def test_new__is_random() -> None:
    """New ids are random UUIDs in text form."""
    assert new_id() != new_id()
    assert uuid.UUID(new_id()).version == 4


@pytest.mark.slow
@given(st.text(max_size=30))
def test_media_id__is_the_name_based_uuid(location: str) -> None:
    """Ids of media are those of RFC 9562, version 5, of a location in the dataset; the same every time."""
    try:
        location.encode()
    except UnicodeEncodeError:
        return
    found = uuid.UUID(media_id(DATASET, location))
    assert found == uuid.UUID(media_id(DATASET, location))
    assert (found.version, found.variant) == (5, uuid.RFC_4122)
    assert str(found) != media_id(DATASET[:-1] + "2", location)
    assert str(found) != media_id(DATASET, location + "x")


def test_media_id__of_names_that_are_no_text() -> None:
    """Bytes that are no UTF-8 have ids of their own."""
    names = ["caf\udce9", "caf\udcea", "café"]
    assert len({media_id(DATASET, name) for name in names}) == 3


@given(st.sampled_from(Kind), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_group_id__round_trip(kind: Kind, level: int, number: int) -> None:
    """A group's id is a UUID from which its level and number can be read, in any spelling."""
    text = group_id(DATASET, kind, level, number)
    found = uuid.UUID(text)
    assert str(found) == text
    assert (found.version, found.variant) == (8, uuid.RFC_4122)
    assert text.startswith(group_prefix(DATASET, kind, level))
    for spelling in (text, text.upper(), "{" + text + "}", text.replace("-", "")):
        assert parse_group_id(DATASET, kind, spelling) == (level, number)


def test_group_id__differs_by_everything_that_it_names() -> None:
    """Dataset, kind, level and number each make another id."""
    ids = {
        group_id(dataset, kind, level, number)
        for dataset in (DATASET, DATASET[:-1] + "2")
        for kind in Kind
        for level in range(8)
        for number in (0, 1, 2**31)
    }
    assert len(ids) == 2 * len(Kind) * 8 * 3


@given(st.binary(min_size=16, max_size=16))
def test_content_group_id__is_of_dataset_and_content(content_hash: bytes) -> None:
    """A content's id is a UUID, the same every time, another one in another dataset, and no numbered group's."""
    text = content_group_id(DATASET, content_hash)
    found = uuid.UUID(text)
    assert (str(found), found.version, found.variant) == (text, 8, uuid.RFC_4122)
    assert text == content_group_id(DATASET, content_hash)
    assert text != content_group_id(DATASET[:-1] + "2", content_hash)
    assert text != content_group_id(DATASET, content_hash[:-1] + bytes([content_hash[-1] ^ 1]))
    for kind in Kind:
        with pytest.raises(NotFound):
            parse_group_id(DATASET, kind, text)


@pytest.mark.parametrize("text", ["", "x", "7", DATASET, media_id(DATASET, "a.jpg"), "0" * 36, None, 7])
def test_parse__refuses_other_ids(text: str) -> None:
    """An invalid group id raises NotFound."""
    with pytest.raises(NotFound):
        parse_group_id(DATASET, Kind.CLUSTER, text)


def test_parse__refuses_groups_of_others() -> None:
    """Another dataset's group, and one of another kind, are not found."""
    with pytest.raises(NotFound, match="no cluster"):
        parse_group_id(DATASET, Kind.CLUSTER, group_id("other", Kind.CLUSTER, 1, 5))
    with pytest.raises(NotFound, match="no duplicate group"):
        parse_group_id(DATASET, Kind.DUPLICATE_GROUP, group_id(DATASET, Kind.CLUSTER, 1, 5))
