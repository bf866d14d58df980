"""Files of others: real annotations are read in full, and come back from each of our formats."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from framedex.media.annotations_yolo import read_yolo
from framedex.media.boxes import Box, Problems, Source, fit_box
from framedex.media.boxes_coco import read_coco_boxes, write_coco_boxes
from framedex.media.boxes_tables import read_csv_boxes, read_parquet_boxes, write_csv_boxes, write_parquet_boxes
from framedex.media.boxes_voc import read_voc_boxes, write_voc_boxes
from framedex.media.boxes_yolo import in_pixels, read_yolo_boxes, write_yolo_boxes
from framedex.media.class_names import read_class_names
from tests.boxes import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared pictures are not here")
FOLDERS = ("coco-yolo", "raccoon-voc")


def sizes_of(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted((folder / "images").iterdir()):
        with Image.open(path) as image:
            found[f"images/{path.name}"] = image.size
    return found


def yolo(folder: Path, sizes: dict[str, tuple[int, int]], problems: Problems) -> Iterator[Box]:
    names = {name.rpartition(".")[0]: name for name in sizes}
    for each in read_yolo_boxes(folder, problems):
        yield in_pixels(each, names[each.stem], *sizes[names[each.stem]])


@pytest.fixture(scope="module", params=FOLDERS)
def given_boxes(request: pytest.FixtureRequest) -> tuple[list[Box], dict[str, tuple[int, int]]]:
    """The boxes of a folder, all of which are read, and the sizes of its pictures."""
    folder, problems = SHARED / request.param, Problems()
    sizes = sizes_of(folder)
    found = list(yolo(folder, sizes, problems) if "yolo" in request.param else read_voc_boxes(folder, problems))
    assert problems.count == 0
    assert len(found) == {"coco-yolo": 542, "raccoon-voc": 64}[request.param]
    assert {each.name for each in found} <= sizes.keys()
    return found, sizes


def of_source(found: Iterable[Box], source: Source, *kept: str) -> list[Box]:
    """Return boxes as another format holds them, sorted by picture."""
    lost = {"truncated": False, "difficult": False} if "flags" not in kept else {}
    made = [replace(each, source=source, original_id=None, **lost) for each in found]  # type: ignore[arg-type]
    return sorted(made, key=lambda each: each.name)


def test_boxes__fit_their_pictures(given_boxes: tuple[list[Box], dict[str, tuple[int, int]]]) -> None:
    """What people drew lies within the pictures, up to a pixel."""
    found, sizes = given_boxes
    fits = [fit_box(each, *sizes[each.name]) for each in found]
    assert all(fit.box is not None for fit in fits)
    assert [fit.problem for fit in fits if fit.problem] == []


def test_round_trip__of_single_files(given_boxes: tuple[list[Box], dict[str, tuple[int, int]]], tmp_path: Path) -> None:
    """COCO, CSV and Parquet files give the very same numbers back."""
    found, sizes = given_boxes
    write_coco_boxes(tmp_path / "a.json", found, sizes)
    again = list(read_coco_boxes(tmp_path / "a.json", Problems()))
    assert [each.original_id for each in again] == [str(place) for place in range(1, len(found) + 1)]
    assert of_source(again, "coco") == of_source(found, "coco")
    write_csv_boxes(tmp_path / "a.csv", found)
    assert list(read_csv_boxes(tmp_path / "a.csv", Problems())) == of_source(found, "csv")
    write_parquet_boxes(tmp_path / "a.parquet", found)
    assert list(read_parquet_boxes(tmp_path / "a.parquet", Problems())) == of_source(found, "parquet")


def test_round_trip__of_folders(given_boxes: tuple[list[Box], dict[str, tuple[int, int]]], tmp_path: Path) -> None:
    """VOC and YOLO folders give the very same numbers back."""
    found, sizes = given_boxes
    for name in sizes:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    write_voc_boxes(tmp_path, found, sizes)
    again = list(read_voc_boxes(tmp_path, Problems()))
    assert of_source(again, "voc", "flags") == of_source(found, "voc", "flags")
    write_yolo_boxes(tmp_path, found, sizes)
    assert of_source(yolo(tmp_path, sizes, Problems()), "yolo") == of_source(found, "yolo")


def test_yolo__files_come_back_sign_by_sign(tmp_path: Path) -> None:
    """Label files that are read and written with the same classes hold the same numbers, written as they were."""
    folder = SHARED / "coco-yolo"
    sizes, names = sizes_of(folder), read_class_names(folder / "config.yaml")
    assert names is not None
    write_yolo_boxes(tmp_path, yolo(folder, sizes, Problems()), sizes, names.values())
    files = sorted((folder / "labels").iterdir())
    assert len(files) == 63
    for path in files:
        given_lines = [line.split() for line in path.read_text().splitlines()]
        again = [line.split() for line in (tmp_path / "labels" / path.name).read_text().splitlines()]
        assert [[float(cell) for cell in line] for line in again] == [
            [float(cell) for cell in line] for line in given_lines
        ]


def test_yolo__labels_of_pictures_are_those_of_their_boxes() -> None:
    """Readers of labels and of boxes know the same folders and names."""
    folder = SHARED / "coco-yolo"
    labels: dict[str, set[str]] = {}
    for box in read_yolo_boxes(folder, Problems()):
        labels.setdefault(box.stem, set()).add(box.label)
    assert {stem: set(found) for stem, found in read_yolo(str(folder)) if found} == labels
