"""An index by groups goes on after its process was killed, from the stages that were complete."""

import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from framedex.analysis.grouped import neighbours
from framedex.analysis.grouped.clusters import linkage_by_groups
from framedex.analysis.grouped.kept_clusters import KeptClusters
from framedex.analysis.grouped.means import StoredMeans
from framedex.analysis.reciprocal import ClusterLists
from framedex.core.stages import Stages
from framedex.jobs.index import indexed_vectors
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.settings import Settings
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, index_schema
from framedex.storage.table_versions import Table
from tests.analysis.arrays import clustered, pair_f1
from tests.failures import failing
from tests.jobs.index.test_index import CUTS, build
from tests.programs import Program
from tests.tuning import tuned

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not name the time since they were started"
)
ROWS, DIMENSION, MEMORY = 3000, 24, 80_000
EXACT = ("neighbours", "duplicate_similarity", "uniqueness", *DUPLICATES)


def write_table(folder: Path) -> Table:
    """Return a table of vectors of which some are equal."""
    vectors = clustered(ROWS, DIMENSION, centres=40, spread=0.5)
    vectors[100:120] = vectors[7]
    return build(folder / "media.lance", list(vectors))


def run_index(table: Table, folder: Path, killed_at: str = "", memory: int = MEMORY) -> pa.Table:
    """Return the index columns of a table that does not fit into memory.

    Args:
        table: the table.
        folder: has the folder of temporary files.
        killed_at: the stage after which this process is killed, with "+" after means have overwritten more vectors.
        memory: the bytes that it may take.
    """
    put, stage = Stages.put, killed_at.rstrip("+")
    is_complete = bool(stage) and any((folder / "spill").glob(f"*/stage-{stage}*"))

    def put_and_die(stages: Stages, name: str, result: Any) -> None:
        nonlocal is_complete
        put(stages, name, result)
        is_complete = is_complete or bool(stage and name.startswith(stage))
        if is_complete and killed_at == stage:
            signal.raise_signal(signal.SIGKILL)

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call_or_die(*arguments: Any) -> Any:
            if is_complete:
                signal.raise_signal(signal.SIGKILL)
            return function(*arguments)

        return call_or_die

    with tuned() as tuning, pytest.MonkeyPatch.context() as patch:
        tuning.dense_rows = 100
        patch.setattr(indexed_vectors, "linkage_by_groups", partial(linkage_by_groups, dense_rows=100))
        tuning.kept_clusters_s = 0.0
        patch.setattr(Stages, "put", put_and_die)
        if killed_at == "overwritten+":  # the means of all groups are in the file
            patch.setattr(StoredMeans, "__init__", dying(StoredMeans.__init__))
        elif killed_at == "clusters+":  # further means have replaced those at the front of the file
            patch.setattr(ClusterLists, "compact", dying(ClusterLists.compact))
        settings = Settings(executor="threads", threads=2, memory_bytes=memory)
        found = index(
            table, CUTS, progress=lambda _stage, _share: None, resources=IndexResources(settings, folder / "spill")
        )
    return Table(table.path, found.version).scan(index_schema().names).read_all()


def kill_index(table: Table, folder: Path, killed_at: str, memory: int = MEMORY) -> None:
    """Let a process that indexes the table be killed at a stage."""
    code = "import sys; from tests.jobs.index.test_index_resumed import run_killed; run_killed(*sys.argv[1:])"
    assert Program(["-c", code, table.path, table.version, folder, killed_at, memory]).wait() == -signal.SIGKILL


def run_killed(path: str, version: str, folder: str, killed_at: str, memory: str) -> None:
    """Index until a stage is complete."""
    run_index(Table(Path(path), int(version)), Path(folder), killed_at, int(memory))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Return a table, which is not changed."""
    return write_table(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def undisturbed(table: Table, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """Return the index columns of the table, as they are without a kill."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_index(copied(table, folder), folder)


def copied(table: Table, folder: Path) -> Table:
    """Return a copy of a table."""
    shutil.copytree(table.path, folder / "media.lance")
    return Table(folder / "media.lance", table.version)


@pytest.mark.parametrize(
    ("killed_at", "skipped"),
    [
        ("neighbours", 2),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("order", 1),
                ("duplicates", 3),
                ("overwritten", 3),
                ("overwritten+", 3),
                ("clusters", 4),
                ("clusters+", 4),
            )
        ),
    ],
)
def test_index__goes_on_after_a_kill(
    table: Table, undisturbed: pa.Table, tmp_path: Path, killed_at: str, skipped: int
) -> None:
    """Complete stages are not computed again, all columns are those without a kill, and no temporary file is left."""
    own = copied(table, tmp_path)
    for _ in range(2 if killed_at.endswith("+") else 1):
        kill_index(own, tmp_path, killed_at)
        (left,) = (each for each in (tmp_path / "spill").iterdir() if each.is_dir())
        assert any(each.name.startswith(f"stage-{killed_at.rstrip('+')}") for each in left.iterdir())

    steps = [
        "framedex.analysis.grouped.neighbours._sort",
        "framedex.analysis.grouped.neighbours._search",
        "framedex.jobs.index.index.duplicate_groups",
        "framedex.analysis.grouped.clusters.merge_within_groups",
    ]
    with failing(*steps[:skipped], error=AssertionError("a complete stage is computed again")):
        found = run_index(own, tmp_path)
    assert list((tmp_path / "spill").iterdir()) == []
    for name in EXACT:
        assert found[name].equals(undisturbed[name]), name
    for name in CLUSTERS:  # searches among the clusters that are left draw other samples
        assert pair_f1(*(each[name].to_numpy() for each in (found, undisturbed))) >= 0.999, name


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["neighbours", "order"])
def test_index__does_not_search_among_means(table: Table, undisturbed: pa.Table, tmp_path: Path, lost: str) -> None:
    """A stage that a full disk did not take is computed from the vectors, also if means have overwritten the file."""
    own = copied(table, tmp_path)
    kill_index(own, tmp_path, "overwritten+")
    (stage,) = (tmp_path / "spill").glob(f"*/stage-{lost}")
    stage.unlink()
    found = run_index(own, tmp_path)
    for name in EXACT:
        assert found[name].equals(undisturbed[name]), name


@pytest.mark.slow
def test_index__goes_on_in_a_moved_folder(table: Table, undisturbed: pa.Table, tmp_path: Path) -> None:
    """Stages name no path, so that a copy of a workspace works in its own files."""
    (first := tmp_path / "first").mkdir()
    kill_index(copied(table, first), first, "clusters+")
    shutil.copytree(first, tmp_path / "second")
    before = {each: each.read_bytes() for each in (first / "spill").rglob("*") if each.is_file()}
    found = run_index(Table(tmp_path / "second" / "media.lance", table.version), tmp_path / "second")
    assert {each: each.read_bytes() for each in (first / "spill").rglob("*") if each.is_file()} == before
    assert list((tmp_path / "second" / "spill").iterdir()) == []
    for name in EXACT:
        assert found[name].equals(undisturbed[name]), name


@pytest.mark.slow
@pytest.mark.only_soak
def test_index__with_less_memory_begins_anew(
    table: Table, undisturbed: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that are too large for the memory that is there now are not taken over: they may be why it was killed."""
    own = copied(table, tmp_path)
    kill_index(own, tmp_path, "neighbours", memory=100_000_000)
    sort, calls = neighbours._sort, list[int]()

    def noted(*arguments: Any) -> Any:
        calls.append(1)
        return sort(*arguments)

    monkeypatch.setattr(neighbours, "_sort", noted)
    found = run_index(own, tmp_path)
    assert calls == [1]
    lists, expected = (each["neighbours"].combine_chunks().flatten() for each in (found, undisturbed))
    assert pc.mean(pc.equal(lists, expected).cast("float64")).as_py() > 0.99


@pytest.mark.slow
def test_index__of_other_input_begins_anew(table: Table, undisturbed: pa.Table, tmp_path: Path) -> None:
    """Stages of other vectors do not count, and stay for their own task."""
    other = build(tmp_path / "other.lance", list(clustered(ROWS, DIMENSION, centres=40, spread=0.4)))
    kill_index(other, tmp_path, "clusters")
    own = copied(table, tmp_path)
    assert run_index(own, tmp_path)["neighbours"].equals(undisturbed["neighbours"])
    assert len([each for each in (tmp_path / "spill").iterdir() if each.is_dir()]) == 1


@pytest.mark.slow
def test_index__after_a_kill_restores_vectors_that_duplicates_need(
    table: Table, undisturbed: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where clusters had overwritten the vectors, and duplicates are computed again, they come from the table."""
    own = copied(table, tmp_path)
    kill_index(own, tmp_path, "clusters")
    (left,) = (each for each in (tmp_path / "spill").iterdir() if each.is_dir())
    for stage in left.glob("stage-duplicates*"):
        stage.unlink()
    read, restore = list[bool](), KeptClusters.restore_vectors

    def noted(kept: KeptClusters, *arguments: Any) -> None:
        read.append(kept._stages.get("overwritten") is not None)
        restore(kept, *arguments)

    monkeypatch.setattr(KeptClusters, "restore_vectors", noted)
    found = run_index(own, tmp_path)
    assert read == [True, False]
    for name in EXACT:
        assert found[name].equals(undisturbed[name]), name
    for name in CLUSTERS:
        assert found[name].equals(undisturbed[name]), name
