"""Clusters by groups are those that are computed in memory."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.grouped.means import GroupSearch
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbours import nearest
from framedex.errors import InvalidInput
from tests.analysis.arrays import clustered, pair_f1
from tests.analysis.grouped.searches import clusters_by_groups
from tests.tuning import Tuning

CUTS = (0.02, 0.05, 0.1, 0.2, 0.4)
VECTORS = clustered(5000, 24, centres=80, spread=0.5)


@pytest.fixture(scope="module")
def expected() -> npt.NDArray[np.int32]:
    """Return the clusters of all distances."""
    weights = np.ones(len(VECTORS), np.int64)
    return average_linkage(VECTORS, weights, nearest(VECTORS, k=10), CUTS, dense_rows=len(VECTORS))


@pytest.mark.slow
@pytest.mark.parametrize("many", [0, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("in_memory", [pytest.param(0, marks=pytest.mark.slow), 2000])
def test_linkage_by_groups__gives_the_clusters_of_all_in_memory(
    tmp_path: Path, expected: npt.NDArray[np.int32], in_memory: int, many: int, tuning: Tuning
) -> None:
    """The clusters of each level agree, whether the last ones are read into memory, and however they search."""
    tuning.choosing_clusters = many
    labels = clusters_by_groups(VECTORS, tmp_path / "files", CUTS, in_memory=in_memory, dense_rows=500)
    assert min(pair_f1(labels[:, level], expected[:, level]) for level in range(5)) >= 0.999


@pytest.mark.slow
def test_linkage_by_groups__finds_cells_again(
    tmp_path: Path, expected: npt.NDArray[np.int32], tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever half of the clusters are gone there are half as many cells, and the clusters stay the same."""
    tuning.grouped_mean_cell_rows = 20
    n_cells, renew = list[int](), GroupSearch._renew

    def noted(search: GroupSearch, *arguments: Any) -> None:
        renew(search, *arguments)
        n_cells.append(search._n_cells)

    monkeypatch.setattr(GroupSearch, "_renew", noted)
    labels = clusters_by_groups(VECTORS, tmp_path / "files", CUTS, in_memory=0, dense_rows=100)
    assert len(n_cells) > 1
    assert all(after < before for before, after in pairwise(n_cells))
    assert min(pair_f1(labels[:, level], expected[:, level]) for level in range(5)) >= 0.999


def test_linkage_by_groups__checks_the_cuts(tmp_path: Path) -> None:
    """Cuts that do not ascend are refused."""
    with pytest.raises(InvalidInput, match="ascending"):
        clusters_by_groups(VECTORS, tmp_path / "files", (0.2, 0.1), in_memory=0, dense_rows=500)
