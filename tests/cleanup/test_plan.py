"""Clean-up plans: their rows, pages and application."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import (
    CleanupPlan,
    Conflict,
    Dataset,
    Forbidden,
    InvalidFilter,
    InvalidInput,
    NotFound,
    ReadOnly,
    Workspace,
)
from framedex.cleanup.plan_rows import PLAN_SCHEMA
from framedex.records import CleanupSummary, DatasetStatus, SnapshotReason, TaskStatus, TaskType
from tests.gallery import ANIMALS, BROKEN, COPIES, NEAR, SETTINGS, Faulty, Gallery, fill
from tests.growth import part
from tests.image_files import detailed, photo, resized, write
from tests.objects import write_table
from tests.pauses import all_threads_busy
from tests.prepared import prepared


def by_path(plan: CleanupPlan) -> dict[str, dict[str, Any]]:
    """Return the rows of a plan by path."""
    return {row["path"]: row for row in plan.to_arrow().to_pylist()}


def gone(plan: CleanupPlan) -> list[str]:
    """Return the paths of the media to remove."""
    return [row["path"] for row in plan.to_arrow().to_pylist() if row["action"] == "remove"]


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """Two photos, a smaller version of one, a copy of the other, and a broken file."""
    folder = tmp_path / "images"
    write(folder / "a.png", photo(1))
    write(folder / "b.png", photo(1, width=80, height=60))
    write(folder / "c.png", photo(2))
    (folder / "copy of c.png").write_bytes((folder / "c.png").read_bytes())
    (folder / "broken.jpg").write_bytes(b"no image")
    return prepared(workspace, "pets", folder, "gist")


@pytest.mark.slow
def test_plan__warns_of_labels_and_boxes_that_go(workspace: Workspace, tmp_path: Path) -> None:
    """What goes has a warning if it has labels, or boxes of classes, that the image to keep lacks."""
    folder = tmp_path / "images"
    for seed in range(4):
        write(folder / f"{seed}.png", detailed(seed, width=160, height=120))
        write(folder / f"{seed} small.png", resized(detailed(seed, width=160, height=120), 0.5))
    labels = {"0": "cat", "0 small": "dog", "1": "cat", "1 small": "cat", "2": "cat"}
    lines = [f"{name}.png,{label}" for name, label in labels.items()]
    (folder / "image_annotations.csv").write_text("\n".join(["filename,label", *lines]) + "\n")
    box = (5.0, 5.0, 40.0, 40.0)
    boxes = write_table(
        tmp_path / "boxes.csv",
        [("2 small.png", box, "nose"), ("2 small.png", box, "ear"), ("3.png", box, "ear"), ("3 small.png", box, "ear")],
    )
    dataset = workspace.create_dataset("labelled", folder, "gist", boxes=boxes)
    plan = dataset.plan_cleanup(duplicates=0.96)
    assert {path: row["warning"] for path, row in by_path(plan).items() if row["warning"]} == {
        "0 small.png": "labels that the image to keep lacks: dog",
        "2 small.png": "boxes of classes that it has none of: ear, nose",
    }
    assert gone(plan) == [f"{seed} small.png" for seed in range(4)]
    assert plan.summary.warnings == 2
    assert "2 with labels that what stays lacks" in plan.words
    assert "⚠ labels that the image to keep lacks: dog" in plan.page(tmp_path / "plan.html").read_text()


@pytest.mark.slow
def test_plan__columns_and_reasons(gallery: Gallery) -> None:
    """Each row has the action, the reason and the kept media item; other media have no row."""
    plan = gallery.dataset.plan_cleanup(duplicates=0.96, issues=["dark", "corrupted"])
    table = plan.to_arrow()
    assert table.schema == PLAN_SCHEMA
    rows = by_path(plan)
    assert list(rows) == sorted([*COPIES, *NEAR[0], *NEAR[1], "bad/dark.png", *BROKEN])
    small, large = rows["near/small.jpg"], rows[ANIMALS[2]]
    assert (small["action"], large["action"]) == ("remove", "keep")
    assert small["reason"] == f"near-duplicate ({small['confidence']:.4f}); its group keeps {ANIMALS[2]}"
    assert large["reason"] == "kept of 2 near-duplicates: it has the most detail"
    assert small["kept_media_id"] == large["kept_media_id"] == large["media_id"] == gallery.ids[ANIMALS[2]]
    (group,) = [each for each in gallery.dataset.duplicates(0.96) if small["media_id"] in each.media_ids]
    assert {small["group_id"], large["group_id"]} == {group.group_id}
    assert large["confidence"] == pytest.approx(group.confidence)
    assert (small["issue_type"], large["issue_type"]) == ("duplicates", None)
    dark = rows["bad/dark.png"]
    assert re.fullmatch(r"dark 0\.\d\d", dark["reason"])
    assert (dark["issue_type"], dark["group_id"], dark["kept_media_id"]) == ("dark", None, None)
    assert dark["size_bytes"] == (gallery.folder / "bad/dark.png").stat().st_size
    assert dark["file_name"] == "dark.png"
    assert rows["broken/empty.jpg"]["reason"] == "corrupted 1.00"


@pytest.mark.slow
def test_plan__its_best_is_that_of_the_groups(gallery: Gallery) -> None:
    """Without issues, each group keeps its best member."""
    for exact in (False, True):
        groups = gallery.dataset.duplicates(0.96, exact=exact)
        rows = by_path(gallery.dataset.plan_cleanup(duplicates="exact" if exact else 0.96)).values()
        assert {row["media_id"] for row in rows if row["action"] == "keep"} == {group.keep for group in groups}
        assert {row["media_id"] for row in rows} == {each for group in groups for each in group.media_ids}
        assert {row["group_id"] for row in rows} == {group.group_id for group in groups}


def test_plan__of_equal_files(gallery: Gallery) -> None:
    """Equal files have the reason of equal content, with confidence 1."""
    rows = by_path(gallery.dataset.plan_cleanup(duplicates="exact", keep="first"))
    assert list(rows) == sorted(COPIES)
    assert rows[COPIES[0]]["reason"] == "kept of 3 files with equal content: it is the first in order"
    assert {rows[name]["reason"] for name in COPIES[1:]} == {f"same content as {COPIES[0]}"}
    assert {row["confidence"] for row in rows.values()} == {1.0}


@pytest.mark.slow
def test_plan__of_equal_files_by_name(workspace: Workspace, tmp_path: Path) -> None:
    """Of equal files of one age that with the shortest name is kept, in whatever folder, everywhere but for 'first'."""
    folder = tmp_path / "images"
    write(folder / "a/rose-copy.png", photo(1))
    for name in ("a/rose (1).png", "in a long folder/rose.png", "z/rose.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes((folder / "a/rose-copy.png").read_bytes())
    write(folder / "b.png", photo(2))
    for path in folder.rglob("*.png"):
        os.utime(path, (1e9, 1e9))
    dataset = workspace.create_dataset("roses", folder, "gist")
    kept = "in a long folder/rose.png"
    for duplicates in ("exact", 0.96):
        for keep, stays in (("best", kept), ("oldest", kept), ("first", "a/rose (1).png")):
            rows = by_path(dataset.plan_cleanup(duplicates=duplicates, keep=keep))
            assert [path for path, row in rows.items() if row["action"] == "keep"] == [stays]
            assert rows[stays]["reason"].endswith("it is the first in order")
    (group,) = dataset.duplicates(exact=True)
    assert (group.keep, group.keep_reason) == (
        dataset.media_id(str(folder / kept)), "Of the 2 best, it is the first in order.",
    )  # fmt: skip
    assert [each.keep for each in dataset.duplicates()] == [group.keep]
    shown = dataset.to_arrow(["path", "keep"]).to_pylist()
    assert {row["path"]: row["keep"] for row in shown} == {
        "a/rose-copy.png": False, "a/rose (1).png": False, kept: True, "z/rose.png": False, "b.png": None,
    }  # fmt: skip
    without = dataset.where([{"not": {"folder": {"op": "is", "value": "z"}}}])
    (group,) = without.duplicates(exact=True)
    assert (group.keep_reason, len(group.media_ids)) == ("It has the shortest file name.", 3)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "stays"), [("first", "a.png"), ("oldest", "b.png"), ("largest", "a.png")])
def test_plan__what_stays(dataset: Dataset, tmp_path: Path, keep: str, stays: str) -> None:
    """The first by ingestion, the oldest by file time, or the largest by pixels is kept."""
    os.utime(tmp_path / "images" / "b.png", (1e9, 1e9))
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist())
    dataset.add_media(tmp_path / "images", auto_reindex=True)
    rows = by_path(dataset.plan_cleanup(duplicates=0.96, keep=keep))
    assert [path for path in ("a.png", "b.png") if rows[path]["action"] == "keep"] == [stays]
    assert rows[stays]["reason"].startswith("kept of 2 near-duplicates: ")


@pytest.mark.slow
def test_plan__the_best_has_an_issue(workspace: Workspace) -> None:
    """If the best member of a group has an issue, the next best one without an issue is kept."""
    sides = [9000, *range(100, 158, 2), 120, 150]
    table = part(np.eye(30)[[*range(30), 0, 0]], width=sides, height=sides)
    dataset = workspace.create_dataset("pets", table)
    assert dataset.issues("odd_size")["path"].to_pylist() == ["0.jpg"]
    assert by_path(dataset.plan_cleanup(duplicates=0.96))["0.jpg"]["action"] == "keep"
    rows = by_path(dataset.plan_cleanup(duplicates=0.96, issues=["odd_size"]))
    assert {path: row["action"] for path, row in rows.items()} == {
        "0.jpg": "remove", "30.jpg": "remove", "31.jpg": "keep",
    }  # fmt: skip
    assert rows["0.jpg"]["reason"] == f"odd_size {rows['0.jpg']['confidence']:.2f}; its group keeps 31.jpg"
    assert rows["31.jpg"]["reason"] == "kept of 3 near-duplicates, 2 without an issue: it is the largest"
    assert {row["kept_media_id"] for row in rows.values()} == {rows["31.jpg"]["media_id"]}


@pytest.mark.slow
def test_plan__all_of_a_group_have_an_issue(workspace: Workspace, tmp_path: Path) -> None:
    """If all members of a group have an issue, the best of them stays all the same."""
    folder = fill(tmp_path / "images", 3)
    for name in ("x.png", "y.png"):
        write(folder / name, photo(7) // 12)
    dataset = workspace.create_dataset("pets", folder, "gist")
    rows = by_path(dataset.plan_cleanup(duplicates=1.0, issues={"dark": 0.5}))
    assert {path: row["action"] for path, row in rows.items()} == {"x.png": "keep", "y.png": "remove"}
    stays, goes = rows["x.png"], rows["y.png"]
    assert re.fullmatch(r"dark 0\.\d\d; kept of 2 near-duplicates, none without an issue: it .*", stays["reason"])
    assert re.fullmatch(r"dark 0\.\d\d; its group keeps x.png", goes["reason"])
    assert (stays["issue_type"], stays["protected"]) == (None, "best")
    assert (goes["issue_type"], goes["protected"]) == ("dark", None)
    assert stays["kept_media_id"] == goes["kept_media_id"] == stays["media_id"]
    alone = dataset.plan_cleanup(issues={"dark": 0.5})
    assert [row["action"] for row in alone.to_arrow().to_pylist()] == ["keep", "remove"]


@pytest.mark.slow
def test_plan__least_confidence(gallery: Gallery) -> None:
    """Issues can have a minimum confidence; the most confident issue of a row counts, and all are named."""
    table = gallery.dataset.issues("low_information").to_pylist()
    least = sorted(row["confidence"] for row in table)[-1]
    plan = gallery.dataset.plan_cleanup(issues={"low_information": least})
    assert gone(plan) == [row["path"] for row in table if row["confidence"] >= least]
    rows = by_path(gallery.dataset.plan_cleanup(issues=["bright", "low_information"]))
    bright = rows["bad/bright.png"]
    assert re.fullmatch(r"bright 0\.\d\d, low_information 1\.00", bright["reason"])
    assert bright["issue_type"] == "low_information"
    assert bright["confidence"] == max(
        gallery.dataset.where([{"issues": {"op": "issue", "value": name}}]).issues(name)["confidence"][0].as_py()
        for name in ("bright", "low_information")
    )


@pytest.mark.slow
def test_plan__where(gallery: Gallery) -> None:
    """Media outside of the filter are neither removed nor kept in place of others."""
    only = [{"not": {"labels": {"op": "is", "value": "animal"}}}]
    assert by_path(gallery.dataset.plan_cleanup(duplicates=0.96, where=only)).keys() == {*COPIES[1:]}
    assert (
        gone(gallery.dataset.plan_cleanup(issues=["corrupted"], where=[{"labels": {"op": "is", "value": "x"}}])) == []
    )


@pytest.mark.slow
def test_plan__honours_decisions(dataset: Dataset) -> None:
    """Media decided not to be duplicates are in no group, so none is removed."""
    ids = {row["path"]: row["media_id"] for row in by_path(dataset.plan_cleanup(duplicates=0.96)).values()}
    dataset.not_duplicates([ids["a.png"], ids["b.png"]])
    assert gone(dataset.plan_cleanup(duplicates=0.96)) == ["copy of c.png"]


def test_plan__summary(gallery: Gallery) -> None:
    """The summary counts each removed media item once, by its first reason, and the bytes of its file."""
    plan = gallery.dataset.plan_cleanup(duplicates=0.96, issues=["dark", "corrupted"])
    sizes = dict.fromkeys(["corrupted", "dark", "duplicates"], 0)
    for row in by_path(plan).values():
        if row["action"] == "remove":
            sizes[row["issue_type"]] += (gallery.folder / row["path"]).stat().st_size
    assert plan.summary == CleanupSummary(
        removed=8,
        kept=3,
        size_bytes=sum(sizes.values()),
        counts={"corrupted": 3, "dark": 1, "duplicates": 4},
        sizes=sizes,
    )
    assert len(plan) == 8
    assert repr(plan) == f"<framedex.CleanupPlan: {plan.words}>"
    assert plan.words.startswith("8 media to remove: 3 corrupted, 1 dark, 4 duplicates; ")


@pytest.mark.slow
def test_plan__page_and_notebook(gallery: Gallery, tmp_path: Path) -> None:
    """The page is self-contained and shows removed images beside kept ones; a notebook shows the same."""
    plan = gallery.dataset.plan_cleanup(duplicates=0.96, issues=["dark", "corrupted"])
    page = plan.page(tmp_path / "plan.html").read_text()
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)='(?!data:image/jpeg;base64,)|<script|https?://", page)
    assert page.count("<img") == 3 + 4 + 1
    assert page.count("cannot be shown") == 3
    assert page.count("★") == 3
    for row in by_path(plan).values():
        assert row["file_name"] in page
    assert "<h1>Clean-up plan</h1>" in page
    assert plan._repr_html_().count("<img") == 8
    with pytest.raises(InvalidInput, match="it is a folder"):
        plan.page(tmp_path)


def test_plan__page_is_bounded(workspace: Workspace) -> None:
    """The page shows the largest groups and the worst media of each issue, and the numbers of the others."""
    size = 70
    vectors = [[float(number == place // 3) for number in range(size)] for place in range(3 * size)]
    vectors += [[1.0] + [0.0] * (size - 1)] * 9
    dataset = workspace.create_dataset("many", part(vectors))
    plan = dataset.plan_cleanup(duplicates=1.0)
    assert len(plan) == 2 * size + 9
    page = "".join(plan._parts(5, 5))
    assert page.count("★") == 5
    assert "and 65 more groups" in page
    assert "and 4 more to remove" in page, "the page shows 8 of the 12 members of the largest group, the kept one first"


def test_plan__of_nothing(gallery: Gallery) -> None:
    """An empty plan has all columns, and applying it changes nothing."""
    plan = gallery.dataset.plan_cleanup(issues=["odd_aspect_ratio"], where=[{"labels": {"op": "is", "value": "town"}}])
    assert (len(plan), plan.to_arrow().schema, plan.to_arrow().num_rows) == (0, PLAN_SCHEMA, 0)
    assert plan.summary == CleanupSummary(removed=0, kept=0, size_bytes=0, counts={})
    before = gallery.dataset.snapshots()
    result = plan.apply(delete_files=True)
    assert (result.removed, result.snapshot, result.files_deleted) == (0, None, 0)
    assert gallery.dataset.snapshots() == before
    assert "0 media to remove" in plan._repr_html_()


def test_plan__refuses(dataset: Dataset, workspace: Workspace) -> None:
    """Invalid arguments raise, and so do datasets in a state without snapshots."""
    with pytest.raises(InvalidInput, match="name what to remove"):
        dataset.plan_cleanup()
    with pytest.raises(InvalidFilter):
        dataset.plan_cleanup(duplicates=0.96, where=[{"nonsense": 1}])
    dataset.add_media(fill(workspace.path.parent / "more", 1))
    with pytest.raises(Conflict, match="needs the dataset status READY; it is PARTIAL INDEX: reindex first"):
        dataset.plan_cleanup(duplicates=0.96)
    workspace.delete_dataset("pets")
    with pytest.raises(NotFound):
        dataset.plan_cleanup(duplicates=0.96)


@pytest.mark.slow
def test_apply__and_undo(dataset: Dataset) -> None:
    """The media are removed as one change after a snapshot of the state before, which brings them back."""
    before, paths = dataset.to_arrow(), dataset.to_arrow(["file_path"])["file_path"].to_pylist()
    plan = dataset.plan_cleanup(duplicates=0.96, issues=["corrupted"])
    result = plan.apply()
    assert (result.removed, result.files_deleted, result.files_left, result.files_failed) == (3, 0, 0, [])
    assert dataset.count() == len(before) - 3
    assert all(Path(path).exists() for path in paths), "files stay where they are"
    assert dataset.duplicates(0.96) == []
    snapshot = dataset.snapshots()[0]
    assert result.snapshot is not None
    assert snapshot.snapshot_id == result.snapshot.snapshot_id
    assert (snapshot.n_images, snapshot.reason, snapshot.description) == (5, SnapshotReason.MANUAL, plan.words)
    assert snapshot.snapshot_name.startswith("before clean-up 2")
    assert dataset.last_task is not None
    assert (dataset.last_task.task_type, dataset.last_task.status) == (TaskType.MEDIA_DELETION, TaskStatus.COMPLETED)
    dataset.restore(result.snapshot)
    assert dataset.to_arrow().equals(before)


@pytest.mark.slow
def test_apply__of_a_plan_that_is_outdated(dataset: Dataset) -> None:
    """A plan is valid for one state: if the dataset has changed, applying it raises and makes no snapshot."""
    plan = dataset.plan_cleanup(duplicates=0.96)
    dataset.tag(dataset.where([]), "seen")
    before = dataset.snapshots()
    with pytest.raises(Conflict, match="has changed since the plan was made"):
        plan.apply()
    assert dataset.snapshots() == before
    again = dataset.plan_cleanup(duplicates=0.96)
    again.apply()
    with pytest.raises(Conflict, match="has changed since the plan was made"):
        again.apply()


def test_apply__without_waiting(dataset: Dataset, workspace: Workspace) -> None:
    """Without waiting there is a task at once, beside which no other starts; files cannot be deleted that way."""
    plan = dataset.plan_cleanup(duplicates=0.96)
    with pytest.raises(InvalidInput, match="needs wait=True"):
        plan.apply(delete_files=True, wait=False)
    with all_threads_busy(workspace):
        task = plan.apply(wait=False)
        assert not isinstance(task, CleanupPlan)
        assert dataset.info.status_new is DatasetStatus.READ_ONLY
        with pytest.raises(Conflict, match="'cleanup' is blocked while MEDIA_DELETION task is running"):
            plan.apply()
    assert task.wait().status is TaskStatus.COMPLETED  # type: ignore[union-attr] # the task, as wait is false
    assert dataset.count() == 3


@pytest.mark.slow
def test_apply__what_the_workspace_does_not_allow(tmp_path: Path) -> None:
    """Clean-ups are refused without snapshots and in a read-only workspace."""
    folder = fill(tmp_path / "images", 2)
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    settings = SETTINGS.model_copy(update={"dataset_snapshots_enabled": False})
    with Workspace(tmp_path / "ws", settings=settings) as workspace:
        plan = workspace.create_dataset("pets", folder).plan_cleanup(duplicates="exact")
        with pytest.raises(Forbidden, match="could not be undone"):
            plan.apply()
    with Workspace(tmp_path / "ws", settings=SETTINGS, read_only=True) as workspace:
        plan = workspace.dataset("pets").plan_cleanup(duplicates="exact")
        with pytest.raises(ReadOnly):
            plan.apply()
        assert workspace.dataset("pets").count() == 3


@pytest.mark.slow
def test_apply__that_fails_can_be_tried_again(workspace: Workspace, tmp_path: Path) -> None:
    """A clean-up that was stopped leaves the dataset as it was, and its task can be run again."""
    folder = fill(tmp_path / "images", 3)
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    dataset = workspace.create_dataset("pets", folder, "gist")
    plan = dataset.plan_cleanup(duplicates="exact")
    with all_threads_busy(workspace):
        task = plan.apply(wait=False)
        assert not isinstance(task, pa.Table)
        task.abort()  # type: ignore[union-attr] # the task, as wait is false
    assert (dataset.count(), dataset.info.status_new) == (4, DatasetStatus.READY)
    task.retry()  # type: ignore[union-attr] # as above
    assert task.wait().status is TaskStatus.COMPLETED  # type: ignore[union-attr] # as above
    assert dataset.count() == 3


def test_plan__of_a_dataset_without_images_yet(workspace: Workspace, folder: Path) -> None:
    """A dataset that was never finished has nothing to plan."""
    broken = workspace.create_dataset("broken", folder, Faulty(), wait=False)
    assert broken.task is not None
    with pytest.raises(Exception, match="out of order"):
        broken.task.wait()
    with pytest.raises(Conflict, match="nothing to show yet"):
        broken.plan_cleanup(duplicates=0.96)
