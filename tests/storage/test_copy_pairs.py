"""Pairs of copies by row: they follow their rows, and give items at least their similarity."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.storage import tables
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, Pairs, copy_schema_of, raise_similarity, read_descriptors
from framedex.storage.media_rows import COPY_DESCRIPTOR, PANEL_DESCRIPTORS, copy_schema
from framedex.storage.table_versions import Table

ROWS = 12
Rows = npt.NDArray[np.int64]
Pair = tuple[int, int, float, str | None]
REASONS = st.sampled_from([None, "mirrored", "cropped"])
SIMILARITIES = st.sampled_from([0.96, 0.97, 0.98, 1.0])
PAIRS = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1), SIMILARITIES, REASONS), max_size=12)


def pairs_of(values: list[Pair]) -> CopyPairs:
    """Return pairs from tuples."""
    rows = np.array([each[:2] for each in values], np.int64).reshape(-1, 2)
    similarity = np.array([each[2] for each in values], np.float32)
    return replace(CopyPairs.by_descriptor(rows[:, 0], rows[:, 1], similarity), reasons=[each[3] for each in values])


def values_of(pairs: CopyPairs) -> list[Pair]:
    """Return pairs as tuples, and check their arrays."""
    assert [each.dtype for each in (pairs.a, pairs.b)] == [np.int64] * 2
    assert pairs.similarity.dtype == np.float32
    assert len(pairs) == len(pairs.b) == len(pairs.similarity) == len(pairs.reasons) == len(pairs.shares)
    rounded = [round(value, 4) for value in pairs.similarity.tolist()]
    return list(zip(pairs.a.tolist(), pairs.b.tolist(), rounded, pairs.reasons, strict=True))


SOME: list[Pair] = [(3, 1, 0.96, "cropped"), (0, 5, 1.0, None), (4, 3, 0.97, "mirrored")]


def test_moved__rows_that_are_gone() -> None:
    """Pairs get the new rows of their media; a pair of which either is gone is left out, with its reason."""
    new_row = np.array([7, 0, -1, 2, -1, 4])
    assert values_of(pairs_of(SOME).moved(new_row)) == [(2, 0, 0.96, "cropped"), (7, 4, 1.0, None)]
    assert values_of(pairs_of(SOME).moved(np.full(6, -1))) == []


def collages() -> CopyPairs:
    """Return pairs of two collages: 9 shows 4 and 2 on parts of it, 3 shows 9 and 1; and 5, a copy of 9 as a whole."""
    ends = np.array([(9, 4), (9, 2), (3, 9), (3, 1), (5, 9)], np.int64)
    shares = np.array([0.5, 0.4, 0.3, 0.6, 1.0], np.float32)
    pairs = CopyPairs.by_descriptor(ends[:, 0], ends[:, 1], np.full(5, 0.96, np.float32))
    return replace(pairs, reasons=["part"] * 5, shares=shares)


def test_items__a_collage_belongs_to_its_first_image() -> None:
    """A collage is a pair with the first image that it shows only, whatever the order of the pairs."""
    rows = np.arange(ROWS)
    expected = {(9, 2), (3, 1), (5, 9)}
    a, b, _ = collages().items(rows)
    assert set(zip(a.tolist(), b.tolist(), strict=True)) == expected
    a, b, _ = collages().take(np.array([True, False, True, True, True])).items(rows)
    assert set(zip(a.tolist(), b.tolist(), strict=True)) == {(9, 4), (3, 1), (5, 9)}


def test_items__crops_of_what_a_collage_shows() -> None:
    """A crop of an image in a collage is no copy of the collage; a crop of another image is one of that."""
    ends = np.array([(9, 4), (5, 9), (6, 4), (7, 9)], np.int64)
    reasons = ["shown on 50% of a larger image", "cropped to 20%", "cropped to 20%", "mirrored"]
    shares = np.array([0.5, 1, 1, 1], np.float32)
    pairs = CopyPairs.by_descriptor(ends[:, 0], ends[:, 1], np.full(4, 0.96, np.float32))
    pairs = replace(pairs, reasons=reasons, shares=shares)
    a, b, _ = pairs.items(np.arange(ROWS))
    assert set(zip(a.tolist(), b.tolist(), strict=True)) == {(9, 4), (6, 4), (7, 9)}


def test_shares_beside__of_members_of_one_group() -> None:
    """A share counts if both images are in one group; of several the largest does."""
    together = np.zeros(ROWS, np.int32)
    assert collages().shares_beside(together) == pytest.approx({9: 0.5, 3: 0.6})
    apart = together.copy()
    apart[[4, 1]] = 1
    assert collages().shares_beside(apart) == pytest.approx({9: 0.4, 3: 0.3})


def test_crops__of_members_of_one_group() -> None:
    """Rows that were cropped from another member of their group are known, whatever else was done to them."""
    reasons = ["cropped to 50%", "mirrored, cropped to 81%", "mirrored", None, "cropped to 9%"]
    pairs = CopyPairs.by_descriptor(np.array([1, 2, 3, 4, 5]), np.zeros(5, np.int64), np.ones(5, np.float32))
    pairs = replace(pairs, reasons=reasons)
    assert pairs.crops(np.array([0, 0, 0, 0, 0, 7])) == {1, 2}
    assert NO_PAIRS.crops(np.empty(0, np.int32)) == set()


def test_moved__does_not_change_the_pairs() -> None:
    """The pairs themselves stay as they are."""
    pairs = pairs_of(SOME)
    pairs.moved(np.full(6, -1))
    assert values_of(pairs) == SOME


def test_items__by_position() -> None:
    """Items are numbered by their rows; pairs with another row are left out."""
    a, b, similarity = pairs_of(SOME).items(np.array([1, 3, 4]))
    assert (a.tolist(), b.tolist()) == ([1, 2], [0, 1])
    assert similarity.tolist() == pytest.approx([0.96, 0.97])


def test_take__by_mask() -> None:
    """The selected pairs keep their reasons."""
    assert values_of(pairs_of(SOME).take(np.array([True, False, True]))) == [SOME[0], SOME[2]]
    assert values_of(pairs_of(SOME).take(np.zeros(3, dtype=bool))) == []


def test_joined__in_order() -> None:
    """The pairs of both come one after the other."""
    assert values_of(pairs_of(SOME[:1]).joined(pairs_of(SOME[1:]))) == SOME


def test_no_pairs__in_all_operations() -> None:
    """No pairs stay no pairs, of the right types."""
    none = np.empty(0, np.int64)
    assert values_of(NO_PAIRS.moved(np.array([1, 0]))) == []
    assert values_of(NO_PAIRS.moved(none)) == []
    assert values_of(NO_PAIRS.take(np.empty(0, dtype=bool))) == []
    assert values_of(NO_PAIRS.joined(NO_PAIRS)) == []
    assert values_of(NO_PAIRS.joined(pairs_of(SOME))) == values_of(pairs_of(SOME).joined(NO_PAIRS)) == SOME
    for positions in (none, np.array([2, 5])):
        assert [each.tolist() for each in NO_PAIRS.items(positions)] == [[], [], []]
    assert [each.tolist() for each in pairs_of(SOME).items(none)] == [[], [], []]


@given(PAIRS, st.permutations(range(ROWS)), st.lists(st.booleans(), min_size=ROWS, max_size=ROWS))
def test_moved__law(values: list[Pair], order: list[int], gone: list[bool]) -> None:
    """Rows that are deleted and sorted otherwise take exactly their pairs with them."""
    new_row = np.where(gone, -1, order).astype(np.int64)
    expected = [(order[a], order[b], *rest) for a, b, *rest in values if not gone[a] and not gone[b]]
    assert values_of(pairs_of(values).moved(new_row)) == expected


@given(PAIRS, st.sets(st.integers(0, ROWS - 1)))
def test_items__law(values: list[Pair], chosen: set[int]) -> None:
    """The items of pairs have the rows of the pairs."""
    positions = np.array(sorted(chosen), np.int64)
    a, b, similarity = pairs_of(values).items(positions)
    kept = [each for each in values if chosen >= set(each[:2])]
    assert list(zip(positions[a].tolist(), positions[b].tolist(), strict=True)) == [each[:2] for each in kept]
    np.testing.assert_allclose(similarity, [each[2] for each in kept], rtol=1e-6)


def test_raise_similarity__highest_of_all_pairs() -> None:
    """An item gets the highest similarity of its pairs, unless its own is higher; others keep theirs."""
    similarity = np.array([-1.0, 0.5, 0.99, 0.2], np.float32)
    pairs: Pairs = (np.array([0, 0, 2]), np.array([1, 2, 1]), np.array([0.97, 0.96, 0.98], np.float32))
    raise_similarity(similarity, pairs)
    np.testing.assert_array_equal(similarity, np.array([0.97, 0.98, 0.99, 0.2], np.float32))


@pytest.mark.parametrize("count", [0, 3])
def test_raise_similarity__no_pairs(count: int) -> None:
    """Without pairs, nothing changes."""
    similarity = np.full(count, 0.5, np.float32)
    raise_similarity(similarity, NO_PAIRS.items(np.arange(count)))
    assert similarity.tolist() == [0.5] * count


def test_read_descriptors__of_some_rows(tmp_path: Path) -> None:
    """The vectors of the rows that have one are read, with their places among the given rows."""
    schema = copy_schema(2, is_embedding=False)
    batch = pa.RecordBatch.from_pylist(
        [{COPY_DESCRIPTOR: None if row % 3 == 1 else [row, 1], PANEL_DESCRIPTORS: None} for row in range(7)], schema
    )
    table = Table(tmp_path / "media.lance", tables.append(tmp_path / "media.lance", [batch], schema))
    places, vectors = read_descriptors(table, np.array([1, 2, 4, 6]))
    assert (places.tolist(), vectors.tolist()) == ([1, 3], [[2, 1], [6, 1]])
    places, vectors = read_descriptors(table, np.empty(0, np.int64))
    assert (places.tolist(), vectors.shape) == ([], (0, 2))


@pytest.mark.parametrize("is_embedding", [False, True])
def test_copy_schema_of__a_media_table(*, is_embedding: bool) -> None:
    """The columns for finding copies are found among others; older tables have none."""
    schema = copy_schema(2, is_embedding=is_embedding)
    others = pa.schema([pa.field("media_id", pa.string())])
    assert copy_schema_of(pa.schema([*others, *schema])) == schema
    assert copy_schema_of(others) is None
