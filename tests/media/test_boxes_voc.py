"""Boxes of Pascal VOC files: edges counted from 1, names of pictures, attacks, and the way back."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from framedex.errors import InvalidInput
from framedex.media.boxes import Box, Problems
from framedex.media.boxes_voc import read_voc_boxes, read_voc_file, voc_text, write_voc_boxes
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
    """Write files by name; pictures are empty, as nothing looks into them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> tuple[list[Box], Problems]:
    problems = Problems()
    return list(read_voc_boxes(folder, problems)), problems


def test_edges__are_counted_from_one_and_inclusive(tmp_path: Path) -> None:
    """The first pixel is number 1, and the last one belongs to the box."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item())}))
    assert found == [Box("a.jpg", 0, 1.5, 10, 1, "cat", source="voc")]
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
        ({"a.xml": "other.jpg", "a.png": "", "other.jpg": ""}, "other.jpg"),
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
def test_name__of_the_picture(tmp_path: Path, files: dict[str, str], name: str) -> None:
    """The picture is that which the file names, if it is there, else that of the file's own name."""
    texts = {path: annotation(item(), filename=text) if path.endswith(".xml") else "" for path, text in files.items()}
    found, problems = read(place(tmp_path, texts))
    assert [each.name for each in found] == [name]
    assert problems.count == 0


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
    """A bad object is told with its place and value; those around it are read."""
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
    """A file that is none of ours, or an attack, is told; the others are read."""
    found, problems = read(place(tmp_path, {"a.xml": annotation(item()), "b.xml": text, "c.xml": annotation(item())}))
    assert (len(found), problems.count) == (2, 1)
    assert problems.sample[0].place == "b.xml"
    assert told in problems.sample[0].reason
    with pytest.raises(InvalidInput, match=r"b\.xml"):
        read_voc_file(tmp_path / "b.xml", "b.jpg", Problems())


def test_files__of_any_depth(tmp_path: Path) -> None:
    """Elements within elements without end are read, or refused, like any others."""
    depth = 2 * 10**5
    place(tmp_path, {"a.xml": f"<annotation>{'<a>' * depth}{'</a>' * depth}{item()}</annotation>"})
    assert len(read_voc_file(tmp_path / "a.xml", "a.jpg", Problems())) == 1


def test_files__of_any_size(tmp_path: Path) -> None:
    """A file that is far too large is not read."""
    with (tmp_path / "a.xml").open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(InvalidInput, match="16,777,216 bytes"):
        read_voc_file(tmp_path / "a.xml", "a.jpg", Problems())


@pytest.mark.parametrize("files", [{}, {"a.xml": "<html/>"}, {"a.txt": annotation(item())}])
def test_folder__without_any(tmp_path: Path, files: dict[str, str]) -> None:
    """A folder without a file of the format is an error that names it."""
    with pytest.raises(InvalidInput, match=f"{tmp_path.name}.*no Pascal VOC file"):
        read(place(tmp_path, files))


def test_folder__that_is_not_there(tmp_path: Path) -> None:
    """A folder that cannot be read is an error that names it."""
    with pytest.raises(InvalidInput, match="nowhere"):
        read(tmp_path / "nowhere")


@examples(50, without=HealthCheck.function_scoped_fixture)
@given(boxes("voc", confidences=False))
def test_round_trip__to_the_last_bit(tmp_path: Path, given_boxes: list[Box]) -> None:
    """What is written is read again: numbers, names and flags; in the order of the files' names."""
    given_boxes = flagged(given_boxes, "truncated", "difficult")
    folder = tmp_path / "voc"
    for path in list(folder.rglob("*.xml")):
        path.unlink()
    write_voc_boxes(folder, [*given_boxes, box("keep.jpg")], SIZES | {"keep.jpg": (9, 9)})
    found, problems = read(folder)
    names = {name.replace("images/", "annotations/"): name for name in SIZES}
    kept = [names.get(each.name, each.name) for each in found if each.name != "keep.jpg"]
    assert sorted(kept) == [each.name for each in given_boxes]
    for name in SIZES:
        there = [each for each in found if names.get(each.name, each.name) == name]
        assert [vars_of(each) for each in there] == [vars_of(each) for each in given_boxes if each.name == name]
    assert problems.count == 0


def vars_of(found: Box) -> tuple[object, ...]:
    """Return all but the name: without its picture in place a file's picture is taken to be beside it."""
    return found.x, found.y, found.width, found.height, found.label, found.truncated, found.difficult


def test_write__whole_numbers_stay_whole(tmp_path: Path) -> None:
    """Other tools read edges as integers."""
    write_voc_boxes(tmp_path, [box(x=0, y=99, width=100, height=10)], {"a.jpg": (200, 200)})
    text = (tmp_path / "a.xml").read_text()
    assert "<xmin>1</xmin>" in text
    assert "<ymin>100</ymin>" in text
    assert "<xmax>100</xmax>" in text
    assert "<width>200</width>" in text


@pytest.mark.parametrize(
    ("names", "told"),
    [(["x.jpg"], "without a size"), (["a.jpg", "b.jpg", "a.jpg"], "twice"), (["a.jpg", "a.png"], "suffix")],
)
def test_write__refuses_what_files_cannot_hold(tmp_path: Path, names: list[str], told: str) -> None:
    """A file is of one picture with a size."""
    with pytest.raises(InvalidInput, match=told):
        write_voc_boxes(tmp_path, map(box, names), dict.fromkeys(["a.jpg", "a.png", "b.jpg"], (5, 5)))


@pytest.mark.parametrize("label", ["a\0b", "\x1f", "\ufffe"])
def test_write__refuses_what_xml_cannot_hold(label: str) -> None:
    """Some signs have no place in XML, not even by number."""
    with pytest.raises(InvalidInput, match="XML"):
        voc_text("a.jpg", [box(label=label)], (5, 5))


def test_write__line_ends_in_names(tmp_path: Path) -> None:
    """Signs that a parser would change are written by number."""
    write_voc_boxes(tmp_path, [box(label="a\r\n\tb")], {"a.jpg": (5, 5)})
    assert [each.label for each in read(tmp_path)[0]] == ["a\r\n\tb"]
