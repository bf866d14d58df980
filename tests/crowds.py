"""A dataset of three crowds of images, each with its label but for some: their labels are probably wrong."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex import Dataset, Workspace
from tests.analysis.arrays import unit
from tests.image_files import photo, write

ROWS = 60
LABELS = ("wolf", "dog", "cat")
WRONG = {4: ("cat", "dog"), 25: ("cat", "dog"), 26: ("wolf", "cat"), 40: ("cat", "dog")}
"""Rows with a wrong label: that and the right one."""


def create_crowds(workspace: Workspace, folder: Path) -> Dataset:
    """Write the images to a folder, and return the dataset ``crowds``."""
    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(len(LABELS), 8)))
    vectors = unit(centres[np.arange(ROWS) % len(LABELS)] + 0.05 * rng.normal(size=(ROWS, 8)))
    paths = [folder / f"{row:03}.png" for row in range(ROWS)]
    for row, path in enumerate(paths):
        write(path, photo(600 + row, width=48, height=36))
    labels = [WRONG[row][0] if row in WRONG else LABELS[row % len(LABELS)] for row in range(ROWS)]
    vectors_column = pa.array(vectors.tolist(), pa.list_(pa.float32()))
    table = pa.table({"uri": [str(each) for each in paths], "embedding": vectors_column, "label": labels})
    return workspace.create_dataset("crowds", table)
