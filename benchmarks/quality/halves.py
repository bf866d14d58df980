"""The photos, split by a fixed seed into a half to tune on and a half to report.

Limits and weights in Framedex were chosen on the tuning half alone. Microscopy is never tuned on.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SEED = 14
FOLDERS = ("photos/imagenet-sample", "annotated/coco-yolo/images", "annotated/raccoon-voc/images")
SUFFIXES = (".jpg", ".jpeg", ".png")
HALVES = ("tuning", "reporting")


def half(data: Path, name: str, folders: Sequence[str] = FOLDERS) -> list[Path]:
    """Return the photos of a half, sorted by folder and name; end the program where a folder is absent.

    Args:
        data: folder with the test images.
        name: ``tuning`` or ``reporting``.
        folders: the folders of photos; each is split by itself, so that a part of the folders gives the same halves.
    """
    chosen: list[Path] = []
    for folder in folders:
        photos = photos_of(data, folder)
        order = np.random.default_rng(SEED).permutation(len(photos))
        middle = len(photos) // 2
        places = order[:middle] if name == HALVES[0] else order[middle:]
        chosen += [photos[place] for place in sorted(places)]
    return chosen


def photos_of(data: Path, folder: str) -> list[Path]:
    """Return the photos of a folder, sorted by name; end the program where it is absent."""
    where = (data / folder).resolve()
    if not where.is_dir():
        sys.exit(f"The test images are absent: there is no folder {folder!r} in {str(data)!r}. Name it with --data.")
    return sorted(path for path in where.rglob("*") if path.suffix.lower() in SUFFIXES)
