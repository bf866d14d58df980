"""YOLO folders give labels of whole images only where an export of ours says so, and find their class names."""

import os
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import UNUSABLE, Problems
from framedex.annotations.sources import find_box_sources, read_annotations, read_box_index
from framedex.annotations.yolo import read_boxes, read_labels
from tests.gallery import Averages
from tests.image_files import photo, write


def make(folder: Path, labels: dict[str, str], names: str = "names: [cat, dog]\n", part: str = "") -> Path:
    """Write a YOLO folder without images."""
    (folder / part / "images").mkdir(parents=True, exist_ok=True)
    (folder / "data.yaml").write_text(names)
    for name, text in labels.items():
        path = folder / part / "labels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def with_table(folder: Path, text: str = "") -> Path:
    """Write the table of labels that our exports have."""
    (folder / "image_annotations.csv").write_text(f"filename,label,caption\n{text}")
    return folder


def labels_in(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the labels by path without a suffix."""
    rows = [row for row in read_labels(folder) if isinstance(row, ImageLabels)]
    assert all(row.is_stem for row in rows)
    return {row.name: row.labels for row in rows}


def boxes_of(folder: Path) -> list[str]:
    return [box.label for box in read_boxes(folder, Problems())]


WHOLE = "1 0.5 0.5 1 1\n"


@pytest.mark.parametrize(
    "line", [WHOLE, "1 0.5 0.5 1 1 0.9\n", "1 0 0 1 0 1 1 0 1\n", "1 0.5 0.5 0.2 0.2\n", "1.0 0.5 0.5 1.0 1.0\n"]
)
def test_boxes__of_the_whole_image(tmp_path: Path, line: str) -> None:
    """A box is an object, whatever its size; only beside our table a line is a label that is exactly as we write it."""
    make(tmp_path, {"a.txt": line})
    assert (labels_in(tmp_path), boxes_of(tmp_path)) == ({}, ["dog"])
    is_label = line in (WHOLE, "1.0 0.5 0.5 1.0 1.0\n")
    assert labels_in(with_table(tmp_path)) == ({"images/a": ("dog",)} if is_label else {})
    assert boxes_of(tmp_path) == ([] if is_label else ["dog"])


def test_labels__beside_a_table_of_lists(tmp_path: Path) -> None:
    """A list in a table is all that an image has, also an empty one; an empty cell says nothing."""
    make(tmp_path, {f"{name}.txt": WHOLE for name in "abc"})
    with_table(tmp_path, """images/a.jpg,"[""cat""]",\nimages/b.jpg,[],\nimages/c.jpg,,a text\n""")
    found = read_annotations(str(tmp_path))
    assert [found.find(f"images/{name}.jpg") for name in "abc"] == [(("cat",), None), ((), None), (("dog",), "a text")]


@pytest.mark.parametrize(
    "files",
    [
        {"data.yaml": "names: [cat, dog]", "labels/a.txt": WHOLE},
        {"config.yaml": "names: [cat, dog]", "labels/a.txt": WHOLE},
        {"dataset.yaml": "names: [cat, dog]", "labels/a.txt": WHOLE},
        {"coco128.yaml": "names: {0: cat, 1: dog}", "train/labels/a.txt": WHOLE},
        {"data.yml": "names: [cat, dog]", "labels/a.txt": WHOLE},
        {"data.yaml": "names: [cat, dog]", "other.yaml": "names: [x]", "labels/a.txt": WHOLE},
        {"a.yaml": "names: [cat, dog]", "b.yaml": "names: [cat, dog]", "c.yml": "x: y", "labels/a.txt": WHOLE},
        {"data.yaml": "names: []", "config.yaml": "lr: 0.1", "classes.txt": "cat\ndog\n", "labels/a.txt": WHOLE},
        {"classes.txt": "cat\ndog\n", "labels/a.txt": WHOLE},
        {"labels/classes.txt": "cat\ndog\n", "labels/a.txt": WHOLE},
        {"classes.txt": "cat\ndog\n", "a.png": "", "a.txt": WHOLE},
        {"x/classes.txt": "cat\ndog\n", "x/a.png": "", "x/a.txt": WHOLE},
        {"obj.names": "cat\ndog\n", "obj_train_data/a.png": "", "obj_train_data/a.txt": WHOLE},
        {"coco.names": "cat\ndog\n", "a.png": "", "a.txt": WHOLE},
        {"data/obj.names": "cat\ndog\n", "data/obj/a.png": "", "labels/a.txt": WHOLE},
        {"classes.txt": "\ndog\n", "labels/a.txt": WHOLE},
    ],
    ids=lambda files: "-".join(list(files)[:-1]),
)
def test_names__of_each_file(tmp_path: Path, files: dict[str, str]) -> None:
    """Names are in any YAML file, or in the lists of other tools; the order of the files decides."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (index,) = (read_box_index(find_box_sources(tmp_path)),)
    assert (boxes_of(tmp_path), index.problems.count) == (["dog"], 0)
    assert next(iter(files)) in read_annotations(str(tmp_path)).sources or "names: []" in files.values()


def test_names__of_files_that_differ(tmp_path: Path) -> None:
    """Of files of equal rank with different names none is used."""
    make(tmp_path, {"a.txt": WHOLE})
    (tmp_path / "data.yaml").rename(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("names: [cat, bird]")
    index = read_box_index(find_box_sources(tmp_path))
    (problem,) = index.problems.sample
    assert (len(index), "a.yaml and b.yaml have different names of classes" in problem.reason) == (0, True)


def test_names__that_are_missing(tmp_path: Path) -> None:
    """Label files without names of classes are counted, other text files are not."""
    make(
        tmp_path, {"a.txt": WHOLE, "x/b.txt": "0 0 0 1 1 1 1 0\n", "empty.txt": "", "c.txt": "a cat on a mat, 5 of 9\n"}
    )
    (tmp_path / "data.yaml").unlink()
    found = read_annotations(str(tmp_path))
    assert found.problems.counts == {"label files that are not used": 2}
    assert sorted(each.location for each in found.problems.sample) == ["labels/a.txt", "labels/x/b.txt"]
    assert "data.yaml or another YAML file with 'names'" in found.problems.sample[0].reason


def test_parts__of_darknet(tmp_path: Path) -> None:
    """CVAT's export for YOLO 1.1 names its parts in obj.data, with a folder before each path that is not there."""
    (tmp_path / "obj_train_data").mkdir()
    (tmp_path / "obj_train_data/a.png").touch()
    (tmp_path / "obj.names").write_text("cat\n")
    (tmp_path / "obj.data").write_text("classes = 1\ntrain = data/train.txt\nnames = data/obj.names\nbackup = b/\n")
    (tmp_path / "train.txt").write_text("data/obj_train_data/a.png\n")
    assert read_annotations(str(tmp_path)).facts_of("obj_train_data/a.png")[0] == ("train",)


def test_folder__that_is_gone(tmp_path: Path) -> None:
    """A folder that is not there says nothing; the walk over the images does."""
    assert list(read_labels(tmp_path / "gone")) == []


def test_labels__links_that_lead_back(tmp_path: Path) -> None:
    """Links are followed, as those of images are; one that leads back is not entered again."""
    make(tmp_path, {"a.txt": WHOLE})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/b.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "labels/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "labels/loop").symlink_to(tmp_path / "labels")
    found = [(box.name, box.label) for box in read_boxes(tmp_path, Problems())]
    assert found == [("images/a", "dog"), ("images/linked/b", "cat")]


def test_create_dataset__of_a_yolo_folder(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset of such a folder has its boxes, whatever bytes are in the names, and counts what it cannot use."""
    bad = "5 0.5 0.5 1 1\n# comment\n0,0.5,0.5,1,1\n"
    make(tmp_path / "yolo", {"a.txt": WHOLE + bad, os.fsdecode(b"\xff.txt"): "0.0 0.5 0.5 1 1\n", "gone.txt": WHOLE})
    for number, name in enumerate(["a.png", os.fsdecode(b"\xff.png"), "b.png"]):
        write(tmp_path / "yolo/images" / name, photo(number), "PNG")
    dataset = workspace.create_dataset("d", tmp_path / "yolo", Averages())
    assert dataset.to_arrow(["labels"])["labels"].to_pylist() == [[], [], []]
    assert sorted(dataset.objects.to_arrow(["label"])["label"].to_pylist()) == ["cat", "dog"]
    problems = {each.reason: each.count for each in dataset.problems}
    assert (problems[UNUSABLE], problems["images with boxes that are not there"]) == (3, 1)
