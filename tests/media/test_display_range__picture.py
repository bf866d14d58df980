"""The picture of the rule of values in the documentation is that of the present rule."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"


def test_picture__shows_the_rule() -> None:
    """No grey level is another one, but for letters; else run `python docs/make_values.py`."""
    made: dict[str, Any] = runpy.run_path(str(DOCS / "make_values.py"))
    drawn = made["draw"]()[..., 0].astype(int)
    with Image.open(DOCS / "values.png") as image:
        stored = np.asarray(image).astype(int)
    assert stored.shape == drawn.shape
    head, side = made["HEAD"], made["SIDE"]
    for top in (head, 2 * head + side):
        np.testing.assert_array_equal(stored[top : top + side], drawn[top : top + side])
    assert np.abs(stored - drawn).mean() < 1
