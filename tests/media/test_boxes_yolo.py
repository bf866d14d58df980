"""Boxes of YOLO folders: layouts, outlines, confidences, bad lines, and the way back to the last bit."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from framedex.errors import InvalidInput
from framedex.media.boxes import Box, Problems
from framedex.media.boxes_yolo import FractionBox, in_pixels, read_yolo_boxes, write_yolo_boxes
from framedex.media.yolo_numbers import fractions, pixels
from tests.boxes import SIZES, box, boxes
from tests.laws import examples

LINE = "1 0.5 0.25 0.2 0.1\n"


def place(folder: Path, files: dict[str, str], names: str = "names: [cat, dog]\n") -> Path:
    """Write files by name."""
    for name, text in {"data.yaml": names, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> tuple[list[FractionBox], Problems]:
    problems = Problems()
    return list(read_yolo_boxes(folder, problems)), problems


def numbers(found: FractionBox) -> list[float]:
    return [float(each) for each in (found.x, found.y, found.width, found.height)]


def test_read__a_line(tmp_path: Path) -> None:
    """A line has a class, the centre and the size; some have a confidence."""
    found, problems = read(place(tmp_path, {"labels/a.txt": LINE + "\n0 0.1 0.2 0.3 0.4 0.75\n"}))
    assert [(each.stem, each.label, each.confidence) for each in found] == [
        ("images/a", "dog", None),
        ("images/a", "cat", 0.75),
    ]
    assert numbers(found[0]) == [0.5, 0.25, 0.2, 0.1]
    assert problems.count == 0


@pytest.mark.parametrize("more", ["", " 0.5"])
def test_read__outlines_become_boxes(tmp_path: Path, more: str) -> None:
    """Of an outline the bounding box is taken; a number more is its confidence."""
    found, problems = read(place(tmp_path, {"labels/a.txt": f"0 0.1 0.2 0.5 0.3 0.3 0.8{more}\n"}))
    assert numbers(found[0]) == [0.3, 0.5, 0.4, 0.6]
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
    """Label files are below ``labels`` beside ``images``, or beside their pictures."""
    found, problems = read(place(tmp_path, files))
    assert [each.stem for each in found] == [stem]
    assert problems.count == 0


@pytest.mark.parametrize("name", ["data.yaml", "config.yaml", "classes.txt", "labels/classes.txt"])
def test_read__names_of_classes(tmp_path: Path, name: str) -> None:
    """The names are in one of several files; one without any does not count."""
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
    """A bad line is told with its place and value; those around it are read."""
    found, problems = read(place(tmp_path, {"labels/a.txt": f"{LINE}{line}\n{LINE}"}))
    assert (len(found), problems.count) == (2, 1)
    assert told in str(problems.sample[0])


def test_files__fail_alone(tmp_path: Path) -> None:
    """A file that is no text is told; the others are read."""
    place(tmp_path, {"labels/a.txt": LINE, "labels/c.txt": LINE})
    (tmp_path / "labels" / "b.txt").write_bytes(b"\xff\xfe\x00")
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (2, 1)
    assert problems.sample[0].place == "labels/b.txt"


def test_files__of_any_size(tmp_path: Path) -> None:
    """A file that is far too large, and might be a single line, is told and not read."""
    place(tmp_path, {"labels/a.txt": LINE})
    with (tmp_path / "labels" / "b.txt").open("wb") as file:
        file.truncate(2**26 + 1)
    found, problems = read(tmp_path)
    assert (len(found), problems.count) == (1, 1)
    assert "67,108,864 bytes" in str(problems.sample[0])


def test_folder__of_another_kind(tmp_path: Path) -> None:
    """A folder without names of classes or without label files is an error that names it."""
    with pytest.raises(InvalidInput, match="no names of classes"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="no YOLO labels"):
        read(place(tmp_path, {"notes.txt": LINE}))


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6), st.integers(1, 100_000))
@example(1e-300, 640.0, 640)
@example(5e-324, 5e-324, 3)
@example(1e300, 1e-300, 7)
def test_numbers__come_back_to_the_last_bit(start: float, length: float, size: int) -> None:
    """Pixels come back from their fractions."""
    assert pixels(*fractions(start, length, size), size) == (start, length)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 10_000))
def test_numbers__as_tools_write_them_stay(centre: int, length: int, size: int) -> None:
    """Fractions of six digits are found again, so that files that are read and written do not grow."""
    given_numbers = Decimal(centre).scaleb(-6), Decimal(length).scaleb(-6)
    assert fractions(*pixels(*given_numbers, size), size) == given_numbers


@examples(50, without=HealthCheck.function_scoped_fixture)
@given(boxes("yolo"))
def test_round_trip__to_the_last_bit(tmp_path: Path, given_boxes: list[Box]) -> None:
    """What is written is read again, in pixels of the same pictures."""
    folder = tmp_path / "yolo"
    for path in list(folder.rglob("*.txt")):
        path.unlink()
    write_yolo_boxes(folder, [*given_boxes, box("images/z.jpg")], SIZES | {"images/z.jpg": (9, 9)}, ["person", "cat"])
    found, problems = read(folder)
    names = {name.removesuffix(".jpg"): name for name in SIZES}
    made = [in_pixels(each, names[each.stem], *SIZES[names[each.stem]]) for each in found if each.stem != "images/z"]
    assert sorted(made, key=lambda each: each.name) == given_boxes
    assert problems.count == 0


def test_write__beside_pictures(tmp_path: Path) -> None:
    """Files of pictures that are in no folder ``images`` are beside them; classes keep the numbers that are given."""
    write_yolo_boxes(tmp_path, [box("x/a.jpg", 1, 1, 2, 2)], {"x/a.jpg": (10, 5)}, ["dog", "cat"])
    assert (tmp_path / "x" / "a.txt").read_text() == "1 0.2 0.4 0.2 0.4\n"


@pytest.mark.parametrize(
    ("names", "told"),
    [(["x.jpg"], "without a size"), (["a.jpg", "b.jpg", "a.jpg"], "twice"), (["a.jpg", "a.png"], "suffix")],
)
def test_write__refuses_what_files_cannot_hold(tmp_path: Path, names: list[str], told: str) -> None:
    """A file is of one picture with a size."""
    with pytest.raises(InvalidInput, match=told):
        write_yolo_boxes(tmp_path, map(box, names), dict.fromkeys(["a.jpg", "a.png", "b.jpg"], (5, 5)))
