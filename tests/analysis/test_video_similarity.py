"""Similarity of videos."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.video_similarity import near_pairs, sample_frames, unique_pairs, video_similarity


def frames(seed: int, count: int) -> npt.NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, 30), st.data())
def test_similarity__laws(seed: int, count: int, other: int, data: st.DataObject) -> None:
    """Similarity is symmetric, in [-1, 1], as defined, and 1 for a part of a video in any order."""
    one, two = frames(seed, count), frames(seed + 100, other)
    found = video_similarity(one, two)
    if count != other:
        assert found == video_similarity(two, one)
    short, long = (one, two) if count <= other else (two, one)
    assert found == pytest.approx(np.mean([max(float(a @ b) for b in long) for a in short]), abs=1e-5)
    part = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True))
    assert video_similarity(one[part], one) == pytest.approx(1, abs=1e-5)


def test_similarity__of_more_frames_than_a_block() -> None:
    """The size of blocks does not change the similarity."""
    one, two = frames(1, 2100), frames(2, 4200)
    assert video_similarity(one, two) == pytest.approx(float((one @ two.T).max(axis=1).mean()), abs=1e-5)


@given(st.lists(st.integers(0, 40), max_size=10), st.integers(1, 8))
def test_sampled__law(counts: list[int], most: int) -> None:
    """The sample has at most the maximum of frames per video, with the first and the last if two are allowed."""
    places = sample_frames(np.array(counts, dtype=np.int64), most).tolist()
    assert places == sorted(set(places))
    start = 0
    for count in counts:
        of_one = [place - start for place in places if start <= place < start + count]
        assert len(of_one) == min(count, most)
        if count and most > 1:
            assert (of_one[0], of_one[-1]) == (0, count - 1)
        start += count


def test_pairs__of_neighbours() -> None:
    """Videos with similar frames are a pair, once, and no video is paired with itself."""
    one, two = frames(1, 4), frames(2, 4)
    vectors = np.concatenate([one, two, one])
    pairs = near_pairs(vectors, np.repeat([0, 1, 2], 4), min_similarity=0.999)
    assert pairs.tolist() == [[0, 2]]
    assert near_pairs(one[:1], np.zeros(1, dtype=np.int64), min_similarity=0.5).tolist() == []
    assert unique_pairs(np.array([3, 1, 2]), np.array([1, 3, 2])).tolist() == [[1, 3]]
