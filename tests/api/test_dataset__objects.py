"""Objects of a dataset: boxes in images, as they are read, added, replaced and deleted with their images."""

import re
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace, vql
from framedex.annotations.sources import find_box_sources, read_box_index
from framedex.encoders.gist import Gist
from framedex.images.reading import read_image
from framedex.images.thumbnails import SIZE, thumbnail_path
from framedex.records import DatasetStatus
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.boxes import SHARED
from tests.growth import partition, status_of
from tests.image_files import photo, write
from tests.inside import context_of, layout_of, stored_media
from tests.laws import rest_slow
from tests.objects import (
    SCENE,
    objects_in,
    paint_scenes,
    rows_of,
    scenes,
    thing,
    things_of,
    write_table,
)
from tests.problems import unusable


@pytest.fixture
def things(folder: Path) -> list[object]:
    return list(scenes(folder))


@pytest.fixture
def dataset(workspace: Workspace, folder: Path, things: list[object]) -> Dataset:
    return workspace.create_dataset("scenes", folder, "gist")


def same_groups(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets have the same objects in the same groups, whatever their numbers and order."""
    rows = [
        sorted(rows_of(each, ["path", "box_x", *CLUSTERS, *DUPLICATES]), key=lambda row: (row["path"], row["box_x"]))
        for each in (one, other)
    ]
    assert [(row["path"], row["box_x"]) for row in rows[0]] == [(row["path"], row["box_x"]) for row in rows[1]]
    for name in (*CLUSTERS, *DUPLICATES):
        groups = [partition([row[name] for row in each]) for each in rows]
        pairs = [np.equal.outer(each, each) for each in groups]
        if not (pairs[0] == pairs[1]).all():
            return False
    return True


class TestCreation:
    """A folder with a file of boxes."""

    @pytest.mark.slow
    def test_rows__are_the_boxes(self, dataset: Dataset, things: list[object]) -> None:
        """Each box is a row, in the order of the images and of the file, with its label, crop and image."""
        assert things_of(dataset) == things
        media = stored_media(dataset).table.scan(["media_id", "path"]).read_all().to_pylist()
        parents = {row["media_id"]: row["path"] for row in media}
        for row in rows_of(dataset):
            assert parents[row["parent_id"]] == row["path"]
            assert (row["source"], row["confidence"], row["error"], row["kind"]) == ("csv", None, None, None)
        sizes = {(row["width"], row["height"]) for row in rows_of(dataset)}
        assert sizes == {(48, 48), (49, 49), (56, 56)}  # the box at 72.5, 40.25 touches one pixel more

    @pytest.mark.slow
    def test_crops__are_what_is_in_the_boxes(self, dataset: Dataset) -> None:
        """Embedding and groups are those of an image of the thing alone; reading an object gives it."""
        first = rows_of(dataset)[0]
        media = objects_in(dataset)
        pixels = read_image(media, first["media_id"], context_of(dataset).settings).pixels
        assert (pixels == thing(0)).all()
        (alone,) = Gist().encode_images(np.stack([Gist().prepare(thing(0))]))
        assert np.allclose(first["embedding"], alone, atol=1e-6)
        groups = [row["duplicate_0"] for row in rows_of(dataset)]
        assert groups[0] is not None
        assert [group == groups[0] for group in groups] == [place % 3 == 0 for place in range(len(groups))]

    @pytest.mark.slow
    def test_images__are_as_without_boxes(self, workspace: Workspace, folder: Path, dataset: Dataset) -> None:
        """Boxes change nothing of the media but the labels' file: same rows, same groups."""
        (folder / "object_annotations.csv").unlink()
        plain = workspace.create_dataset("plain", folder, "gist")
        columns = ["path", "embedding", "cluster_0", "uniqueness"]
        assert plain.to_arrow(["image_filename"]).equals(dataset.to_arrow(["image_filename"]))
        one, other = (stored_media(each).table.scan(columns).read_all() for each in (plain, dataset))
        assert one.equals(other)
        assert rows_of(plain) == []

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.skipif(not SHARED.is_dir(), reason="the annotated images are not here")
    @pytest.mark.parametrize("name", ["coco-yolo", "raccoon-voc"])
    def test_real__all_boxes(self, workspace: Workspace, name: str) -> None:
        """All boxes of real annotations become objects, to the last bit."""
        dataset = workspace.create_dataset(name, SHARED / name, "gist")
        index = read_box_index(find_box_sources(SHARED / name))
        media = stored_media(dataset).table.scan(["path", "width", "height"]).read_all().to_pylist()
        expected = [box for row in media for box in index.find(row["path"], (row["width"], row["height"]))]
        assert len(expected) == len(index) > 0
        assert things_of(dataset) == [(box.name, (box.x, box.y, box.width, box.height), box.label) for box in expected]
        assert len({row["media_id"] for row in rows_of(dataset, ["media_id"])}) == len(index)

    @pytest.mark.slow
    def test_given__by_path(self, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
        """Boxes that lie elsewhere are found by the bare names of the images, whatever folders the file names."""
        things = paint_scenes(folder / "deep", ["a.png", "b.png"])
        table = write_table(tmp_path / "boxes.csv", [(f"elsewhere/{name}", box, label) for name, box, label in things])
        dataset = workspace.create_dataset("given", folder, "gist", boxes=table)
        assert things_of(dataset) == [(f"deep/{name}", box, label) for name, box, label in things]

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_archive__with_a_table(self, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
        """Boxes that come in an archive are those of its images."""
        things = scenes(tmp_path / "more", 2, seed=50)
        with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
            for path in sorted((tmp_path / "more").iterdir()):
                archive.write(path, path.name)
        dataset.add_media(archive=tmp_path / "more.zip")
        assert things_of(dataset)[12:] == things
        pixels = read_image(objects_in(dataset), rows_of(dataset)[12]["media_id"], context_of(dataset).settings).pixels
        assert (pixels == thing(0)).all()

    @pytest.mark.slow
    def test_broken_image__keeps_its_boxes(self, workspace: Workspace, folder: Path) -> None:
        """Boxes in an image that cannot be seen are objects without an embedding, with the reason."""
        things = scenes(folder)
        (folder / "001.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
        dataset = workspace.create_dataset("broken", folder, "gist")
        assert things_of(dataset) == things
        broken = [row for row in rows_of(dataset) if row["path"] == "001.png"]
        assert len(broken) == 3
        assert all(row["error"] and row["embedding"] is None and row["cluster_0"] == 0 for row in broken)


BAD = {
    "outside": ((400.0, 10.0, 20.0, 20.0), "outside of the image"),
    "left of it": ((-30.0, 10.0, 20.0, 20.0), "outside of the image"),
    "empty": ((10.0, 10.0, 0.0, 20.0), "empty"),
    "swapped": ((60.0, 60.0, -20.0, -20.0), "swapped"),
    "infinite": ((10.0, float("inf"), 20.0, 20.0), "finite"),
    "no number": ((10.0, float("nan"), 20.0, 20.0), "finite"),
}


@pytest.mark.only_soak
@pytest.mark.parametrize("kind", rest_slow(BAD, 0, long=3))
def test_bad_box__is_left_out_alone(workspace: Workspace, folder: Path, kind: str) -> None:
    """A box that cannot be is counted, and said with its place and what would be right; the others are there."""
    things = paint_scenes(folder, ["a.png"])
    box, reason = BAD[kind]
    write_table(folder / "object_annotations.csv", [*things, ("a.png", box, "ghost")])
    dataset = workspace.create_dataset("bad", folder, "gist")
    assert things_of(dataset) == things
    assert dataset.skipped["parts of annotations that cannot be used as they are"] == 1
    (said,) = unusable(dataset)
    assert reason in said


@pytest.mark.slow
def test_box_over_the_edge__is_cut_off(workspace: Workspace, folder: Path) -> None:
    """Of a box that reaches over the image the part within counts, and that is said."""
    paint_scenes(folder, ["a.png"])
    write_table(folder / "object_annotations.csv", [("a.png", (300.0, 150.0, 100.0, 100.0), "cat")])
    dataset = workspace.create_dataset("edge", folder, "gist")
    assert things_of(dataset) == [("a.png", (300.0, 150.0, 20.0, 50.0), "cat")]
    assert "cut off" in unusable(dataset)[0]


@pytest.mark.slow
def test_boxes__named_and_found(workspace: Workspace, folder: Path) -> None:
    """A file that is named and found counts once."""
    things = scenes(folder)
    dataset = workspace.create_dataset("twice", folder, "gist", boxes=[folder / "object_annotations.csv"] * 2)
    assert things_of(dataset) == things


@pytest.mark.slow
@pytest.mark.only_soak
def test_bad_box__in_a_broken_image(workspace: Workspace, folder: Path) -> None:
    """Impossible boxes are skipped even if the size of the image is unknown."""
    boxes = [("a.png", (5.0, 5.0, 20.0, 20.0)), ("a.png", (5.0, 5.0, -3.0, 4.0)), ("a.png", (-50.0, 5.0, 3.0, 4.0))]
    (folder / "a.png").write_bytes(b"broken")
    write_table(folder / "object_annotations.csv", [(*each, "cat") for each in boxes])
    dataset = workspace.create_dataset("broken", folder, "gist")
    assert things_of(dataset) == [(*boxes[0], "cat")]
    assert len(unusable(dataset)) == 2
    dataset.add_objects(write_table(folder.parent / "good.csv", [(*boxes[0], "dog")]))
    assert unusable(dataset) == []
    assert "size of the image" in dataset.export(folder.parent / "x.zip", format="yolo").message


def test_boxes__that_cannot_be_read(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Files that are no boxes, or not there, are an error that names them; nothing is left behind."""
    paint_scenes(folder, ["a.png"])
    for given, words in (
        (tmp_path / "no.csv", "no file of boxes"),
        (tmp_path, "has no boxes that can be read"),
        (5, "given as the path"),
        ([], "given as the path"),
        ("L" * 5000, "cannot read the boxes"),
    ):
        with pytest.raises(InvalidInput, match=words):
            workspace.create_dataset("bad", folder, "gist", boxes=given)
    (folder / "object_annotations.csv").write_text("filename,label\na.png,cat\n")
    assert workspace.datasets() == []
    (problem,) = unusable(workspace.create_dataset("found", folder, "gist"))
    assert re.search(r"object_annotations\.csv.*lacks the columns", problem)


class TestAdditions:
    """Media that are added to a dataset with objects, and objects to one without new media."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_media__adds_their_objects(self, workspace: Workspace, folder: Path, dataset: Dataset) -> None:
        """Objects of added images join those that are there; a reindex gives what a fresh dataset has."""
        before = rows_of(dataset)
        things = paint_scenes(folder, ["100.png", "101.png"], seed=100)
        write_table(folder / "object_annotations.csv", things)
        dataset.add_media(folder)
        after = rows_of(dataset)
        assert things_of(dataset)[12:] == things
        assert [row["media_id"] for row in after[:12]] == [row["media_id"] for row in before]
        assert after[12]["duplicate_0"] == before[0]["duplicate_0"]  # the first thing looks like those
        dataset.reindex()
        write_table(folder / "object_annotations.csv", things_of(dataset))
        assert same_groups(dataset, workspace.create_dataset("fresh", folder, "gist"))
        numbers = {row["cluster_0"] for row in before}
        assert {row["cluster_0"] for row in rows_of(dataset)[:12]} <= numbers

    @pytest.mark.slow
    def test_changed_image__has_its_new_objects(self, folder: Path, dataset: Dataset) -> None:
        """Objects of a file that has changed are those of its new content; the others stay as they are."""
        write(folder / "001.png", photo(7, width=320, height=200))
        write_table(folder / "object_annotations.csv", [("001.png", (8.0, 8.0, 48.0, 48.0), "bird")])
        others = [row["media_id"] for row in rows_of(dataset) if row["path"] != "001.png"]
        cached = thumbnail_path(layout_of(dataset).thumbnails(objects_in(dataset).dataset_id), others[0])
        dataset.objects.thumbnails(others[:1], size=SIZE)
        assert cached.exists()
        dataset.add_media(folder)
        assert not cached.exists()  # an object of the same box may look otherwise now
        assert [row["media_id"] for row in rows_of(dataset) if row["path"] != "001.png"] == others
        assert [each for each in things_of(dataset) if each[0] == "001.png"] == [
            ("001.png", (8.0, 8.0, 48.0, 48.0), "bird")
        ]

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_objects__to_a_dataset_without_any(self, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
        """They are as those that come with the images, ids too, but for the id of the dataset."""
        things = paint_scenes(folder, ["a.png", "b.png", "c.png"])
        plain = workspace.create_dataset("plain", folder, "gist")
        plain.add_objects(write_table(tmp_path / "later.csv", things))
        assert things_of(plain) == things
        assert status_of(plain) is DatasetStatus.READY
        write_table(folder / "object_annotations.csv", things)
        assert same_groups(plain, workspace.create_dataset("at once", folder, "gist"))

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_add_objects__twice(self, folder: Path, dataset: Dataset) -> None:
        """Existing boxes are skipped in every format; new ones are added."""
        ids = [row["media_id"] for row in rows_of(dataset)]
        dataset.add_objects(folder / "object_annotations.csv")
        assert [row["media_id"] for row in rows_of(dataset)] == ids
        assert status_of(dataset) is DatasetStatus.READY
        new = ("002.png", (100.0, 20.0, 30.0, 30.0), "fox")
        table = write_table(folder.parent / "new.csv", [*things_of(dataset), new, new])
        dataset.add_objects(table)
        assert things_of(dataset)[12:] == [new, new]  # two equal boxes are two objects
        assert status_of(dataset) is DatasetStatus.PARTIAL_INDEX
        dataset.reindex()
        assert status_of(dataset) is DatasetStatus.READY

    @pytest.mark.slow
    def test_add_objects__without_an_image(self, dataset: Dataset, tmp_path: Path) -> None:
        """Boxes in images that are not there are counted."""
        dataset.add_objects(write_table(tmp_path / "x.csv", [("nowhere.png", (1.0, 1.0, 5.0, 5.0), "cat")]))
        assert len(rows_of(dataset)) == 12
        assert dataset.skipped == {"images with boxes that are not there": 1}

    def test_add_objects__to_vectors(self, workspace: Workspace, tmp_path: Path) -> None:
        """A dataset that brought its embeddings has no encoder for crops."""
        dataset = workspace.create_dataset("vectors", {"uri": ["a"], "embedding": [[1.0, 0.0]]})
        with pytest.raises(InvalidInput, match="brought its embeddings"):
            dataset.add_objects(write_table(tmp_path / "x.csv", [("a", (1.0, 1.0, 5.0, 5.0), "cat")]))


class TestDeletions:
    """Media that go, with their objects."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_delete__takes_the_objects_along(self, dataset: Dataset) -> None:
        """Objects in deleted media go; the others keep ids and clusters, and a group that lost members shrinks."""
        before = {row["media_id"]: row for row in rows_of(dataset)}
        gone = stored_media(dataset).table.scan(["media_id"]).read_all().column(0).to_pylist()[:2]
        dataset.delete_media(gone)
        after = rows_of(dataset)
        assert {row["path"] for row in after} == {"002.png", "003.png"}
        assert [row["cluster_0"] for row in after] == [before[row["media_id"]]["cluster_0"] for row in after]
        assert after[0]["duplicate_0"] is not None

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_delete__all(self, folder: Path, dataset: Dataset) -> None:
        """A dataset whose objects are all gone is like one that has none, and can get new ones."""
        numbers = {row["cluster_0"] for row in rows_of(dataset)}
        dataset.delete_media(dataset.where([]).media_ids()[:4])
        assert rows_of(dataset) == []
        dataset.add_media(folder)
        assert len(rows_of(dataset)) == 12
        assert not numbers & {row["cluster_0"] for row in rows_of(dataset)}


class TestStates:
    """Objects in snapshots, restores and clones."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_restore__brings_objects_back(self, dataset: Dataset, folder: Path) -> None:
        """A restored state has the objects that it had, and one without objects has none again."""
        ids = [row["media_id"] for row in rows_of(dataset)]
        kept = dataset.snapshot("all")
        dataset.delete_media(dataset.where([]).media_ids()[:1])
        assert len(rows_of(dataset)) == 9
        dataset.restore(kept)
        assert [row["media_id"] for row in rows_of(dataset)] == ids

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_restore__to_before_the_first_objects(self, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
        """Objects that come after a restore have other cluster numbers, and the former ones can still be had back."""
        things = paint_scenes(folder, ["a.png", "b.png"])
        dataset = workspace.create_dataset("late", folder, "gist")
        bare = dataset.snapshot("bare")
        table = write_table(tmp_path / "boxes.csv", things)
        dataset.add_objects(table)
        first, rich = rows_of(dataset), dataset.snapshot("rich")
        dataset.restore(bare)
        assert rows_of(dataset) == []
        dataset.add_objects(table)
        second = rows_of(dataset)
        assert [row["media_id"] for row in second] == [row["media_id"] for row in first]
        assert not {row["cluster_0"] for row in first} & {row["cluster_0"] for row in second}
        dataset.restore(rich)
        assert rows_of(dataset) == first

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_clone__has_them(self, dataset: Dataset) -> None:
        """A clone has the same objects, which go on by themselves."""
        ids = [row["media_id"] for row in rows_of(dataset)]
        clone = dataset.clone()
        clone.delete_media(clone.where([]).media_ids()[:1])
        assert [row["media_id"] for row in rows_of(clone)] == ids[3:]
        assert [row["media_id"] for row in rows_of(dataset)] == ids

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_vacuum__keeps_what_is_needed(self, workspace: Workspace, dataset: Dataset) -> None:
        """Old states of objects go, the head's and a snapshot's stay."""
        kept, ids = dataset.snapshot("all"), [row["media_id"] for row in rows_of(dataset)]
        dataset.delete_media(dataset.where([]).media_ids()[:1])
        dataset.delete_media(dataset.where([]).media_ids()[:1])
        workspace.vacuum(older_than_s=0)
        assert [row["media_id"] for row in rows_of(dataset)] == ids[6:]
        dataset.restore(kept)
        assert [row["media_id"] for row in rows_of(dataset)] == ids


def test_scene__is_what_the_tests_think() -> None:
    """The boxes of a scene lie within its images and do not touch."""
    assert [label for label, _ in SCENE] == ["cat", "dog", "cat"]


def blurred(dataset: Dataset) -> list[tuple[str, float, float]]:
    """Return the label, the left edge and the limit of each object with the issue."""
    issues = dataset.objects.issues("blur").to_pylist()
    rows = {row["media_id"]: row for row in dataset.objects.rows(["media_id", "label", "bbox"])}
    found = [(rows[each["media_id"]], each["threshold"]) for each in issues]
    return sorted((row["label"], row["bbox"][0], round(limit, 4)) for row, limit in found)


@pytest.mark.slow
def test_blur__of_soft_subjects(workspace: Workspace, folder: Path) -> None:
    """Crops are judged beside those of their label, of a rare one beside all, small ones not at all; that stays."""
    boxes = [(10 + 70 * column, 10 + 70 * row, 60, 60) for row in range(4) for column in range(6)]
    sigmas = [{3: 9, 5: 9}.get(seed, 2) for seed in range(len(boxes))]
    soft = [np.asarray(cv2.GaussianBlur(thing(seed, 60), (0, 0), sigma), np.uint8) for seed, sigma in enumerate(sigmas)]
    sharp = [soft[8] if seed == 8 else np.asarray(thing(seed, 60), np.uint8) for seed in range(len(boxes))]
    for name, things in (("cells", soft), ("screws", sharp)):
        canvas = photo(1, width=440, height=300)
        for (x, y, width, height), pixels in zip(boxes, things, strict=True):
            canvas[y : y + height, x : x + width] = pixels
        write(folder / f"{name}.png", canvas)
    cells = [*boxes[:5], (360, 10, 40, 40), *boxes[6:]]
    rows = [("cells.png", box, "cell") for box in cells] + [("screws.png", box, "screw") for box in boxes]
    write_table(folder / "object_annotations.csv", [*rows, ("screws.png", boxes[8], "rare")])
    dataset = workspace.create_dataset("cells", folder, "gist")
    below = dataset.objects.where(vql.quality("blur", "lt", 0.37)).count()
    assert below == len(boxes) - 1 + 2
    found = blurred(dataset)
    assert [each[:2] for each in found] == [("cell", boxes[3][0]), ("screw", boxes[8][0])]
    assert found[0][2] < found[1][2] <= 0.37
    dataset.set_limits(blur=0.37)
    assert {limit for *_, limit in blurred(dataset)} == {0.37}
    assert len(blurred(dataset)) == below
    dataset.reset_limits("blur")
    assert blurred(dataset) == found
    write(folder / "more.png", photo(2))
    dataset.add_media(folder)
    assert blurred(dataset) == found
