"""Segments hold what was put into them, however they are cut and merged."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.fulltext.segment import Keys, Segment, build_segment, concat_ranges, merge_segments
from framedex.fulltext.tokenizer import GAP, TextField, fold, stems_of, words_in
from tests.fulltext.strategies import keys_of, segment_of, texts
from tests.laws import examples

Text = tuple[TextField, str]
some_texts = st.lists(st.tuples(st.sampled_from(list(TextField)), texts), max_size=10, unique=True)


def check(segment: Segment, content: Sequence[Text]) -> None:
    """Compare a segment with the texts that it should hold, in their order."""
    assert len(segment) == len(content)
    assert segment.find(keys_of(content)).tolist() == list(range(len(content)))
    assert segment.field.tolist() == [field for field, _ in content]
    expected = {
        (number, place): word
        for number, (_, text) in enumerate(content)
        for place, word in enumerate(words_in(text, "english"))
        if word != GAP
    }
    lengths = Counter(number for number, _ in expected)
    assert segment.length.tolist() == [lengths[number] for number in range(len(content))]
    words = segment.word.to_pylist()
    assert sorted(words) == sorted(set(expected.values()))
    assert words == sorted(words, key=lambda word: (fold(word), word))
    for number, word in enumerate(words):
        found = segment.occurrences([number])
        assert found.tolist() == sorted(text << 32 | place for (text, place), each in expected.items() if each == word)
        assert segment.count([number]) == len(found)
        stem = stems_of([word], "english")[0]
        same = [place for place, each in enumerate(stems_of(words, "english")) if each == stem]
        assert segment.words_with_stem(stem) == same
        assert segment.occurrences(same).tolist() == sorted(x for each in same for x in segment.occurrences([each]))
        for size in range(len(fold(word)) + 1):
            prefix = fold(word)[:size]
            chosen = [place for place, each in enumerate(words) if fold(each).startswith(prefix)]
            assert list(segment.words_with_prefix(prefix)) == chosen
            assert segment.count(segment.words_with_prefix(prefix)) == sum(segment.count([each]) for each in chosen)
    assert segment.words_with_stem("nothing") == []
    assert list(segment.words_with_prefix("\U0010ffff")) == []


@pytest.mark.slow
@examples(150)
@given(some_texts)
def test_build__holds_all_words(content: list[Text]) -> None:
    """Each word of each text is found where it is, by itself, by its stem and by its beginnings."""
    check(segment_of(content), content)


@pytest.mark.slow
@examples(150)
@given(some_texts, st.lists(st.booleans(), min_size=10, max_size=10), st.integers(1, 4))
def test_merge__is_a_segment_of_what_is_kept(content: list[Text], keep: list[bool], count: int) -> None:
    """Merged segments are as if the texts that stay had been put into one."""
    parts = [content[part::count] for part in range(count)]
    kept = [keep[part::count][: len(content[part::count])] for part in range(count)]
    merged = merge_segments([segment_of(part) for part in parts], [np.array(each, dtype=np.bool_) for each in kept])
    check(
        merged,
        [text for part, each in zip(parts, kept, strict=True) for text, stays in zip(part, each, strict=True) if stays],
    )


def test_find__keys_of_which_halves_are_equal() -> None:
    """Both halves of a key count, however many texts share one of them."""
    low = np.array([5, 5, 5, 9, 9, 2], dtype=np.uint64)
    high = np.array([3, 1, 2, 1, 3, 2**64 - 1], dtype=np.uint64)
    texts = pa.array(["a", "b", "c", "d", "e", "f"])
    segment = build_segment(texts, np.zeros(6, dtype=np.uint8), Keys(low, high), "none")
    asked = Keys(
        np.array([2, 5, 5, 5, 5, 9, 9, 9, 11], dtype=np.uint64),
        np.array([2**64 - 1, 1, 2, 3, 4, 3, 1, 0, 1], dtype=np.uint64),
    )
    assert segment.find(asked).tolist() == [5, 1, 2, 0, -1, 4, 3, -1, -1]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=10))
def test_ramps__one_after_the_other(pairs: list[tuple[int, int]]) -> None:
    """Numbers count up from each first one."""
    first, counts = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    assert concat_ranges(first, counts).tolist() == [start + step for start, count in pairs for step in range(count)]
