"""Rankings: order, fusion, and diversity."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.search.ranking import BM25, COSINE_DISTANCE, FUSED, Ranking, diversified, fuse, ranked

ROWS = st.lists(st.integers(0, 30), unique=True, max_size=20)


def of(rows: list[int], kind: str = BM25) -> Ranking:
    """Return a ranking of rows in their order."""
    count = len(rows)
    score = np.arange(count, 0, -1, dtype=np.float32)
    return Ranking(np.array(rows, np.uint64), score, kind, score.astype(np.float32))


def test_ranked__order() -> None:
    """Distances rank the lowest first, scores the highest; ties are in row order."""
    rows, score = np.array([7, 3, 5, 1], np.uint64), np.array([0.5, 0.2, 0.5, 0.9], np.float32)
    assert ranked(rows, score, COSINE_DISTANCE, score).row_ids.tolist() == [3, 5, 7, 1]
    assert ranked(rows, score, BM25, score).row_ids.tolist() == [1, 5, 7, 3]


@given(rankings=st.lists(ROWS, max_size=4))
def test_fuse__law(rankings: list[list[int]]) -> None:
    """The fused score is the sum of 1 / (60 + rank from 1), over the rankings that contain the row."""
    wanted: dict[int, float] = {}
    for rows in rankings:
        for place, row in enumerate(rows, 1):
            wanted[row] = wanted.get(row, 0.0) + 1 / (60 + place)
    found = fuse([of(rows) for rows in rankings])
    assert found.kind == FUSED
    assert dict(zip(found.row_ids.tolist(), found.score.tolist(), strict=True)) == pytest.approx(wanted, rel=1e-5)
    assert (np.diff(found.score) <= 0).all()


def test_first() -> None:
    """The first rows of a ranking: some, all, and none."""
    assert of([4, 2, 9]).first(2).row_ids.tolist() == [4, 2]
    assert of([4, 2, 9]).first(None).row_ids.tolist() == [4, 2, 9]
    assert len(of([]).first(3)) == 0
    assert of([4, 2, 9]).table().to_pydict() == {"_rowid": [4, 2, 9], "score": [3.0, 2.0, 1.0]}


def test_diversified__variety() -> None:
    """With diversity, copies of earlier rows come last; without it, the order is by relevance."""
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    relevance = np.array([0.9, 0.8, 0.7, 0.6])
    assert diversified(relevance, vectors, 4, 0.0).tolist() == [0, 1, 2, 3]
    assert diversified(relevance, vectors, 4, 0.5).tolist() == [0, 3, 1, 2]
    assert diversified(relevance, vectors, 2, 1.0).tolist() == [0, 3]


@given(seed=st.integers(0, 100), rows=st.integers(0, 30), count=st.integers(0, 40), diversity=st.floats(0, 1))
def test_diversified__each_once(seed: int, rows: int, count: int, diversity: float) -> None:
    """Each position occurs once, the most relevant first."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((rows, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = random.random(rows)
    found = diversified(relevance, vectors, count, diversity)
    assert len(found) == len(set(found.tolist())) == min(rows, count)
    if len(found) and diversity < 1:
        assert found[0] == np.argmax(relevance)


@given(scores=st.lists(st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, -2.5]), max_size=40), seed=st.integers(0, 9))
def test_ranked__of_equal_ones_the_first_row_comes_first(scores: list[float], seed: int) -> None:
    ascending = np.arange(len(scores), dtype=np.uint64)
    score = np.array(scores, np.float32)
    for rows in (ascending, np.random.default_rng(seed).permutation(ascending)):
        found = ranked(rows, score, COSINE_DISTANCE, score)
        pairs = sorted(zip(scores, rows.tolist(), strict=True))
        assert list(zip(found.score.tolist(), found.row_ids.tolist(), strict=True)) == pairs
        best = ranked(rows, score, BM25, score)
        pairs = sorted(zip((-score).tolist(), rows.tolist(), strict=True))
        assert list(zip((-best.score).tolist(), best.row_ids.tolist(), strict=True)) == pairs


def test_relevance__is_made_of_the_scores_that_are_left() -> None:
    asked: list[int] = []

    def measured(score: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        asked.append(len(score))
        return 1 - score

    rows, score = np.array([1, 2, 3], np.uint64), np.array([0.5, 0.25, 0.75], np.float32)
    best = ranked(rows, score, COSINE_DISTANCE, measured).first(2)
    assert best.relevance.tolist() == [0.75, 0.5]
    assert asked == [2]
