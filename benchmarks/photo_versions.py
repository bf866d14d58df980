"""Changed versions of photos: the middle, as in ImageNet's evaluation, and parts of it in changed colours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageEnhance

SEED = 20261121
SIDE = 224
_EVALUATED, _KEPT = 256 / 224, 320 / 224  # shorter sides of what the middle and the other versions are cut from
Random = np.random.Generator


def versions(path: Path, count: int, *, seed: int, side: int = SIDE) -> Iterator[npt.NDArray[Any]]:
    """Yield versions of a photo, uint8, shape (side, side, 3): its middle, then parts, half of them mirrored."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    yield np.asarray(_middle(image, side))
    kept = _with_shorter_side(image, min(round(_KEPT * side), *image.size))
    for version in range(1, count):
        yield np.asarray(_changed(kept, side, np.random.default_rng((SEED, seed, version))))


def _middle(image: Image.Image, side: int) -> Image.Image:
    """Return the middle square of an image whose shorter side was made 8/7 of its own."""
    image = _with_shorter_side(image, round(_EVALUATED * side))
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def _with_shorter_side(image: Image.Image, side: int) -> Image.Image:
    factor = side / min(image.size)
    return image.resize(
        (max(side, round(image.width * factor)), max(side, round(image.height * factor))), Image.Resampling.BILINEAR
    )


def _changed(image: Image.Image, side: int, random: Random) -> Image.Image:
    """Return 35 to 100 % of an image, of another shape, mirrored or not, in other colours."""
    area, shape = random.uniform(0.35, 1.0), np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
    width = min(image.width, round(float(np.sqrt(image.width * image.height * area * shape))))
    height = min(image.height, round(float(np.sqrt(image.width * image.height * area / shape))))
    left, top = random.integers(0, image.width - width + 1), random.integers(0, image.height - height + 1)
    box = (int(left), int(top), int(left) + width, int(top) + height)
    part = image.resize((side, side), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        part = change(part).enhance(random.uniform(0.7, 1.3))
    return part
