"""Real annotations are read completely, and each of our formats restores them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from framedex.annotations import coco, coco_reader, coco_writer, tables, voc, yolo
from framedex.annotations.boxes import Box, fit_box
from framedex.annotations.class_names import read_class_names
from framedex.annotations.problems import Problems
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.boxes import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")
FOLDERS = ("coco-yolo", "raccoon-voc")


def sizes_of(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted((folder / "images").iterdir()):
        with Image.open(path) as image:
            found[f"images/{path.name}"] = image.size
    return found


def yolo_boxes(folder: Path, sizes: dict[str, tuple[int, int]], problems: Problems) -> Iterator[Box]:
    names = {name.rpartition(".")[0]: name for name in sizes}
    for each in yolo.read_boxes(folder, problems):
        yield each.in_pixels(names[each.name], *sizes[names[each.name]])


@pytest.fixture(scope="module", params=FOLDERS)
def given_boxes(request: pytest.FixtureRequest) -> tuple[list[Box], dict[str, tuple[int, int]]]:
    """The boxes of a folder and the sizes of its images."""
    folder, problems = SHARED / request.param, Problems()
    sizes = sizes_of(folder)
    found = list(yolo_boxes(folder, sizes, problems) if "yolo" in request.param else voc.read_boxes(folder, problems))
    assert problems.count == 0
    assert len(found) == {"coco-yolo": 542, "raccoon-voc": 64}[request.param]
    assert {each.name for each in found} <= sizes.keys()
    return found, sizes


def of_source(found: Iterable[Box], source: str, *kept: str) -> list[Box]:
    """Return boxes as another format stores them, sorted by image."""
    lost = {"truncated": False, "difficult": False} if "flags" not in kept else {}
    made = [replace(each, source=source, original_id=None, **lost) for each in found]  # type: ignore[arg-type]
    return sorted(made, key=lambda each: each.name)


def test_boxes__fit_their_images(given_boxes: tuple[list[Box], dict[str, tuple[int, int]]]) -> None:
    """Boxes drawn by people lie within the images, up to a pixel."""
    found, sizes = given_boxes
    fits = [fit_box(each, *sizes[each.name]) for each in found]
    assert all(fit.box is not None for fit in fits)
    assert [fit.problem for fit in fits if fit.problem] == []


def written(format_: ModuleType, given_boxes: tuple[list[Box], dict[str, tuple[int, int]]], folder: Path) -> Path:
    """Write boxes as an export without images does, with empty files in the paths of the images."""
    found, sizes = given_boxes
    format_.write(FolderFiles(folder), ImagesInMemory(sizes, found, folder=""), no_progress)
    for name in sizes:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.slow
@pytest.mark.only_soak
def test_round_trip__to_the_last_bit(given_boxes: tuple[list[Box], dict[str, tuple[int, int]]], tmp_path: Path) -> None:
    """COCO, CSV and VOC files restore exactly the same numbers."""
    found, problems = given_boxes[0], Problems()
    again = list(coco_reader.read_boxes(written(coco_writer, given_boxes, tmp_path / "coco") / coco.FILE, problems))
    assert [each.original_id for each in again] == [str(place) for place in range(1, len(found) + 1)]
    assert of_source(again, "coco", "flags") == of_source(found, "coco", "flags")
    folder = written(tables, given_boxes, tmp_path / "csv")
    assert of_source(tables.read_csv_boxes(folder / tables.BOXES_CSV, problems), "csv") == of_source(found, "csv")
    again = list(voc.read_boxes(written(voc, given_boxes, tmp_path / "voc"), problems))
    assert of_source(again, "voc", "flags") == of_source(found, "voc", "flags")
    assert problems.count == 0


@pytest.mark.slow
def test_yolo__files_hold_the_same_numbers(tmp_path: Path) -> None:
    """Label files that are read and written keep their classes and numbers, and do not grow."""
    folder = SHARED / "coco-yolo"
    sizes = {name.removeprefix("images/"): size for name, size in sizes_of(folder).items()}
    boxes = [
        replace(each, name=each.name.removeprefix("images/"))
        for each in yolo_boxes(folder, sizes_of(folder), Problems())
    ]
    yolo.write(FolderFiles(tmp_path), ImagesInMemory(sizes, boxes), no_progress)
    old, new = (read_class_names(path) for path in (folder / "config.yaml", tmp_path / "data.yaml"))
    assert old is not None
    assert new is not None
    files = sorted((folder / "labels").iterdir())
    assert len(files) == 63
    for path in files:
        given_lines = [line.split() for line in path.read_text().splitlines()]
        again = [line.split() for line in (tmp_path / "labels" / path.name).read_text().splitlines()]
        assert [new[int(line[0])] for line in again] == [old[int(line[0])] for line in given_lines]
        assert [[float(cell) for cell in line[1:]] for line in again] == [
            [float(cell) for cell in line[1:]] for line in given_lines
        ]
