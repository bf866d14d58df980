"""Added rows get the results of an index of all rows, except for scales, limits and existing clusters."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, Workspace
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.analysis.arrays import same_partition
from tests.gallery import SETTINGS
from tests.growth import GROUPS, THRESHOLDS, columns_of, families, groups_of, grown, part, partition, summary_of
from tests.laws import examples, rest_slow


def axis(place: int, dimension: int = 8) -> list[float]:
    """Return a direction that is orthogonal to those of other places."""
    return [float(number == place) for number in range(dimension)]


def tilted(place: int, towards: int, distance: float) -> list[float]:
    """Return a direction at a cosine distance from one of the axes."""
    cosine = 1 - distance
    return list(cosine * np.eye(8)[place] + np.sqrt(1 - cosine**2) * np.eye(8)[towards])


def test_partial_index__joins_clusters_at_the_levels_of_its_distance(workspace: Workspace) -> None:
    """Copies join at all levels, others from the level on that their distance allows; far ones are on their own."""
    dataset = workspace.create_dataset("d", part([axis(0), axis(0), axis(1), axis(2)]), thresholds=THRESHOLDS)
    known = columns_of(dataset, CLUSTERS)
    added = [axis(0), tilted(0, 5, 0.005), tilted(1, 5, 0.02), tilted(2, 6, 0.2), axis(7), axis(7)]
    dataset.add_media(part(added, 4))
    found = columns_of(dataset, CLUSTERS)
    for level, name in enumerate(CLUSTERS):
        assert found[name][:4] == known[name]
        for row, host, since in ((4, 0, 0), (5, 0, 0), (6, 2, 1), (7, 3, 3)):
            assert (found[name][row] == known[name][host]) == (level >= since)
            assert (found[name][row] in known[name]) == (level >= since)
        assert found[name][8] == found[name][9]
        assert found[name][8] not in known[name]


@pytest.mark.slow
def test_partial_index__groups_of_duplicates(workspace: Workspace) -> None:
    """Copies and near-duplicates join the groups that are there, which keep their ids, or make new ones."""
    first = [axis(0), axis(0), axis(1), axis(2), axis(3), axis(3), axis(3)]
    dataset = workspace.create_dataset("d", part(first))
    before = groups_of(dataset)
    dataset.add_media(part([axis(0), tilted(1, 6, 0.02), axis(7), axis(7)], 7))
    after = groups_of(dataset)
    assert {frozenset(group) for group in after.values()} == {
        frozenset({"0.jpg", "1.jpg", "7.jpg"}),
        frozenset({"2.jpg", "8.jpg"}),
        frozenset({"4.jpg", "5.jpg", "6.jpg"}),
        frozenset({"9.jpg", "10.jpg"}),
    }
    for identifier, members in before.items():
        assert members <= after[identifier]
    assert {frozenset(group) for group in groups_of(dataset, 1.0).values()} == {
        frozenset({"0.jpg", "1.jpg", "7.jpg"}), frozenset({"4.jpg", "5.jpg", "6.jpg"}), frozenset({"9.jpg", "10.jpg"}),
    }  # fmt: skip
    issues = dataset.issues("duplicates")
    assert set(issues["path"].to_pylist()) == set().union(*after.values())


@pytest.mark.slow
def test_partial_index__a_bridge_joins_groups(workspace: Workspace) -> None:
    """An image between two groups makes them one, which has the id of the larger."""
    middle = np.array(axis(0))
    left, right = (0.985 * middle + sign * 0.1725 * np.array(axis(1)) for sign in (-1, 1))
    dataset = workspace.create_dataset("d", part([left, left, left, right, right]))
    before = {len(members): identifier for identifier, members in groups_of(dataset).items()}
    assert set(before) == {2, 3}
    dataset.add_media(part([middle], 5))
    assert groups_of(dataset) == {before[3]: {f"{number}.jpg" for number in range(6)}}


def assert_sound_parts(dataset: Dataset, whole: Dataset, rows: list[Any], first: list[int]) -> None:
    """Check what a partial index promises, against an index of all rows; *first* are clusters before, by row."""
    found, expected = columns_of(dataset), columns_of(whole)
    assert found[CLUSTERS[0]][: len(first)] == first
    for fine, coarse in pairwise(CLUSTERS):
        assert len(set(zip(found[fine], found[coarse], strict=True))) == len(set(found[fine]))
    for name in CLUSTERS:
        assert [number == 0 for number in found[name]] == [row is None for row in rows]
    for name in DUPLICATES:
        assert same_partition(partition(found[name]), partition(expected[name])), name
    for name in ("duplicate_similarity", "uniqueness"):
        values = columns_of(dataset, [name])[name]
        assert [value is None for value in values] == [row is None for row in rows]


SIZES = [(1, 1), (1, 30), (2, 40), (21, 30), (10, 100), (3, 3, 3), (21, 5), (22, 1, 30), (40, 2, 1)]
"""Images of a dataset when it was made, and of each addition."""


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("sizes", rest_slow(SIZES, 3, long=5))
def test_partial_index__agrees_with_an_index_of_all(workspace: Workspace, sizes: tuple[int, ...]) -> None:
    """Groups of duplicates and distances are those of an index of all rows; only the scale and limits are older."""
    rows = list(families(sum(sizes), seed=sum(sizes)))
    dataset, whole = grown(workspace, rows, *sizes), grown(workspace, rows, len(rows), name="whole")
    start = workspace.create_dataset("start", part(rows[: sizes[0]]), thresholds=THRESHOLDS)
    assert_sound_parts(dataset, whole, rows, columns_of(start)[CLUSTERS[0]])
    names = ["duplicate_similarity", "uniqueness", "outlier_distance"]
    found, expected = columns_of(dataset, names), columns_of(whole, names)
    np.testing.assert_allclose(found["duplicate_similarity"], expected["duplicate_similarity"], atol=2e-6)
    if len(rows) >= 10:  # with fewer rows an index of all measures none
        np.testing.assert_allclose(found["outlier_distance"], expected["outlier_distance"], atol=2e-6)
    raw, wanted = (
        np.array(columns["uniqueness"]) * summary_of(each)["uniqueness_scale"]
        for columns, each in ((found, dataset), (expected, whole))
    )
    inside = (np.array(found["uniqueness"]) < 1) & (np.array(expected["uniqueness"]) < 1)
    np.testing.assert_allclose(raw[inside], wanted[inside], atol=3e-6)


@pytest.mark.slow
@examples(15)
@given(data=st.data())
def test_partial_index__any_rows(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """After any additions, including copies and rows without embeddings, groups equal those of an index of all rows."""
    sizes = tuple(data.draw(st.lists(st.integers(1, 25), min_size=2, max_size=3), label="sizes"))
    rows: list[Any] = list(families(sum(sizes), seed=data.draw(st.integers(0, 99)), dimension=4))
    starts = {sum(sizes[:place]) for place in range(len(sizes))}
    for place in range(len(rows)):
        # Each table needs one row with an embedding.
        match data.draw(st.sampled_from(["own", "own", "copy", "none"])):
            case "copy":
                source = rows[data.draw(st.integers(0, len(rows) - 1))]
                rows[place] = source if source is not None else rows[place]
            case "none" if place not in starts:
                rows[place] = None
    with Workspace(tmp_path_factory.mktemp("ws"), settings=SETTINGS) as workspace:
        dataset, whole = grown(workspace, rows, *sizes), grown(workspace, rows, len(rows), name="whole")
        start = workspace.create_dataset("start", part(rows[: sizes[0]]), thresholds=THRESHOLDS)
        assert_sound_parts(dataset, whole, rows, columns_of(start)[CLUSTERS[0]])
        dataset.reindex()
        found, expected = columns_of(dataset), columns_of(whole)
        assert all(same_partition(partition(found[name]), partition(expected[name])) for name in GROUPS)


@pytest.mark.slow
@pytest.mark.only_soak
def test_partial_index__scale_of_uniqueness(workspace: Workspace) -> None:
    """The scale stays until a reindex; a dataset of one image, which has none, gets it with the first addition."""
    rows = list(families(60))
    dataset = workspace.create_dataset("d", part(rows[:1]))
    scales = [summary_of(dataset)["uniqueness_scale"]]
    for start in (1, 20, 40):
        dataset.add_media(part(rows[start : start + 20], start))
        scales.append(summary_of(dataset)["uniqueness_scale"])
    assert scales[0] == 0 < scales[1] == scales[2] == scales[3]
    dataset.reindex()
    whole = workspace.create_dataset("whole", part(rows))
    assert summary_of(dataset)["uniqueness_scale"] == summary_of(whole)["uniqueness_scale"]


@pytest.mark.slow
def test_partial_index__labels_of_added_rows(workspace: Workspace) -> None:
    """A label that contradicts those of the images around it is a mislabel, whether it was added or made so."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(8)[:2], 30, axis=0) + 0.1 * rng.normal(size=(60, 8))
    labels = ["dog"] * 30 + ["cat"] * 30
    dataset = workspace.create_dataset("d", part(rows, label=labels))
    assert dataset.issues("mislabels").num_rows == 0
    added = np.eye(8)[[0, 1]] + 0.1 * rng.normal(size=(2, 8))
    dataset.add_media(part(added, 60, label=["cat", "cat"]))
    found = dataset.issues("mislabels").select(["path", "suggested_label"]).to_pylist()
    assert found == [{"path": "60.jpg", "suggested_label": "dog"}]
