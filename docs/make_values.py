"""Draw values.png of sources.md: how values of more than 8 bits are shown, from values that are made here.

Usage: make pictures, or python docs/make_values.py. A test draws it again and compares.
"""

from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.media.display_range import scaled, shown_range

TARGET = Path(__file__).with_name("values.png")
SIDE, GAP, HEAD = 200, 16, 56
Values = npt.NDArray[Any]


def scene() -> npt.NDArray[np.float64]:
    """Return a ball before a slope, 0 to 1: shape (SIDE, SIDE)."""
    y, x = np.mgrid[0 : 1 : SIDE * 1j, 0 : 1 : SIDE * 1j]
    height = np.sqrt(np.clip(0.09 - (x - 0.55) ** 2 - (y - 0.5) ** 2, 0, None)) / 0.3
    return np.asarray(np.where(height > 0, 0.35 + 0.65 * height, 0.3 * (1 - y) + 0.05 * np.sin(30 * x)).clip(0, 1))


def rows() -> list[tuple[str, Values, int]]:
    """Return the name, the values and the bits of each example."""
    depth = (801 + 392 * scene()).astype(np.float32)
    depth[:, :12], depth[20:30, 150:160] = -9999, 60_000
    full, twelve = (65535 * scene()).astype(np.uint16), (4095 * scene()).astype(np.uint16)
    return [("16 bits, full range", full, 16), ("12 bits in 16", twelve, 16), ("float: depth", depth, 32)]


def draw() -> Pixels:
    """Return the picture: above, values from the lowest possible to the highest; below, as they are shown."""
    examples = rows()
    width = len(examples) * (SIDE + GAP) + GAP
    picture = np.full((2 * (SIDE + HEAD) + GAP, width, 3), 255, np.uint8)
    for column, (name, values, bits) in enumerate(examples):
        left = GAP + column * (SIDE + GAP)
        shown = shown_range(values, bits=bits)
        ends = (float(values.min()), float(values.max())) if values.dtype.kind == "f" else (0.0, 65535.0)
        plain = np.rint((values - ends[0]) * (255 / (ends[1] - ends[0]))).astype(np.uint8)
        said = "as they are" if shown is None else f"{shown[0]:,.0f} to {shown[1]:,.0f}"
        parts = ((name, f"{ends[0]:,.0f} to {ends[1]:,.0f}", plain), ("shown", said, scaled(values, shown, bits=bits)))
        for row, (first, second, grey) in enumerate(parts):
            top = row * (SIDE + HEAD)
            for line, text in enumerate((first, second)):
                place = (left, top + 22 + 22 * line)
                cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
            picture[top + HEAD : top + HEAD + SIDE, left : left + SIDE] = grey[..., None]
    return picture


def png() -> bytes:
    """Return the picture as a PNG file."""
    from PIL import Image

    out = BytesIO()
    Image.fromarray(draw()[..., 0]).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    TARGET.write_bytes(png())
