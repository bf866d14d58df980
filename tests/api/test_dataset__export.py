"""Exports as tasks: started, watched, stopped, and known to all processes; and what they leave when they fail."""

import os
import signal
import threading
import zipfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pytest

from framedex import (
    Aborted,
    Conflict,
    Dataset,
    ExportTask,
    InvalidFilter,
    InvalidInput,
    NotFound,
    TaskFailed,
    Workspace,
)
from framedex.export.files import remove_partial_files, whole_file
from framedex.records import ExportResult, ExportStatus
from framedex.storage import schema
from tests.export.test_archive import read_json
from tests.gallery import FURRY, SETTINGS, TOWNS, Gallery, embedded, fill
from tests.inside import catalog_of, context_of
from tests.pauses import Pause
from tests.prepared import prepared
from tests.processes import run, start

ROWS = pa.table(
    {"uri": [f"{number}.jpg" for number in range(50)], "embedding": [[1.0, float(number)] for number in range(50)]}
)
STUCK = """
    import sys, framedex
    from tests.pauses import Pause
    from tests.api.test_dataset__export import all_export_threads_busy

    workspace = framedex.Workspace(sys.argv[1])
    pause = Pause("media")
    with all_export_threads_busy(workspace):
        task = workspace.dataset("d").export(sys.argv[2], wait=False)
        task._report.callback = pause
    assert pause.reached.wait(60)
    print(task.id, flush=True)
    sys.stdin.readline()
    pause.opened.set()
    task.wait()
"""


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of 50 rows."""
    return prepared(workspace, "d", ROWS)


@contextmanager
def all_export_threads_busy(workspace: Workspace) -> Iterator[None]:
    """Keep all threads for exports busy, so that an export that is started waits until the block ends."""
    free, reached = threading.Event(), threading.Barrier(3)

    def wait(**_: Any) -> ExportResult:
        reached.wait(60)
        assert free.wait(60)
        return ExportResult(path="", total_media_items=0, images=0, missing_images=[], message="")

    tasks = [context_of(workspace).exports.start("none", Path("none"), wait, created_by="me") for _ in range(2)]
    reached.wait(60)
    try:
        yield
    finally:
        free.set()
        for task in tasks:
            task.wait(60)


def paused(workspace: Workspace, dataset: Dataset, path: Path, **options: Any) -> tuple[ExportTask, Pause]:
    """Start an export that stops in the middle, and wait until it is there."""
    pause = Pause("media")
    with all_export_threads_busy(workspace):
        task = dataset.export(path, wait=False, **options)
        task._report.callback = pause
    assert pause.reached.wait(60)
    return task, pause


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != "workspace")


def test_export__without_waiting(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export is known at once, and runs from PENDING over RUNNING to COMPLETED."""
    with all_export_threads_busy(workspace):
        task = dataset.export(tmp_path / "out #1.zip", "parquet", wait=False)
        pause = Pause("media")
        task._report.callback = pause
        pending = task.record
        assert dataset.export_status(task.id) == pending
    assert (pending.status, pending.progress, pending.entities_count) == (ExportStatus.PENDING, 0, None)
    assert (pending.id, pending.dataset_id, pending.download_uri) == (task.id, dataset.id, None)
    assert abs(datetime.now(UTC) - pending.created_at) < timedelta(minutes=5)

    assert pause.reached.wait(60)
    assert task.status is dataset.export_status(task.id).status is ExportStatus.RUNNING
    assert dataset.export_status(task.id).entities_count == 50
    with pytest.raises(Conflict, match="RUNNING; there is no result yet"):
        _ = task.result
    assert not (tmp_path / "out #1.zip").exists()
    pause.opened.set()

    record = task.wait(60)
    assert record == task.record == dataset.export_status(task.id) == dataset.exports()[0]
    assert (record.status, record.progress, record.entities_count) == (ExportStatus.COMPLETED, 100, 50)
    assert record.result_message == task.result.message == "50 media"
    uri = record.download_uri or ""
    assert unquote_to_bytes(uri.removeprefix("file://")) == os.fsencode(tmp_path / "out #1.zip")
    assert zipfile.ZipFile(tmp_path / "out #1.zip").testzip() is None


@pytest.mark.slow
def test_exports__newest_first(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """All exports of a dataset are listed, those that were waited for too, and no other dataset's."""
    other = workspace.create_dataset("other", embedded([[1, 0]]))
    assert dataset.exports() == []
    tasks = [dataset.export(tmp_path / f"{number}.zip", wait=False) for number in range(3)]
    for task in tasks:
        task.wait(60)
    dataset.export(tmp_path / "last.zip")
    other.export(tmp_path / "other.zip")
    listed = dataset.exports()
    assert [record.id for record in listed[1:]] == [task.id for task in reversed(tasks)]
    assert (listed[0].download_uri or "").endswith("last.zip")
    assert len(other.exports()) == 1
    with pytest.raises(NotFound, match=tasks[0].id):
        other.export_status(tasks[0].id)


@pytest.mark.parametrize("export_id", ["", "nothing", "\udcff", "' OR 1=1 --"])
def test_export_status__unknown(dataset: Dataset, export_id: str) -> None:
    """An export that does not exist is an error that names it."""
    with pytest.raises(NotFound, match="no export"):
        dataset.export_status(export_id)


@pytest.mark.slow
@pytest.mark.only_soak
def test_export__of_one_state(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export is of the state at which it was asked for, whatever is added before it begins and while it runs."""
    pause = Pause("media")
    with all_export_threads_busy(workspace):
        task = dataset.export(tmp_path / "out.zip", wait=False)
        task._report.callback = pause
        dataset.add_media({"uri": ["new.jpg"], "embedding": [[0.5, 0.5]]})
    assert pause.reached.wait(60)
    dataset.add_media({"uri": ["newer.jpg"], "embedding": [[0.5, 0.6]]})
    dataset.reindex()
    pause.opened.set()
    assert task.wait(60).entities_count == 50
    assert len(read_json(tmp_path / "out.zip")["media_items"]) == 50
    assert dataset.export(tmp_path / "out.zip").total_media_items == 52


@pytest.mark.slow
def test_export__while_a_task_runs(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A dataset that is READ ONLY is exported as it was before."""
    from tests.pauses import watched

    pause = Pause("reading vectors")
    more = {"uri": ["new.jpg"], "embedding": [[0.5, 0.5]]}
    adding = watched(workspace, lambda: dataset.add_media(more, wait=False), pause)
    assert pause.reached.wait(60)
    assert dataset.info.status == "READ ONLY"
    assert dataset.export(tmp_path / "out.zip").total_media_items == 50
    pause.opened.set()
    adding.wait(60)


def test_export__of_what_has_no_index(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A dataset that is still being made has nothing to export; nothing is started."""
    from tests.gallery import Gate

    gate = Gate()
    dataset = workspace.create_dataset("new", folder, gate, wait=False)
    assert gate.reached.wait(60)
    with pytest.raises(Conflict, match="nothing to show yet; its status is INDEXING"):
        dataset.export(tmp_path / "out.zip", wait=False)
    assert dataset.exports() == []
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait(60)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"format": "xml"}, InvalidInput, "format must be"),
        ({"entity_type": "FILMS"}, InvalidInput, "entity_type must be one of IMAGES, OBJECTS, VIDEOS, not 'FILMS'"),
        ({"vql": [], "media_selection": []}, InvalidInput, "either vql or media_selection, not both"),
        ({"vql": [{"colour": 1}]}, InvalidFilter, r"\$\[0\]"),
    ],
)
def test_export__unusable_arguments(
    dataset: Dataset, tmp_path: Path, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Invalid arguments raise at once; no export is started."""
    with pytest.raises(error, match=said):
        dataset.export(tmp_path / "out.zip", wait=False, **options)
    assert dataset.exports() == []
    assert names_in(tmp_path) == []


def test_export__rejected(dataset: Dataset, tmp_path: Path) -> None:
    """A request that cannot be honoured is REJECTED with the reason; waiting raises it."""
    unknown = [{"type": "media", "payload": {"media_ids": ["no-such-id"]}}]
    task = dataset.export(tmp_path / "out.zip", media_selection=unknown, wait=False)
    with pytest.raises(NotFound, match="no-such-id"):
        task.wait(60)
    with pytest.raises(NotFound, match="no-such-id"):
        _ = task.result
    with pytest.raises(InvalidInput, match="cannot write"):
        dataset.export(tmp_path / "gone" / os.fsdecode(b"\xff.zip"))
    place, ids = dataset.exports()
    assert place.status is ids.status is ExportStatus.REJECTED
    assert ids == task.record
    assert "no-such-id" in ids.result_message
    assert "gone/\\xff.zip" not in place.result_message  # it is Python's own way that is shown
    assert "gone/" in place.result_message
    assert names_in(tmp_path) == []


def test_export__names_of_any_bytes(dataset: Dataset, tmp_path: Path) -> None:
    """A file whose name is no text is written, and found again by its URI."""
    path = tmp_path / os.fsdecode(b"\xff.zip")
    assert dataset.export(path).path.endswith("\\xff.zip")
    assert path.exists()
    assert (dataset.exports()[0].download_uri or "").endswith("%FF.zip")


def test_export__relative_path(dataset: Dataset, in_tmp_path: Path) -> None:
    """A relative path is one from the folder in which the export was asked for."""
    (in_tmp_path / "elsewhere").mkdir()
    task = dataset.export("out.zip", wait=False)
    with chdir("elsewhere"):
        task.wait(60)
    assert task.result.path == str(in_tmp_path / "out.zip")
    assert (in_tmp_path / "out.zip").exists()


def test_abort__running(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export that is aborted is FAILED and leaves nothing, and an older file as it was."""
    (tmp_path / "out.zip").write_bytes(b"old")
    task, pause = paused(workspace, dataset, tmp_path / "out.zip", format="yolo")
    aborting = threading.Thread(target=task.abort)
    aborting.start()
    assert task._report.cancelled.wait(60)
    pause.opened.set()
    aborting.join(60)
    assert (task.status, task.record.result_message) == (ExportStatus.FAILED, "aborted on request")
    assert dataset.exports() == [task.record]
    with pytest.raises(Aborted):
        task.wait()
    with pytest.raises(Conflict, match="FAILED"):
        task.abort()
    assert names_in(tmp_path) == ["out.zip"]
    assert (tmp_path / "out.zip").read_bytes() == b"old"


def test_abort__waiting_for_a_thread(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export that waits behind others is aborted at once."""
    with all_export_threads_busy(workspace):
        task = dataset.export(tmp_path / "out.zip", wait=False)
        assert task.abort().status is ExportStatus.FAILED
    with pytest.raises(Aborted):
        task.wait(60)
    assert dataset.export_status(task.id) == task.record
    assert names_in(tmp_path) == []


def test_abort__completed(dataset: Dataset, tmp_path: Path) -> None:
    """An export that is done cannot be aborted."""
    task = dataset.export(tmp_path / "out.zip", wait=False)
    task.wait(60)
    with pytest.raises(Conflict, match="cannot be aborted: it is COMPLETED"):
        task.abort()
    assert (tmp_path / "out.zip").exists()


def test_wait__gives_up_in_time(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Waiting with a limit ends with TimeoutError, and the export goes on."""
    task, pause = paused(workspace, dataset, tmp_path / "out.zip")
    with pytest.raises(TimeoutError, match=task.id):
        task.wait(0.01)
    pause.opened.set()
    assert task.wait(60).status is ExportStatus.COMPLETED


def test_wait__progress(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A watcher hears of shares that never fall and end at 1."""
    heard: list[float] = []
    with all_export_threads_busy(workspace):
        task = dataset.export(tmp_path / "out.zip", "yolo", True, wait=False)
        task._report.callback = lambda _stage, share: heard.append(share)
    task._future.result(60)
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1)


@pytest.mark.slow
def test_close__aborts_what_runs(tmp_path: Path) -> None:
    """Closing a workspace stops its exports, also those that wait for a thread, before it returns."""
    workspace = Workspace(tmp_path / "workspace", settings=SETTINGS)
    dataset = workspace.create_dataset("d", ROWS)
    task, pause = paused(workspace, dataset, tmp_path / "out.zip")
    waiting = [dataset.export(tmp_path / f"{number}.zip", wait=False) for number in range(3)]
    closing = threading.Thread(target=workspace.close)
    closing.start()
    assert task._report.cancelled.wait(60)
    pause.opened.set()
    closing.join(60)
    assert not closing.is_alive()
    assert all(each.status.final for each in waiting)
    with Workspace(tmp_path / "workspace") as again:
        found = {record.status for record in again.dataset("d").exports()}
    # The second thread may have been through with one or the other before.
    assert ExportStatus.FAILED in found
    assert found <= {ExportStatus.FAILED, ExportStatus.COMPLETED}
    assert task.status is ExportStatus.FAILED
    assert "out.zip" not in names_in(tmp_path)


def stuck(workspace: Path, path: Path) -> Any:
    """Start a process whose export stands still in the middle; return it and the export's id."""
    process = start(STUCK, workspace, path)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.slow
def test_killed_process__its_export_is_interrupted(tmp_path: Path) -> None:
    """After kill -9 the export is FAILED, and the next one to that name removes what it left."""
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", ROWS)
        process, export_id = stuck(workspace.path, tmp_path / "out.zip")
        assert dataset.export_status(export_id).status is ExportStatus.RUNNING
        (partial,) = names_in(tmp_path)
        assert partial.endswith(".partial")
        assert remove_partial_files(tmp_path) == 0
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

        # A reader who may not change anything sees it too.
        with Workspace(tmp_path / "workspace", read_only=True) as reading:
            shown = reading.dataset("d").export_status(export_id)
        assert (shown.status, shown.result_message) == (ExportStatus.FAILED, "interrupted")
        assert dataset.exports() == [shown]
        with catalog_of(workspace).read() as connection:
            row = connection.execute(schema.exports.select().where(schema.exports.c.id == export_id)).one()
        assert row.status == ExportStatus.FAILED

        dataset.export(tmp_path / "other.zip")
        assert names_in(tmp_path) == sorted([partial, "other.zip"])
        dataset.export(tmp_path / "out.zip")
        assert names_in(tmp_path) == ["other.zip", "out.zip"]


@pytest.mark.slow
def test_partial_files__are_removed_when_dead(tmp_path: Path) -> None:
    """A clean-up removes what killed processes left, of any name, and leaves alone what is being written."""
    Workspace(tmp_path / "workspace").create_dataset("d", ROWS)
    process, _ = stuck(tmp_path / "workspace", tmp_path / "out.zip")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(names_in(tmp_path)) == 1
    with whole_file(tmp_path / "other.zip") as file:
        assert remove_partial_files(tmp_path, "other.zip") == 0
        assert remove_partial_files(tmp_path) == 1
        file.write(b"whole")
    assert names_in(tmp_path) == ["other.zip"]


def test_heartbeat__too_old(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export of another machine that shows no sign of life any more is FAILED, and makes no file afterwards."""
    task, pause = paused(workspace, dataset, tmp_path / "out.zip")
    with catalog_of(workspace).write() as connection:
        old = datetime.now(UTC) - timedelta(minutes=5)
        row = schema.exports.update().where(schema.exports.c.id == task.id)
        connection.execute(row.values(heartbeat_at=old, owner="other-host:1:2:3"))
    assert dataset.export_status(task.id).status is ExportStatus.FAILED
    pause.opened.set()
    with pytest.raises(Conflict, match="given up"):
        task.wait(60)
    assert dataset.export_status(task.id).result_message == "interrupted"
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_heartbeat__stops_what_was_given_up(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A beat stores how far an export is; it ends one that was given up meanwhile."""
    task, pause = paused(workspace, dataset, tmp_path / "out.zip")
    task._report.share = 0.42
    task._beat()
    assert dataset.export_status(task.id).progress == task.record.progress == 42
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.exports.update().values(status=ExportStatus.FAILED))
    task._beat()
    assert task._report.cancelled.is_set()
    pause.opened.set()
    with pytest.raises(Conflict, match="given up"):
        task.wait(60)
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_interrupt__leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while an export is waited for ends the wait with KeyboardInterrupt, and nothing stays."""
    Workspace(tmp_path / "workspace").create_dataset("d", ROWS)
    out = run(
        """
        import os, signal, sys, threading, framedex
        from tests.pauses import Pause, wait_until
        from tests.api.test_dataset__export import paused

        with framedex.Workspace(sys.argv[1]) as workspace:
            dataset = workspace.dataset("d")
            task, pause = paused(workspace, dataset, sys.argv[2])

            def waited_for(stage, share):
                pass

            def interrupt():
                wait_until(lambda: task._report.callback is waited_for)  # then the main thread waits
                os.kill(os.getpid(), signal.SIGINT)
                assert task._report.cancelled.wait(60)
                pause.opened.set()

            threading.Thread(target=interrupt).start()
            try:
                task.wait(progress=waited_for)
            except KeyboardInterrupt:
                print("interrupted", dataset.exports()[0].status)
        """,
        tmp_path / "workspace",
        tmp_path / "out.zip",
    )
    assert out.strip() == "interrupted FAILED"
    assert names_in(tmp_path) == []


def test_export__to_one_name_at_a_time(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Exports to one name at the same time do not meet: each is whole, and the last to end stays."""
    first, pause = paused(workspace, dataset, tmp_path / "out.zip")
    second = dataset.export(tmp_path / "out.zip", "parquet", wait=False)
    second.wait(60)
    assert zipfile.ZipFile(tmp_path / "out.zip").namelist() == ["metadata.parquet"]
    pause.opened.set()
    first.wait(60)
    assert zipfile.ZipFile(tmp_path / "out.zip").namelist() == ["metadata.json"]
    assert names_in(tmp_path) == ["out.zip"]


def test_failure__of_another_kind(workspace: Workspace, tmp_path: Path) -> None:
    """An unexpected exception ends an export as FAILED, with its message."""

    def job(begin: Any, **_: Any) -> ExportResult:
        begin(1)
        raise SystemExit("the disk is full")

    task = context_of(workspace).exports.start("some", tmp_path / "out.zip", job, created_by="me")
    with pytest.raises(TaskFailed, match="SystemExit: the disk is full"):
        task.wait(60)
    assert (task.status, task.record.result_message) == (ExportStatus.FAILED, "SystemExit: the disk is full")


def test_read_only__is_exported_without_a_trace(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A workspace that is opened for reading can be exported; its catalog says nothing of that."""
    before = dataset.export(tmp_path / "before.zip")
    with Workspace(workspace.path, read_only=True) as reading:
        task = reading.dataset("d").export(tmp_path / "out.zip", wait=False)
        assert task.wait(60).status is ExportStatus.COMPLETED
        assert task.result.total_media_items == before.total_media_items
        task._beat()
        with pytest.raises(Conflict):
            task.abort()
    assert len(dataset.exports()) == 1


def test_export__filtered(gallery: Gallery, tmp_path: Path) -> None:
    """A filter that comes with the export narrows the view."""
    towns = [{"labels": {"op": "is", "value": "town"}}]
    assert gallery.dataset.export(tmp_path / "out.zip", vql=towns).total_media_items == len(TOWNS)
    animals = gallery.dataset.where([{"labels": {"op": "is", "value": "animal"}}])
    assert animals.export(tmp_path / "out.zip", vql=towns).total_media_items == 0
    fur = [{"labels": {"op": "is", "value": "fur"}}]
    assert animals.export(tmp_path / "out.zip", vql=fur).total_media_items == len(FURRY)


@pytest.mark.parametrize("format_", ["json", "parquet", "coco", "csv", "yolo"])
def test_export__of_objects(gallery: Gallery, tmp_path: Path, format_: str) -> None:
    """There are no objects, so an export of them is empty."""
    result = gallery.dataset.export(tmp_path / "out.zip", format_, True, entity_type="OBJECTS")
    assert (result.total_media_items, result.images) == (0, 0)
    assert zipfile.ZipFile(tmp_path / "out.zip").testzip() is None


def test_export__missing_images_are_told(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """The message says how many images could not be read."""
    result = dataset.export(tmp_path / "out.zip", include_images=True)
    assert result.message == "50 media, 0 images; 50 images could not be read"
    assert dataset.exports()[0].result_message == result.message


@pytest.mark.slow
@pytest.mark.only_soak
def test_export__of_restored_and_cloned_datasets(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A restored dataset exports what it did before; so does a clone, but for the ids of its own groups."""
    (folder / "image_annotations.csv").write_text("filename,label,caption\n000.png,cat,a text\n001.png,dog,\n")
    dataset = workspace.create_dataset("d", folder)
    snapshot = dataset.snapshot("before")

    def items(of: Dataset, *, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        of.export(tmp_path / "out.zip", include_images=True)
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            assert len([name for name in archive.namelist() if name.startswith("images/")]) == of.count()
        media = read_json(tmp_path / "out.zip")["media_items"]
        return [{name: value for name, value in item.items() if name not in without} for item in media]

    before = items(dataset)
    of_any = items(dataset, without=("cluster_id",))
    dataset.add_media(fill(tmp_path / "more", 2, first_seed=500))
    assert len(items(dataset)) == len(before) + 2
    dataset.restore(snapshot)
    assert items(dataset) == before
    assert items(dataset.clone(snapshot), without=("cluster_id",)) == of_any
