"""Media that are added join what is there; what is there stays as it is."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import (
    Aborted,
    Conflict,
    Dataset,
    InvalidInput,
    NotFound,
    NotIndexed,
    ReadOnly,
    Task,
    TaskFailed,
    Workspace,
)
from framedex.encoders import register
from framedex.records import DatasetStatus, TaskStatus, TaskType
from tests.analysis.arrays import same_partition
from tests.gallery import SETTINGS, Averages, Faulty, Gate, embedded, fill
from tests.growth import GROUPS, THRESHOLDS, columns_of, families, ids_of, part, partition, status_of, summary_of
from tests.image_files import photo, write
from tests.pauses import run_of
from tests.prepared import prepared

Uses = Callable[[Averages], None]


@pytest.fixture
def uses() -> Uses:
    """Name the encoder that ``averages`` is from then on."""
    return lambda encoder: register("averages", lambda _name: encoder)


@pytest.fixture
def pets(workspace: Workspace, folder: Path, uses: Uses) -> Dataset:
    """A dataset of six images whose encoder is registered."""
    uses(Averages())
    return prepared(workspace, "pets", folder, Averages())


def held(dataset: Dataset, path: Path, uses: Uses) -> tuple[Task, Gate]:
    """Return an addition that waits at a gate."""
    gate = Gate()
    uses(gate)
    task = dataset.add_media(path, wait=False)
    assert gate.reached.wait(60)
    return task, gate


def stop(task: Task, gate: Gate) -> None:
    """Abort a task that waits at a gate."""
    abort = threading.Thread(target=task.abort)
    abort.start()
    assert run_of(task).progress.cancelled.wait(60)
    gate.opened.set()
    abort.join(60)
    assert task.status is TaskStatus.ABORTED


def state(dataset: Dataset) -> Any:
    """Return all that readers see of a dataset's rows."""
    return dataset.to_arrow(), dataset.explore(), dataset.duplicates(), dataset.count(), dataset.skipped


@pytest.mark.slow
def test_add_media__images_of_another_folder(pets: Dataset, folder: Path, tmp_path: Path) -> None:
    """Images come behind those that are there, with the next batch number, and are found where they lie."""
    more = fill(tmp_path / "more", 3, first_seed=200)
    before = columns_of(pets, ["media_id", "path"])
    task = pets.add_media(more)
    assert (task.record.task_type, task.status) == (TaskType.MEDIA_ADDITION, TaskStatus.COMPLETED)
    assert (pets.info.status_new, pets.info.n_images, pets.info.progress) == (DatasetStatus.PARTIAL_INDEX, 9, 100)
    rows = columns_of(pets, ["media_id", "path", "root", "batch"])
    assert rows["media_id"][:6] == before["media_id"]
    assert rows["path"] == before["path"] + ["000.png", "001.png", "002.png"]
    assert rows["root"] == rows["batch"] == [0] * 6 + [1] * 3
    assert len(set(rows["media_id"])) == 9
    np.testing.assert_array_equal(pets.read(rows["media_id"][6]), photo(200))
    np.testing.assert_array_equal(pets.read(rows["media_id"][0]), photo(100))
    assert pets.to_arrow(["file_path"])["file_path"].to_pylist()[6] == str(more / "000.png")


@pytest.mark.slow
def test_add_media__images_below_the_same_folder(pets: Dataset, folder: Path) -> None:
    """A folder within the source belongs to the same root, so that its images are known when all is added again."""
    below = fill(folder / "below", 2, first_seed=300)
    pets.add_media(below)
    assert columns_of(pets, ["path", "root"]) == {
        "path": [f"{number:03}.png" for number in range(6)] + ["below/000.png", "below/001.png"],
        "root": [0] * 8,
    }
    np.testing.assert_array_equal(pets.read(ids_of(pets)["below/001.png"]), photo(301))
    pets.add_media(folder)
    assert (pets.count(), pets.skipped) == (8, {"media that are there already": 8})


@pytest.mark.slow
def test_add_media__copies_in_an_emptied_dataset(pets: Dataset, folder: Path) -> None:
    """Copies among added images are found also where no row was there before, or all were replaced."""
    shutil.copy(folder / "000.png", folder / "copy.png")
    pets.delete_media(pets.view)
    pets.add_media(folder)
    assert [sorted(group.paths) for group in pets.duplicates()] == [["000.png", "copy.png"]]
    for number, path in enumerate(sorted(folder.glob("*.png"))):
        write(path, photo(900 + number // 2, width=80, height=60))
    pets.add_media(folder)
    assert sorted(len(group.paths) for group in pets.duplicates()) == [2, 2, 2]


def test_add_media__images_of_a_list(pets: Dataset, folder: Path, tmp_path: Path) -> None:
    """A list adds what it names, with labels and captions, wherever the files lie."""
    write(folder / "new.png", photo(7))
    elsewhere = fill(tmp_path / "elsewhere", 1, first_seed=8)
    path = tmp_path / "list.csv"
    path.write_text("path,label,caption\nimages/new.png,dog,a dog\nelsewhere/000.png,cat,\nimages/gone.png,,\n")
    pets.add_media(path)
    rows = columns_of(pets, ["path", "labels", "caption", "error"])
    assert rows["path"][6:] == ["images/new.png", "elsewhere/000.png", "images/gone.png"]
    assert rows["labels"][6:] == [["dog"], ["cat"], None]
    assert rows["caption"][6:] == ["a dog", None, None]
    assert [error is None for error in rows["error"][6:]] == [True, True, False]
    np.testing.assert_array_equal(pets.read(ids_of(pets)["elsewhere/000.png"]), photo(8))
    assert elsewhere.is_dir()


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__annotations_of_the_added_folder(pets: Dataset, tmp_path: Path) -> None:
    """Annotations beside the added images give them labels and captions; those of others stay away."""
    more = fill(tmp_path / "more", 2, first_seed=200)
    (more / "image_annotations.csv").write_text("filename,label,caption\n000.png,dog,a dog\nlost.png,cat,\n")
    pets.add_media(more)
    rows = columns_of(pets, ["labels", "caption"])
    assert rows["labels"] == [None] * 6 + [["dog"], None]
    assert rows["caption"] == [None] * 6 + ["a dog", None]
    assert pets.skipped == {"annotations without an image": 1}
    pets.add_media(more)
    assert pets.skipped == {"annotations without an image": 1, "media that are there already": 2}


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__what_is_there_already(pets: Dataset, folder: Path) -> None:
    """The same folder again adds nothing, changes no status, and says how many were left out."""
    before = pets.to_arrow()
    pets.add_media(folder)
    assert pets.info.status_new is DatasetStatus.READY
    assert pets.skipped == {"media that are there already": 6}
    assert pets.to_arrow().equals(before)
    write(folder / "new.png", photo(1))
    pets.add_media(folder)
    assert (pets.info.status_new, pets.count()) == (DatasetStatus.PARTIAL_INDEX, 7)
    pets.add_media(folder)
    assert (pets.info.status_new, pets.skipped) == (DatasetStatus.PARTIAL_INDEX, {"media that are there already": 7})
    assert columns_of(pets, ["batch"])["batch"] == [0] * 6 + [1]


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__batches_are_counted_where_something_was_added(pets: Dataset, folder: Path, tmp_path: Path) -> None:
    """An addition of nothing takes no batch number, and one folder is one source root however often it is added."""
    more = fill(tmp_path / "more", 1, first_seed=200)
    pets.add_media(folder)
    pets.add_media(more)
    write(more / "new.png", photo(3))
    pets.add_media(more)
    rows = columns_of(pets, ["batch", "root", "path"])
    assert rows["batch"] == [0] * 6 + [1, 2]
    assert rows["root"] == [0] * 6 + [1, 1]
    assert rows["path"][6:] == ["000.png", "new.png"]


@pytest.mark.slow
def test_add_media__names_that_look_like_another_root(workspace: Workspace, tmp_path: Path) -> None:
    """No name of a file below the first folder is taken for that of a file below the second."""
    write(tmp_path / "a" / "1:x.png", photo(1))
    write(tmp_path / "b" / "x.png", photo(2))
    dataset = workspace.create_dataset("d", tmp_path / "a")
    dataset.add_media(tmp_path / "b")
    assert dataset.count() == 2
    np.testing.assert_array_equal(dataset.read(columns_of(dataset, ["media_id"])["media_id"][1]), photo(2))


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__broken_files(pets: Dataset, tmp_path: Path) -> None:
    """Files that are no images are added as corrupted rows, in cluster 0 with those that were there."""
    more = fill(tmp_path / "more", 1, first_seed=200)
    (more / "broken.jpg").write_bytes(b"no image")
    pets.add_media(more)
    assert columns_of(pets, ["cluster_0"])["cluster_0"][7] == 0
    assert pets.issues("corrupted")["path"].to_pylist() == ["broken.jpg"]
    only = tmp_path / "only"
    only.mkdir()
    (only / "empty.png").write_bytes(b"")
    scale = summary_of(pets)["uniqueness_scale"]
    pets.add_media(only)
    assert pets.issues("corrupted")["path"].to_pylist() == ["broken.jpg", "empty.png"]
    assert pets.explore().metadata is not None
    assert summary_of(pets)["uniqueness_scale"] == scale
    assert {c.n_images for c in pets.explore().clusters if c.formed_by == "CORRUPTED"} == {2}


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__to_broken_files_only(workspace: Workspace, tmp_path: Path, uses: Uses) -> None:
    """A dataset in which nothing could be decoded takes good images."""
    uses(Averages())
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.jpg").write_bytes(b"")
    dataset = workspace.create_dataset("d", tmp_path / "bad", Averages())
    dataset.add_media(fill(tmp_path / "one", 1))
    assert sorted(c.n_images for c in dataset.explore().clusters) == [1, 1]
    dataset.add_media(fill(tmp_path / "three", 3))
    assert (dataset.count(), dataset.explore().clusters[0].n_images) == (5, 2)  # 000.png is there twice


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_add_media__vectors(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    """Rows of a table are added with labels, captions and sizes; uris that are there are left out."""

    def given_as(table: pa.Table) -> Any:
        if kind == "table":
            return table
        pq.write_table(table, tmp_path / "vectors.parquet")
        return tmp_path / "vectors.parquet"

    vectors = families(12)
    dataset = workspace.create_dataset("d", given_as(part(vectors[:8])))
    more = part(vectors[6:], 6, label=["dog"] * 6, caption=["x"] * 6, width=[10] * 6, height=[20] * 6)
    dataset.add_media(given_as(more))
    assert (dataset.info.status_new, dataset.skipped) == (
        DatasetStatus.PARTIAL_INDEX, {"media that are there already": 2},
    )  # fmt: skip
    rows = columns_of(dataset, ["path", "labels", "caption", "width", "aspect_ratio", "batch", "root"])
    assert rows["path"] == [f"{number}.jpg" for number in range(12)]
    assert rows["labels"] == [None] * 8 + [["dog"]] * 4
    assert rows["caption"] == [None] * 8 + ["x"] * 4
    assert (rows["width"][8:], rows["aspect_ratio"][8:]) == ([10] * 4, [0.5] * 4)
    assert (rows["batch"], rows["root"]) == ([0] * 8 + [1] * 4, [0] * 12)
    np.testing.assert_allclose(dataset.embeddings()[1], vectors, atol=1e-6)
    dataset.add_media(given_as(more))
    assert dataset.skipped == {"media that are there already": 6}


@pytest.mark.slow
def test_add_media__vectors_of_images_below_another_folder(workspace: Workspace, tmp_path: Path) -> None:
    """Relative uris of a Parquet file are relative to its own folder, also when that lies within the first one's."""
    dataset = None
    for number, home in enumerate((tmp_path, tmp_path / "below")):
        write(home / f"{number}.png", photo(number))
        pq.write_table(
            pa.table({"uri": [f"{number}.png"], "embedding": [np.eye(2, dtype=np.float32)[number]]}),
            home / "v.parquet",
        )
        if dataset is None:
            dataset = workspace.create_dataset("d", home / "v.parquet")
        else:
            dataset.add_media(home / "v.parquet")
    assert dataset is not None
    for number in range(2):
        np.testing.assert_array_equal(dataset.read(ids_of(dataset)[f"{number}.png"]), photo(number))


@pytest.mark.slow
def test_add_media__what_does_not_fit(workspace: Workspace, pets: Dataset, folder: Path, tmp_path: Path) -> None:
    """A table for images, images for a table, other dimensions and nothing at all are refused; nothing changes."""
    vectors = workspace.create_dataset("vectors", embedded([[1, 0], [0, 1]]))
    before = state(pets), state(vectors)
    (tmp_path / "empty").mkdir()
    cases: list[tuple[Dataset, Any, str]] = [
        (vectors, folder, "add a table with uri and embedding, not images"),
        (vectors, part([[1, 0, 0]], 5), "the table's embeddings have 3 values; those of this dataset have 2"),
        (pets, part([[1, 0]]), "encoded by 'averages'; add images, not a table"),
        (pets, tmp_path / "empty", "no images in"),
        (pets, tmp_path / "missing", "there is nothing at"),
        (pets, 5, "encoded by 'averages'"),
    ]
    for dataset, source, message in cases:
        with pytest.raises(InvalidInput, match=message):
            dataset.add_media(source)
    assert before == (state(pets), state(vectors))
    assert len(workspace.tasks().tasks) == 2


def test_add_media__an_encoder_that_has_changed(pets: Dataset, folder: Path, uses: Uses) -> None:
    """An encoder of that name whose vectors have another length is refused before anything is read."""

    class Other(Averages):
        dimension = 3

    uses(Other())
    with pytest.raises(InvalidInput, match="'averages' makes embeddings have 3 values; those of this dataset have 48"):
        pets.add_media(folder)


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__rows_that_cannot_be_used(workspace: Workspace) -> None:
    """A table with a broken row adds none of its rows, and what it left behind is gone with the next addition."""
    vectors = families(20)
    dataset = workspace.create_dataset("d", part(vectors[:6]))
    before = state(dataset)
    bad = vectors[6:].copy()
    bad[-1] = np.nan
    with pytest.raises(InvalidInput, match="nan"):
        dataset.add_media(part(bad, 6))
    assert state(dataset) == before
    assert dataset.info.status_new is DatasetStatus.READY
    dataset.add_media(part(vectors[6:], 6))
    assert columns_of(dataset, ["path"])["path"] == [f"{number}.jpg" for number in range(20)]


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__status_while_it_runs(workspace: Workspace, pets: Dataset, tmp_path: Path, uses: Uses) -> None:
    """While media are added the dataset is READ ONLY, readers see what was there, and other changes are refused."""
    before, media = state(pets), list(ids_of(pets).values())
    task, gate = held(pets, fill(tmp_path / "more", 2, first_seed=200), uses)
    assert status_of(pets) is DatasetStatus.READ_ONLY
    assert state(pets) == before
    other = workspace.dataset("pets")
    changes: dict[str, Callable[[], Any]] = {
        "add_media": lambda: other.add_media(tmp_path / "more"),
        "reindex": lambda: other.reindex(thresholds=THRESHOLDS),
        "not_duplicates": lambda: other.not_duplicates(media[:2]),
        "withdraw_decision": lambda: other.withdraw_decision("x"),
    }
    for operation, change in changes.items():
        with pytest.raises(Conflict) as raised:
            change()
        assert str(raised.value) == f"Operation '{operation}' is blocked while MEDIA_ADDITION task is running"
    with pytest.raises(Conflict, match="cannot be deleted while a task"):
        workspace.delete_dataset("pets")
    gate.opened.set()
    task.wait(60)
    assert status_of(pets) is DatasetStatus.PARTIAL_INDEX
    assert pets.count() == 8


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("partial", [False, True])
def test_add_media__aborted(workspace: Workspace, pets: Dataset, tmp_path: Path, uses: Uses, partial: bool) -> None:
    """An aborted addition leaves the status that the head supports and no trace, for readers or the next addition."""
    if partial:
        pets.add_media(fill(tmp_path / "first", 2, first_seed=500))
    before, status = state(pets), pets.info.status_new
    task, gate = held(pets, fill(tmp_path / "aborted", 40, first_seed=200), uses)
    stop(task, gate)
    with pytest.raises(Aborted):
        task.wait()
    assert (pets.info.status_new, pets.info.progress) == (status, 100)
    assert status is (DatasetStatus.PARTIAL_INDEX if partial else DatasetStatus.READY)
    assert state(pets) == before
    uses(Averages())
    pets.add_media(fill(tmp_path / "next", 2, first_seed=300))
    assert pets.count() == before[3] + 2
    assert max(columns_of(pets, ["root"])["root"]) == (2 if partial else 1)
    assert {Path(path).parent.name for path in pets.to_arrow(["file_path"])["file_path"].to_pylist()} <= {
        "images", "first", "next",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__failed_and_retried(workspace: Workspace, pets: Dataset, tmp_path: Path, uses: Uses) -> None:
    """A retried addition is one that never failed, also where the dataset has grown meanwhile."""
    before = state(pets)
    more, between = fill(tmp_path / "more", 3, first_seed=200), fill(tmp_path / "between", 2, first_seed=300)
    encoder = Faulty()
    uses(encoder)
    with pytest.raises(TaskFailed, match="out of order"):
        pets.add_media(more)
    task = pets.task
    assert task is not None
    assert (pets.info.status_new, state(pets) == before) == (DatasetStatus.READY, True)
    encoder.broken = False
    pets.add_media(between)
    pets.reindex()
    assert task.retry().end_time is None
    assert task.wait(60).status is TaskStatus.COMPLETED
    assert pets.info.status_new is DatasetStatus.PARTIAL_INDEX
    rows = columns_of(pets, ["batch", "root"])
    assert rows["batch"] == rows["root"] == [0] * 6 + [1] * 2 + [2] * 3

    whole = workspace.create_dataset("whole", tmp_path / "images", encoder)
    whole.add_media(between)
    whole.reindex()
    whole.add_media(more)
    columns = ["image_filename", "file_path", "uniqueness_score", "issues"]
    assert pets.to_arrow(columns).drop(["issues"]).equals(whole.to_arrow(columns).drop(["issues"]))
    assert columns_of(pets) == columns_of(whole)


@pytest.mark.slow
def test_add_media__retry_while_another_task_runs(pets: Dataset, tmp_path: Path, uses: Uses) -> None:
    """A failed addition is not retried beside another task."""
    uses(Faulty())
    with pytest.raises(TaskFailed):
        pets.add_media(fill(tmp_path / "more", 1, first_seed=200))
    failed = pets.task
    assert failed is not None
    task, gate = held(pets, fill(tmp_path / "others", 1, first_seed=300), uses)
    with pytest.raises(Conflict, match="cannot be retried while MEDIA_ADDITION task is running"):
        failed.retry()
    assert pets.info.status_new is DatasetStatus.READ_ONLY
    gate.opened.set()
    task.wait(60)


def test_add_media__before_there_is_an_index(workspace: Workspace, folder: Path) -> None:
    """Nothing can be added to a dataset that is being made, or whose making failed."""
    gate = Gate()
    dataset = workspace.create_dataset("d", folder, gate, wait=False)
    assert gate.reached.wait(60)
    for change in (lambda: dataset.add_media(folder), dataset.reindex, lambda: dataset.not_duplicates(["a", "b"])):
        with pytest.raises((Conflict, NotIndexed), match=r"no embedding config|blocked while DATASET_CREATION task is"):
            change()
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait(60)


def test_add_media__to_a_workspace_opened_for_reading(workspace: Workspace) -> None:
    """A workspace that was opened for reading is not changed."""
    vectors = families(4)
    media = list(ids_of(workspace.create_dataset("d", part(vectors))).values())
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reading:
        dataset = reading.dataset("d")
        for change in (
            lambda: dataset.add_media(part(vectors, 9)),
            lambda: dataset.reindex(thresholds=THRESHOLDS),
            lambda: dataset.not_duplicates(media[:2]),
            lambda: dataset.withdraw_decision("x"),
        ):
            with pytest.raises(ReadOnly):
                change()
        assert dataset.duplicate_decisions() == []
    assert workspace.dataset("d").info.status_new is DatasetStatus.READY


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__auto_reindex(workspace: Workspace) -> None:
    """With auto_reindex the dataset is READY, as one that was made of all rows at once."""
    vectors = families(40)
    dataset = workspace.create_dataset("d", part(vectors[:25]), thresholds=THRESHOLDS)
    dataset.add_media(part(vectors[25:], 25), auto_reindex=True)
    whole = workspace.create_dataset("whole", part(vectors), thresholds=THRESHOLDS)
    assert dataset.info.status_new is DatasetStatus.READY
    found, expected = columns_of(dataset), columns_of(whole)
    assert all(same_partition(partition(found[name]), partition(expected[name])) for name in GROUPS)
    with pytest.raises(Conflict, match="'reindex' needs the dataset status PARTIAL INDEX; it is READY"):
        dataset.reindex()


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__auto_reindex_of_nothing_new(workspace: Workspace) -> None:
    """With auto_reindex earlier additions are settled even where nothing new is added."""
    vectors = families(20)
    dataset = workspace.create_dataset("d", part(vectors[:12]))
    dataset.add_media(part(vectors[12:], 12))
    assert dataset.info.status_new is DatasetStatus.PARTIAL_INDEX
    dataset.add_media(part(vectors[12:], 12), auto_reindex=True)
    assert (dataset.info.status_new, dataset.count()) == (DatasetStatus.READY, 20)
    assert dataset.skipped == {"media that are there already": 8}
    before = state(dataset)
    dataset.add_media(part(vectors[12:], 12), auto_reindex=True)
    assert state(dataset) == before


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__issues_of_added_rows(pets: Dataset, tmp_path: Path) -> None:
    """Measures of added images are held against the limits, and sizes against those of all."""
    more = tmp_path / "more"
    write(more / "dark.png", (photo(201) // 12).astype(np.uint8))
    write(more / "huge.png", photo(202, width=1600, height=1200))
    pets.add_media(more)
    found = pets.issues().select(["path", "issue_type"]).to_pylist()
    assert {"path": "dark.png", "issue_type": "dark"} in found
    assert {"path": "huge.png", "issue_type": "odd_size"} in found


@pytest.mark.slow
def test_add_media__all_that_reads(workspace: Workspace, pets: Dataset, tmp_path: Path) -> None:
    """Exploring, tables, issues, exports, reports and notebook views work on a dataset with additions."""
    more = fill(tmp_path / "more", 2, first_seed=200)
    shutil.copy(tmp_path / "images" / "000.png", more / "copy.png")
    (more / "broken.jpg").write_bytes(b"")
    pets.add_media(more)
    assert pets.info.status_new is DatasetStatus.PARTIAL_INDEX
    for level in range(5):
        clusters = pets.explore(level=level).clusters
        assert sum(cluster.n_images for cluster in clusters) == 10
    table = pets.to_arrow()
    assert table.num_rows == 10
    assert table["cluster_id"].null_count == 0
    assert len(set(table["image_filename"].to_pylist())) == 10
    (group,) = pets.duplicates(1.0)
    assert len(group.media_ids) == 2
    assert len(pets.duplicates(exact=True)) == 1
    assert pets.where([{"issues": {"op": "issue", "value": "corrupted"}}]).count() == 1
    for file_format in ("json", "parquet"):
        written = pets.export(tmp_path / f"{file_format}.zip", file_format, include_images=True)
        assert (written.total_media_items, written.images, written.missing_images) == (10, 10, [])
    assert "000.png" in pets.report(tmp_path / "page.html").read_text()
    assert "PARTIAL INDEX" in pets._repr_html_()
    assert pets.thumbnail(group.media_ids[0]) == pets.thumbnail(group.media_ids[1])
    assert pets.embeddings()[1].shape == (9, 48)


@pytest.mark.slow
@pytest.mark.only_soak
def test_add_media__survives_reopening(workspace: Workspace) -> None:
    """The additions, the status and the ids are the same after the workspace is opened again."""
    vectors = families(20)
    dataset = workspace.create_dataset("d", part(vectors[:12]))
    dataset.add_media(part(vectors[12:], 12))
    with Workspace(workspace.path, settings=SETTINGS) as again:
        reopened = again.dataset("d")
        assert state(reopened) == state(dataset)
        assert reopened.info.status_new is DatasetStatus.PARTIAL_INDEX
        reopened.reindex()
        assert reopened.info.status_new is dataset.info.status_new is DatasetStatus.READY


@pytest.mark.slow
def test_add_media__a_file_that_is_gone_later(pets: Dataset, tmp_path: Path) -> None:
    """An added image whose file is gone is named by its own folder."""
    more = fill(tmp_path / "more", 1, first_seed=200)
    pets.add_media(more)
    (more / "000.png").unlink()
    with pytest.raises(NotFound, match=r"more/000\.png"):
        pets.read(columns_of(pets, ["media_id"])["media_id"][6])
