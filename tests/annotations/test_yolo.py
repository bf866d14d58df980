"""Boxes of YOLO folders: layouts, outlines, confidences, bad lines, and restoration."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box
from framedex.annotations.problems import Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.shapes import ObjectShape
from framedex.annotations.yolo import read_boxes, write
from framedex.errors import InvalidInput
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.boxes import SIZES, box, boxes
from tests.laws import examples

LINE = "1 0.5 0.25 0.2 0.1\n"


def relative(box: Box, width: int, height: int) -> tuple[float, float, float, float]:
    """Return a box's centre x, centre y, width and height as fractions of an image's sides."""
    across, down = box.width / width, box.height / height
    return box.x / width + across / 2, box.y / height + down / 2, across, down


def place(folder: Path, files: dict[str, str], names: str = "names: [cat, dog]\n") -> Path:
    """Write files by name."""
    for name, text in {"data.yaml": names, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> tuple[list[RelativeBox], Problems]:
    problems = Problems()
    return list(read_boxes(folder, problems)), problems


def numbers(found: RelativeBox) -> list[float]:
    return [found.x, found.y, found.width, found.height]


def test_read__a_line(tmp_path: Path) -> None:
    """A line has a class, the centre and the size, and optionally a confidence."""
    found, problems = read(place(tmp_path, {"labels/a.txt": LINE + "\n0 0.1 0.2 0.3 0.4 0.75\n"}))
    assert [(each.name, each.label, each.confidence) for each in found] == [
        ("images/a", "dog", None),
        ("images/a", "cat", 0.75),
    ]
    assert numbers(found[0]) == [0.5, 0.25, 0.2, 0.1]
    assert problems.count == 0


@pytest.mark.parametrize("more", ["", " 0.5"])
def test_read__outlines_become_boxes(tmp_path: Path, more: str) -> None:
    """An outline becomes its bounding box; one more number is its confidence."""
    found, problems = read(place(tmp_path, {"labels/a.txt": f"0 0.1 0.2 0.5 0.3 0.3 0.8{more}\n"}))
    assert numbers(found[0]) == pytest.approx([0.3, 0.5, 0.4, 0.6], abs=1e-15)
    assert found[0].confidence == (0.5 if more else None)
    assert problems.count == 0


@pytest.mark.parametrize(
    ("files", "stem"),
    [
        ({"labels/a.txt": LINE}, "images/a"),
        ({"labels/x/y/a.txt": LINE}, "images/x/y/a"),
        ({"train/labels/a.txt": LINE}, "train/images/a"),
        ({"a.txt": LINE, "a.JPG": "", "README.txt": "read me"}, "a"),
        ({"x/a.b.txt": LINE, "x/a.b.png": ""}, "x/a.b"),
        ({"labels/a.txt": LINE, "labels/classes.txt": "cat\ndog\n"}, "images/a"),
    ],
)
def test_read__layouts(tmp_path: Path, files: dict[str, str], stem: str) -> None:
    """Label files lie below ``labels`` beside ``images``, or beside their images."""
    found, problems = read(place(tmp_path, files))
    assert [each.name for each in found] == [stem]
    assert problems.count == 0


@pytest.mark.parametrize("name", ["data.yaml", "config.yaml", "classes.txt", "labels/classes.txt"])
def test_read__names_of_classes(tmp_path: Path, name: str) -> None:
    """Class names are in one of several files; a file without names is skipped."""
    text = "cat\ndog\n" if name.endswith("txt") else "names:\n  1: dog\n"
    found, _ = read(place(tmp_path, {"data.yaml": "train: images\n", "labels/a.txt": LINE, name: text}))
    assert [each.label for each in found] == ["dog"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("2 0.5 0.5 1 1", "labels/a.txt: line 2: '2': a line begins with the number of a class, 0 to 1"),
        ("cat 0.5 0.5 1 1", "'cat'"),
        ("-1 0.5 0.5 1 1", "'-1'"),
        ("٣ 0.5 0.5 1 1", "'٣'"),
        ("0", "must be class x y width height"),
        ("0 0.5 0.5 1", "must be class x y width height"),
        ("0 0.5 0.5 1 x", "'0.5 0.5 1 x'"),
        ("0 0.5 0.5 1 nan", "finite"),
        ("0 0.5 0.5 1 1e999", "finite"),
        ("0 0.5 0.5 1 1 7", "confidence"),
    ],
)
def test_lines__fail_alone(tmp_path: Path, line: str, told: str) -> None:
    """A bad line is a problem with its location and value; the others are read."""
    found, problems = read(place(tmp_path, {"labels/a.txt": f"{LINE}{line}\n{LINE}"}))
    assert (len(found), problems.count) == (2, 1)
    assert told in str(problems.sample[0])


def test_files__fail_alone(tmp_path: Path) -> None:
    """A file that is not text is a problem; the others are read."""
    place(tmp_path, {"labels/a.txt": LINE, "labels/c.txt": LINE})
    (tmp_path / "labels" / "b.txt").write_bytes(b"\xff\xfe\x00")
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (2, 1)
    assert problems.sample[0].location == "labels/b.txt"


def test_files__of_any_size(tmp_path: Path) -> None:
    """A file that is too large is a problem and is not read."""
    place(tmp_path, {"labels/a.txt": LINE})
    with (tmp_path / "labels" / "b.txt").open("wb") as file:
        file.truncate(2**26 + 1)
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (1, 1)
    assert "67,108,864 bytes" in str(problems.sample[0])


def test_folder__of_another_kind(tmp_path: Path) -> None:
    """A folder without class names or without label files is an error that names it."""
    with pytest.raises(InvalidInput, match="no names of classes"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="no YOLO labels"):
        read(place(tmp_path, {"notes.txt": LINE}))


NEAR = 1e-9
"""Pixels by which a box that was written may differ, in images of up to 100,000 pixels a side."""


@examples(100)
@given(st.floats(0, 1), st.floats(1e-6, 1), st.integers(1, 100_000))
@example(0.0, 1.0, 3)
@example(5e-324, 5e-324, 3)
def test_numbers__come_back_in_pixels(start: float, length: float, size: int) -> None:
    """Fractions restore pixels to a billionth."""
    wanted = Box("a.jpg", start * size, start * size, length * size, length * size, "cat")
    again = RelativeBox("a", *relative(wanted, size, size), "cat").in_pixels("a.jpg", size, size)
    for side in ("x", "y", "width", "height"):
        assert abs(getattr(again, side) - getattr(wanted, side)) < NEAR


SIX_DIGITS = st.integers(1, 10**6).map(lambda number: number / 10**6)


@examples(50)
@given(st.tuples(SIX_DIGITS, SIX_DIGITS, SIX_DIGITS, SIX_DIGITS), st.integers(1, 10_000), st.integers(1, 10_000))
def test_write__numbers_as_tools_write_them_stay(
    sides: tuple[float, float, float, float], width: int, height: int
) -> None:
    """Fractions of six digits are written with six digits again, so files do not grow."""
    box_ = RelativeBox("a", *sides, "cat").in_pixels("a.jpg", width, height)
    with tempfile.TemporaryDirectory() as folder:
        write(FolderFiles(Path(folder)), ImagesInMemory({"a.jpg": (width, height)}, [box_]), no_progress)
        text = (Path(folder) / "labels" / "a.txt").read_text()
    if sides != (0.5, 0.5, 1.0, 1.0):
        assert text.split()[1:] == [f"{each:.6f}".rstrip("0").rstrip(".") for each in sides]


@examples(50)
@given(boxes("yolo", within=True))
def test_round_trip__to_a_billionth_of_a_pixel(given_boxes: list[Box]) -> None:
    """An export is restored in pixels of the same images, in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        given_boxes = [*given_boxes, Box("z.jpg", 1, 1, 2, 2, "cat", source="yolo")]
        images = ImagesInMemory(SIZES | {"z.jpg": (9, 9)}, given_boxes)
        images.with_confidences = True
        write(FolderFiles(Path(folder)), images, no_progress)
        found, problems = read(Path(folder))
    names = {name.removesuffix(".jpg"): name for name in (*SIZES, "z.jpg")}
    again = []
    for each in found:
        name = names[each.name.removeprefix("images/")]
        again.append(each.in_pixels(name, *(SIZES | {"z.jpg": (9, 9)})[name]))
    for old, new in zip(given_boxes, sorted(again, key=lambda each: each.name), strict=True):
        assert replace(new, x=0, y=0, width=0, height=0) == replace(old, x=0, y=0, width=0, height=0)
        for side in ("x", "y", "width", "height"):
            assert abs(getattr(new, side) - getattr(old, side)) < NEAR
    assert problems.count == 0


@pytest.mark.parametrize("confidence", [None, 0.5])
def test_round_trip__a_box_around_all_of_an_image(tmp_path: Path, confidence: float | None) -> None:
    """A box around the whole image stays a box beside the table of labels; written exactly, it would become a label."""
    whole = Box("a.jpg", 0, 0, 640, 427, "cat", confidence, source="yolo")
    images = ImagesInMemory({"a.jpg": (640, 427)}, [whole])
    images.with_confidences = True
    write(FolderFiles(tmp_path), images, no_progress)
    assert (tmp_path / "image_annotations.csv").exists()
    found, _ = read(tmp_path)
    index = BoxIndex(Problems())
    index.add_all(found)
    assert index.find("images/a.jpg", (640, 427)) == [replace(whole, name="images/a.jpg")]


def test_write__leaves_out_boxes_without_a_size(tmp_path: Path) -> None:
    """Fractions need the size of the image; the note says how many boxes have none."""
    notes = write(FolderFiles(tmp_path), ImagesInMemory({"a.jpg": None}, [box(), box(x=2)]), no_progress)
    assert notes == ["2 boxes are left out: the size of the image is not known"]
    assert not (tmp_path / "labels").exists()


def test_write__counts_boxes_that_are_not_those_of_their_outline(tmp_path: Path) -> None:
    """A line with an outline says no box: one that is other than its bounds is counted, a simplified one once."""
    outline = ObjectShape("[[10,10,30,10,30,40]]")
    several = ObjectShape("[[10,10,30,10,30,40],[50,50,60,50,60,60]]")
    boxes = [(20, 30), (20.2, 30.5), (25, 30)]
    found = [replace(box(x=10), y=10, width=width, height=height, shape=outline) for width, height in boxes]
    images = ImagesInMemory({"a.jpg": (640, 427)}, [*found, replace(found[0], shape=several)])
    images.with_outlines = True
    notes = write(FolderFiles(tmp_path), images, no_progress)
    assert notes == [
        "1 outline is simplified: a line of YOLO holds one polygon, and no mask",
        "1 box is left out: the outline or mask has other bounds",
    ]


def test_turned_boxes__come_back(tmp_path: Path) -> None:
    """Lines of turned boxes, a class and four corners, are written as they were read."""
    lines = ["0 0.2 0.1 0.6 0.3 0.5 0.5 0.1 0.3", "1 0.5 0.25 0.75 0.5 0.5 0.75 0.25 0.5"]
    found, problems = read(place(tmp_path, {"labels/a.txt": "\n".join(lines)}))
    assert problems.count == 0
    images = ImagesInMemory({"a.jpg": (640, 480)}, [each.in_pixels("a.jpg", 640, 480) for each in found])
    images.with_outlines = True
    assert write(FolderFiles(tmp_path / "out"), images, no_progress) == []
    assert (tmp_path / "out" / "labels" / "a.txt").read_text().splitlines() == lines
