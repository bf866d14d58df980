"""Search benchmarks: measurements, advice, display and storage."""

import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, InvalidInput, NotIndexed, Workspace
from framedex.api.search_benchmark import SearchBenchmark
from framedex.errors import Aborted
from framedex.operations.searches import open_searcher
from framedex.search.benchmark import measure_search
from framedex.search.timings import SearchTiming, SearchTimings
from framedex.search.vectors.indices import VectorIndices
from tests.inside import context_of, layout_of, stored_media
from tests.laws import rest_slow

ROWS, DIMENSION = 6000, 24


def filed() -> VectorIndices:
    """Return indices that are always stored in files, in cells."""
    return VectorIndices(small_bytes=0, tail_bytes=0)


def crowd(count: int, dimension: int = DIMENSION) -> pa.Table:
    """Return rows whose vectors have little structure, which are hard to search."""
    vectors = np.random.default_rng(5).standard_normal((count, dimension)).astype(np.float32)
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
    return pa.table({"uri": [f"{number}.jpg" for number in range(count)], "embedding": embedding})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset of embeddings that tests only read."""
    workspace = Workspace(tmp_path_factory.mktemp("benchmark") / "ws")
    return workspace.create_dataset("crowd", crowd(ROWS))


@pytest.fixture(scope="module")
def measured(dataset: Dataset) -> SearchBenchmark:
    """The measurements of the dataset, with an index in files."""
    searches = open_searcher(context_of(dataset), stored_media(dataset))
    return SearchBenchmark.of(measure_search(searches, queries=30, k=10, indices=filed))


@pytest.mark.slow
@pytest.mark.only_soak
def test_measure__sweeps(measured: SearchBenchmark) -> None:
    """More candidates find more, up to all; filters have their selectivity, and the default is marked once in each."""
    assert (measured.n_vectors, measured.dimension, measured.k, measured.queries) == (ROWS, DIMENSION, 10, 30)
    assert measured.disk_bytes > 2 * ROWS * DIMENSION
    assert measured.build_s > 0
    exact, *swept = measured.rows
    assert (exact.n_candidates, exact.recall, exact.rows) == (None, 1.0, ROWS)
    by_filter = {share: [row for row in swept if row.selectivity == share] for share in (1.0, 0.5, 0.01, 0.0001)}
    assert [rows[0].rows for rows in by_filter.values()] == [ROWS, ROWS // 2, 60, 10]
    for rows in by_filter.values():
        assert [row.n_candidates for row in rows] == sorted(row.n_candidates for row in rows if row.n_candidates)
        assert sum(row.is_default for row in rows) == 1
        assert rows[-1].recall == 1.0
        assert all(a.recall <= b.recall + 0.02 for a, b in pairwise(rows))
    assert by_filter[1.0][0].n_candidates == 1024
    assert by_filter[1.0][0].recall < 0.9
    for row in measured.rows:
        assert 0 < row.p50_ms <= row.p95_ms <= row.p99_ms
        assert row.queries_per_s > 0
        assert row.parallel_queries_per_s > 0


@pytest.mark.slow
@pytest.mark.only_soak
def test_measure__recall_is_that_of_the_true_nearest(dataset: Dataset, measured: SearchBenchmark) -> None:
    """The same queries have the same recall in each run, above that of a random result."""
    searches = open_searcher(context_of(dataset), stored_media(dataset))
    again = measure_search(searches, queries=30, k=10, indices=filed)
    found = {(row.selectivity, row.n_candidates): row.recall for row in again.rows}
    for row in measured.rows:
        assert found[row.selectivity, row.n_candidates] == pytest.approx(row.recall, abs=0.01)


@pytest.mark.slow
@pytest.mark.only_soak
def test_measure__leaves_the_dataset_alone(dataset: Dataset) -> None:
    """The dataset's index is not created or changed, and no file remains elsewhere."""
    folder = layout_of(dataset).vectors(dataset.id)
    before = sorted(folder.rglob("*"))
    searches = open_searcher(context_of(dataset), stored_media(dataset))
    stages: list[str] = []

    def stop(stage: str, share: float) -> None:
        assert 0 <= share <= 1
        stages.append(stage)
        if stage.endswith("rows"):
            raise Aborted("stopped")

    with pytest.raises(Aborted):
        measure_search(searches, queries=3, indices=filed, progress=stop)
    assert stages[0].startswith("index: ")
    assert "exact search" in stages
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("count", rest_slow([2, 1, 40], 1))
def test_benchmark_search__small(workspace: Workspace, count: int) -> None:
    """A dataset of one or two rows can be measured: all rows are compared and found."""
    found = workspace.create_dataset("few", crowd(count)).benchmark_search(queries=7)
    assert {row.n_candidates for row in found.rows if row.selectivity == 1} == {None, count}
    assert all(row.recall == 1 for row in found.rows)
    assert found.default_n_candidates == found.best_for(1.0) == count
    assert "keep the default" in found.advice(0.9)
    ElementTree.fromstring(found.plot())


@pytest.mark.slow
def test_benchmark_search__no_vectors(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset without decodable files has nothing to search, and the error says so."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "broken.jpg").write_bytes(b"no image")
    with pytest.raises(NotIndexed, match=r"vector|embedding"):
        workspace.create_dataset("broken", tmp_path / "p", "gist").benchmark_search()


@pytest.mark.slow
@pytest.mark.only_soak
def test_benchmark_search__images_some_broken(workspace: Workspace, folder: Path) -> None:
    """Files without a vector are neither results nor queries."""
    (folder / "broken.jpg").write_bytes(b"no image")
    found = workspace.create_dataset("images", folder, "gist").benchmark_search(queries=9, k=3, selectivities=[0.5])
    assert found.n_vectors == 6
    assert [(row.selectivity, row.rows, row.recall) for row in found.rows] == [(1.0, 6, 1.0)] * 2 + [(0.5, 3, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"queries": 0}, "queries must be"),
        ({"queries": True}, "queries must be"),
        ({"k": 1.5}, "k must be"),
        ({"selectivities": []}, "list of shares"),
        ({"selectivities": [0.0]}, "share above 0"),
        ({"selectivities": [2]}, "share above 0"),
        ({"selectivities": ["x"]}, "share above 0"),
        ({"selectivities": "x"}, "list of shares"),
        ({"selectivities": 0.5}, "list of shares"),
    ],
)
def test_benchmark_search__bad_input(dataset: Dataset, arguments: dict[str, object], expected: str) -> None:
    """The error for an invalid argument names it."""
    with pytest.raises(InvalidInput, match=expected):
        dataset.benchmark_search(**arguments)  # type: ignore[arg-type] # is the point


def timings(*rows: tuple[float, int | None, float]) -> SearchBenchmark:
    """Return a benchmark with rows of (selectivity, candidates, recall); 4,096 is the default."""
    return SearchBenchmark(
        dataset_id="d", n_vectors=10**5, dimension=8, k=10, queries=100, threads=2, default_n_candidates=4096,
        build_s=1, open_s=1, disk_bytes=1, memory_bytes=None, exact_memory_bytes=None,
        rows=[
            SearchTiming(
                selectivity=selectivity, rows=int(10**5 * selectivity), n_candidates=n_candidates,
                is_default=n_candidates == 4096, recall=recall, p50_ms=1, p95_ms=2, p99_ms=3,
                queries_per_s=10**6 / (n_candidates or 10**5), parallel_queries_per_s=1, filter_ms=0,
            )
            for selectivity, n_candidates, recall in rows
        ],
    )  # fmt: skip


def test_best_for__holds_for_each_filter() -> None:
    """The setting is sufficient with each filter; after the early end of a sweep, larger settings are sufficient."""
    found = timings(
        (1, None, 1), (1, 1024, 0.5), (1, 2048, 0.8), (1, 4096, 0.96), (1, 8192, 0.99),
        (0.5, 1024, 0.7), (0.5, 2048, 0.97), (0.5, 4096, 0.94), (0.01, 1000, 1),
    )  # fmt: skip
    assert [found.best_for(recall) for recall in (0, 0.5, 0.6, 0.9, 0.94, 0.95, 1)] == [
        1024, 1024, 2048, 4096, 4096, None, None,
    ]  # fmt: skip
    assert "only exact search" in found.advice(0.999)
    assert "keep the default, which compares 4,096 rows" in found.advice(0.94)
    assert "compare 2,048 rows (the default, 4,096, finds enough, too)" in found.advice(0.7)
    for recall in (-0.1, 1.1, True, "much"):
        with pytest.raises(InvalidInput, match="recall must be a number from 0 to 1"):
            found.best_for(recall)  # type: ignore[arg-type] # is the point


@pytest.mark.slow
def test_save(measured: SearchBenchmark, tmp_path: Path) -> None:
    """JSON round-trips; pages and plots are complete; other file names are refused."""
    assert SearchTimings.model_validate_json(measured.save(tmp_path / "b.json").read_text()).rows == measured.rows
    page = measured.save(tmp_path / "b.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "no filter" in page
    assert measured.save(str(tmp_path / "b.svg")).read_text() == measured.plot() + "\n"
    with pytest.raises(InvalidInput, match=r"\.json, \.html, \.svg"):
        measured.save(tmp_path / "b.txt")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.html", "b.json", "b.svg"]


@pytest.mark.slow
def test_shown(measured: SearchBenchmark) -> None:
    """It is displayed as a table for programs, and as a plot and a table for people."""
    table = measured.to_arrow()
    assert table.column_names == list(SearchTiming.model_fields)
    assert table["n_candidates"].to_pylist() == [row.n_candidates for row in measured.rows]
    assert json.loads(measured.model_dump_json())["k"] == 10
    assert "(default)" in measured._repr_html_()
    assert "SearchBenchmark" in repr(measured)
