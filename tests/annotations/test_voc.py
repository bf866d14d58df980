"""Pascal VOC files: edges counted from 1, image names, attacks, and exact restoration."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from framedex.annotations.boxes import Box
from framedex.annotations.problems import Problems
from framedex.annotations.voc import read_boxes, write
from framedex.errors import InvalidInput
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.boxes import SIZES, box, boxes, flagged
from tests.laws import examples

EDGES = "<xmin>1</xmin><ymin>2.5</ymin><xmax>10</xmax><ymax>2.5</ymax>"


def annotation(*objects: str, filename: str = "a.jpg") -> str:
    """Return the text of a file."""
    return f"<annotation><filename>{filename}</filename>{''.join(objects)}</annotation>"


def item(name: str = "<name>cat</name>", edges: str = EDGES, flags: str = "") -> str:
    """Return the text of an object."""
    return f"<object>{name}{flags}<bndbox>{edges}</bndbox></object>"


def place(folder: Path, files: dict[str, str]) -> Path:
    """Write files by name; images are empty, because no test decodes them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> tuple[list[Box], Problems]:
    problems = Problems()
    return list(read_boxes(folder, problems)), problems


def test_edges__are_counted_from_one_and_inclusive(tmp_path: Path) -> None:
    """The first pixel has number 1, and the last pixel is included."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item())}))
    assert found == [Box("a.jpg", 0, 1.5, 10, 1, "cat", source="voc")]
    assert problems.count == 0


@pytest.mark.parametrize("side", [1, 640, 2**53 - 1, 2**53 + 1, 10**30 + 1])
def test_edges__are_the_same_with_and_without_a_point(tmp_path: Path, side: int) -> None:
    """Whole numbers, which are read in a faster way, give the sides that decimal numbers give."""
    names = ("xmin", "ymin", "xmax", "ymax")
    edges = (
        "".join(f"<{name}>{number}{end}</{name}>" for name, number in zip(names, (side, 7, 3 * side, 99), strict=True))
        for end in ("", ".0")
    )
    (plain, decimal), problems = read(place(tmp_path, {"a.xml": annotation(*(item(edges=each) for each in edges))}))
    assert plain == decimal
    assert plain.width == float(2 * side + 1)
    assert problems.count == 0


def test_flags__are_kept(tmp_path: Path) -> None:
    """Objects may be truncated and difficult."""
    flags = "<truncated>1</truncated><difficult> 1 </difficult>"
    found, _ = read(place(tmp_path, {"a.xml": annotation(item(flags=flags), item())}))
    assert [(each.truncated, each.difficult) for each in found] == [(True, True), (False, False)]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"a.xml": "a.jpg"}, "a.jpg"),
        ({"x/a.xml": "a.jpg", "x/a.jpg": ""}, "x/a.jpg"),
        ({"a.xml": "other.jpg", "a.png": "", "other.jpg": ""}, "a.png"),
        ({"a.xml": "other.jpg", "other.jpg": ""}, "other.jpg"),
        ({"a.xml": "a.png", "a.jpg": "", "a.png": ""}, "a.png"),
        ({"a.xml": "other.jpg", "a.png": ""}, "a.png"),
        ({"a.xml": "a", "a.PNG": ""}, "a.PNG"),
        ({"a.xml": "", "b.jpg": ""}, "a"),
        ({"a.xml": "C:\\photos\\a.jpg", "a.jpg": ""}, "a.jpg"),
        ({"a.xml": "../../a.jpg"}, "a.jpg"),
        ({"Annotations/a.xml": "a.jpg", "JPEGImages/a.jpg": ""}, "JPEGImages/a.jpg"),
        ({"v/Annotations/t/a.xml": "a.jpg", "v/JPEGImages/t/a.jpg": ""}, "v/JPEGImages/t/a.jpg"),
        ({"annotations/a.xml": "b.jpg", "images/a.jpg": ""}, "images/a.jpg"),
        ({"annotations/a.xml": "a.jpg", "annotations/a.jpg": ""}, "annotations/a.jpg"),
        ({"ü.xml": "ü &lt;b&gt;.jpg"}, "ü <b>.jpg"),
    ],
)
def test_name__of_the_image(tmp_path: Path, files: dict[str, str], name: str) -> None:
    """The image is the one with the XML file's stem, or else ``filename``; another name is a problem."""
    texts = {path: annotation(item(), filename=text) if path.endswith(".xml") else "" for path, text in files.items()}
    found, problems = read(place(tmp_path, texts))
    assert [each.name for each in found] == [name]
    is_other = "other.jpg" in texts["a.xml"] and name == "a.png" if "a.xml" in texts else name == "images/a.jpg"
    assert problems.counts == ({"VOC files that name another image than theirs": 1} if is_other else {})


def test_name__of_several_images(tmp_path: Path) -> None:
    """Of two images with the XML file's stem none is taken if ``filename`` is neither."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item(), filename="b.jpg"), "a.jpg": "", "a.png": ""}))
    (problem,) = problems.sample
    assert (found, problem.reason) == ([], "<filename> must be one of the images of its name, 'a.jpg' and 'a.png'")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (item(name=""), "a.xml: object 2: None: needs a <name>"),
        (item(name="<name> </name>"), "needs a <name>"),
        (item(edges=""), "<bndbox> must have"),
        (item(edges=EDGES.replace("10", "ten")), "'ten'"),
        (item(edges=EDGES.replace("10", "nan")), "'nan'"),
        (item(edges=EDGES.replace("10", "1e9999")), "'1e9999'"),
        ("<object><name>cat</name></object>", "<bndbox> must have"),
    ],
)
def test_objects__fail_alone(tmp_path: Path, text: str, told: str) -> None:
    """A bad object is a problem with its location and value; the others are read."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item(), text, item())}))
    assert (len(found), problems.count) == (2, 1)
    assert told in str(problems.sample[0])


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"<!DOCTYPE annotation [{LAUGHS}]><annotation><object><name>&l9;</name></object></annotation>", "entity 'l0'"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "/etc/passwd">]><annotation>&x;</annotation>', "entity 'x'"),
        ('<!DOCTYPE a [<!ENTITY % x SYSTEM "http://localhost/">%x;]><annotation/>', "entity 'x'"),
        ("", "no XML"),
        ("<annotation>", "no XML"),
        ("{}", "no XML"),
        ('<?xml version="1.0" encoding="klingon"?><annotation/>', "no XML"),
        ("<html/>", "not <html>"),
    ],
)
def test_files__fail_alone(tmp_path: Path, text: str, told: str) -> None:
    """A malformed file or an attack is a problem; the other files are read."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item()), "b.xml": text, "c.xml": annotation(item())}))
    assert (len(found), problems.count) == (2, 1)
    assert problems.sample[0].location == "b.xml"
    assert told in problems.sample[0].reason
    assert "b.xml" in problems.sample[0].reason


@pytest.mark.slow
def test_files__of_any_depth(tmp_path: Path) -> None:
    """Very deep elements are read or rejected without a crash."""
    depth = 2 * 10**5
    place(tmp_path, {"a.xml": f"<annotation>{'<a>' * depth}{'</a>' * depth}{item()}</annotation>"})
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (1, 0)


def test_files__of_any_size(tmp_path: Path) -> None:
    """A file that is too large is not read."""
    with (place(tmp_path, {"b.xml": annotation(item())}) / "a.xml").open("wb") as file:
        file.truncate(2**24 + 1)
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (1, 1)
    assert "16,777,216 bytes" in problems.sample[0].reason


@pytest.mark.parametrize("files", [{}, {"a.xml": "<html/>"}, {"a.txt": annotation(item())}])
def test_folder__without_any(tmp_path: Path, files: dict[str, str]) -> None:
    """A folder without VOC files is an error that names it."""
    with pytest.raises(InvalidInput, match=f"{tmp_path.name}.*no Pascal VOC file"):
        read(place(tmp_path, files))


def test_folder__that_is_not_there(tmp_path: Path) -> None:
    """A folder that cannot be read is an error that names it."""
    with pytest.raises(InvalidInput, match="nowhere"):
        read(tmp_path / "nowhere")


def written(folder: Path, sizes: Mapping[str, tuple[int, int] | None], boxes_: list[Box]) -> Path:
    """Write boxes as an export with images does, with empty files in the paths of the images."""
    write(FolderFiles(folder), ImagesInMemory(sizes, boxes_), no_progress)
    return place(folder, {f"images/{name}": "" for name in sizes})


@examples(50)
@given(boxes("voc", confidences=False))
def test_round_trip__to_the_last_bit(given_boxes: list[Box]) -> None:
    """An export is restored: numbers, names and flags, in the order of the file names."""
    given_boxes = [*flagged(given_boxes, "truncated", "difficult"), Box("keep.jpg", 1, 2, 3, 4, "cat", source="voc")]
    with tempfile.TemporaryDirectory() as folder:
        found, problems = read(written(Path(folder), SIZES | {"keep.jpg": (9, 9)}, given_boxes))
    again = [replace(each, name=each.name.removeprefix("images/")) for each in found]
    assert sorted(again, key=lambda each: each.name) == sorted(given_boxes, key=lambda each: each.name)
    assert problems.count == 0


def test_write__whole_numbers_stay_whole(tmp_path: Path) -> None:
    """Whole numbers have no decimal point, because other tools read edges as integers."""
    written(tmp_path, {"a.jpg": (200, 200)}, [box(x=0, y=99, width=100, height=10)])
    text = (tmp_path / "annotations" / "a.xml").read_text()
    assert "<xmin>1</xmin>" in text
    assert "<ymin>100</ymin>" in text
    assert "<xmax>100</xmax>" in text
    assert "<width>200</width>" in text


def test_write__beside_the_places_of_images(tmp_path: Path) -> None:
    """Without image files, the annotation files lie at the paths of the images in their source."""
    sizes = {"JPEGImages/t/a.jpg": (9, 9), "images/b.jpg": (9, 9), "c.jpg": None}
    write(FolderFiles(tmp_path), ImagesInMemory(sizes, [box(name) for name in sizes], folder=""), no_progress)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.xml"))
    assert names == ["Annotations/t/a.xml", "annotations/b.xml", "c.xml"]


@pytest.mark.parametrize("label", ["a\0b", "\x1f", "\ufffe"])
def test_write__replaces_what_xml_cannot_hold(tmp_path: Path, label: str) -> None:
    """Characters that XML does not allow are replaced."""
    found, _ = read(written(tmp_path, {"a.jpg": (5, 5)}, [box(label=label)]))
    assert [each.label for each in found] == [re.sub("[^ab]", "\ufffd", label)]


def test_write__line_ends_in_names(tmp_path: Path) -> None:
    """Characters that a parser would normalise are written as references."""
    found, _ = read(written(tmp_path, {"a.jpg": (5, 5)}, [box(label="a\r\n\tb")]))
    assert [each.label for each in found] == ["a\r\n\tb"]
