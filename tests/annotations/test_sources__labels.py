"""Annotation files beside the images are found and joined by file name; malformed ones are rejected."""

import csv
import json
import unicodedata
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex.annotations.formats import label_files
from framedex.annotations.image_names import SEVERAL_IMAGES
from framedex.annotations.label_index import Annotations
from framedex.annotations.sources import find_box_sources, read_annotations, read_box_index

COCO: dict[str, Any] = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "sub/b.jpg"}, {"id": 3, "file_name": "c.jpg"}],
    "categories": [{"id": 7, "name": "cat"}, {"id": 8, "name": "dog"}, {"id": 9, "name": "box"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 9, "bbox": [0, 0, 5, 5]},
        {"id": 2, "image_id": 1, "category_id": 7},
        {"id": 3, "image_id": 1, "category_id": 8},
        {"id": 6, "image_id": 1, "category_id": 7},
        {"id": 4, "image_id": 2, "caption": "a dog"},
        {"id": 5, "image_id": 2, "caption": "runs"},
    ],
}


def write_coco(folder: Path, content: Any) -> None:
    """Write a COCO file, or any other content under its name."""
    (folder / "annotations.json").write_text(content if isinstance(content, str) else json.dumps(content))


def read(folder: Path, *paths: str) -> Annotations:
    """Return the annotations of a folder with images at some paths."""
    found = read_annotations(str(folder))
    found.find_images(lambda: paths)
    return found


def changed(**parts: Any) -> dict[str, Any]:
    """Return the COCO file with other parts."""
    return {**COCO, **parts}


def test_read__nothing_there(tmp_path: Path) -> None:
    """A folder without annotation files has no annotations; a folder with such a name is not a file."""
    (tmp_path / "annotations.json").mkdir()
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == ((), None)
    assert found.unmatched == 0


def test_coco__labels_and_captions_by_image(tmp_path: Path) -> None:
    """Categories without a box are distinct labels of the image in order; captions are joined by newlines."""
    write_coco(tmp_path, COCO)
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("cat", "dog"), None)
    assert found.find("sub/b.jpg") == ((), "a dog\nruns")
    assert found.find("c.jpg") == ((), None)


def test_coco__labels_of_an_image(tmp_path: Path) -> None:
    """The label list of an image replaces the categories of its annotations, and keeps its captions."""
    images = [
        {"id": 1, "file_name": "a.jpg", "labels": ["dog", " cat "]},
        {"id": 2, "file_name": "b.jpg", "labels": []},
        {"id": 3, "file_name": "c.jpg", "labels": None},
    ]
    categories = [{"id": 1, "name": "bird"}]
    annotations = [{"image_id": number, "category_id": 1, "caption": "a text"} for number in (1, 2, 3)]
    write_coco(tmp_path, {"images": images, "categories": categories, "annotations": annotations})
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("dog", "cat"), "a text")
    assert found.find("b.jpg") == ((), "a text")
    assert found.find("c.jpg") == (("bird",), "a text")


def test_coco__names_have_no_space_around_them(tmp_path: Path) -> None:
    """All formats strip spaces from labels, and drop empty and repeated ones."""
    categories = [{"id": 7, "name": " cat "}, {"id": 8, "name": "cat"}, {"id": 9, "name": " "}]
    notes = [{"image_id": 1, "category_id": number} for number in (7, 8, 9)]
    write_coco(tmp_path, changed(categories=categories, annotations=notes))
    assert read_annotations(str(tmp_path)).find("a.jpg") == (("cat",), None)


def test_find__what_is_named_without_annotations(tmp_path: Path) -> None:
    """An image that is listed without annotations does not get those of another image with its base name."""
    (tmp_path / "image_annotations.csv").write_text("filename,label,caption\na.jpg,dog,\nx/a.jpg,,\n")
    found = read(tmp_path, "x/a.jpg", "y/a.jpg")
    assert found.find("x/a.jpg") == found.find("y/a.jpg") == ((), None)
    assert found.problems.counts == {SEVERAL_IMAGES: 1}
    assert found.unmatched == 0


def test_find__images_that_share_a_name(tmp_path: Path) -> None:
    """The path counts before all, and then the only image of a name; each file has names of its own."""
    (tmp_path / "image_annotations.csv").write_text("filename,label\na.jpg,root\nb.jpg,only\nc\\\\d.jpg,windows\n")
    write_coco(tmp_path, {"images": [{"id": 1, "file_name": "x/b.jpg", "labels": ["coco"]}]})
    found = read(tmp_path, "a.jpg", "x/a.jpg", "x/b.jpg", "y/c/d.jpg")
    labels = [found.find(path)[0] for path in ("a.jpg", "x/a.jpg", "x/b.jpg", "y/c/d.jpg")]
    assert labels == [("root",), (), ("coco",), ("windows",)]
    assert found.lists.image_id("x/b.jpg") == "1"
    assert (found.problems.count, found.unmatched) == (0, 0)


def test_csv__long_fields(tmp_path: Path) -> None:
    """Fields may be longer than the csv module's limit, which is restored afterwards."""
    limit = csv.field_size_limit()
    text = "long, " * 100_000
    (tmp_path / "image_annotations.csv").write_text(f'filename,caption\na.jpg,"{text}"\n')
    assert read_annotations(str(tmp_path)).find("a.jpg") == ((), text)
    assert csv.field_size_limit() == limit
    (tmp_path / "image_annotations.csv").write_text('filename,caption\na.jpg,"not closed\n')
    assert read_annotations(str(tmp_path)).problems.count == 1
    assert csv.field_size_limit() == limit


def test_unmatched__counts_annotated_files_that_no_image_has(tmp_path: Path) -> None:
    """Unmatched files are counted once, and matched ones are not counted."""
    write_coco(tmp_path, COCO)
    found = read_annotations(str(tmp_path))
    assert found.unmatched == 2
    found.find("a.jpg")
    found.find("a.jpg")
    assert found.unmatched == 1


def test_coco__with_byte_order_mark_and_odd_content(tmp_path: Path) -> None:
    """A BOM, numeric names, and missing or null parts are accepted."""
    content = {"images": [{"id": "x", "file_name": 5}], "annotations": None, "categories": None}
    (tmp_path / "annotations.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(content).encode())
    assert read_annotations(str(tmp_path)).find("5") == ((), None)
    write_coco(tmp_path, {"images": [{"id": 1, "file_name": "a"}]})
    assert read_annotations(str(tmp_path)).unmatched == 0


def test_coco__text_becomes_such_that_can_be_stored(tmp_path: Path) -> None:
    """A lone surrogate, which JSON can express, is replaced."""
    images = [{"id": 1, "file_name": "a.jpg"}]
    notes = [{"image_id": 1, "category_id": 7}, {"image_id": 1, "caption": "x\ud800"}]
    write_coco(tmp_path, {"images": images, "annotations": notes, "categories": [{"id": 7, "name": "\udfff!"}]})
    labels, caption = read_annotations(str(tmp_path)).find("a.jpg")
    assert "".join([*labels, caption or ""]).encode() == b"?!x?"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('{"images": [], "x": ' + "1" * 5000 + "}", id="huge number"),
        pytest.param([], id="array"),
        pytest.param({}, id="no images"),
        pytest.param({"images": {}}, id="images no array"),
        pytest.param(changed(categories=7), id="categories no array"),
        pytest.param(changed(annotations=7), id="annotations no array"),
        pytest.param(b'{"images": "\xff"}', id="no text"),
    ],
)
def test_coco__malformed(tmp_path: Path, content: Any) -> None:
    """A malformed file is one problem, which names it."""
    (tmp_path / "annotations.json").write_bytes(
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    found = read_annotations(str(tmp_path))
    assert (found.problems.count, found.problems.unread) == (1, {"annotations.json"})


LABEL = {"image_id": 1, "category_id": 7}


@pytest.mark.parametrize(
    ("parts", "n_labels"),
    [
        pytest.param({"images": ["a.jpg", *COCO["images"]]}, 0, id="image no object"),
        pytest.param({"images": [{"id": 4}, *COCO["images"]]}, 0, id="image without a name"),
        pytest.param({"images": [{"file_name": "d.jpg"}, *COCO["images"]]}, 0, id="image without an id"),
        pytest.param({"images": [{"id": [1], "file_name": "d.jpg"}, *COCO["images"]]}, 0, id="image id no scalar"),
        pytest.param({"images": [*COCO["images"], {"id": 3, "file_name": "d.jpg"}]}, 0, id="image id doubled"),
        pytest.param({"categories": [{"id": 5}, *COCO["categories"]]}, 0, id="category without a name"),
        pytest.param({"categories": [*COCO["categories"], {"id": 8, "name": "x"}]}, 0, id="category id doubled"),
        pytest.param({"annotations": [7, LABEL]}, 0, id="annotation no object"),
        pytest.param({"annotations": [{"category_id": 7}, LABEL]}, 1, id="annotation without an image"),
        pytest.param({"annotations": [{"image_id": 9, "category_id": 7}, LABEL]}, 1, id="unknown image"),
        pytest.param({"annotations": [{"image_id": [1], "category_id": 7}, LABEL]}, 1, id="image of a list"),
        pytest.param({"annotations": [{"image_id": 1, "category_id": 99}, LABEL]}, 1, id="unknown category"),
        pytest.param({"annotations": [{"image_id": 1, "category_id": {}}, LABEL]}, 1, id="category of an object"),
        pytest.param({"annotations": [{"image_id": 1}, LABEL]}, 1, id="annotation of nothing"),
        pytest.param({"annotations": [{"image_id": 1, "caption": 7}, LABEL]}, 1, id="caption no text"),
    ],
)
def test_coco__bad_parts_fail_alone(tmp_path: Path, parts: dict[str, Any], n_labels: int) -> None:
    """Of labels and boxes together, each bad part is a problem once, and the others are read."""
    write_coco(tmp_path, changed(**{"annotations": [LABEL], **parts}))
    labels, boxes = read_annotations(str(tmp_path)), read_box_index(find_box_sources(tmp_path))
    assert labels.find("a.jpg") == (("cat",), None)
    assert (labels.problems.count, boxes.problems.count) == (n_labels, 1 - n_labels)


def test_csv__labels_and_captions(tmp_path: Path) -> None:
    """One label, lists of labels and captions are read; a file may have several rows."""
    rows = 'filename,label,caption\na.jpg,"[dog, puppy]","a, b"\na.jpg,dog,second\nx/b.jpg,cat,\nc.jpg,,\n'
    (tmp_path / "image_annotations.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("dog", "puppy"), "a, b\nsecond")
    assert found.find("x/b.jpg") == (("cat",), None)
    assert found.find("c.jpg") == ((), None)


def test_csv__rows_of_other_lengths(tmp_path: Path) -> None:
    """Short rows lack their last cells, and extra cells are ignored; a row needs a file name."""
    (tmp_path / "image_annotations.csv").write_text("label,filename\ncat,a.jpg,more\n\ndog\n")
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("cat",), None)
    assert (found.unmatched, [str(each) for each in found.problems.sample]) == (
        0, ["image_annotations.csv: line 4: None: 'filename' must be the name of an image"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"file,label\na.jpg,cat\n", b"filename\na.jpg\n"],
)
def test_csv__malformed(tmp_path: Path, content: bytes) -> None:
    """Missing columns are a problem of the file."""
    (tmp_path / "image_annotations.csv").write_bytes(content)
    assert read_annotations(str(tmp_path)).problems.unread == {"image_annotations.csv"}


def test_parquet__labels_and_captions(tmp_path: Path) -> None:
    """Lists and single labels are read in any of Arrow's types."""
    table = pa.table(
        {
            "filename": ["a.jpg", "b.jpg", None],
            "label": pa.array([["dog", "puppy"], None, ["x"]], pa.large_list(pa.string())),
            "caption": ["x", None, "y"],
            "other": [1, 2, 3],
        }
    )
    pq.write_table(table, tmp_path / "image_annotations.parquet")
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("dog", "puppy"), "x")
    assert found.find("b.jpg") == ((), None)
    assert (found.unmatched, found.problems.count) == (0, 1)


@pytest.mark.parametrize("content", [b"", b"no parquet", b"PAR1" + bytes(40) + b"PAR1"])
def test_parquet__malformed(tmp_path: Path, content: bytes) -> None:
    """A file that is not Parquet is a problem of the file."""
    (tmp_path / "image_annotations.parquet").write_bytes(content)
    assert read_annotations(str(tmp_path)).problems.unread == {"image_annotations.parquet"}


def test_parquet__needs_its_columns(tmp_path: Path) -> None:
    """A table without file names, labels and captions is a problem that lists the required columns."""
    pq.write_table(pa.table({"name": ["a.jpg"], "label": ["x"]}), tmp_path / "image_annotations.parquet")
    (problem,) = read_annotations(str(tmp_path)).problems.sample
    assert "it needs 'filename' and 'label' or 'caption'" in problem.reason


def test_captions__in_a_file_of_their_own(tmp_path: Path) -> None:
    """A COCO file of captions beside the annotations gives captions and ids; several captions are joined."""
    write_coco(tmp_path, changed(annotations=[COCO["annotations"][1]]))
    texts = [{"id": 1, "image_id": 1, "caption": "one"}, {"id": 2, "image_id": 1, "caption": "two"}]
    (tmp_path / "captions.json").write_text(json.dumps({"images": COCO["images"], "annotations": texts}))
    found = read(tmp_path, "x/a.jpg")
    found.lists.find_images(lambda: ("x/a.jpg",))
    assert found.find("x/a.jpg") == (("cat",), "one\ntwo")
    assert found.lists.image_id("x/a.jpg") == "1"


@pytest.mark.parametrize("text", ['{"a.jpg": "a cat"}', '[{"image": "a.jpg"}]', "no JSON", ""])
def test_captions__of_another_kind(tmp_path: Path, text: str) -> None:
    """A file of another tool under the name of the captions is ignored."""
    (tmp_path / "captions.json").write_text(text)
    found = read_annotations(str(tmp_path))
    assert (found.find("a.jpg"), found.unmatched) == (((), None), 0)


def test_captions__bad_parts_fail_alone(tmp_path: Path) -> None:
    """A caption of no image is a problem, and so are images and annotations that cannot be used."""
    notes = [7, {"image_id": 9, "caption": "one"}, {"image_id": 1, "caption": "two"}]
    (tmp_path / "captions.json").write_text(json.dumps({"images": [{}, *COCO["images"]], "annotations": notes}))
    found = read_annotations(str(tmp_path))
    assert (found.find("a.jpg"), found.problems.count) == (((), "two"), 3)


def test_read__several_files_are_joined(tmp_path: Path) -> None:
    """The annotations of an image in three files are joined."""
    write_coco(tmp_path, COCO)
    (tmp_path / "image_annotations.csv").write_text("filename,label,caption\na.jpg,pet,one\n")
    table = pa.table({"filename": ["a.jpg"], "label": ["cat"], "caption": ["two"]})
    pq.write_table(table, tmp_path / "image_annotations.parquet")
    assert len(label_files()) == 4
    assert read_annotations(str(tmp_path)).find("a.jpg") == (("cat", "dog", "pet"), "one\ntwo")


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
@pytest.mark.parametrize("name", ["é/ü.jpg", "é\\ü.jpg", "ü.jpg"])
def test_names__in_other_forms(
    tmp_path: Path, forms: tuple[Literal["NFC", "NFD"], Literal["NFC", "NFD"]], name: str
) -> None:
    """Labels, captions and boxes find files whose letters are composed otherwise, and those behind backslashes."""
    written, path = unicodedata.normalize(forms[0], name), unicodedata.normalize(forms[1], "é/ü.jpg")
    (tmp_path / "image_annotations.csv").write_text(f"filename;label\n{written};dog\n", encoding="utf-8-sig")
    table = f"filename\tcol_x\trow_y\twidth\theight\tlabel\n{written}\t1\t2\t3,5\t4\tcat\n"
    (tmp_path / "object_annotations.csv").write_bytes(table.encode("utf-16"))
    annotations, boxes = read_annotations(str(tmp_path)), read_box_index(find_box_sources(tmp_path))
    annotations.find_images(lambda: [path])
    boxes.find_images(lambda: [path])
    assert annotations.find(path) == (("dog",), None)
    assert [(box.label, box.width) for box in boxes.find(path, (10, 10))] == [("cat", 3.5)]
    assert (boxes.unmatched, boxes.problems.count) == (0, 0)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"annotations.json": json.dumps(COCO), "annotations_val.json": json.dumps(COCO)}, "sub/b.jpg"),
        ({"ImageSets/Segmentation/val.txt": "x\nsub/b c\n", "JPEGImages/x.jpg": ""}, "JPEGImages/sub/b c.jpg"),
        ({"ImageSets/Main/val.txt": "x  1\nsub/b  -1\n", "JPEGImages/x.jpg": ""}, "JPEGImages/sub/b.jpg"),
        ({"images/val/b.json": '{"shapes": [], "imagePath": "b.jpg"}'}, "images/val/b.jpg"),
    ],
)
def test_parts__of_files_beside(tmp_path: Path, files: dict[str, str], name: str) -> None:
    """COCO files of parts beside that of all images, lists of masks and folders of labelme files are parts."""
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert read(tmp_path, name).facts_of(name)[0] == ("val",)
