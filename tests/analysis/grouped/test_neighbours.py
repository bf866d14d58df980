"""The neighbour search by groups finds what the search in memory finds, with any executor."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from framedex.analysis.grouped import centroids, neighbours
from framedex.analysis.grouped.files import GroupFiles
from framedex.analysis.grouped.neighbours import StepRunner
from framedex.analysis.grouped.steps import Plan, bundles, sort_lists
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.executors import ProcessExecutor, ThreadExecutor
from tests.analysis.arrays import clustered, uniform, unit
from tests.analysis.grouped.searches import SMALL, found, lists_by_groups
from tests.tuning import Tuning

ROWS = 12_000
VECTORS = clustered(ROWS, 24, centres=60, spread=0.6)


@pytest.mark.slow
def test_nearest_by_groups__finds_what_the_search_in_memory_finds(tmp_path: Path) -> None:
    """The lists of nearly all rows are the same; the others differ by rounding."""
    expected = nearest(VECTORS, k=10, exact=False)
    with ThreadExecutor(2) as executor:
        graph, plan = found(VECTORS, tmp_path / "files", executor)
    assert len(plan.order) > 4
    assert graph.cells is not None
    assert expected.cells is not None
    assert graph.cells.reach == pytest.approx(expected.cells.reach)
    rows, similarity = np.asarray(plan.files.row[graph.rows][plan.files.place]), graph.similarity[plan.files.place]
    equal = (np.sort(rows, axis=1) == np.sort(expected.rows, axis=1)).all(axis=1)
    assert equal.mean() >= 0.999
    np.testing.assert_allclose(similarity[equal], expected.similarity[equal], atol=1e-6)
    # Each row's cell is that of the nearest centroid, and its vector lies at its place.
    np.testing.assert_array_equal(plan.files.vectors[plan.files.place], VECTORS)
    nearest_centroid = (VECTORS @ graph.cells.centroids.T).argmax(axis=1)
    assert (graph.cells.of_row[plan.files.place] == nearest_centroid).mean() >= 0.999


@pytest.mark.slow
def test_nearest_by_groups__is_the_same_with_any_executor(tmp_path: Path) -> None:
    """The number and the kind of workers change no bit of a list."""
    results = []
    for number, executor in enumerate((ThreadExecutor(1), ThreadExecutor(3), ProcessExecutor(2))):
        with executor:
            results.append(lists_by_groups(VECTORS, tmp_path / str(number), executor))
    for rows, similarity in results[1:]:
        np.testing.assert_array_equal(rows, results[0][0])
        np.testing.assert_array_equal(similarity, results[0][1])


@pytest.mark.slow
def test_nearest_by_groups__in_rounds(tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no space for all visits, they are made in rounds, which never need more, with the same lists."""
    rounds, most = [0] * 4, [0] * 4
    visit = neighbours._visit

    def counted(number: int) -> None:
        def counting(
            plan: Plan, turn: str, sources: Sequence[int], runner: StepRunner, start: float, end: float
        ) -> int:
            rounds[number] += 1
            count = sum(np.load(each).shape[1] for each in plan.files.folder.glob(f"{turn}-*[0-9].npy"))
            most[number] = max(most[number], count)
            assert 0 <= start <= end <= 1
            return visit(plan, turn, sources, runner, start, end)

        monkeypatch.setattr(neighbours, "_visit", counting)

    shares: list[float] = []
    note = StepRunner.note

    def noted(runner: StepRunner, share: float) -> None:
        shares.append(share)
        note(runner, share)

    monkeypatch.setattr(StepRunner, "note", noted)
    limits = [100 * ROWS, ROWS, ROWS // 10, 150]
    results = []
    tuning.round_groups = 2
    tuning.probing_rows = 300
    with ThreadExecutor(1) as executor:
        for number, visits in enumerate(limits):
            counted(number)
            monkeypatch.setattr(GroupFiles, "most_visits", visits)
            results.append(lists_by_groups(VECTORS, tmp_path / str(number), executor))
            assert shares == sorted(shares)
            shares.clear()
            np.testing.assert_array_equal(results[0][0], results[number][0])
            np.testing.assert_allclose(results[0][1], results[number][1], atol=1e-6)
            assert [each.name for each in (tmp_path / str(number)).glob("*.npy")] == []
    assert rounds[0] == 2
    assert rounds[1:] == sorted(rounds[1:])
    assert rounds[1] > 4
    assert rounds[3] > most[0] / limits[3]
    assert all(count <= limit for count, limit in zip(most, limits, strict=True))


def test_count_visits__of_several_groups(tmp_path: Path) -> None:
    """The visits to each group are those that groups wrote for it; groups that are not asked about do not count."""
    files = GroupFiles(tmp_path, rows=100, dimension=4, k=3)
    random, written = np.random.default_rng(0), []
    for source in range(3):
        groups = random.integers(0, 4, 30 * source)
        files.write_visits("first", source, np.arange(len(groups)), groups, groups, 4)
        written.append(np.bincount(groups, minlength=4))
    np.testing.assert_array_equal(files.count_visits("first", [0, 2]), written[0] + written[2])
    assert sum(len(files.visits("first", [0, 2], group)[0]) for group in range(4)) == 60


@pytest.mark.slow
def test_centroids__of_a_cluster_without_structure() -> None:
    """Centroids that hardly any row has as its nearest one are left out: all rows would visit them."""
    random = np.random.default_rng(7)
    wide = random.standard_normal((3, 64)).repeat([100, 100, 6000], axis=0)
    rows = unit((wide + 0.3 * random.standard_normal(wide.shape)).astype(np.float32))
    found = centroids.find_cell_centroids(
        rows, 200, engine=CpuProducts(), random=np.random.default_rng(0), progress=ignore_progress
    )
    assert found.coarse is not None
    assert found.starts is not None
    of_coarse = (rows @ found.coarse.T).argmax(axis=1)
    for number in range(len(found.coarse)):
        own = rows[of_coarse == number]
        sizes = np.bincount((own @ found.all[slice(*found.starts[number : number + 2])].T).argmax(axis=1))
        assert sizes.min() >= min(len(rows) / 200 / 5, sizes.max())
    assert len(found) < 190


@pytest.mark.slow
def test_nearest_by_groups__two_levels_of_centroids(tmp_path: Path, tuning: Tuning) -> None:
    """Where there are many cells, they are found through coarse centroids, and nearly as many neighbours are found."""
    vectors = clustered(20_000, 16, centres=300, spread=0.5)
    tuning.flat_cells = 10
    tuning.grouped_cell_rows = 40
    tuning.grouped_centroids_gain = 1
    with ThreadExecutor(2) as executor:
        graph, plan = found(vectors, tmp_path / "files", executor)
    assert plan.centroids is not None
    assert plan.centroids.coarse is not None
    assert plan.centroids.n_compared < len(plan.centroids)
    some = np.arange(0, len(vectors), 97)
    scores = vectors[some] @ vectors.T
    scores[np.arange(len(some)), some] = -1
    best = np.sort(scores, axis=1)[:, -10:]
    reached = graph.similarity[plan.files.place[some]]
    assert (reached.min(axis=1) >= best.min(axis=1) - 1e-5).mean() >= 0.85
    assert (np.sort(reached, axis=1) >= best - 1e-5).mean() >= 0.95


@pytest.mark.slow
def test_nearest_by_groups__directions_without_structure(tmp_path: Path) -> None:
    """Where cells do not pay, all rows are compared, and the lists are exact."""
    vectors = uniform(5000, 64)
    with ThreadExecutor(2) as executor:
        rows, _ = lists_by_groups(vectors, tmp_path / "files", executor)
    np.testing.assert_array_equal(np.sort(rows), np.sort(nearest(vectors, k=10, exact=True).rows))


@pytest.mark.slow
def test_nearest_by_groups__one_giant_cell(tmp_path: Path) -> None:
    """Rows that are nearly equal fill a cell larger than a group, and still find each other."""
    random = np.random.default_rng(0)
    near = unit(np.ones(24) + 1e-3 * random.normal(size=(6000, 24)))
    vectors = np.concatenate([near, clustered(6000, 24, centres=30)])
    with ThreadExecutor(2) as executor:
        rows, similarity = lists_by_groups(vectors, tmp_path / "files", executor)
    assert (rows[:6000] < 6000).all()
    assert (similarity[:6000] > 0.99).all()
    assert (rows >= 0).all()
    assert (rows != np.arange(len(vectors))[:, None]).all()
    assert all(len(set(each)) == 10 for each in rows[::50].tolist())


@pytest.mark.slow
def test_nearest_by_groups__stops_when_it_is_asked_to(tmp_path: Path) -> None:
    """An exception of the progress ends the search, at any of its steps."""

    class Stopped(Exception):
        pass

    for limit in (0.0, 0.12, 0.3, 0.5, 0.7, 0.93):

        def stop(share: float, limit: float = limit) -> None:
            if share >= limit:
                raise Stopped

        folder = tmp_path / str(limit)
        folder.mkdir()
        with ThreadExecutor(2) as executor, pytest.raises(Stopped):
            neighbours.nearest_by_groups(
                VectorsInMemory(VECTORS),
                folder,
                k=10,
                sizes=SMALL,
                executor=executor,
                progress=stop,
            )


def test_bundles__of_small_cells() -> None:
    """Small cells that follow each other are one bundle, larger ones are bundles of their own, empty ones are none."""
    sizes = [200, 200, 200, 600, 0, 0, 512, 1, 1]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    assert list(bundles(starts)) == [(0, 2), (2, 3), (3, 4), (4, 7), (7, 9)]
    assert list(bundles(np.zeros(4, np.int64))) == []


@pytest.mark.slow
def test_sort_lists__may_run_again(tmp_path: Path) -> None:
    """The last step changes no file, so that a worker may be lost in the middle of it."""
    with ThreadExecutor(2) as executor:
        _, plan = found(VECTORS, tmp_path / "files", executor)
    files, random = plan.files, np.random.default_rng(0)
    order = random.permuted(np.tile(np.arange(10), (ROWS, 1)), axis=1)
    lists, similarity = (np.take_along_axis(np.array(each), order, axis=1) for each in (files.lists, files.similarity))
    expected = np.array(files.lists[:1500])
    files.lists[:], files.similarity[:] = lists, similarity
    for _ in range(2):
        np.testing.assert_array_equal(sort_lists(plan, (0, 1500))[0], expected)
    np.testing.assert_array_equal(files.lists, lists)
    np.testing.assert_array_equal(files.similarity, similarity)
