"""Edits of photos that people search by: what happens to images on their way through mails, sites and programs."""

from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

Edit = Callable[[Image.Image], Image.Image]
_QUALITY = 90
_LOW_QUALITY = 30


def _same(image: Image.Image) -> Image.Image:
    return image


def _half(image: Image.Image) -> Image.Image:
    return image.resize((max(image.width // 2, 1), max(image.height // 2, 1)))


def _cropped(image: Image.Image) -> Image.Image:
    """Return the middle: 80 % of the width and of the height."""
    x, y = round(image.width * 0.1), round(image.height * 0.1)
    return image.crop((x, y, image.width - x, image.height - y))


def _corner(image: Image.Image) -> Image.Image:
    """Return the upper left corner: 80 % of the width and of the height."""
    return image.crop((0, 0, round(image.width * 0.8), round(image.height * 0.8)))


def _darker(image: Image.Image) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(0.6)


def _contrast(image: Image.Image) -> Image.Image:
    return ImageEnhance.Brightness(ImageEnhance.Contrast(image).enhance(1.4)).enhance(1.2)


def _blurred(image: Image.Image) -> Image.Image:
    """Blur by a Gaussian with a deviation of 1.5 % of the shorter side."""
    return image.filter(ImageFilter.GaussianBlur(0.015 * min(image.size)))


def _grey(image: Image.Image) -> Image.Image:
    return image.convert("L")


def _lettered(image: Image.Image) -> Image.Image:
    """Write two white words on a black bar over the lowest sixth."""
    out, height = image.copy(), image.height // 6
    draw = ImageDraw.Draw(out)
    draw.rectangle((0, image.height - height, image.width, image.height), fill="black")
    text, font = "WHEN MONDAY COMES", ImageFont.load_default(max(height // 2, 8))
    draw.text((image.width // 20, image.height - 0.8 * height), text, fill="white", font=font)
    return out


def _turned(image: Image.Image) -> Image.Image:
    """Turn by 10 degrees around the centre, with black corners."""
    return image.rotate(10, Image.Resampling.BICUBIC)


EDITS: dict[str, tuple[Edit, int]] = {
    "JPEG quality 30": (_same, _LOW_QUALITY),
    "half the size": (_half, _QUALITY),
    "80 %, middle": (_cropped, _QUALITY),
    "80 %, corner": (_corner, _QUALITY),
    "darker": (_darker, _QUALITY),
    "more contrast": (_contrast, _QUALITY),
    "blurred": (_blurred, _QUALITY),
    "grey": (_grey, _QUALITY),
    "with text": (_lettered, _QUALITY),
    "mirrored": (ImageOps.mirror, _QUALITY),
    "turned by 10°": (_turned, _QUALITY),
}
"""By name: the edit, and the JPEG quality in which its result is stored."""


def write_edits(photo: Path, stem: str, folder: Path) -> dict[str, str]:
    """Write all edits of a photo; return their file names by edit."""
    with Image.open(photo) as opened:
        image = opened.convert("RGB")
    names = {}
    for place, (name, (edit, quality)) in enumerate(EDITS.items()):
        names[name] = f"{stem}-{place}.jpg"
        edit(image).save(folder / names[name], quality=quality)
    return names
