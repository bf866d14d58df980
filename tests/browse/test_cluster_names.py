"""Names of clusters: labels with their shares, else words that are frequent in the cluster and rare elsewhere."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, Workspace, vql
from framedex.browse.cluster_names import _log_likelihood, _stem_of_file, _usable
from tests.analysis.arrays import unit
from tests.growth import part
from tests.laws import examples
from tests.prepared import prepared

CROWD = 20


def crowds(sizes: Sequence[int]) -> Any:
    """Return rows of tight crowds that are far from one another, crowd after crowd."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(8)[: len(sizes)], sizes, axis=0)
    return unit(centres + 0.01 * rng.normal(size=centres.shape))


def dataset_of(workspace: Workspace, sizes: Sequence[int], **columns: Any) -> Dataset:
    table = part(crowds(sizes), **columns)
    if "names" in columns:
        table = table.drop_columns(["uri"]).rename_columns({"names": "uri"})
    return prepared(workspace, "d", table)


def names_of(dataset: Dataset, **options: Any) -> dict[int, str | None]:
    """Return the names of the clusters of a coarse level, by size."""
    return {cluster.n_images: cluster.name for cluster in dataset.explore(level=3, **options).clusters}


@pytest.mark.slow
def test_name__labels_with_their_shares(workspace: Workspace) -> None:
    """The name has the labels that at least a tenth of the members have, most frequent first, with shares."""
    labels = ["cat"] * 18 + ["dog"] * 2 + ["sun, sea"] * 9 + [None] * 2 + ["moon"]
    dataset = dataset_of(workspace, [20, 12], label=labels)
    assert names_of(dataset) == {20: "cat 90 %, dog 10 %", 12: "sun, sea 75 %"}


@pytest.mark.slow
def test_name__words_of_captions_and_file_names(workspace: Workspace) -> None:
    """Without labels, words that set a cluster apart name it; common words, stop words and numbers do not."""
    names = [f"IMG_{row:04}_beach.jpg" for row in range(20)]
    names += [f"9f86d081884c7d65{row:02}.jpg" for row in range(15)]
    names += [f"mountain{row}-20240{row}17.jpg" for row in range(10)]
    captions = ["a photo of the day"] * 20 + ["two dogs and a dog at day"] * 15 + [None] * 10
    dataset = dataset_of(workspace, [20, 15, 10], names=names, caption=captions)
    assert names_of(dataset) == {20: "beach", 15: "dog, two", 10: "mountain"}
    assert names_of(dataset) == names_of(dataset)


@pytest.mark.slow
def test_name__words_with_one_stem_count_as_one(workspace: Workspace) -> None:
    """Singular and plural together can be frequent enough; the more frequent form is shown."""
    captions = [f"{word} here" for word in ["mountains"] * 3 + ["mountain"] * 2 + ["valley"] * 2 + ["hut", "lake"]]
    dataset = dataset_of(workspace, [9, 30], caption=captions + ["street here"] * 30)
    assert names_of(dataset) == {30: "street", 9: "mountains"}


@pytest.mark.slow
def test_name__nothing_sets_apart(workspace: Workspace) -> None:
    """Clusters whose words are everywhere, or on one member only, have no name."""
    names = [f"{'abcdefghij'[row % 10] * 4}/scan_{row}.png" for row in range(30)]
    assert set(names_of(dataset_of(workspace, [18, 11, 1], names=names)).values()) == {None}


@pytest.mark.slow
def test_name__follows_edits_and_filters(workspace: Workspace) -> None:
    """A name is that of the media that the page shows, now."""
    names = [f"{'beach' if row < 20 else 'forest'}_{row}.jpg" for row in range(30)]
    dataset = dataset_of(workspace, [20, 10], names=names)
    ids = dataset.where([]).media_ids()
    assert names_of(dataset) == {20: "beach", 10: "forest"}
    dataset.set_captions(dict.fromkeys(ids[:20], "waves"))
    assert names_of(dataset) == {20: "beach, waves", 10: "forest"}
    dataset.set_labels(ids[:5], "sea")
    assert names_of(dataset) == {20: "sea 25 %", 10: "forest"}
    assert names_of(dataset, vql=vql.labels("sea")) == {5: "sea 100 %"}


@pytest.mark.slow
def test_name__is_shown(workspace: Workspace, tmp_path: Any) -> None:
    """The report and notebooks show names."""
    names = [f"{'beach' if row < 20 else 'forest'}_{row}.jpg" for row in range(30)]
    dataset = dataset_of(workspace, [20, 10], names=names)
    assert "20 images · beach" in dataset.report(tmp_path / "report.html").read_text()
    assert "10 images · forest" in dataset.explore(level=3)._repr_html_()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("beach", "beach"),
        ("beach12", "beach"),
        ("2024", None),
        ("3b52", None),
        ("ab", None),
        ("ab12", None),
        ("9f86d081", None),
        ("größe", "größe"),
        ("猫", "猫"),
    ],
)
def test_usable__words(word: str, expected: str | None) -> None:
    """Numbers, hashes and short words name nothing."""
    assert _usable(word) == expected


def test_stem_of_file__without_folder_and_ending() -> None:
    """The stem is the last part of a path without its ending; hidden files keep their name."""
    paths = ["a/b.c/d.e.jpg", "x", "s3://bucket/key.png", "folder/.hidden"]
    assert [_stem_of_file(path) for path in paths] == ["d.e", "x", "key", ".hidden"]


COUNTS = st.tuples(st.integers(1, 50), st.integers(1, 5000))


@examples(200)
@given(COUNTS, st.floats(0, 1), st.floats(0, 1))
def test_log_likelihood__is_the_ratio_of_binomial_likelihoods(
    sizes: tuple[int, int], share: float, other_share: float
) -> None:
    """The score is twice the difference of log-likelihoods of two rates and of a common one, for higher rates only."""
    members, others = sizes
    count, other = round(share * members), round(other_share * others)

    def likelihood(k: int, n: int, p: float) -> float:
        return float(sum(times * np.log(chance) for times, chance in ((k, p), (n - k, 1 - p)) if times))

    common = (count + other) / (members + others)
    expected = 2 * (
        likelihood(count, members, count / members)
        + likelihood(other, others, other / others)
        - likelihood(count, members, common)
        - likelihood(other, others, common)
    )
    score = _log_likelihood(count, members, other, others)
    if count / members > other / others:
        assert score == pytest.approx(expected, abs=1e-6)
    else:
        assert score == 0
