"""Files are uploaded in many calls to a transaction, which makes a dataset of a draft or adds to one."""

import io
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import (
    Aborted,
    Conflict,
    Dataset,
    Forbidden,
    InvalidInput,
    NotFound,
    NotIndexed,
    NotRetryable,
    ReadOnly,
    Task,
    TaskFailed,
    Workspace,
    WorkspaceError,
)
from framedex.encoders import register
from framedex.jobs.ingest import received
from framedex.operations import uploads as upload_operations
from framedex.records import DatasetStatus, TaskStatus, TaskType, UploadState
from framedex.tasks import start_task
from tests.gallery import SETTINGS, Averages, Faulty, Gate, embedded
from tests.growth import columns_of, status_of
from tests.problems import unusable
from tests.uploading import blobs_of, drafted, home_of, image, lists_of, pairs, paths_of, state_of
from tests.videos import numbered, write_video

Uses = Callable[[Averages], None]


@pytest.fixture
def uses() -> Uses:
    """Name the encoder that ``averages`` is from then on."""
    return lambda encoder: register("averages", lambda _name: encoder)


def test_draft__is_an_empty_dataset(workspace: Workspace) -> None:
    """A draft has a record without progress and can be listed, renamed and deleted; its name is taken."""
    dataset = workspace.create_draft("pets")
    info = dataset.info
    assert (info.status_new, info.status, info.progress, info.n_images) == (DatasetStatus.DRAFT, "NEW", 0, 0)
    assert info.owned_by == "tester@example.org"
    with pytest.raises(Conflict, match="exists already"):
        workspace.create_draft("pets")
    with pytest.raises(InvalidInput):
        workspace.create_draft("a/b")
    dataset.rename("animals")
    assert [record.display_name for record in workspace.datasets()] == ["animals"]
    dataset.open_upload().add(pairs(1))
    assert (dataset.info.status, dataset.info.status_new) == ("UPLOADING", DatasetStatus.DRAFT)
    assert "DRAFT" in repr(dataset)
    assert "DRAFT" in dataset._repr_html_()
    workspace.delete_dataset("animals")
    assert workspace.datasets() == []
    assert not home_of(workspace, dataset).exists()


REFUSED: dict[str, Callable[[Dataset, Path], Any]] = {
    "explore": lambda dataset, _: dataset.explore(),
    "count": lambda dataset, _: dataset.count(),
    "view": lambda dataset, _: dataset.where([]).media_ids(),
    "search": lambda dataset, _: dataset.search("cat"),
    "issues": lambda dataset, _: dataset.issues(),
    "duplicates": lambda dataset, _: dataset.duplicates(),
    "snapshot": lambda dataset, _: dataset.snapshot(),
    "restore": lambda dataset, _: dataset.restore("current"),
    "clone": lambda dataset, _: dataset.clone(),
    "export": lambda dataset, folder: dataset.export(folder / "x.zip"),
    "report": lambda dataset, folder: dataset.report(folder / "x.html"),
    "add_media": lambda dataset, folder: dataset.add_media(folder),
    "add_objects": lambda dataset, folder: dataset.add_objects(folder / "boxes.csv"),
    "reindex": lambda dataset, _: dataset.reindex(),
    "enrich": lambda dataset, _: dataset.enrich({"OBJECT_DETECTION": "faces"}),
    "tag": lambda dataset, _: dataset.tag("x", "y"),
    "add_field": lambda dataset, _: dataset.add_field("x", "string"),
    "set_limits": lambda dataset, _: dataset.set_limits(blur=0.5),
    "plan_cleanup": lambda dataset, _: dataset.plan_cleanup(duplicates=0.96),
    "delete_media": lambda dataset, _: dataset.delete_media("x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_draft__has_nothing_to_show_or_to_change(workspace: Workspace, folder: Path, name: str) -> None:
    """All that needs media raises Conflict and names the status, and the draft stays as it is."""
    (folder / "boxes.csv").write_text("filename,col_x,row_y,width,height,label\n000.png,5,5,20,20,ant\n")
    dataset = workspace.create_draft("pets")
    with pytest.raises(Conflict, match="DRAFT"):
        REFUSED[name](dataset, folder)
    assert status_of(dataset) is DatasetStatus.DRAFT
    assert workspace.tasks().total == 0


@pytest.mark.slow
def test_upload__makes_a_dataset_of_a_draft(workspace: Workspace, folder: Path) -> None:
    """Files of several calls become the media; the task, the statuses and the transaction say so, and no list stays."""
    dataset = workspace.create_draft("pets")
    transaction = dataset.open_upload()
    files = sorted(folder.iterdir())
    transaction.add([(path.name, path) for path in files[:2]])
    transaction.add([(f"C:\\photos\\{path.name}", path.read_bytes()) for path in files[2:4]])
    with files[4].open("rb") as opened:
        record = transaction.add(
            [(f"more/{files[4].name}", opened), (files[5].name, io.BytesIO(files[5].read_bytes()))]
        )
    sizes = sum(path.stat().st_size for path in files)
    assert (record.n_files, record.n_bytes, record.state, record.task_id) == (6, sizes, UploadState.OPEN, None)
    task = transaction.process(encoder="gist")
    assert (task.record.task_type, task.record.status) == (TaskType.DATASET_CREATION, TaskStatus.COMPLETED)
    assert (status_of(dataset), dataset.info.status, dataset.info.progress) == (DatasetStatus.READY, "READY", 100)
    assert paths_of(dataset) == [path.name for path in files]
    assert (state_of(transaction), transaction.record.task_id) == (UploadState.DONE, task.id)
    assert [each.reason for each in dataset.snapshots()] == ["creation"]
    assert lists_of(workspace, dataset) == []
    calm = workspace.create_dataset("calm", folder, "gist")
    shown = ["path", "embedding", "uniqueness", "cluster_2", "content_hash"]
    order = [paths_of(dataset).index(path) for path in columns_of(dataset, ["path"])["path"]]
    assert order == list(range(6))
    assert columns_of(dataset, shown) == columns_of(calm, shown)
    assert workspace.check().findings == []


@pytest.mark.slow
def test_upload__adds_to_a_dataset(workspace: Workspace, folder: Path) -> None:
    """Of a dataset with media the transaction makes an addition, with or without a reindex; known files are skipped."""
    dataset = workspace.create_dataset("pets", folder, "gist")
    transaction = dataset.open_upload()
    transaction.add(pairs(1, 2))
    assert dataset.count() == 6
    task = transaction.process()
    assert (task.record.task_type, status_of(dataset)) == (TaskType.MEDIA_ADDITION, DatasetStatus.PARTIAL_INDEX)
    assert dataset.count() == 8
    again = dataset.open_upload()
    again.add(pairs(2, 3))
    again.process(auto_reindex=True)
    assert (dataset.count(), status_of(dataset)) == (9, DatasetStatus.READY)
    assert [record.state for record in dataset.uploads()] == [UploadState.DONE, UploadState.DONE]
    other = dataset.open_upload()
    other.add(pairs(4))
    with pytest.raises(InvalidInput, match="for drafts only"):
        other.process(encoder="gist")
    with pytest.raises(InvalidInput, match="for drafts only"):
        other.process(thresholds=np.linspace(0.1, 0.5, 5).tolist())
    assert state_of(other) is UploadState.OPEN


@pytest.mark.slow
def test_upload__a_dataset_made_of_it_is_like_others(workspace: Workspace, tmp_path: Path) -> None:
    """It can be read, exported, snapshotted, restored, cloned and vacuumed, and its clone has files of its own."""
    dataset, transaction = drafted(workspace, *range(4))
    transaction.process(encoder="gist")
    before = dataset.snapshot("before")
    further = dataset.open_upload()
    further.add(pairs(9))
    further.process(auto_reindex=True)
    clone = dataset.clone(before)
    dataset.restore(before)
    assert (dataset.count(), clone.count()) == (4, 4)
    workspace.vacuum(older_than_s=0)
    assert len(blobs_of(workspace, dataset)) == 4
    dataset.export(tmp_path / "all.zip", include_images=True)
    workspace.delete_dataset("pets")
    pixels = clone.read(clone.where([]).media_ids()[0])
    assert pixels.shape == (120, 160, 3)
    assert clone.uploads() == []
    assert workspace.check().findings == []


@pytest.mark.slow
def test_upload__videos_and_annotations(workspace: Workspace, tmp_path: Path) -> None:
    """Videos become frames, and annotation files give labels and boxes; the last one of a name counts."""
    dataset, transaction = drafted(workspace, 1, 2)
    boxes = "filename,col_x,row_y,width,height,label\n1.png,5,5,20,20,ant\n"
    transaction.add([("image_annotations.csv", b"filename,label\n1.png,dog\n"), ("clip.mp4", write_video(
        tmp_path / "clip.mp4", numbered(20)
    ))])  # fmt: skip
    transaction.add(
        [("image_annotations.csv", b"filename,label\n1.png,cat\n"), ("object_annotations.csv", boxes.encode())]
    )
    transaction.process(encoder="gist", frames_per_second=2.0)
    assert dataset.info.n_videos == 1
    rows = dataset.to_arrow(["image_filename", "labels"]).to_pylist()
    assert {row["image_filename"]: row["labels"] for row in rows}["1.png"] == ["cat"]
    assert dataset.objects.count() == 1
    assert len(rows) == 2 + 4
    assert sum(dataset.skipped.values()) == 1


@pytest.mark.slow
def test_upload__broken_annotations_are_a_problem(workspace: Workspace) -> None:
    """A malformed annotation file is named among the problems; the images are there."""
    dataset, transaction = drafted(workspace, 1)
    transaction.add([("annotations.json", b"{no JSON")])
    transaction.process(encoder="gist")
    assert paths_of(dataset) == ["1.png"]
    assert any(each.startswith("annotations.json") for each in unusable(dataset))


def test_upload__of_equal_names(workspace: Workspace) -> None:
    """Equal names, within a call and over calls, are images of their own, except for equal contents."""
    dataset, transaction = drafted(workspace)
    transaction.add([("a.png", image(1)), ("b.png", image(2)), ("x/a.png", image(3)), ("y/a.png", image(1))])
    record = transaction.add([("y\\b.png", image(4)), ("b.png", image(2))])
    assert record.n_files == 5
    transaction.process(encoder="gist")
    assert columns_of(dataset, ["path"])["path"] == ["a.png", "a-2.png", "b.png", "b-2.png"]
    assert dataset.skipped == {"repeated names, of which the last one counts": 1}
    workspace.vacuum()
    assert {path.read_bytes() for path in blobs_of(workspace, dataset)} == {image(number) for number in range(1, 5)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("a.png", b"1"), ("x.exe", b"2")], r"^Unsupported file format: 'x\.exe'$"),
        ([("a.png", b"1"), ("folder/x.zip", b"2")], r"^Unsupported file format: 'x\.zip'$"),
        ([(".png", b"1")], r"^Unsupported file format: '\.png'$"),
        ([("my_annotations.json", b"1")], "Unsupported file format"),
        ([], "holds no files"),
        ("a.png", "must be a list"),
        ([("a.png", b"1"), b"2"], r"files\[1\] must be a pair"),
        ([("a.png", 5)], "must be bytes, a binary file or the path"),
        ([(5, b"1")], "must be a pair"),
        ([("folder/", b"1")], "needs a name"),
        ([("a\0.png", b"1")], "needs a name"),
        ([("\ud800.png", b"1")], "lone surrogate"),
        ([("ä" * 126 + ".png", b"1")], "up to 255 bytes, not 256"),
        ([("a.png", b"1"), ("b.png", Path("/does/not/exist.png"))], r"files\[1\] \('b\.png'\): cannot read"),
        ([("a.png", Path("/tmp"))], "cannot read"),
        ([("a.png", io.StringIO("text"))], "opened as text"),
    ],
)
def test_add__refuses_a_call_as_a_whole(workspace: Workspace, files: Any, message: str) -> None:
    """A file that cannot be used is named, and no file of its call is kept; the transaction goes on."""
    dataset, transaction = drafted(workspace, 1)
    stored = blobs_of(workspace, dataset)
    with pytest.raises(InvalidInput, match=message):
        transaction.add(files)
    assert blobs_of(workspace, dataset) == stored
    assert transaction.record.n_files == 1
    assert transaction.add(pairs(2)).n_files == 2
    assert lists_of(workspace, dataset) == [f"transactions/{transaction.id}.files"]


def limited(tmp_path: Path, **limits: int) -> Workspace:
    """Return a workspace with other limits."""
    return Workspace(tmp_path / "limited", settings=SETTINGS.model_copy(update=limits))


@pytest.mark.parametrize(
    ("limits", "files", "message"),
    [
        ({"max_upload_files": 2}, [("a.png", b"1"), ("b.png", b"2"), ("c.png", b"3")], "up to 2 files"),
        ({"max_file_bytes": 3}, [("a.png", b"1234")], "more than 3 bytes"),
        ({"max_video_bytes": 3}, [("a.mp4", b"1234")], r"more than 3 bytes \(FRAMEDEX_MAX_VIDEO_BYTES\)"),
        ({"max_upload_bytes": 6}, [("a.png", b"1234"), ("a.png", b"123")], "FRAMEDEX_MAX_UPLOAD_BYTES"),
        ({"max_transaction_files": 2}, [("b.png", b"1"), ("c.png", b"2")], "up to 2 files"),
        ({"max_transaction_bytes": 5}, [("b.png", b"1234")], "up to 5 bytes"),
    ],
)
def test_add__limits(tmp_path: Path, limits: dict[str, int], files: Any, message: str) -> None:
    """A call beyond a limit is refused as a whole; what fits is taken afterwards."""
    with limited(tmp_path, **limits) as workspace:
        transaction = workspace.create_draft("pets").open_upload()
        transaction.add([("a.png", b"12")])
        with pytest.raises(InvalidInput, match=message):
            transaction.add(files)
        assert (transaction.record.n_files, transaction.record.n_bytes) == (1, 2)
        assert transaction.add([("z.png", b"1")]).n_files == 2


def test_add__a_video_may_be_larger_than_an_image(tmp_path: Path) -> None:
    """The limit of images does not hold for videos."""
    with limited(tmp_path, max_file_bytes=3) as workspace:
        transaction = workspace.create_draft("pets").open_upload()
        assert transaction.add([("a.mp4", b"1234")]).n_bytes == 4


def test_add_media__a_video_has_a_limit_of_its_own(tmp_path: Path, folder: Path) -> None:
    """Videos given as content may be larger than images, up to their own limit."""
    with limited(tmp_path, max_video_bytes=9) as workspace:
        dataset = workspace.create_dataset("pets", folder, "gist")
        with pytest.raises(InvalidInput, match=r"more than 9 bytes \(FRAMEDEX_MAX_VIDEO_BYTES\)"):
            dataset.add_media(files=[("a.mp4", bytes(10))])
    with limited(tmp_path, max_file_bytes=9) as workspace:
        dataset = workspace.dataset("pets")
        dataset.add_media(files=[("a.mp4", write_video(tmp_path / "a.mp4", numbered(3)).read_bytes())])
        assert dataset.info.n_videos == 1


class Counted(io.RawIOBase):
    """A file of zeros that remembers the largest part that was asked for."""

    def __init__(self, size: int) -> None:
        self.left, self.largest = size, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        assert (size or -1) > 0, "the whole file was asked for"
        self.largest = max(self.largest, size or 0)
        part = bytes(min(size or 0, self.left))
        self.left -= len(part)
        return part


def test_add__reads_files_in_parts(workspace: Workspace) -> None:
    """A large file is never asked for as a whole."""
    _, transaction = drafted(workspace)
    file = Counted(20 * 2**20)
    assert transaction.add([("large.png", file)]).n_bytes == 20 * 2**20
    assert file.largest <= 2**20


def test_open__at_most_twenty(workspace: Workspace) -> None:
    """A dataset has up to 20 open transactions; one that is discarded makes room, and others do not count."""
    dataset = workspace.create_draft("pets")
    opened = [dataset.open_upload() for _ in range(20)]
    assert len({each.id for each in opened}) == 20
    with pytest.raises(Conflict, match="20 open transactions"):
        dataset.open_upload()
    workspace.create_draft("other").open_upload()
    opened[3].discard()
    assert dataset.open_upload().id > opened[-1].id
    assert len(dataset.uploads()) == 20


def test_open__needs_a_dataset_that_takes_files(workspace: Workspace, folder: Path, uses: Uses) -> None:
    """While a task runs, and after a failed creation, no transaction is opened; embeddings take no files."""
    gate = Gate()
    uses(gate)
    dataset = workspace.create_dataset("pets", folder, "averages", wait=False)
    assert gate.reached.wait(60)
    with pytest.raises(Conflict, match="blocked while DATASET_CREATION task is running"):
        dataset.open_upload()
    assert dataset.task is not None
    gate.opened.set()
    dataset.task.wait(60)
    assert dataset.open_upload().state is UploadState.OPEN
    vectors = workspace.create_dataset("vectors", embedded([[1, 0], [0, 1]]))
    with pytest.raises(InvalidInput, match="brought its embeddings"):
        vectors.open_upload()
    forbidden = SETTINGS.model_copy(update={"add_media_enabled": False})
    with Workspace(workspace.path, settings=forbidden) as other:
        with pytest.raises(Forbidden, match="Add media"):
            other.dataset("pets").open_upload()
        assert other.create_draft("new").open_upload().state is UploadState.OPEN


def test_find__by_id_and_dataset(workspace: Workspace) -> None:
    """A transaction is found by its id, in the dataset that it belongs to only."""
    dataset, transaction = drafted(workspace, 1)
    other = workspace.create_draft("other")
    assert dataset.find_upload(transaction.id).record == transaction.record
    wrong: list[Any] = [0, -1, 2**70, "1", True, None, 1.0, transaction.id + 1]
    for upload_id in wrong:
        with pytest.raises(NotFound, match="not found"):
            dataset.find_upload(upload_id)
    with pytest.raises(NotFound):
        other.find_upload(transaction.id)
    with Workspace(workspace.path, settings=SETTINGS) as again:
        found = again.dataset("pets").find_upload(transaction.id)
        found.add(pairs(2))
    assert transaction.record.n_files == 2
    assert repr(transaction) == f"<framedex.UploadTransaction {transaction.id}: 2 files, open>"


def test_process__refuses(workspace: Workspace) -> None:
    """An empty transaction, one without images, one in processing and one that is done are refused, each in words."""
    dataset, transaction = drafted(workspace)
    with pytest.raises(InvalidInput, match=r"^The transaction holds no files$"):
        transaction.process()
    transaction.add([("annotations.json", b"{}")])
    with pytest.raises(InvalidInput, match="The transaction holds no files"):
        transaction.process()
    with pytest.raises(InvalidInput):
        transaction.add(pairs(1)) and transaction.process(thresholds=[1, 2])
    with pytest.raises(InvalidInput):
        transaction.process(encoder="no such encoder")
    assert status_of(dataset) is DatasetStatus.DRAFT
    transaction.discard()
    for call in (
        transaction.process,
        transaction.discard,
        lambda: transaction.add(pairs(1)),
        lambda: transaction.state,
    ):
        with pytest.raises(NotFound):
            call()


@pytest.mark.slow
def test_process__twice(workspace: Workspace, uses: Uses) -> None:
    """While the task runs the transaction takes no files and is not processed again; nor is it afterwards."""
    gate = Gate()
    uses(gate)
    dataset, transaction = drafted(workspace, 1, 2)
    other = dataset.open_upload()
    other.add(pairs(3))
    task = transaction.process(encoder="averages", wait=False)
    assert gate.reached.wait(60)
    message = f"Transaction {transaction.id} is already being processed"
    for call in (transaction.process, lambda: transaction.add(pairs(9))):
        with pytest.raises(Conflict, match=message):
            call()
    with pytest.raises(Conflict, match="cannot be discarded: it is processing"):
        transaction.discard()
    with pytest.raises(Conflict, match="blocked while DATASET_CREATION task is running"):
        other.process()
    assert other.add(pairs(4)).n_files == 2
    assert (status_of(dataset), state_of(transaction)) == (DatasetStatus.INDEXING, UploadState.PROCESSING)
    with pytest.raises(Conflict, match="is under way"):
        workspace.delete_dataset("pets")
    gate.opened.set()
    task.wait(60)
    with pytest.raises(Conflict, match="is already processed"):
        transaction.process()
    other.process()
    assert (dataset.count(), state_of(other)) == (4, UploadState.DONE)


def test_process__files_that_arrive_meanwhile_count(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that ends between the collection of the files and the start of the task is not lost."""
    dataset, transaction = drafted(workspace, 1)
    collect = received.collect_files
    late = [pairs(2), pairs(3)]

    def collect_and_add(*arguments: Any) -> Any:
        found = collect(*arguments)
        if late:
            transaction.add(late.pop())
        return found

    monkeypatch.setattr(upload_operations, "collect_files", collect_and_add)
    transaction.process(encoder="gist")
    assert paths_of(dataset) == ["1.png", "2.png", "3.png"]
    assert lists_of(workspace, dataset) == []


@pytest.mark.parametrize("way", ["failed", "aborted"])
def test_retry__of_a_creation(workspace: Workspace, uses: Uses, way: str) -> None:
    """After a failure or an abort the files stay, also through vacuum, and any workspace can retry the task."""
    gate, faulty = Gate(), Faulty()
    uses(faulty if way == "failed" else gate)
    dataset, transaction = drafted(workspace, 1, 2)
    task = transaction.process(encoder="averages", wait=False)
    if way == "failed":
        with pytest.raises(TaskFailed, match="out of order"):
            task.wait(60)
    else:
        assert gate.reached.wait(60)
        threading.Timer(0.1, gate.opened.set).start()
        task.abort()
        with pytest.raises(Aborted):
            task.wait(60)
    assert (status_of(dataset), state_of(transaction)) == (DatasetStatus.ERROR, UploadState.FAILED)
    with pytest.raises(Conflict, match="retry the task, or discard"):
        transaction.process()
    with pytest.raises(NotIndexed):
        _ = dataset.embedding_config
    workspace.vacuum(older_than_s=60)
    uses(Averages())
    with Workspace(workspace.path, settings=SETTINGS) as other:
        again = other.task(task.id)
        again.retry()
        again.wait(60)
    assert (status_of(dataset), state_of(transaction)) == (DatasetStatus.READY, UploadState.DONE)
    assert paths_of(dataset) == ["1.png", "2.png"]
    assert lists_of(workspace, dataset) == []


@pytest.mark.slow
def test_retry__of_an_addition(workspace: Workspace, folder: Path, uses: Uses) -> None:
    """A failed addition leaves the dataset as it was; its retry adds the files."""
    uses(Averages())
    dataset = workspace.create_dataset("pets", folder, "averages")
    transaction = dataset.open_upload()
    transaction.add(pairs(1))
    uses(Faulty())
    task = transaction.process(wait=False)
    with pytest.raises(TaskFailed):
        task.wait(60)
    assert (status_of(dataset), state_of(transaction), dataset.count()) == (DatasetStatus.READY, UploadState.FAILED, 6)
    uses(Averages())
    with Workspace(workspace.path, settings=SETTINGS) as other:
        other.task(task.id).retry()
        other.task(task.id).wait(60)
    assert (state_of(transaction), dataset.count()) == (UploadState.DONE, 7)


@pytest.mark.slow
def test_retry__with_an_encoder_of_this_process(workspace: Workspace) -> None:
    """A creation with an encoder object is retried by its process only; its files stay through vacuum as long."""
    encoder = Faulty()
    dataset, transaction = drafted(workspace, 1, 2)
    task = transaction.process(encoder=encoder, wait=False)
    with pytest.raises(TaskFailed):
        task.wait(60)
    for path in (home_of(workspace, dataset) / "uploads").rglob("*"):
        os.utime(path, (0, 0))
    workspace.vacuum(older_than_s=60)
    assert workspace.check().findings == []
    with Workspace(workspace.path, settings=SETTINGS) as other, pytest.raises(NotRetryable, match="as an object"):
        other.task(task.id).retry()
    encoder.broken = False
    task.retry()
    task.wait(60)
    assert (paths_of(dataset), lists_of(workspace, dataset)) == (["1.png", "2.png"], [])


@pytest.mark.slow
def test_process__interrupted_after_the_start(
    workspace: Workspace, uses: Uses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt right after the start leaves the files to the task, which can be retried."""
    uses(Faulty())
    dataset, transaction = drafted(workspace, 1, 2)

    def interrupted(*arguments: Any) -> Task:
        with suppress(TaskFailed):
            start_task(*arguments).wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(upload_operations, "start_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transaction.process(encoder="averages")
    monkeypatch.undo()
    uses(Averages())
    record = dataset.last_task
    assert record is not None
    with Workspace(workspace.path, settings=SETTINGS) as other:
        other.task(record.task_id).retry()
        other.task(record.task_id).wait(60)
    assert (state_of(transaction), paths_of(dataset)) == (UploadState.DONE, ["1.png", "2.png"])


@pytest.mark.slow
def test_discard__of_a_failed_creation_leaves_a_draft(workspace: Workspace, uses: Uses) -> None:
    """After it the dataset is a draft again, and no process can retry the old task, whose files are gone."""
    uses(Faulty())
    dataset, transaction = drafted(workspace, 1, 2)
    task = transaction.process(encoder="averages", wait=False)
    with pytest.raises(TaskFailed):
        task.wait(60)
    transaction.discard()
    assert (status_of(dataset), dataset.uploads()) == (DatasetStatus.DRAFT, [])
    with pytest.raises(NotRetryable, match="upload the files again"):
        task.retry()
    assert status_of(dataset) is DatasetStatus.DRAFT
    uses(Averages())
    further = dataset.open_upload()
    further.add(pairs(3))
    further.process(encoder="averages")
    with pytest.raises(NotRetryable, match="upload the files again"):
        task.retry()
    with Workspace(workspace.path, settings=SETTINGS) as other, pytest.raises(NotFound, match="upload the files again"):
        other.task(task.id).retry()
    assert (status_of(dataset), paths_of(dataset)) == (DatasetStatus.READY, ["3.png"])
    workspace.vacuum()
    assert len(blobs_of(workspace, dataset)) == 1


def test_uploads__are_private_to_writers(workspace: Workspace) -> None:
    """A workspace opened for reading shows transactions and changes none."""
    dataset, transaction = drafted(workspace, 1)
    with Workspace(workspace.path, settings=SETTINGS, read_only=True) as reader:
        seen = reader.dataset("pets").find_upload(transaction.id)
        for call in (
            lambda: seen.add(pairs(2)), seen.process, seen.discard, reader.dataset("pets").open_upload,
            lambda: reader.create_draft("x"),
        ):  # fmt: skip
            with pytest.raises(ReadOnly):
                call()
        assert seen.record == transaction.record
    assert len(blobs_of(workspace, dataset)) == 1


def test_uploads__go_with_their_dataset(workspace: Workspace) -> None:
    """A deletion removes the transactions and their files; a call that is under way then fails and leaves nothing."""
    dataset, transaction = drafted(workspace, 1)

    class Deletes(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if any(record.display_name == "pets" for record in workspace.datasets()):
                workspace.delete_dataset("pets")
            return super().read(size)

    with pytest.raises((NotFound, WorkspaceError)):
        transaction.add([("a.png", Deletes(image(2)))])
    workspace.vacuum()
    assert not home_of(workspace, dataset).exists()
    with pytest.raises(NotFound):
        _ = transaction.record


def test_add__a_full_disk(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the list cannot be written, the call fails and nothing of it counts."""
    dataset, transaction = drafted(workspace, 1)
    sync = os.fsync
    path = home_of(workspace, dataset) / "transactions" / f"{transaction.id}.files"

    def fail(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").resolve() == path.resolve():
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WorkspaceError, match="No space left"):
        transaction.add(pairs(2, 3))
    monkeypatch.undo()
    assert transaction.record.n_files == 1
    assert transaction.add(pairs(4)).n_files == 2
    transaction.process(encoder="gist")
    assert paths_of(dataset) == ["1.png", "4.png"]


@pytest.mark.slow
def test_add__from_many_threads(workspace: Workspace) -> None:
    """Calls of several threads at once all count, each as a whole."""
    dataset, transaction = drafted(workspace)

    def send(first: int) -> None:
        for number in range(first, first + 3):
            workspace.dataset("pets").find_upload(transaction.id).add(pairs(number, number + 100))

    threads = [threading.Thread(target=send, args=(3 * place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert transaction.record.n_files == 24
    transaction.process(encoder="gist")
    assert paths_of(dataset) == sorted(f"{number + more}.png" for number in range(12) for more in (0, 100))


def test_records__are_plain(workspace: Workspace) -> None:
    """A record has the fields of the table, as JSON, too."""
    _, transaction = drafted(workspace, 1)
    plain = json.loads(transaction.record.model_dump_json())
    assert (plain["state"], plain["created_by"], plain["task_id"]) == ("open", "tester@example.org", None)
