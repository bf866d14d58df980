"""Merges of two datasets into a new one: what is in it, what both had, and what can go wrong."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Conflict, Dataset, InvalidInput, TaskFailed, Workspace, vql
from framedex.cli import main
from framedex.records import DatasetStatus, TaskStatus
from tests.failures import failing
from tests.gallery import VERIFYING
from tests.image_files import detailed, photo, write
from tests.videos import numbered, write_video

SHARED = "left/shared.png"


def annotate(folder: Path, boxes: dict[str, list[tuple[str, list[float]]]], first_id: int) -> None:
    """Write a COCO file whose classes have ids from a number on."""
    names = list(dict.fromkeys(label for each in boxes.values() for label, _ in each))
    content = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(boxes)],
        "categories": [{"id": first_id + number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"id": 10 * number + place, "image_id": number, "category_id": first_id + names.index(label), "bbox": box}
            for number, each in enumerate(boxes.values())
            for place, (label, box) in enumerate(each)
        ],
    }
    (folder / "annotations.json").write_text(json.dumps(content))


@dataclass(frozen=True)
class Two:
    """Two datasets with one file in common, and edits in both."""

    workspace: Workspace
    left: Dataset
    right: Dataset
    folder: Path
    root: Path

    def merged(self, name: str = "merged", **options: Any) -> Dataset:
        """Return the dataset with the media of both."""
        return self.left.merge(self.right, name, **options)


def make(folder: Path, workspace: Workspace) -> Two:
    """Make both datasets."""
    for seed in range(3):
        write(folder / "left" / f"{seed}.png", photo(seed))
    write(folder / SHARED, detailed(9))
    write_video(folder / "right" / "clip.avi", numbered(3))
    for seed in range(10, 12):
        write(folder / "right" / f"{seed}.png", photo(seed))
    write(folder / "right" / "0 again.jpg", photo(0), quality=90)
    annotate(folder / "left", {"0.png": [("cat", [5, 5, 40, 30])], "shared.png": [("cat", [1, 2, 30, 30])]}, 7)
    annotate(folder / "right", {"10.png": [("dog", [8, 9, 50, 40])]}, 3)
    left = workspace.create_dataset("left", folder / "left")
    right = workspace.create_dataset("right", folder / "right", frames_per_second=100)
    right.add_media(folder / SHARED)
    right.add_media(files=[("up.png", (folder / "left" / "1.png").read_bytes())])
    left.add_media(files=[("up.png", (folder / "left" / "2.png").read_bytes())])
    named = {name: ids(each, name) for each in (left, right) for name in paths(each)}
    left.tag([named["0.png"]], "seen")
    left.add_field("stars", "float", values={named["0.png"]: 4.0})
    right.tag([named["10.png"], ids(right, "shared.png")], "seen")
    right.tag([named["10.png"]], "other")
    left.set_labels([ids(left, "shared.png")], ["cat"])
    right.set_labels([ids(right, "shared.png")], ["late"])
    right.set_captions({named["10.png"]: "a caption", ids(right, "shared.png"): "of both"})
    right.add_field("kind", "enum", enum_options=["x", "y"], values={named["11.png"]: "y"})
    right.add_field("stars", "float", values={named["10.png"]: 2.0, ids(right, "shared.png"): 1.0})
    right.basket.add([named["11.png"]])
    right.not_duplicates([named["10.png"], named["11.png"]])
    right.set_labels([named["11.png"]], ["fine"])
    right.label_is_right([named["11.png"]])
    return Two(workspace, left, right, folder, folder / "ws")


def paths(dataset: Dataset) -> list[str]:
    """Return the paths of the media of a dataset within their sources."""
    found: list[str] = dataset.to_arrow(["path"])["path"].to_pylist()
    return found


def ids(dataset: Dataset, path: str) -> str:
    """Return the id of the media item at a path."""
    return dataset.view.media_ids()[paths(dataset).index(path)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed workspace with both datasets."""
    folder = tmp_path_factory.mktemp("merge")
    with Workspace(folder / "ws", settings=VERIFYING) as workspace:
        make(folder, workspace)
    return folder


@pytest.fixture
def two(template: Path, tmp_path: Path) -> Iterator[Two]:
    """A copy of both datasets."""
    shutil.copytree(template / "ws", tmp_path / "ws")
    with Workspace(tmp_path / "ws", settings=VERIFYING) as workspace:
        yield Two(workspace, workspace.dataset("left"), workspace.dataset("right"), template, tmp_path / "ws")


@pytest.mark.slow
def test_merge__has_all_of_both(two: Two) -> None:
    """All media are there once, those of the first dataset with their ids, with values, vectors and files."""
    merged = two.merged()
    assert merged.info.status_new is DatasetStatus.PARTIAL_INDEX
    assert paths(merged) == [*paths(two.left), *(each for each in paths(two.right) if each != "shared.png")]
    assert merged.view.media_ids()[: len(two.left.view)] == two.left.view.media_ids()
    assert len(set(merged.view.media_ids())) == merged.count()
    rows = {
        row["path"]: row for row in merged.view.rows(["path", "media_id", "labels", "caption", "tags", "stars", "kind"])
    }
    assert (rows["0.png"]["tags"], rows["0.png"]["stars"]) == (["seen"], 4.0)
    assert sorted(rows["10.png"]["tags"]) == ["other", "seen"]
    assert (rows["10.png"]["caption"], rows["10.png"]["stars"], rows["11.png"]["kind"]) == ("a caption", 2.0, "y")
    shared = rows["shared.png"]
    assert (shared["labels"], shared["tags"], shared["stars"], shared["caption"]) == (["cat"], ["seen"], 1.0, "of both")
    assert {tag.name: tag.count for tag in merged.tags()} == {"seen": 3, "other": 1}
    assert merged.basket.ids == [rows["11.png"]["media_id"]]
    assert merged.skipped == {"media of both datasets": 1}
    own = dict(zip(*merged.embeddings(), strict=True))
    for dataset in (two.left, two.right):
        for path, vector in zip(paths(dataset), dataset.embeddings()[1], strict=True):
            if path not in ("up.png", "clip.avi"):
                assert np.array_equal(own[rows[path]["media_id"]], vector)
    assert [merged.read(each).shape for each in merged.view.media_ids()] == [
        *(two.left.read(each).shape for each in two.left.view.media_ids()),
        *(two.right.read(each).shape for each in two.right.where(~vql.file_name("is", "shared.png")).media_ids()),
    ]
    assert two.workspace.check().is_sound


@pytest.mark.slow
@pytest.mark.only_soak
def test_merge__has_objects_and_classes(two: Two) -> None:
    """Boxes of both are there, in their images, with the class list of both; the same ids as if they were added."""
    merged = two.merged()
    rows = merged.objects.to_arrow(["path", "label", "bbox"]).to_pylist()
    assert sorted((row["path"], row["label"], row["bbox"][0], row["bbox"][2]) for row in rows) == [
        ("0.png", "cat", 5.0, 40.0), ("10.png", "dog", 8.0, 50.0), ("shared.png", "cat", 1.0, 30.0)
    ]  # fmt: skip
    assert merged.where(vql.objects("dog")).to_arrow(["path"])["path"].to_pylist() == ["10.png"]
    merged.export(two.root / "out.zip", "coco")
    before = merged.count(), merged.objects.count()
    merged.add_media(two.folder / "right")  # adds nothing: the ids are those of an addition
    merged.add_media(two.folder / "left")
    assert (merged.count(), merged.objects.count()) == before


@pytest.mark.slow
@pytest.mark.only_soak
def test_merge__has_decisions_copies_and_videos(two: Two) -> None:
    """Decisions hold for the media with their new ids, copies between both are found, and frames belong to a video."""
    merged = two.merged()
    members = {ids(merged, "10.png"), ids(merged, "11.png")}
    assert [set(each.media_ids) for each in merged.duplicate_decisions()] == [members]
    assert [each.media_ids for each in merged.label_decisions()] == [[ids(merged, "11.png")]]
    groups = [set(group.paths) for group in merged.duplicates()]
    assert any(group >= {"0.png", "0 again.jpg"} for group in groups)
    assert merged.info.n_videos == 1
    assert len(merged.explore("VIDEOS").clusters) == 1
    merged.reindex()
    assert merged.info.status_new is DatasetStatus.READY
    two.right.delete_media(two.right.view)
    two.left.delete_media(two.left.view.limit(1))
    assert merged.read(ids(merged, "up.png")).shape == merged.read(ids(merged, "1.png")).shape
    assert two.workspace.check().is_sound


@pytest.mark.slow
@pytest.mark.only_soak
def test_merge__of_a_changed_file(two: Two) -> None:
    """Of a file that changed between the datasets the row of the first one stays."""
    write(two.folder / SHARED, detailed(9))
    other = two.workspace.create_dataset("other", two.folder / "left")
    original = (two.folder / "left" / "0.png").read_bytes()
    try:
        write(two.folder / "left" / "0.png", photo(77))
        other = two.workspace.create_dataset("changed", two.folder / "left")
        merged = two.left.merge(other, "merged")
        assert merged.count() == two.left.count()
        assert merged.skipped["files that the datasets have with different content"] == 1
        assert np.array_equal(merged.embeddings()[1][0], two.left.embeddings()[1][0])
    finally:
        (two.folder / "left" / "0.png").write_bytes(original)


def test_merge__of_tables_of_embeddings(workspace: Workspace) -> None:
    """Rows of tables with vectors are merged by their texts; other numbers of values are another encoder."""

    def dataset(name: str, uris: list[str], values: int = 2) -> Dataset:
        vectors = np.eye(max(len(uris), values), values, dtype=np.float32) + 0.1
        table = pa.table({"uri": uris, "embedding": list(vectors[: len(uris)]), "label": uris})
        return workspace.create_dataset(name, table)

    one, two_ = dataset("one", ["a.jpg", "b.jpg"]), dataset("two", ["b.jpg", "c.jpg"])
    merged = one.merge(two_, "merged")
    assert merged.to_arrow(["path"])["path"].to_pylist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert [label.name for label in merged.labels()] == ["a.jpg", "b.jpg", "c.jpg"]
    with pytest.raises(InvalidInput, match="same encoder, not of 'precomputed' \\(2 values\\) and 'precomputed' \\(3"):
        one.merge(dataset("three", ["d.jpg"], 3), "no")


@pytest.mark.slow
def test_merge__refuses(two: Two, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that are taken, the dataset itself, fields of different types, and other workspaces are refused."""
    with pytest.raises(Conflict):
        two.merged("left")
    with pytest.raises(InvalidInput, match="not with itself"):
        two.left.merge(two.left, "new")
    with pytest.raises(InvalidInput, match="same workspace"):
        two.left.merge("right", "new")  # type: ignore[arg-type] # checked
    with pytest.raises(InvalidInput):
        two.merged("a/b")
    two.left.add_field("kind", "string")
    with pytest.raises(InvalidInput, match="the field 'kind' is string in one dataset and enum in the other"):
        two.merged("new")
    with pytest.raises(SystemExit):
        main(["merge", "left", "right", "new", "-w", str(two.root)])
    assert "rename one of them first" in capsys.readouterr().err
    two.left.rename_field("kind", "sort")
    with pytest.raises(SystemExit):
        main(["merge", "left", "right", "new", "-w", str(two.root)])
    assert two.workspace.dataset("new").count() == 12
    assert [each.display_name for each in two.workspace.datasets()].count("new") == 1


@pytest.mark.slow
@pytest.mark.only_soak
def test_merge__that_fails(two: Two) -> None:
    """A merge that fails leaves only its task; one that was not waited for can be tried again."""
    states = two.left.generation, two.right.generation

    with failing("framedex.jobs.merge.merge.index", error=OSError("no")):
        with pytest.raises(TaskFailed):
            two.merged()
        assert {each.display_name for each in two.workspace.datasets()} == {"left", "right"}
        merged = two.merged(wait=False)
        assert merged.task is not None
        with pytest.raises(TaskFailed):
            merged.task.wait()
    merged.task.retry()
    assert merged.task.wait().status is TaskStatus.COMPLETED
    assert merged.count() == 12
    assert (two.left.generation, two.right.generation) == states
    assert two.workspace.check().is_sound
