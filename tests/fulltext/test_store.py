"""A folder of segments: what is added is found, by others too, and small segments do not pile up."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.fulltext.segment import Keys
from framedex.fulltext.store import SegmentStore, find_texts
from framedex.fulltext.tokenizer import TextField
from tests.fulltext.strategies import keys_of, segment_of
from tests.laws import examples

Text = tuple[TextField, str]


def captions(first: int, count: int) -> list[Text]:
    return [(TextField.CAPTION, f"text {number}") for number in range(first, first + count)]


def texts_at(store: SegmentStore, texts: list[Text]) -> list[int]:
    return [int(number) for number in find_texts(store.segments(), keys_of(texts))]


def used(store: SegmentStore, texts: list[Text]) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return which texts of the segments are among some, each in the first segment that has it."""
    numbers = find_texts(store.segments(), keys_of(texts))
    ends = np.cumsum([len(segment) for segment in store.segments()])
    mask = np.zeros(int(ends[-1]), dtype=np.bool_)
    mask[numbers[numbers >= 0]] = True
    return [np.asarray(part) for part in np.split(mask, ends[:-1])]


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12), st.booleans())
def test_store__any_sequence(
    tmp_path_factory: pytest.TempPathFactory, additions: list[tuple[int, int]], keep: bool
) -> None:
    """Whatever is added, and however often: all texts in use are found, before and after merges; segments stay few."""
    folder = tmp_path_factory.mktemp("texts")
    store = SegmentStore(folder, "none", keep=keep)
    known: list[Text] = []
    for first, count in additions:
        added = captions(first, count)
        store.add(segment_of(added, "none"))
        known = list(dict.fromkeys(known + added))
        before = texts_at(store, known)
        assert min(before, default=0) >= 0
        if known:
            number = store.merge_some(used(store, known))
            after = texts_at(store, known)
            if number is not None:
                assert [int(number[each]) for each in before] == after
            assert len(set(after)) == len(known)
        assert len(store.segments()) <= 8
        assert texts_at(store, captions(100, 1)) == [-1]
    if keep:
        other = SegmentStore(folder, "none", keep=False)
        other.refresh()
        assert min(texts_at(other, known), default=0) >= 0
        assert sum(map(len, other.segments())) == sum(map(len, store.segments()))
        assert len(list(folder.iterdir())) == len(store.segments())
    else:
        assert list(folder.iterdir()) == []


def test_store__forgets_what_is_not_used(tmp_path: Path) -> None:
    """Texts that no row has any more are left out by a merge."""
    store = SegmentStore(tmp_path, "english", keep=True)
    for first in range(4):
        store.add(segment_of(captions(first, 1)))
    assert store.merge_some(used(store, captions(1, 2))) is not None
    assert [len(segment) for segment in store.segments()] == [2]
    assert texts_at(store, captions(0, 4))[0] == texts_at(store, captions(3, 1))[0] == -1


def test_store__merges_that_change_nothing(tmp_path: Path) -> None:
    """Another process may have merged already: then the same comes out again, and must stay."""
    mine, other = (SegmentStore(tmp_path, "english", keep=True) for _ in range(2))
    for first in range(4):
        mine.add(segment_of(captions(first, 1)))
    other.refresh()
    assert mine.merge_some(used(mine, captions(0, 4))) is not None
    for store in (mine, other):
        for first in range(4):
            store.add(segment_of(captions(first, 1)))
    mine.refresh()
    other.refresh()
    for store in (other, mine):
        assert store.merge_some(used(store, captions(0, 4))) is not None
        assert sorted(texts_at(store, captions(0, 4))) == [0, 1, 2, 3]


def test_store__large_segments_stay(tmp_path: Path) -> None:
    """A few small segments are no reason to write a large one again."""
    store = SegmentStore(tmp_path, "english", keep=True)
    store.add(segment_of(captions(0, 100)))
    large = store.segments()[0]
    for first in range(4):
        store.add(segment_of(captions(200 + first, 1)))
    assert store.merge_some([np.ones(len(segment), dtype=np.bool_) for segment in store.segments()]) is not None
    assert [len(segment) for segment in store.segments()] == [100, 4]
    assert store.segments()[0] is large


def test_refresh__finds_what_others_wrote_and_leaves_the_damaged(tmp_path: Path) -> None:
    """Segments of others are used, damaged ones go, and foreign files do no harm."""
    mine, other = (SegmentStore(tmp_path, "english", keep=True) for _ in range(2))
    other.add(segment_of(captions(0, 3)))
    other.add(segment_of(captions(5, 2)))
    small = next(path for path in tmp_path.iterdir() if len(path.read_bytes()) > 0)
    small.write_bytes(small.read_bytes()[:-1])
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f"{'0' * 32}.text").write_text("no segment")
    mine.refresh()
    assert len(mine.segments()) == 1
    assert {path.suffix for path in tmp_path.iterdir()} == {".text", ".txt"}
    assert len(list(tmp_path.glob("*.text"))) == 1


def test_add__where_nothing_can_be_written(tmp_path: Path) -> None:
    """A cache that cannot be written is in memory only."""
    (tmp_path / "file").write_text("")
    store = SegmentStore(tmp_path / "file" / "texts", "english", keep=True)
    store.refresh()
    store.add(segment_of(captions(0, 2)))
    assert texts_at(store, captions(0, 2)) == [0, 1]


def test_find_texts__of_nothing() -> None:
    """No segments have no texts, and no keys find none."""
    assert find_texts([], keys_of(captions(0, 2))).tolist() == [-1, -1]
    assert len(find_texts([segment_of(captions(0, 2))], Keys(np.empty(0, np.uint64), np.empty(0, np.uint64)))) == 0
