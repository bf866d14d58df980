"""Merges within groups are those of all rows, and leave what other groups decide."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.grouped.group_merges import GroupClusters, merge_within_groups
from framedex.analysis.grouped.neighbours import Sizes, StepRunner
from framedex.analysis.grouped.steps import Plan
from framedex.analysis.linkage import ROUNDING, average_linkage, cut, floor_of
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.executors import ThreadExecutor
from tests.analysis.arrays import Vectors, clustered, crowd, pair_f1
from tests.analysis.grouped.searches import found

CUTS = (0.02, 0.05, 0.1, 0.2, 0.4)
K = 10


def merged(vectors: Vectors, folder: Path, group_rows: int) -> tuple[GroupClusters, Plan]:
    """Return the clusters that are left of all groups, and the plan, whose file has their means."""
    with ThreadExecutor(2) as executor:
        _, plan = found(vectors, folder, executor, K, Sizes(part_rows=1500, group_rows=group_rows))
        runner = StepRunner(executor, ignore_progress)
        left = merge_within_groups(
            plan, np.ones(len(vectors), np.int64), floor=floor_of(CUTS), seed=0, runner=runner, progress=ignore_progress
        )
    return left, plan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "seed"), [(0.9, 2), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0.4, 1), (1.4, 3)))]
)
def test_merges__are_among_those_of_all_rows(tmp_path: Path, spread: float, seed: int) -> None:
    """Whatever merges within a group belongs together, and what is left has the right means, weights and bounds."""
    vectors = clustered(6000, 16, centres=60, spread=spread, seed=seed)
    left, plan = merged(vectors, tmp_path / "files", 1200)
    rows = np.asarray(plan.files.row)
    of_place = vectors[rows]
    group = plan.order.group_of(np.asarray(plan.files.cell))
    assert len(plan.order) > 4
    np.testing.assert_array_equal(group[left.merges[0]], group[left.merges[1]])
    expected = average_linkage(vectors, np.ones(6000, np.int64), nearest(vectors, k=K), CUTS, dense_rows=6000)
    within = cut([left.merges], CUTS, 6000)
    for level in range(len(CUTS)):
        _, parts = np.unique(np.stack([within[:, level], expected[rows, level]]), axis=1, return_inverse=True)
        assert pair_f1(parts, within[:, level]) >= 0.9999, "clusters within groups are parts of clusters"
    _check_clusters(left, plan, of_place)


def _check_clusters(left: GroupClusters, plan: Plan, vectors: Vectors) -> None:
    count, kept = len(left.names), left.cluster >= 0
    assert 0 < count < len(vectors)
    weights = np.bincount(left.cluster[kept], minlength=count)
    np.testing.assert_array_equal(left.weights, weights)
    np.testing.assert_array_equal(left.has_merged, weights > 1)
    np.testing.assert_array_equal(left.cluster[left.names], np.arange(count))
    sums = np.zeros((count, vectors.shape[1]))
    np.add.at(sums, left.cluster[kept], vectors[kept])
    means = sums / weights[:, None]
    np.testing.assert_allclose(np.asarray(plan.files.vectors[:count]), means, atol=1e-5)
    near = left.near
    truth = np.einsum("ijk,ik->ij", means[near.rows], means)
    listed = near.rows >= 0
    exact = listed & near.exact
    assert exact.any()
    np.testing.assert_allclose(near.similarity[exact], truth[exact], atol=1e-4)
    # Several places may stand for parts of one cluster; then the highest bound holds.
    line = np.broadcast_to(np.arange(count)[:, None], listed.shape)
    highest = np.full((count, count), -np.inf)
    np.maximum.at(highest, (line[listed], near.rows[listed]), near.similarity[listed])
    exceeds = truth[listed] > highest[line[listed], near.rows[listed]] + 1e-4
    assert exceeds.mean() < 0.001, "all others are upper bounds"
    _check_bounds(near.rows, near.bound, means)


def _check_bounds(rows: npt.NDArray[np.int32], bound: Vectors, means: npt.NDArray[np.float64]) -> None:
    """Check that hardly any cluster that is not listed is more similar than its bound."""
    similarity = means @ means.T
    np.fill_diagonal(similarity, -np.inf)
    line = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)
    similarity[line[rows >= 0], rows[rows >= 0]] = -np.inf
    missed = similarity.max(axis=1) > np.maximum(bound, floor_of(CUTS)) + 1e-4
    assert missed.mean() < 0.02


@pytest.mark.slow
def test_merges__of_equal_directions_in_several_groups(tmp_path: Path) -> None:
    """A dense crowd that several groups share waits where another group may be nearer, and comes together at last."""
    vectors = np.concatenate([crowd(np.eye(16)[0], 4000, spread=0.5), clustered(2000, 16, spread=0.3)])
    left, plan = merged(vectors, tmp_path / "files", 800)
    assert len(plan.order) > 3
    _check_clusters(left, plan, vectors[np.asarray(plan.files.row)])
    nearest_outside = left.near.rows >= 0
    assert nearest_outside.any(), "some clusters wait"


def test_merges__do_not_join_what_is_nearer_elsewhere(tmp_path: Path) -> None:
    """Rows whose nearest neighbour is in another group are left alone, though they have near ones in their own."""
    vectors = clustered(6000, 16, centres=60, spread=1.0, seed=5)
    left, plan = merged(vectors, tmp_path / "files", 1200)
    files = plan.files
    group = plan.order.group_of(np.asarray(files.cell))
    best = np.asarray(files.lists[:, 0])
    similar = np.asarray(files.similarity[:, 0]) >= floor_of(CUTS) + ROUNDING
    mutual = best[best] == np.arange(len(best))
    waiting = np.flatnonzero(mutual & similar & (group[best] != group))
    assert len(waiting) > 10
    alone = left.cluster[waiting]
    assert (left.weights[alone] == 1).all()
