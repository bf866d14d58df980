"""The 28 edits that people make of a photo, and bars that different photos have in common. All are deterministic."""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

Edit = Callable[[Image.Image], Image.Image]
SIDE = 500
_YELLOW, _BLACK, _WHITE, _GREY = (255, 220, 0), (0, 0, 0), (255, 255, 255), (200, 200, 200)


def original(image: Image.Image) -> Image.Image:
    """Return an image in RGB, of at most 500 pixels on the longer side."""
    image = image.convert("RGB")
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return image


def cropped(left: float, top: float, right: float, bottom: float) -> Edit:
    """Return an edit that cuts off shares of the sides."""

    def edit(image: Image.Image) -> Image.Image:
        width, height = image.size
        return image.crop(
            (round(width * left), round(height * top), round(width * (1 - right)), round(height * (1 - bottom)))
        )

    return edit


def _font(height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(max(6, round(height)))


def _watermark(image: Image.Image) -> Image.Image:
    layer = Image.new("RGBA", image.size, (0, 0, 0, 0))
    at = (image.width * 0.1, image.height * 0.4)
    ImageDraw.Draw(layer).text(at, "SAMPLE PHOTO", (255, 255, 255, 128), _font(image.width / 9))
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def _banner(image: Image.Image) -> Image.Image:
    image = image.copy()
    width, height = image.size
    left, top = round(width * 0.175), round(height * 0.85)
    draw = ImageDraw.Draw(image)
    draw.rectangle((left, top, left + round(width * 0.65), top + round(height * 0.13)), _BLACK)
    draw.text((left + 5, top + 3), "BREAKING NEWS TODAY", _YELLOW, _font(height * 0.07))
    return image


def _bordered(colour: tuple[int, int, int]) -> Edit:
    return lambda image: ImageOps.expand(image, round(min(image.size) * 0.06), colour)


def _rotated(degrees: float, keep: float | None = None) -> Edit:
    """Return an edit that rotates, with black corners or only the inner share of each side."""

    def edit(image: Image.Image) -> Image.Image:
        turned = image.rotate(degrees, Image.Resampling.BICUBIC)
        if keep is None:
            return turned
        cut = (1 - keep) / 2
        return cropped(cut, cut, cut, cut)(turned)

    return edit


def _hue(image: Image.Image) -> Image.Image:
    values = np.asarray(image.convert("HSV")).copy()
    values[..., 0] = (values[..., 0].astype(int) + round(35 / 360 * 256)) % 256
    return Image.fromarray(values, "HSV").convert("RGB")


def _warm(image: Image.Image) -> Image.Image:
    red, green, blue = image.split()
    return Image.merge("RGB", (red.point(lambda value: value * 1.15), green, blue.point(lambda value: value * 0.8)))


def _noise(image: Image.Image) -> Image.Image:
    pixels = np.asarray(image, np.float32)
    noise = np.random.default_rng(image.width * 10_007 + image.height).normal(0, 15, pixels.shape)
    return Image.fromarray(np.clip(np.rint(pixels + noise), 0, 255).astype(np.uint8))


def _resized(longest: int) -> Edit:
    def edit(image: Image.Image) -> Image.Image:
        image = image.copy()
        image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        return image

    return edit


def phone_frame(image: Image.Image) -> Image.Image:
    """Return a photo in the middle of a black screen of 450 × 800."""
    screen = Image.new("RGB", (450, 800), _BLACK)
    photo = ImageOps.contain(image, (450, 700), Image.Resampling.BICUBIC)
    screen.paste(photo, ((450 - photo.width) // 2, (800 - photo.height) // 2))
    return screen


def screenshot(image: Image.Image) -> Image.Image:
    """Return a photo on a grey window of 1000 × 700 with a dark bar and a title."""
    window = Image.new("RGB", (1000, 700), _GREY)
    draw = ImageDraw.Draw(window)
    draw.rectangle((0, 0, 999, 39), (40, 40, 40))
    draw.text((12, 8), "Photo viewer - IMG_2041.jpg", _WHITE, _font(20))
    photo = ImageOps.contain(image, (800, 600), Image.Resampling.BICUBIC)
    window.paste(photo, ((1000 - photo.width) // 2, 40 + (660 - photo.height) // 2))
    return window


def _meme_top(image: Image.Image) -> Image.Image:
    added = round(image.height * 0.25)
    meme = Image.new("RGB", (image.width, image.height + added), _WHITE)
    meme.paste(image, (0, added))
    draw = ImageDraw.Draw(meme)
    draw.text((10, added * 0.1), "when you see it", _BLACK, _font(added * 0.35))
    draw.text((10, added * 0.52), "you cannot unsee it", _BLACK, _font(added * 0.35))
    return meme


def _meme_overlay(image: Image.Image) -> Image.Image:
    image = image.copy()
    draw, font = ImageDraw.Draw(image), _font(image.height / 9)
    for text, share in (("ONE DOES NOT", 0.03), ("SIMPLY STOP", 0.85)):
        draw.text((image.width * 0.08, image.height * share), text, _WHITE, font, stroke_width=2, stroke_fill=_BLACK)
    return image


def _collage(image: Image.Image, other: Image.Image | None = None) -> Image.Image:
    """Return a photo at half size beside another one (a generated scene by default)."""
    half = image.resize((max(1, image.width // 2), max(1, image.height // 2)), Image.Resampling.LANCZOS)
    beside = _scene(half.size) if other is None else ImageOps.fit(other, half.size, Image.Resampling.LANCZOS)
    both = Image.new("RGB", (2 * half.width, half.height))
    both.paste(half, (0, 0))
    both.paste(beside, (half.width, 0))
    return both


def collage(other: Image.Image) -> Edit:
    """Return the edit that puts a photo at half size beside another one."""
    return lambda image: _collage(image, other)


def _scene(size: tuple[int, int]) -> Image.Image:
    random = np.random.default_rng(size[0] * 10_007 + size[1])
    coarse = random.integers(0, 256, (6, 6, 3)).astype(np.uint8)
    scene: npt.NDArray[np.uint8] = np.asarray(cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC), np.uint8)
    return Image.fromarray(scene)


# name: (edit, quality of the JPEG)
EDITS: dict[str, tuple[Edit, int]] = {
    "crop10_center": (cropped(0.05, 0.05, 0.05, 0.05), 90),
    "crop10_corner": (cropped(0, 0, 0.1, 0.1), 90),
    "crop20_corner": (cropped(0.2, 0.2, 0, 0), 90),
    "watermark": (_watermark, 90),
    "banner": (_banner, 90),
    "border6_black": (_bordered(_BLACK), 90),
    "border6_white": (_bordered(_WHITE), 90),
    "rot2_fill": (_rotated(2), 90),
    "rot5_cropped": (_rotated(5, 0.84), 90),
    "rot90": (lambda image: image.transpose(Image.Transpose.ROTATE_90), 90),
    "mirror": (ImageOps.mirror, 90),
    "flip_v": (ImageOps.flip, 90),
    "hue+35deg": (_hue, 90),
    "warm": (_warm, 90),
    "bright1.4": (lambda image: ImageEnhance.Brightness(image).enhance(1.4), 90),
    "dark0.55": (lambda image: ImageEnhance.Brightness(image).enhance(0.55), 90),
    "contrast1.6": (lambda image: ImageEnhance.Contrast(image).enhance(1.6), 90),
    "grey": (lambda image: image.convert("L"), 90),
    "jpeg10": (lambda image: image, 10),
    "resize64": (_resized(64), 90),
    "squash16:9": (lambda image: image.resize((480, 270), Image.Resampling.LANCZOS), 90),
    "blur2": (lambda image: image.filter(ImageFilter.GaussianBlur(2)), 90),
    "noise15": (_noise, 90),
    "letterbox_phone": (phone_frame, 90),
    "screenshot": (screenshot, 90),
    "meme_top": (_meme_top, 90),
    "meme_overlay": (_meme_overlay, 90),
    "collage_half": (_collage, 90),
}
