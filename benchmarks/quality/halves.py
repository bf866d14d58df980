"""Halves of the annotated photos: what limits were tuned on, and what figures are reported on."""

from pathlib import Path

import numpy as np

FOLDERS = ("photos/imagenet-sample", "annotated/coco-yolo/images", "annotated/raccoon-voc/images")
SEED = 14
TUNING, REPORTING = "tuning", "reporting"


def halves(data: Path) -> dict[str, list[Path]]:
    """Return the photos of each half, in the order of the folders and of their paths.

    Args:
        data: the folder with the test images.
    """
    photos = [path for folder in FOLDERS for path in sorted((data / folder).iterdir())]
    order = np.random.default_rng(SEED).permutation(len(photos))
    middle = len(photos) // 2
    return {
        half: [photos[place] for place in sorted(places)]
        for half, places in ((TUNING, order[:middle]), (REPORTING, order[middle:]))
    }
