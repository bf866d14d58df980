"""The index finds and ranks as the plain evaluator does."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.fulltext.query import parse_query
from framedex.fulltext.ranking import search
from framedex.fulltext.segment import merge_segments
from tests.fulltext.strategies import Row, queries, row_texts, rows, segment_of, texts_of
from tests.laws import examples
from tests.oracles import full_text


@pytest.mark.slow
@examples(300)
@given(
    rows, st.lists(queries, min_size=1, max_size=4), st.integers(1, 3), st.sampled_from(["english", "greek", "none"])
)
def test_search__agrees_with_plain_python(content: list[Row], asked: list[str], parts: int, language: str) -> None:
    """Whatever rows there are, in however many segments, all rows that match are found, with their scores."""
    texts = texts_of(content)
    segments = [segment_of(texts[part::parts], language) for part in range(parts)]
    index = row_texts(content, segments)
    merged = row_texts(content, [merge_segments(segments, index.used())])
    for query in asked:
        expected = full_text.scores(query, content, language)
        assert [score is not None for score in expected] == [full_text.matches(query, row, language) for row in content]
        for each in (index, merged):
            hits = search(parse_query(query, language), each)
            assert hits.rows.tolist() == [place for place, score in enumerate(expected) if score is not None], query
            assert hits.scores.tolist() == pytest.approx([score for score in expected if score is not None])


def caption(text: str) -> Row:
    return {"caption": text, "labels": None, "file_name": ""}


def ranked(query: str, content: list[Row]) -> list[int]:
    hits = search(parse_query(query, "english"), row_texts(content, [segment_of(texts_of(content))]))
    return [int(hits.rows[place]) for place in np.argsort(-hits.scores, kind="stable")]


def test_search__ranks_by_rarity_frequency_and_length() -> None:
    """Rarer words count more, more occurrences more, and those in short texts more."""
    content = [
        caption(text) for text in ("dog cat", "dog cat dog", "dog on the grass with a ball and a stick", "owl cat")
    ]
    assert ranked("dog", content) == [1, 0, 2]
    assert ranked("dog owl", content)[0] == 3
    assert ranked("cat dog", content)[0] == 1


def test_search__stop_words_only_rank() -> None:
    """Beside other words, a word such as "under" finds nothing by itself but puts what has it first; alone it finds."""
    content = [caption(text) for text in ("dog on table", "dog under table", "cat under table")]
    assert ranked("dog under", content) == [1, 0]
    assert ranked("under", content) == [1, 2]


def test_search__captions_count_more_than_file_names() -> None:
    """What a caption says counts more than what a file is called."""
    content = [
        {"caption": "x", "labels": None, "file_name": "dog"},
        {"caption": "dog", "labels": None, "file_name": "x"},
    ]
    assert ranked("dog", content) == [1, 0]


def test_search__the_formula_by_hand() -> None:
    """One row of two with a word once in a caption of mean length: ln(1 + 1.5 / 1.5) / (1.2 + 1)."""
    content = [caption("dog"), caption("cat")]
    hits = search(parse_query("dog", "english"), row_texts(content, [segment_of(texts_of(content))]))
    assert hits.scores.tolist() == pytest.approx([math.log(2) / 2.2])


def test_search__of_nothing() -> None:
    """No rows, no segments and no words are no error."""
    assert len(search(parse_query("dog -cat", "english"), row_texts([], [])).rows) == 0
    content = [caption("dog")]
    assert len(search(parse_query("...", "english"), row_texts(content, [segment_of(texts_of(content))])).rows) == 0
    bare = [caption(""), caption("...")]
    assert search(parse_query("-dog", "english"), row_texts(bare, [segment_of(texts_of(bare))])).rows.tolist() == [0, 1]
