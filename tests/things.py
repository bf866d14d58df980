"""Images with things in them, whose boxes are known."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.image_files import Pixels, photo, write


class Thing(NamedTuple):
    """A box in an image.

    Attributes:
        image: name of the file.
        x, y, width, height: of the box, in pixels.
        label: what is in it.
        confidence: how sure a model was.
    """

    image: str
    x: float
    y: float
    width: float
    height: float
    label: str
    confidence: float | None = None


CARS = [Thing("0.png", 10, 20, 80, 60, "car", 0.9), Thing("1.png", 200, 100, 80, 60, "car", 0.4)]
"""The same pixels in two images."""
SAME = [CARS[0], Thing("5.png", 10, 20, 80, 60, "car", 0.9)]
"""The same box in two files of equal content."""
DARK = Thing("3.png", 20, 20, 64, 64, "cat", None)
THINGS = [
    *CARS,
    Thing("1.png", 4.5, 6.25, 50.5, 40.5, "dog", 0.6),
    Thing("2.png", 50, 50, 90, 70, "dog", None),
    Thing("2.png", 160, 120, 100, 100, "dog", None),
    DARK,
    Thing("3.png", 150, 30, 120, 90, "cat", None),
    SAME[1],
]
"""All of them; nothing is in ``4.png``."""
IMAGES = [f"{number}.png" for number in range(6)]
CAPTION = "a street in the rain"
"""Of ``1.png``; others have none."""


def pixels_of(name: str) -> Pixels:
    """Return an image: uint8, shape (240, 320, 3)."""
    pixels = photo(0 if name == SAME[1].image else int(name[0]), width=320, height=240)
    for thing in (*CARS, SAME[1]):
        if thing.image == name:
            x, y = int(thing.x), int(thing.y)
            pixels[y : y + 60, x : x + 80] = photo(100, width=80, height=60)
    if name == DARK.image:
        pixels[20:84, 20:84] = photo(101, width=64, height=64) // 14
    return np.ascontiguousarray(pixels)


def make_things(folder: Path) -> Path:
    """Write the images and their annotations; return the folder."""
    for name in IMAGES:
        write(folder / name, pixels_of(name))
    with (folder / "object_annotations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filename", "col_x", "row_y", "width", "height", "label", "confidence"])
        table.writerows([*thing[:6], "" if thing.confidence is None else thing.confidence] for thing in THINGS)
    with (folder / "image_annotations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filename", "label", "caption"])
        table.writerows([[name, "street", CAPTION if name == "1.png" else ""] for name in IMAGES])
    return folder
