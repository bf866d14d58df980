"""Images with things at known places, and files that say so."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2

from framedex import Dataset
from framedex.annotations.tables import COLUMNS
from framedex.storage.media import Media
from framedex.storage.objects import objects_of
from tests.image_files import Pixels, photo, write
from tests.inside import stored_media

Place = tuple[float, float, float, float]
Thing = tuple[str, Place, str]
"""Name of the image, box, label."""
SIDE = 48
SCENE = (("cat", (8.0, 8.0, 48.0, 48.0)), ("dog", (72.5, 40.25, 48.0, 48.0)), ("cat", (200.0, 100.0, 56.0, 56.0)))
"""Label and box of the things in each image of :func:`paint_scenes`."""


def thing(seed: int, side: int = SIDE) -> Pixels:
    """Return what is seen of a thing: the same for the same seed."""
    return photo(seed, width=side, height=side)


def paint_scenes(folder: Path, names: Sequence[str], *, seed: int = 0) -> list[Thing]:
    """Write images of 320 × 200 with three things each; the first of all images look alike. Return the things."""
    things: list[Thing] = []
    for number, name in enumerate(names):
        pixels = photo(1000 + seed + number, width=320, height=200)
        for place, (label, box) in enumerate(SCENE):
            x, y, width, height = map(round, box)
            patch = thing(0 if place == 0 else 10 * (seed + number + 1) + place)
            pixels[y : y + height, x : x + width] = cv2.resize(patch, (width, height), interpolation=cv2.INTER_AREA)
            things.append((name, box, label))
        write(folder / name, pixels)
    return things


def write_table(path: Path, things: Iterable[Thing]) -> Path:
    """Write things as a table of boxes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        rows.writerows([name, *box, label] for name, box, label in things)
    return path


def scenes(folder: Path, count: int = 4, *, seed: int = 0) -> list[Thing]:
    """Write images with things, and the table of these beside them; return the things."""
    things = paint_scenes(folder, [f"{seed + number:03}.png" for number in range(count)], seed=seed)
    write_table(folder / "object_annotations.csv", things)
    return things


def objects_in(dataset: Dataset) -> Media:
    """Return the objects of a dataset that has some."""
    found = objects_of(stored_media(dataset))
    assert found is not None
    return found


def rows_of(dataset: Dataset, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of objects, in their order; of a dataset without any, none."""
    found = objects_of(stored_media(dataset))
    if found is None:
        return []
    rows: list[dict[str, Any]] = found.table.scan(columns or found.table.schema.names).read_all().to_pylist()
    return rows


def things_of(dataset: Dataset) -> list[Thing]:
    """Return the objects of a dataset as things, in their order."""
    return [
        (row["path"], (row["box_x"], row["box_y"], row["box_width"], row["box_height"]), row["labels"][0])
        for row in rows_of(dataset)
    ]
