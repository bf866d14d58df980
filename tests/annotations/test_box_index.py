"""Index of boxes by image name."""

from pathlib import Path

import pytest
from hypothesis import given

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box, fit_box
from framedex.annotations.image_names import BY_CASE, BY_SUFFIX, SEVERAL_IMAGES, SEVERAL_NAMES, ImageNames
from framedex.annotations.problems import Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.sources import find_box_sources, read_box_index, resolve_box_sources
from framedex.errors import Aborted, InvalidInput
from tests.boxes import SIZES, box, boxes
from tests.objects import write_table

HALF = 0.5
_MATCHED = (BY_CASE, BY_SUFFIX)


def indexed(*found: Box | RelativeBox, loose: bool = False) -> BoxIndex:
    index = BoxIndex(Problems())
    index.begin_file(loose=loose)
    index.add_all(found)
    return index


def in_images(index: BoxIndex, *paths: str) -> dict[str, list[str]]:
    """Return the labels of the boxes in each image of a source."""
    index.find_images(lambda: paths)
    return {path: [each.label for each in index.find(path, (100, 100))] for path in paths}


def fraction(stem: str, side: float = HALF, *, centre: float = HALF) -> RelativeBox:
    return RelativeBox(stem, centre, centre, side, side, "cat", location="labels/a.txt: line 1", is_stem=True)


@given(boxes("coco", ids=True))
def test_find__gives_back_what_was_added(found: list[Box]) -> None:
    """The boxes of each image come back in reading order, complete, if they lie within the image."""
    index = indexed(*found)
    assert len(index) == len(found)
    for name, size in SIZES.items():
        fits = [fit_box(each, *size) for each in found if each.name == name]
        assert index.find(name, size) == [fit.box for fit in fits if fit.box is not None]
        assert index.has(name) is bool(fits)
    assert index.problems.count == sum(fit_box(each, *SIZES[each.name]).problem is not None for each in found)
    assert index.unmatched == 0


@pytest.mark.parametrize(
    ("names", "paths", "found", "kinds"),
    [
        (["a.JPG"], ["a.jpg", "b.jpg"], {"a.jpg": ["a.JPG"]}, [BY_CASE]),
        (["X/STRASSE.jpg"], ["d/x/stra\xdfe.JPG"], {"d/x/stra\xdfe.JPG": ["X/STRASSE.jpg"]}, [BY_CASE]),
        (["c.jpg"], ["x/c.png"], {"x/c.png": ["c.jpg"]}, [BY_SUFFIX]),
        (["C.jpg"], ["c.png"], {}, []),
        (["A.jpg"], ["a.jpg", "a.JPG"], {}, [SEVERAL_IMAGES]),
        (["c.jpg"], ["c.png", "c.bmp"], {}, [SEVERAL_IMAGES]),
        (["A.jpg", "a.jpg"], ["a.jpg"], {"a.jpg": ["a.jpg"]}, []),
        (["c.jpg", "c.jpeg"], ["c.png"], {}, [SEVERAL_NAMES, SEVERAL_NAMES]),
        (["a.JPG", "a.jpeg"], ["a.jpg", "b/a.jpeg"], {"a.jpg": ["a.JPG"], "b/a.jpeg": ["a.jpeg"]}, [BY_CASE]),
        (["c\\D.jpg"], ["C/d.jpg"], {"C/d.jpg": ["c\\D.jpg"]}, [BY_CASE]),
    ],
)
def test_find__by_case_or_suffix(
    names: list[str], paths: list[str], found: dict[str, list[str]], kinds: list[str]
) -> None:
    """A name of no image means the only one that differs in case, or else in the suffix; each is counted."""
    index = indexed(*(box(name, label=name) for name in names))
    assert in_images(index, *paths) == {key: [] for key in paths} | found
    assert [each.kind for each in index.problems.sample] == kinds
    assert index.unmatched == len(names) - sum(map(len, found.values())) - sum(kind not in _MATCHED for kind in kinds)


@pytest.mark.parametrize(
    ("names", "paths", "found"),
    [
        (["a.jpg"], ["a.jpg", "x/a.jpg", "y/a.jpg"], {"a.jpg": ["a.jpg"]}),
        (["a.jpg"], ["x/a.jpg", "x/b.jpg"], {"x/a.jpg": ["a.jpg"]}),
        (["a.jpg"], ["x/a.jpg", "y/a.jpg"], {}),
        (["x/a.jpg"], ["images/x/a.jpg", "images/a.jpg"], {"images/x/a.jpg": ["x/a.jpg"]}),
        (["x/a.jpg"], ["images/x/a.jpg", "old/x/a.jpg"], {}),
        (["x/a.jpg"], ["y/a.jpg", "a.jpg"], {}),
        (["../x/a.jpg"], ["images/x/a.jpg"], {"images/x/a.jpg": ["../x/a.jpg"]}),
        ([r"C:\d\x\a.jpg"], ["x/a.jpg", "y/a.jpg"], {"x/a.jpg": [r"C:\d\x\a.jpg"]}),
        ([r"x\a.jpg"], ["images/x/a.jpg"], {"images/x/a.jpg": [r"x\a.jpg"]}),
        (["/home/me/a.jpg"], ["x/a.jpg"], {"x/a.jpg": ["/home/me/a.jpg"]}),
        (["/home/me/x/a.jpg"], ["x/a.jpg", "images/x/a.jpg"], {"x/a.jpg": ["/home/me/x/a.jpg"]}),
        (["/home/me/a.jpg", "/home/you/a.jpg"], ["a.jpg"], {}),
        (["/me/x/a.jpg", "/me/y/a.jpg"], ["x/a.jpg"], {"x/a.jpg": ["/me/x/a.jpg"]}),
        (["http://h/x/a%20b.jpg?v=1"], ["x/a b.jpg"], {"x/a b.jpg": ["http://h/x/a%20b.jpg?v=1"]}),
        (["x/a.jpg", "a.jpg"], ["x/a.jpg"], {"x/a.jpg": ["x/a.jpg"]}),
        (["frame_004351"], ["images/frame_004351.png"], {"images/frame_004351.png": ["frame_004351"]}),
        (["a.v2"], ["x/a.v2.jpg", "a.jpg"], {"x/a.v2.jpg": ["a.v2"]}),
        (["a"], ["a.png", "a.jpg"], {}),
        (["J\\.bmp"], ["J\\.bmp"], {"J\\.bmp": ["J\\.bmp"]}),
        (["x/J\\.bmp"], ["y/x/J\\.bmp", "J/.bmp"], {"y/x/J\\.bmp": ["x/J\\.bmp"]}),
        (["x\\a.jpg"], ["x/a.jpg", "x\\a.jpg"], {"x\\a.jpg": ["x\\a.jpg"]}),
        (["x\\a.jpg", "x/a.jpg"], ["x/a.jpg"], {"x/a.jpg": ["x/a.jpg", "x\\a.jpg"]}),
        (["\xfc.jpg"], ["u\u0308.jpg"], {"u\u0308.jpg": ["\xfc.jpg"]}),
        (["\xfc.jpg"], ["u\u0308.jpg", "\xfc.jpg"], {"\xfc.jpg": ["\xfc.jpg"]}),
    ],
)
def test_find__by_a_name_that_is_no_path(names: list[str], paths: list[str], found: dict[str, list[str]]) -> None:
    """A name means the image of its path, or else the only image that it can mean; others are counted as problems."""
    index = indexed(*(box(name, label=name) for name in names))
    assert in_images(index, *paths) == {key: [] for key in paths} | found
    n_found = sum(map(len, found.values()))
    assert index.unmatched + index.problems.count == len(names) - n_found


def test_find__names_that_mean_several_images() -> None:
    """A name of several images is a problem that lists them, and not counted as missing."""
    index = indexed(box("a.jpg"), box("a.jpg"), fraction("b"))
    found = in_images(index, "x/a.jpg", "y/a.jpg", "x/b.png", "y/b.jpg")
    assert not any(found.values())
    assert index.problems.counts == {SEVERAL_IMAGES: 2}
    shown = sorted(map(str, index.problems.sample))
    assert shown[0] == "a.jpg: 'x/a.jpg', 'y/a.jpg': 2 images have this name: give the path within the source"
    assert index.unmatched == 0


def test_find__in_files_that_lie_elsewhere() -> None:
    """Of such a file, folders of a name count only as far as they lead to one image."""
    found = [box("train/a.jpg", label="one"), box("train/b.jpg", label="two"), box("val/b.jpg", label="three")]
    paths = ("images/a.jpg", "images/b.jpg", "val/b.jpg")
    assert in_images(indexed(*found, loose=True), *paths) == {
        "images/a.jpg": ["one"], "images/b.jpg": [], "val/b.jpg": ["three"],
    }  # fmt: skip
    assert in_images(indexed(*found), *paths) == {"images/a.jpg": [], "images/b.jpg": [], "val/b.jpg": ["three"]}


def test_find__names_of_several_files() -> None:
    """Each file has names of its own: a file name in one does not give way to a path in another."""
    index = indexed(box("x/a.jpg", label="path"))
    index.begin_file(loose=False)
    index.add_all([box("a.jpg", label="name")])
    assert in_images(index, "x/a.jpg") == {"x/a.jpg": ["path", "name"]}


def test_find__images_of_several_sources() -> None:
    """A path below two sources means none of the images."""
    index = indexed(box("a.jpg"))
    index.find_images(lambda: ("a.jpg", "a.jpg"), several_roots=True)
    assert index.find("a.jpg", (100, 100)) == []
    assert index.problems.counts == {SEVERAL_IMAGES: 1}


def test_find__fractions() -> None:
    """YOLO boxes match a name without its suffix, and need the size of the image."""
    index = indexed(fraction("images/a"))
    (found,) = index.find("images/a.png", (200, 100))
    assert (found.x, found.y, found.width, found.height, found.source) == (50, 25, 100, 50, "yolo")
    assert index.find("images/a.png", None) == []
    assert "size of the image is not known" in index.problems.sample[0].reason


def test_find__names_that_take_turns() -> None:
    """Boxes of an image need not follow each other; a name with its suffix is another than one without."""
    index = indexed(fraction("a"), box("b.jpg"), fraction("a"), box("a"), box("b.jpg"), fraction("a"))
    assert index.n_images == 3
    assert [len(index.find(path, (100, 100))) for path in ("a.jpg", "a", "b.jpg")] == [3, 4, 2]


def test_unmatched__counts_images() -> None:
    """An image whose boxes no lookup matched counts as unmatched."""
    index = indexed(box("a.jpg"), box("a.jpg"), box("b.jpg"), fraction("c"))
    assert index.unmatched == index.n_images == 3
    index.find("c.png", (10, 10))
    assert index.unmatched == 2


@pytest.mark.parametrize("original", ["0", "7", "007", "-1", "x", "", "123456789012345678901", "1.0"])
def test_ids__come_back_as_text(original: str) -> None:
    """Annotation ids are the text of the file, numbers or not."""
    index = indexed(Box("a.jpg", 1, 1, 2, 2, "cat", original_id=original))
    assert [each.original_id for each in index.find("a.jpg", (9, 9))] == [original]


@pytest.mark.slow
@pytest.mark.only_soak
def test_read__stops_when_told(tmp_path: Path) -> None:
    """Reading reports the number of boxes so far, and an error of the callback stops it."""
    table = write_table(tmp_path / "object_annotations.csv", [("a.jpg", (1.0, 1.0, 2.0, 2.0), "cat")] * 9000)
    counts: list[int] = []
    assert len(read_box_index(find_box_sources(tmp_path), counts.append)) == 9000
    assert counts == [0, 4096, 8192]

    def stop(count: int) -> None:
        if count:
            raise Aborted("stopped on request")

    with pytest.raises(Aborted):
        read_box_index(resolve_box_sources(table), stop)


def test_find_boxes__by_their_names(tmp_path: Path) -> None:
    """Each format is recognised by its names, and other files are ignored."""
    (tmp_path / "photo.csv").touch()
    (tmp_path / "labels").mkdir()
    assert find_box_sources(tmp_path) == []
    for name in ("annotations.json", "object_annotations.csv", "object_annotations.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "data.yaml").write_text("names: [cat]")
    (tmp_path / "train" / "Annotations").mkdir(parents=True)
    (tmp_path / "train" / "Annotations" / "a.xml").touch()
    assert [each.path.name for each in find_box_sources(tmp_path)] == [
        "annotations.json", "object_annotations.csv", "object_annotations.parquet", tmp_path.name, tmp_path.name,
    ]  # fmt: skip


def test_resolve__name_that_is_too_long() -> None:
    """A name that no file system takes is an error of ours."""
    with pytest.raises(InvalidInput, match=r"cannot read the boxes .*: File name too long"):
        resolve_box_sources("L" * 5000)


def test_read__a_folder_that_only_looks_like_one(tmp_path: Path) -> None:
    """A discovered folder without boxes is a problem; a folder that the user passes is an error."""
    (tmp_path / "notes.xml").write_text("<notes/>")
    index = read_box_index(find_box_sources(tmp_path))
    assert (len(index), index.problems.count) == (0, 2)
    with pytest.raises(InvalidInput, match="no Pascal VOC file"):
        read_box_index(resolve_box_sources(tmp_path))


def test_find__an_image_without_a_suffix() -> None:
    """An image without a suffix is one image, also where images of several sources may have its path."""
    images = ImageNames()
    images.find({"/home/me/a/scan": 1}, lambda: iter(["a/scan"]), Problems(), several_roots=True)
    assert images.of("a/scan", {}) == ["/home/me/a/scan"]
