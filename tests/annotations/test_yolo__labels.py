"""YOLO folders give labels; folders that are none give nothing, and broken ones are refused."""

import os
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.annotations.problems import Problems
from framedex.annotations.sources import read_annotations
from framedex.annotations.yolo import read_boxes, read_labels
from framedex.errors import InvalidInput
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


def labels_in(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the labels by path without a suffix."""
    rows = list(read_labels(folder))
    assert all(row.is_stem for row in rows)
    return {row.name: row.labels for row in rows}


def test_labels__by_stem(tmp_path: Path) -> None:
    """The classes of an image's objects are its labels, each once, in order; boxes are not looked at."""
    text = "1 0.5 0.5 1 1\n0 0.1 0.1 0.2 0.2\n1 0 0 0 0 0.9\n\n"
    make(tmp_path, {"a.txt": text, "x/b.txt": "0\n", "empty.txt": ""})
    found = read_annotations(str(tmp_path))
    assert found.find("images/a.jpg") == found.find("images/a.PNG") == (("dog", "cat"), None)
    assert found.find("images/x/b.jpg") == (("cat",), None)
    assert found.find("images/empty.jpg") == found.find("a.jpg") == found.find("x/a.jpg") == ((), None)
    assert found.unmatched == 0


def test_labels__unmatched(tmp_path: Path) -> None:
    """Label files without an image are counted."""
    make(tmp_path, {"a.txt": "0\n", "b.txt": "0\n", "empty.txt": ""})
    found = read_annotations(str(tmp_path))
    found.find("images/a.jpg")
    found.find("images/a.png")
    assert found.unmatched == 1


def test_labels__of_parts(tmp_path: Path) -> None:
    """The folders of images and labels may be those of parts, such as of training and of validation."""
    make(tmp_path, {"a.txt": "0\n"}, part="train")
    make(tmp_path, {"a.txt": "1\n"}, part="valid")
    found = read_annotations(str(tmp_path))
    assert found.find("train/images/a.jpg")[0] == ("cat",)
    assert found.find("valid/images/a.jpg")[0] == ("dog",)


def test_labels__beside_a_table(tmp_path: Path) -> None:
    """What a table says of the same image is put together with them."""
    make(tmp_path, {"a.txt": "1\n0\n"})
    (tmp_path / "image_annotations.csv").write_text("filename,label,caption\nimages/a.jpg,dog,a text\n")
    assert read_annotations(str(tmp_path)).find("images/a.jpg") == (("dog", "cat"), "a text")


def test_labels__beside_a_table_of_lists(tmp_path: Path) -> None:
    """A list in a table is all that an image has, also an empty one; an empty cell says nothing."""
    make(tmp_path, {"a.txt": "0\n", "b.txt": "0\n", "c.txt": "0\n"})
    rows = """images/a.jpg,"[""dog""]",\nimages/b.jpg,[],\nimages/c.jpg,,a text\n"""
    (tmp_path / "image_annotations.csv").write_text(f"filename,label,caption\n{rows}")
    found = read_annotations(str(tmp_path))
    assert [found.find(f"images/{name}.jpg") for name in "abc"] == [(("dog",), None), ((), None), (("cat",), "a text")]
    assert found.unmatched == 0


@pytest.mark.parametrize("name", ["data.yaml", "config.yaml", "classes.txt", "labels/classes.txt"])
def test_names__of_each_file(tmp_path: Path, name: str) -> None:
    """Names are those that boxes have, too; a file of names among the labels is no label file."""
    make(tmp_path, {"a.txt": "1 0.5 0.5 0.2 0.2\n"})
    (tmp_path / "data.yaml").unlink()
    (tmp_path / name).write_text("names: [cat, bird]" if name.endswith(".yaml") else "cat\nbird\n")
    write(tmp_path / "images/a.png", photo(1), "PNG")
    assert labels_in(tmp_path) == {"images/a": ("bird",)}
    assert [box.label for box in read_boxes(tmp_path, Problems())] == ["bird"]


def test_names__of_the_first_file_that_has_some(tmp_path: Path) -> None:
    """A file without names, or of another kind, hides none of those that follow."""
    make(tmp_path, {"a.txt": "0\n"}, names="names: []\n")
    with pytest.raises(InvalidInput, match="0 to -1"):
        list(read_labels(tmp_path))
    (tmp_path / "config.yaml").write_text("lr: 0.1\n")
    (tmp_path / "classes.txt").write_text("bird\n")
    assert labels_in(tmp_path) == {"images/a": ("bird",)}


@pytest.mark.parametrize("missing", ["images", "labels", "data.yaml"])
def test_folder__that_is_none(tmp_path: Path, missing: str) -> None:
    """Where one of its parts is missing, or the file is one of another kind, a folder is no YOLO folder."""
    make(tmp_path, {"a.txt": "nonsense"})
    (tmp_path / missing).rename(tmp_path / "other")
    assert list(read_labels(tmp_path)) == []
    (tmp_path / "other").rename(tmp_path / missing)
    (tmp_path / "data.yaml").write_text("something: else\n")
    assert list(read_labels(tmp_path)) == []


def test_folder__that_is_gone(tmp_path: Path) -> None:
    """A folder that is not there says nothing; the walk over the images does."""
    assert list(read_labels(tmp_path / "gone")) == []


@pytest.mark.parametrize("line", ["2 0.5 0.5 1 1", "-1 0 0 0 0", "cat 0 0 1 1", "0.5", "٣ 0 0 1 1", "9" * 5000])
def test_labels__unknown_class(tmp_path: Path, line: str) -> None:
    """A line that begins with no class is refused, with its file and number."""
    make(tmp_path, {"a.txt": f"0 0 0 1 1\n{line}\n"})
    with pytest.raises(InvalidInput, match=r"labels/a\.txt', line 2: .* the number of a class, 0 to 1, not '"):
        read_annotations(str(tmp_path))


def test_labels__bytes_that_are_no_text(tmp_path: Path) -> None:
    """A label file that is no text is refused."""
    make(tmp_path, {"a.txt": ""})
    (tmp_path / "labels/a.txt").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match=r"labels/a\.txt"):
        read_annotations(str(tmp_path))


def test_labels__links_that_lead_back(tmp_path: Path) -> None:
    """Links are followed, as those of images are; one that leads back is not entered again."""
    make(tmp_path, {"a.txt": "0\n"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/b.txt").write_text("1\n")
    (tmp_path / "labels/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "labels/loop").symlink_to(tmp_path / "labels")
    assert labels_in(tmp_path) == {"images/a": ("cat",), "images/linked/b": ("dog",)}


def test_create_dataset__of_a_yolo_folder(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset of such a folder has its labels, whatever bytes are in the names."""
    make(tmp_path / "yolo", {"a.txt": "1 0.5 0.5 1 1\n", os.fsdecode(b"\xff.txt"): "0\n", "gone.txt": "0\n"})
    for number, name in enumerate(["a.png", os.fsdecode(b"\xff.png"), "b.png"]):
        write(tmp_path / "yolo/images" / name, photo(number), "PNG")
    dataset = workspace.create_dataset("d", tmp_path / "yolo", Averages())
    assert dataset.to_arrow(["labels"])["labels"].to_pylist() == [["dog"], [], ["cat"]]
    assert dataset.skipped["annotations without an image"] == 1
