"""An index by groups has the columns of an index in memory, and leaves no temporary file."""

import math
from pathlib import Path

import numpy as np
import pytest

from framedex import Aborted
from framedex.errors import InvalidInput, WorkspaceError
from framedex.jobs.index import indexed_vectors
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.settings import Settings
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, index_schema
from framedex.storage.table_versions import Table
from tests.analysis.arrays import clustered, uniform
from tests.jobs.fakes import StopAt
from tests.jobs.index.test_index import CUTS, build
from tests.laws import rest_slow
from tests.tuning import Tuning

SMALL = 1_000_000


@pytest.fixture
def table(tmp_path: Path, tuning: Tuning) -> Table:
    """Return a table whose rows do not fit into small memory: some without a vector, some equal."""
    tuning.dense_rows = 100
    vectors = list(clustered(3000, 24, centres=40))
    vectors[100:120] = [vectors[7]] * 20
    vectors[2500] = vectors[7]
    some = [None if row % 50 == 3 else vector for row, vector in enumerate(vectors)]
    labels = [[f"label {row % 3}"] for row in range(3000)]
    return build(tmp_path / "media.lance", some, labels=labels)


def resources(folder: Path, executor: str) -> IndexResources:
    """Return resources with little memory."""
    return IndexResources(Settings(executor=executor, threads=2, processes=2, memory_bytes=SMALL), folder / "spill")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_index__by_groups_is_that_in_memory(table: Table, tmp_path: Path, executor: str) -> None:
    """Clusters, groups, scores and neighbours are the same, but for the last bits of similarities."""
    in_memory = index(table, CUTS, progress=lambda _stage, _share: None)
    expected = Table(table.path, in_memory.version).scan(index_schema().names).read_all()
    by_groups = index(
        Table(table.path, in_memory.version), CUTS, progress=lambda _stage, _share: None,
        resources=resources(tmp_path, executor),
    )  # fmt: skip
    assert list((tmp_path / "spill").iterdir()) == []
    columns = Table(table.path, by_groups.version).scan(index_schema().names).read_all()
    for name in (*CLUSTERS, *DUPLICATES, "original", "suggested_label"):
        assert columns[name].equals(expected[name]), name
    for name in ("uniqueness", "outlier_distance", "duplicate_similarity", "label_support", "label_distance"):
        values, others = (each[name].fill_null(-1).to_numpy() for each in (columns, expected))
        # A row that misses a far neighbour, among cells, has a slightly larger mean distance.
        assert (np.abs(values - others) < 1e-5).mean() > 0.99, name
    lists, exact = (each["neighbours"].combine_chunks() for each in (columns, expected))
    assert lists.is_valid().equals(exact.is_valid())
    near, other = (np.sort(each.drop_null().flatten().to_numpy().reshape(-1, 20)) for each in (lists, exact))
    assert (near == other).all(axis=1).mean() > 0.99
    assert by_groups.sums is not None
    assert in_memory.sums is not None
    np.testing.assert_array_equal(by_groups.sums.keys, in_memory.sums.keys)
    np.testing.assert_allclose(by_groups.sums.sums, in_memory.sums.sums, atol=1e-3)
    assert by_groups.thresholds == pytest.approx(in_memory.thresholds, abs=1e-5)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("share", rest_slow([0.02, 0.6, 0.2, 0.34, 0.91], 2))
def test_index__by_groups_leaves_nothing_when_it_stops(table: Table, tmp_path: Path, share: float) -> None:
    """A request to stop ends it in any stage; then no temporary file and no new version are there."""
    stop = StopAt(share)
    with pytest.raises(Aborted):
        index(table, CUTS, progress=lambda _stage, done: stop(done), resources=resources(tmp_path, "threads"))
    assert list((tmp_path / "spill").rglob("*")) == []


def test_index__by_groups_needs_space(table: Table, tmp_path: Path, tuning: Tuning) -> None:
    """Without space for temporary files nothing begins, and the error names the bytes."""
    tuning.spared_bytes = 2**60
    with pytest.raises(WorkspaceError, match=r"the index of 2,\d+ vectors needs .* bytes for temporary files"):
        index(table, CUTS, progress=lambda _stage, _share: None, resources=resources(tmp_path, "threads"))


@pytest.mark.parametrize("values", [1, 3])
def test_index__of_few_values(tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    """Where nearly all vectors are equal, the few distinct ones are compared in memory."""
    tuning.dense_rows = 100
    monkeypatch.setattr(indexed_vectors, "nearest_by_groups", None)
    vectors = uniform(values, 24)[np.arange(3000) % values]
    table = build(tmp_path / "media.lance", list(vectors))
    written = index(table, CUTS, progress=lambda _stage, _share: None, resources=resources(tmp_path, "threads"))
    columns = Table(table.path, written.version).scan([CLUSTERS[0], *DUPLICATES]).read_all()
    for name in columns.column_names:
        first = 1 if name in CLUSTERS else 0
        assert columns[name].to_pylist() == [first + row % values for row in range(3000)], name
    assert not (tmp_path / "spill").exists()


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("memory", [SMALL, 2**31])
def test_index__asks_before_a_long_search(table: Table, tmp_path: Path, tuning: Tuning, memory: int) -> None:
    """A search that takes longer than the limit does not begin, in memory and by groups; without a limit it does."""
    tuning.checked_work = 0
    tuning.exact_rows = 100
    limited = Settings(executor="threads", memory_bytes=memory, index_hours=1e-9)
    with pytest.raises(InvalidInput, match=r"about 0\.0 hours .* force=True .* more than 1e-09 hours"):
        index(table, CUTS, progress=lambda _stage, _share: None, resources=IndexResources(limited, tmp_path / "spill"))
    assert list((tmp_path / "spill").rglob("*")) == []
    free = limited.model_copy(update={"index_hours": math.inf})
    index(table, CUTS, progress=lambda _stage, _share: None, resources=IndexResources(free, tmp_path / "spill"))


@pytest.mark.slow
@pytest.mark.only_soak
def test_index__in_memory_where_it_fits(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that fits into memory writes no temporary file."""
    monkeypatch.setattr(indexed_vectors, "nearest_by_groups", None)
    enough = IndexResources(Settings(memory_bytes=2**31), tmp_path / "spill")
    index(table, CUTS, progress=lambda _stage, _share: None, resources=enough)
    assert not (tmp_path / "spill").exists()
