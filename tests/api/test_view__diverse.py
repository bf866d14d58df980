"""Views of a few rows that cover a view: what is chosen, what it covers, and what stays when the dataset changes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, DiverseView, InvalidInput, Workspace, vql
from tests.growth import THRESHOLDS, families, ids_of, part
from tests.objects import scenes
from tests.prepared import prepared

ROWS = families(60)


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of some families of vectors, and two rows without one."""
    return prepared(workspace, "pets", part([*ROWS, None, None]), thresholds=THRESHOLDS)


def closest(dataset: Dataset, chosen: DiverseView) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar chosen row of each row, and the similarity, by plain arithmetic."""
    ids, vectors = dataset.embeddings()
    place = {each: number for number, each in enumerate(ids)}
    similarity = vectors @ vectors[[place[each] for each in chosen.ids]].T
    return similarity.argmax(axis=1), similarity.max(axis=1)


@pytest.mark.slow
def test_diverse__covers_the_view(dataset: Dataset) -> None:
    """The rows are some of the view; what each covers, and how well, is that of all pairs."""
    chosen = dataset.view.diverse(8)
    assert isinstance(chosen, DiverseView)
    assert len(set(chosen.ids)) == len(chosen) == 8
    assert (chosen.n_covered, chosen.n_without_embedding) == (60, 2)
    by, similarity = closest(dataset, chosen)
    assert chosen.mean_similarity == pytest.approx(similarity.mean(), abs=1e-5)
    table = chosen.coverage()
    assert table.column_names == ["media_id", "n_covered", "mean_similarity", "lowest_similarity"]
    assert table["media_id"].to_pylist() == list(chosen.ids)
    assert table["n_covered"].to_pylist() == np.bincount(by, minlength=8).tolist()
    for number in range(8):
        own = similarity[by == number]
        assert table["mean_similarity"][number].as_py() == pytest.approx(own.mean(), abs=1e-5)
        assert table["lowest_similarity"][number].as_py() == pytest.approx(own.min(), abs=1e-5)
    assert chosen.share_covered(-1) == 1
    assert chosen.share_covered(0.9) == pytest.approx((similarity >= 0.9).mean(), abs=1 / 60)
    worst = chosen.least_covered(3)
    ids, _ = dataset.embeddings()
    assert set(worst.ids) <= {ids[each] for each in np.argsort(similarity)[:6]}
    assert len(worst) == 3


def test_diverse__of_a_part(dataset: Dataset) -> None:
    """Only rows of the view are chosen and covered; more than there are gives all with an embedding."""
    some = dataset.view.limit(20)
    chosen = some.diverse(5)
    assert set(chosen.ids) <= set(some.ids)
    assert chosen.n_covered == 20
    every = some.diverse(100)
    assert set(every.ids) == set(some.ids)
    assert every.mean_similarity == pytest.approx(1, abs=1e-5)
    assert dataset.view.diverse(10_000).n_without_embedding == 2
    assert len(dataset.view.diverse(10_000)) == 60


def test_diverse__is_a_view(dataset: Dataset) -> None:
    """The rows can be filtered, limited and tagged as any others, and the first ones are a choice of that size."""
    chosen = dataset.view.diverse(6)
    assert list(chosen.limit(2).ids) == list(chosen.ids)[:2]
    assert not isinstance(chosen.limit(2), DiverseView)
    chosen.tag("label first")
    assert set(dataset.where(vql.tags("label first")).ids) == set(chosen.ids)
    assert len(chosen.where(vql.tags("label first"))) == 6
    assert repr(chosen) == "<framedex.DiverseView of dataset 'pets': 6 media>"


def test_diverse__nothing(dataset: Dataset) -> None:
    """None are chosen of no rows, and of rows without an embedding, without an error."""
    for chosen in (dataset.view.diverse(0), dataset.view.limit(0).diverse(5), dataset.view[60:].diverse(3)):
        assert list(chosen.ids) == []
        assert (chosen.coverage().num_rows, chosen.share_covered(0.5)) == (0, 0.0)
        assert np.isnan(chosen.mean_similarity)
        assert list(chosen.least_covered().ids) == []


def test_diverse__seed(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed chooses the same rows; of a sample the others are covered, too."""
    assert list(dataset.view.diverse(5).ids) == list(dataset.view.diverse(5).ids)
    monkeypatch.setattr("framedex.browse.diverse_rows.sample_size", lambda count: 15)
    first, second = dataset.view.diverse(5, seed=1), dataset.view.diverse(5, seed=2)
    assert set(first.ids) != set(second.ids)
    assert first.n_covered == second.n_covered == 60


@pytest.mark.slow
def test_diverse__sample_with_few_embeddings(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sample has too few rows with an embedding, all are read."""
    monkeypatch.setattr("framedex.browse.diverse_rows.sample_size", lambda count: 5)
    dataset = workspace.create_dataset("pets", part([*ROWS[:10], *[None] * 40]), thresholds=THRESHOLDS)
    assert len(dataset.view.diverse(8)) == 8


@pytest.mark.slow
def test_diverse__stays_while_the_dataset_changes(dataset: Dataset) -> None:
    """A deleted row leaves the choice; its coverage stays that of the time when it was chosen."""
    chosen = dataset.view.diverse(5)
    before = chosen.coverage()
    dataset.delete_media([chosen.ids[0]])
    assert list(chosen.ids) == before["media_id"].to_pylist()[1:]
    assert chosen.coverage() == before


@pytest.mark.slow
def test_diverse__of_objects(workspace: Workspace, tmp_path: Path) -> None:
    """Objects are chosen from by their crops."""
    scenes(tmp_path / "scenes")
    dataset = workspace.create_dataset("scenes", tmp_path / "scenes")
    chosen = dataset.objects.diverse(3)
    assert len(chosen) == 3
    assert set(chosen.ids) <= set(dataset.objects.ids)
    assert chosen.n_covered + chosen.n_without_embedding == len(dataset.objects)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seed"), [(-1, 0), (1.5, 0), (True, 0), (10_001, 0), ("5", 0), (5, -1), (5, 0.5)])
def test_diverse__bad_numbers(dataset: Dataset, n: Any, seed: Any) -> None:
    """Numbers are integers within their limits."""
    with pytest.raises(InvalidInput, match=r"^(n|seed) must be"):
        dataset.view.diverse(n, seed=seed)


@pytest.mark.parametrize("similarity", [1.5, "0.5", None, float("nan")])
def test_share_covered__bad_similarity(dataset: Dataset, similarity: Any) -> None:
    """A similarity is a number from -1 to 1."""
    with pytest.raises(InvalidInput, match="similarity must be a number from -1 to 1, not"):
        dataset.view.diverse(2).share_covered(similarity)


def test_diverse__ids_of_the_dataset(dataset: Dataset) -> None:
    """Ids are those of the dataset's media."""
    assert set(dataset.view.diverse(3).ids) <= set(ids_of(dataset).values())
    assert pa.types.is_string(dataset.view.diverse(3).coverage()["media_id"].type)
