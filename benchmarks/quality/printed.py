"""Text as it is printed: words of the documentation, fonts, blocks of text, and pages as a scanner reads them."""

from functools import cache
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from PIL import ImageDraw, ImageFont

Pixels = npt.NDArray[np.uint8]
Random = np.random.Generator
Box = tuple[int, int, int, int]
"""Left, top, right, bottom, in pixels."""
_ROOT = Path(__file__).resolve().parents[2]
_FONTS = ("DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf", "LiberationSans-Regular.ttf")
MONO = 2
"""Number of the font whose letters are of one width."""


@cache
def _words() -> list[str]:
    return " ".join(each.read_text() for each in sorted((_ROOT / "docs").glob("*.md"))).split()


@cache
def _plain_words() -> list[str]:
    return [word for word in _words() if len(word) <= 12 and word.rstrip(".,;:").isalpha()]


@cache
def font(number: int, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font by its number, or another one where it is not installed; *size* is in pixels."""
    for name in (*_FONTS[number:], *_FONTS[:number]):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def lines(random: Random, count: int, most: int, *, is_plain: bool = False) -> list[str]:
    """Return lines of the documentation's words, each of *most* characters; without its markup and code if plain."""
    words = _plain_words() if is_plain else _words()
    at = int(random.integers(0, len(words) - 20 * count))
    result = list[str]()
    while len(result) < count:
        line = ""
        while len(line) < most:
            line, at = f"{line} {words[at % len(words)]}".strip(), at + 1
        result.append(line[:most])
    return result


def write(
    draw: ImageDraw.ImageDraw,
    random: Random,
    box: Box,
    size: int,
    ink: tuple[int, ...],
    number: int | None = None,
) -> None:
    """Write a block of text.

    Args:
        draw: what is written on.
        random: chooses the words, and a font where there is no *number*.
        box: where the block is.
        size: of the font, in pixels.
        ink: the colour.
        number: of the font.
    """
    left, top, right, bottom = box
    count, most = max(1, int((bottom - top) / (1.4 * size))), max(4, int((right - left) / (0.62 * size)))
    face = font(int(random.integers(len(_FONTS))) if number is None else number, size)
    for row, line in enumerate(lines(random, count, most)):
        shown = line[: int(most * random.uniform(0.3, 1))] if random.random() < 0.15 else line
        draw.text((left, top + int(1.4 * size * row)), shown, font=face, fill=ink)


def scanned(pixels: Pixels, random: Random, *, tilt: float, noise: float) -> Pixels:
    """Return a page in grey, turned by *tilt* degrees, with noise of a standard deviation in grey values."""
    height, width = pixels.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), tilt, 1)
    tone = tuple(pixels[0, 0].tolist())
    turned = cv2.warpAffine(pixels, turn, (width, height), borderValue=tone)
    grey = cv2.cvtColor(np.asarray(turned, np.uint8), cv2.COLOR_RGB2GRAY)[..., None].repeat(3, axis=2)
    return np.asarray(np.clip(np.rint(grey + random.normal(0, noise, grey.shape[:2])[..., None]), 0, 255), np.uint8)
