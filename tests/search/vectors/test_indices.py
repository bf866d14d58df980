"""The media nearest to a vector, at any state of a dataset, with the index in memory or in files."""

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from framedex.analysis.cells import assign
from framedex.analysis.codes import empty_codes
from framedex.analysis.products import CpuProducts
from framedex.analysis.quantized_ivf import Block, QuantizedIvf, sorted_by_cell
from framedex.errors import Aborted
from framedex.search.vectors.building import measure_search_reach
from framedex.search.vectors.folder import read_indices
from framedex.search.vectors.indices import VectorIndex, VectorIndices
from framedex.settings import Settings
from tests.inside import stored_media
from tests.laws import rest_slow

DIMENSION = 12


def rows(count: int, seed: int) -> pa.Table:
    """Return rows with vectors in some clusters."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((8, DIMENSION))[random.integers(0, 8, count)]
    vectors = (vectors + 0.3 * random.standard_normal((count, DIMENSION))).astype(np.float32)
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    return pa.table({"uri": [f"{seed}-{number}.jpg" for number in range(count)], "embedding": embedding})


def filed() -> VectorIndices:
    """Return indices that are always stored in files."""
    return VectorIndices(small_bytes=0, tail_bytes=0)


def opened(dataset: Dataset, indices: VectorIndices, folder: Path | None) -> VectorIndex:
    """Return the index of a dataset's present state."""
    return indices.open(stored_media(dataset), folder=folder)


def check(dataset: Dataset, index: VectorIndex, seed: int = 0) -> None:
    """Check that an index returns the same as a comparison of all vectors, with and without a filter."""
    random = np.random.default_rng(seed)
    media = stored_media(dataset)
    places, vectors = media.table.vectors()
    row_ids = media.table.scan([], row_ids=True).read_all()["_rowid"].to_numpy().astype(np.uint64)
    assert len(index) == len(places)
    query: npt.NDArray[np.float32] = random.standard_normal(DIMENSION).astype(np.float32)
    query /= np.linalg.norm(query)
    true = np.full(len(row_ids), np.nan, np.float32)
    true[places] = vectors @ query
    assert index.similarities(query) == pytest.approx(true, abs=5e-5, nan_ok=True)
    for share in (1.0, 0.5, 0.02):
        chosen = np.flatnonzero(random.random(len(row_ids)) < share)
        found, similarity = index.nearest(query, 7, index.select(row_ids[chosen]), n_candidates=len(row_ids))
        assert similarity == pytest.approx(-np.sort(-true[chosen][~np.isnan(true[chosen])])[:7], abs=5e-5)
        assert set(found.tolist()) <= set(row_ids[chosen].tolist())
        assert true[np.searchsorted(row_ids, found)] == pytest.approx(similarity, abs=5e-5)
    assert index.nearest(query, 3)[1].shape == (min(3, len(places)),)


@pytest.mark.slow
@pytest.mark.parametrize(
    "indices", rest_slow([VectorIndices(), filed(), VectorIndices(small_bytes=0, tail_bytes=10**9)], 1)
)
def test_open__follows_a_dataset(workspace: Workspace, tmp_path: Path, indices: VectorIndices) -> None:
    """The index follows additions, deletions, edits, reindexing, restores and clones."""
    dataset, folder = workspace.create_dataset("d", rows(400, 0)), tmp_path / "cache"
    check(dataset, opened(dataset, indices, folder), 1)
    first = dataset.snapshot("first")
    dataset.add_media(rows(150, 1))
    check(dataset, opened(dataset, indices, folder), 2)
    dataset.delete_media(dataset.where([]).media_ids()[100:300:3])
    dataset.tag(dataset.where([]), "all")
    check(dataset, opened(dataset, indices, folder), 3)
    dataset.reindex()
    dataset.add_media(rows(60, 2), auto_reindex=True)
    check(dataset, opened(dataset, indices, folder), 4)
    clone = dataset.clone(first)
    assert clone.task is not None
    clone.task.wait()
    check(clone, opened(clone, indices, folder), 5)
    dataset.restore(first)
    check(dataset, opened(dataset, indices, folder), 6)
    dataset.delete_media(dataset.where([]).media_ids()[1:])
    check(dataset, opened(dataset, indices, folder), 7)
    workspace.vacuum(older_than_s=0)
    dataset.add_media(rows(90, 3), auto_reindex=True)
    check(dataset, opened(dataset, filed(), folder), 8)


@pytest.mark.slow
def test_open__is_made_once(workspace: Workspace, tmp_path: Path) -> None:
    """Other openers reuse the index files, and an edit of other columns rebuilds nothing."""
    dataset, folder = workspace.create_dataset("d", rows(300, 0)), tmp_path / "cache"
    opened(dataset, filed(), folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    dataset.tag(dataset.where([]), "all")
    check(dataset, opened(dataset, filed(), folder))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    dataset.add_media(rows(40, 1))
    check(dataset, opened(dataset, filed(), folder))
    assert len(list(folder.rglob("part.json"))) == 2


def test_open__damaged(workspace: Workspace, tmp_path: Path) -> None:
    """Truncated or foreign files are rebuilt."""
    dataset, folder = workspace.create_dataset("d", rows(300, 0)), tmp_path / "cache"
    opened(dataset, filed(), folder)
    for name in ("int8.npy", "numbers.npy", "part.json", "index.json", "centroids.npy"):
        (path,) = folder.rglob(name)
        path.write_bytes(path.read_bytes()[:50])
        check(dataset, opened(dataset, filed(), folder))
    shutil.rmtree(folder)
    check(dataset, opened(dataset, filed(), folder))


def test_open__reach(workspace: Workspace, tmp_path: Path) -> None:
    """The reach of an index is stored; one without it, as before, is used, and one with a wrong one is rebuilt."""
    dataset, folder = workspace.create_dataset("d", rows(300, 0)), tmp_path / "cache"
    opened(dataset, filed(), folder)
    (path,) = folder.rglob("index.json")
    meta = json.loads(path.read_text())
    assert meta["reach"] is None  # few rows are all compared
    for reach in (0.25, None):
        path.write_text(json.dumps(meta | {"reach": reach}))
        (index,) = read_indices(folder, column="embedding", dimension=DIMENSION)
        assert index.reach == reach
    path.write_text(json.dumps({name: value for name, value in meta.items() if name != "reach"}))
    check(dataset, opened(dataset, filed(), folder))
    assert next(folder.rglob("index.json")) == path
    for wrong in (float("nan"), "far", [1]):
        path.write_text(json.dumps(meta | {"reach": wrong}))
        check(dataset, opened(dataset, filed(), folder))
        (path,) = folder.rglob("index.json")
        assert json.loads(path.read_text()) == meta


def test_measure_search_reach() -> None:
    """Searches with the measured reach find what they find without, also of queries beside the rows."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((60, 24)) * random.uniform(0.8, 1.2, (60, 1))
    vectors = centres[random.integers(0, 60, 9000)] + 0.7 * random.standard_normal((9000, 24))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    engine = CpuProducts()
    cell = assign(vectors, centroids := vectors[:50].copy(), engine=engine)
    place, starts = sorted_by_cell(cell, len(centroids))
    codes = empty_codes(len(vectors), 24)
    codes.put(place, vectors)
    cells, shares = QuantizedIvf(centroids, [Block(codes, starts)]), list[float]()
    assert measure_search_reach(cells, 4000, shares.append) is None  # few bytes
    assert measure_search_reach(cells, 9000, shares.append, few_bytes=0) is None  # all rows
    assert not shares
    reach = measure_search_reach(cells, 4000, shares.append, few_bytes=0)
    assert reach is not None
    assert shares == sorted(shares)
    assert shares[-1] == 1
    everything = cells.select(np.ones(9000, bool))
    for row in range(0, 9000, 150):
        query = vectors[row] + 0.05 * random.standard_normal(24).astype(np.float32)
        query /= np.linalg.norm(query)
        wanted = cells.nearest(query, 100, everything, n_candidates=4000)[0]
        found = cells.nearest(query, 100, everything, n_candidates=4000, reach=reach)[0]
        assert np.isin(wanted, found).mean() >= 0.99


def test_open__aborted(workspace: Workspace, tmp_path: Path) -> None:
    """Building an index can be stopped; the next opening builds it."""
    dataset, folder = workspace.create_dataset("d", rows(300, 0)), tmp_path / "cache"
    media = stored_media(dataset)

    def stop(stage: str, _share: float) -> None:
        if stage == "vectors":
            raise Aborted("stopped")

    with pytest.raises(Aborted):
        filed().open(media, folder=folder, progress=stop)
    assert not list(folder.rglob("int8.npy"))
    check(dataset, opened(dataset, filed(), folder))


def test_open__nothing_may_be_written(tmp_path: Path) -> None:
    """A workspace open for reading is searched with a temporary index, which is removed with it."""
    with Workspace(tmp_path / "workspace") as workspace:
        workspace.create_dataset("d", rows(300, 0))
    with Workspace(tmp_path / "workspace", settings=Settings(), read_only=True) as workspace:
        dataset = workspace.dataset("d")
        before = sorted(path for path in workspace.path.rglob("*"))
        check(dataset, opened(dataset, filed(), None))
        assert sorted(path for path in workspace.path.rglob("*")) == before


@pytest.mark.slow
def test_open__threads(workspace: Workspace, tmp_path: Path) -> None:
    """Threads that open a state at once get the same index, which is built once."""
    dataset, folder, indices = workspace.create_dataset("d", rows(300, 0)), tmp_path / "cache", filed()
    found: list[VectorIndex] = []
    threads = [threading.Thread(target=lambda: found.append(opened(dataset, indices, folder))) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(found) == 6
    assert len(set(map(id, found))) == 1
    check(dataset, found[0])


def test_vector(workspace: Workspace) -> None:
    """The vector of a row is returned unchanged."""
    dataset = workspace.create_dataset("d", rows(50, 0))
    index = opened(dataset, VectorIndices(), None)
    _, vectors = dataset.embeddings()
    found = index.vector(int(index.row_ids[17]))
    assert found == pytest.approx(vectors[17], abs=1e-4)


@pytest.mark.slow
def test_select__knows_the_rows_that_were_asked_for_before(workspace: Workspace) -> None:
    """Equal selections are prepared once, and the least recently used one is dropped."""
    index = opened(workspace.create_dataset("d", rows(40, 0)), VectorIndices(), None)
    first = index.select(index.row_ids[:10])
    assert index.select(index.row_ids[:10].copy()) is first
    others = [index.select(index.row_ids[start : start + 10]) for start in (10, 20, 30)]
    assert [each.total for each in others] == [10] * 3
    assert not any((each.mask & first.mask).any() for each in others)
    assert index.select(index.row_ids[:10]) is not first
