"""Early looks at a dataset that is being created: rows without an index, until the creation commits or ends."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from framedex import Conflict, Dataset, Workspace, vql
from framedex.api.result_set import ResultSet
from framedex.jobs.index import index as indexing
from framedex.jobs.ingest import ingest
from tests.gallery import ANIMALS, BROKEN, NAMES, SETTINGS, Averages, embedded, make_gallery
from tests.inside import catalog_of
from tests.processes import start
from tests.tuning import Tuning
from tests.videos import numbered, write_video

ROWS = 8


class GateAfter(Averages):
    """An encoder that waits before a batch, so that a test decides when a task goes on.

    Args:
        batches: the number of batches before it waits.
    """

    batch = ROWS

    def __init__(self, batches: int) -> None:
        self.left, self.opened = batches, threading.Event()
        self.reached = threading.Event()

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if self.left == 0:
            self.reached.set()
            assert self.opened.wait(60), "the test did not open the gate"
        self.left -= 1
        return super().encode_images(batch)


_gates: list[GateAfter] = []


@pytest.fixture(autouse=True)
def _small_parts(tuning: Tuning) -> None:
    tuning.committed_rows = ROWS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_gallery(tmp_path / "images")
    return tmp_path / "images"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as opened:
        yield opened
        while _gates:  # a test that fails must not leave a task that waits
            _gates.pop().opened.set()


def creating(workspace: Workspace, folder: Path, batches: int = 2) -> tuple[Dataset, GateAfter]:
    """Return a dataset in creation that has read some batches, and what lets it go on."""
    gate = GateAfter(batches)
    _gates.append(gate)
    dataset = workspace.create_dataset("new", folder, gate, wait=False)
    assert gate.reached.wait(60)
    return dataset, gate


def finished(dataset: Dataset, gate: GateAfter) -> Dataset:
    """Let the creation go on to its end."""
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait(60)
    return dataset


def seen(dataset: Dataset) -> set[str]:
    """Return the names of the images that a dataset shows."""
    return set(dataset.where([]).to_arrow(["image_filename"])["image_filename"].to_pylist())


@pytest.mark.slow
@pytest.mark.only_soak
def test_explore__one_cluster(workspace: Workspace, folder: Path) -> None:
    """What was read is one cluster at each level; files that cannot be read are in none."""
    dataset, gate = creating(workspace, folder)
    read = seen(dataset)
    broken = read & set(BROKEN)
    sizes = sorted([len(read - broken), *([len(broken)] if broken else [])])
    assert ROWS <= len(read) < len(NAMES)
    for level in (0, 2, 4):
        assert sorted(cluster.n_images for cluster in dataset.explore(level=level).clusters) == sizes
    assert str(dataset.info.status_new) == "INDEXING"
    finished(dataset, gate)
    assert str(dataset.info.status_new) == "READY"
    assert seen(dataset) == set(NAMES)
    assert len(dataset.explore(level=0).clusters) > len(sizes)


_COLUMNS = [
    "media_id", "image_filename", "file_path", "file_size_bytes", "width", "height", "labels", "caption",
    "blur", "dark", "bright",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    "chosen",
    [[], vql.labels("animal"), vql.file_name("contains", "1"), vql.folder("is", "towns"), vql.issues("corrupted")],
    ids=["all", "labels", "file name", "folder", "corrupted"],
)
def test_filters(workspace: Workspace, folder: Path, chosen: Any) -> None:
    """A filter finds the rows that it will find among the same media in the end, with the same values."""
    dataset, gate = creating(workspace, folder, batches=4)
    ids = list(dataset.where([]).ids)
    early = dataset.where(chosen).to_arrow(_COLUMNS)
    assert dataset.where(chosen).count() == early.num_rows
    finished(dataset, gate)
    late = dataset.select(ids).where(chosen).to_arrow(_COLUMNS)
    assert early.sort_by("media_id") == late.sort_by("media_id")


@pytest.mark.slow
@pytest.mark.only_soak
def test_pages__of_all_columns(workspace: Workspace, folder: Path) -> None:
    """A page in another order, for which columns are cached, has the index columns too, without values."""
    dataset, gate = creating(workspace, folder, batches=4)
    results = ResultSet(dataset.view.sort_by("file_name", descending=True))
    page = results.rows(0, 500, results.columns)
    assert page.num_rows == len(results) > ROWS
    assert page["duplicate_group_id"].null_count == page["keep"].null_count == page.num_rows
    assert pc.sum(page["is_corrupted_issue"]).as_py() == len(seen(dataset) & set(BROKEN))
    finished(dataset, gate)


@pytest.mark.slow
@pytest.mark.only_soak
def test_reading(workspace: Workspace, folder: Path) -> None:
    """Thumbnails and pixels are there, rows are sorted, sampled and paged, and all columns have a value or null."""
    dataset, gate = creating(workspace, folder)
    view = dataset.where([])
    ids = list(view.sort_by("file_name").ids)
    names = view.sort_by("file_name").to_arrow(["image_filename"])["image_filename"].to_pylist()
    assert names == sorted(names, key=lambda name: name.rpartition("/")[2])
    assert len(view.sample(3, seed=1)) == 3
    assert view.to_arrow().num_rows == len(ids)
    media_id = dataset.media_id(ANIMALS[0])
    assert dataset.thumbnail(media_id)[:2] == b"\xff\xd8"
    assert dataset.read(media_id).ndim == 3
    assert (dataset.tags(), list(dataset.basket.ids), list(dataset.duplicates())) == ([], [], [])
    assert len(dataset.objects) == 0
    assert "INDEXING" in dataset._repr_html_()
    assert dataset._repr_html_().count("<figure") > 1
    finished(dataset, gate)


@pytest.mark.slow
@pytest.mark.only_soak
def test_nothing_else(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Searches, exports and edits are refused, and change nothing."""
    dataset, gate = creating(workspace, folder)
    view = dataset.where([])
    media_id = view.ids[0]
    for attempt in (
        lambda: view.similar(media_id).ids,
        lambda: view.search("cat").ids,
        lambda: dataset.copies_of(media_id),
        lambda: view.export(tmp_path / "out.json"),
        lambda: dataset.save_view("all", view),
        lambda: dataset.report(tmp_path / "report.html"),
    ):
        with pytest.raises(Conflict, match="explored and filtered, but has no index yet; its status is INDEXING"):
            attempt()
    for edit in (lambda: view.tag("seen"), lambda: dataset.delete_media([media_id]), lambda: dataset.basket.add(view)):
        with pytest.raises(Conflict, match="blocked while DATASET_CREATION task is running"):
            edit()
    assert not list(tmp_path.glob("out*"))
    finished(dataset, gate)
    assert (dataset.tags(), dataset.views(), len(dataset.journal())) == ([], [], 0)


def test_vectors(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of vectors are shown, too."""
    reached, opened = threading.Event(), threading.Event()
    index = indexing.index

    def waiting(*arguments: Any, **options: Any) -> Any:
        reached.set()
        assert opened.wait(60)
        return index(*arguments, **options)

    monkeypatch.setattr("framedex.jobs.create.index", waiting)
    dataset = workspace.create_dataset("new", embedded(np.eye(6).tolist(), label=["a", "b"] * 3), wait=False)
    assert reached.wait(60)
    assert [cluster.n_images for cluster in dataset.explore().clusters] == [6]
    assert dataset.where(vql.labels("a")).count() == 3
    opened.set()
    assert dataset.task is not None
    dataset.task.wait(60)
    assert dataset.where(vql.labels("a")).count() == 3


@pytest.mark.slow
@pytest.mark.only_soak
def test_frames(workspace: Workspace, tmp_path: Path) -> None:
    """Frames are shown, also before their video was read to its end."""
    for number in range(3):
        write_video(tmp_path / f"videos/{number}.mp4", numbered(9, seed=number), fps=1)
    dataset, gate = creating(workspace, tmp_path / "videos")
    frames = dataset.where([]).to_arrow(["video_id", "frame_number"])
    assert ROWS <= frames.num_rows < 27
    assert frames["video_id"].null_count == 0
    assert dataset.thumbnail(dataset.where([]).ids[0])[:2] == b"\xff\xd8"
    assert [each.n_frames for each in dataset.explore(entity_type="VIDEOS").clusters] == [frames.num_rows]
    finished(dataset, gate)
    assert dataset.info.n_videos == 3


def leftovers(workspace: Workspace, dataset: Dataset) -> tuple[int, int]:
    """Return the number of generations and of source roots of a dataset in the catalog."""
    with catalog_of(workspace).read() as connection:
        counts = [
            connection.exec_driver_sql(f"SELECT count(*) FROM {table} WHERE dataset_id = ?", (dataset.id,)).scalar_one()
            for table in ("generations", "source_roots")
        ]
    return counts[0], counts[1]


@pytest.mark.slow
@pytest.mark.only_soak
def test_abort(workspace: Workspace, folder: Path) -> None:
    """An aborted creation leaves nothing to see; a retry shows what was read, goes on and brings the whole."""
    dataset, gate = creating(workspace, folder)
    read = seen(dataset)
    assert dataset.task is not None
    threading.Timer(0.2, gate.opened.set).start()  # an encoder is not interrupted
    dataset.task.abort()
    assert str(dataset.info.status_new) == "ERROR"
    with pytest.raises(Conflict, match="nothing to show yet; its status is ERROR"):
        dataset.explore()
    assert leftovers(workspace, dataset) == (0, 0)
    assert not workspace.check().findings
    gate.opened.clear()
    gate.reached.clear()
    gate.left = 0
    dataset.task.retry()
    assert gate.reached.wait(60)
    assert read <= seen(dataset)
    gate.opened.set()
    gate.left = -1
    dataset.task.wait(60)
    assert seen(dataset) == set(NAMES)
    assert not workspace.check().findings


KILLED = """
    import os, signal, sys, framedex
    from tests.api.test_dataset__early import GateAfter
    from tests.gallery import SETTINGS
    from tests.tuning import Tuning

    Tuning().committed_rows = 8
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        gate = GateAfter(2)
        dataset = workspace.create_dataset("new", sys.argv[2], gate, wait=False)
        assert gate.reached.wait(60)
        print(dataset.where([]).count(), flush=True)
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_other_process__and_kill(tmp_path: Path, folder: Path) -> None:
    """Another process sees the rows, too, and none after a kill, in which nothing of them is left."""
    process = start(KILLED, tmp_path / "workspace", folder)
    assert process.stdout is not None
    count = int(process.stdout.readline() or process.communicate()[1])
    with Workspace(tmp_path / "workspace", settings=SETTINGS, read_only=True) as reader:
        assert reader.dataset("new").where([]).count() == count >= ROWS
    process.communicate("\n", timeout=60)
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.dataset("new")
        assert str(dataset.info.status_new) == "ERROR"
        with pytest.raises(Conflict, match="nothing to show yet"):
            dataset.explore()
        assert leftovers(workspace, dataset) == (0, 0)
        assert not workspace.check().findings
        workspace.delete_dataset("new")
        assert not workspace.check().findings


def test_intervals(tuning: Tuning, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows are shown almost at once at first, and then ever less often."""
    now_s, shown = 0.0, list[float]()
    monkeypatch.setattr("framedex.jobs.ingest.ingest.time.monotonic", lambda: now_s)
    tuning.committed_rows = 10_000
    monkeypatch.setattr("framedex.jobs.ingest.ingest.tables.append", lambda *_arguments: 1)
    monkeypatch.setattr(ingest, "rows_to_batch", lambda *_arguments: None)
    writer = ingest._Writer(
        tmp_path, pa.schema([]), ingest.NO_CHECKPOINT, lambda _checkpoint: shown.append(round(now_s))
    )
    for _ in range(100):
        now_s += 1
        writer.add({"kind": None})
        writer.flush_if_due()
    assert shown == [1, 3, 7, 15, 31, 52, 73, 94]


@pytest.mark.slow
@pytest.mark.only_soak
def test_vacuum(workspace: Workspace, folder: Path) -> None:
    """A vacuum during a creation takes nothing from what is shown, and one after it the tables that were shown."""
    dataset, gate = creating(workspace, folder)
    read = seen(dataset)
    workspace.vacuum(older_than_s=0)
    workspace.disk_usage()
    assert seen(dataset) == read
    finished(dataset, gate)
    workspace.vacuum(older_than_s=0)
    assert leftovers(workspace, dataset)[0] == 1
    assert seen(dataset) == set(NAMES)
    assert not workspace.check().findings
