"""Ordinary, sharp pictures of eight kinds of content, made from a seed: photos, pages, forms, masks and others."""

from collections.abc import Callable

import cv2
import numpy as np
from PIL import Image, ImageDraw
from printed import Pixels, Random, font, scanned, write

Maker = Callable[[Random, Pixels], Pixels]
"""Makes a picture; some kinds use a photo."""
_SIZES = ((420, 540), (595, 842), (850, 1100), (1240, 1754))


def _paper(random: Random) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    size = _SIZES[int(random.integers(len(_SIZES)))]
    tone = int(random.integers(238, 256))
    page = Image.new("RGB", size, (tone, tone, int(tone - random.integers(0, 12))))
    return page, ImageDraw.Draw(page)


def page(random: Random, _photo: Pixels) -> Pixels:
    """Return a page of text, in one or two columns; some are scans: grey, noisy, tilted."""
    image, draw = _paper(random)
    width, height = image.size
    size = int(width * random.uniform(0.016, 0.03))
    margin = int(width * random.uniform(0.06, 0.12))
    ink = tuple(random.integers(0, 70, 1).repeat(3).tolist())
    top = margin
    if random.random() < 0.6:
        write(draw, random, (margin, top, width - margin, top + 3 * size), 2 * size, ink)
        top += 5 * size
    end = height - margin if random.random() < 0.7 else int(random.uniform(0.35, 0.9) * height)
    columns = int(random.integers(1, 3))
    wide = (width - 2 * margin) // columns
    for column in range(columns):
        left = margin + column * wide
        write(draw, random, (left, top, left + wide - size, end), size, ink)
    return _scanned(image, random) if random.random() < 0.4 else np.asarray(image)


def _scanned(image: Image.Image, random: Random) -> Pixels:
    return scanned(np.asarray(image), random, tilt=float(random.uniform(-1.5, 1.5)), noise=random.uniform(1, 5))


def form(random: Random, _photo: Pixels) -> Pixels:
    """Return a form: fields in frames with short texts, some filled in."""
    image, draw = _paper(random)
    width, height = image.size
    size, margin = int(width * 0.018), int(width * 0.07)
    write(draw, random, (margin, margin, width - margin, margin + 2 * size), 2 * size, (20, 20, 20))
    top = margin + 4 * size
    while top < height - margin - 3 * size:
        count = int(random.integers(1, 4))
        wide = (width - 2 * margin) // count
        for column in range(count):
            left = margin + column * wide
            draw.rectangle((left, top, left + wide, top + 3 * size), outline=(60, 60, 60), width=max(1, size // 10))
            write(
                draw,
                random,
                (left + size // 2, top + 2, left + wide // 2, top + size),
                max(6, int(0.6 * size)),
                (90, 90, 90),
            )
            if random.random() < 0.5:
                write(draw, random, (left + size, top + size, left + wide - size, top + 2 * size), size, (20, 20, 120))
        top += int(3.2 * size)
    return _scanned(image, random) if random.random() < 0.4 else np.asarray(image)


def mask(random: Random, _photo: Pixels) -> Pixels:
    """Return a mask: regions of few classes, as grey values or in colours of a palette."""
    height, width = (int(each) for each in random.integers(200, 800, 2))
    classes = int(random.integers(1, 7))
    pixels = np.zeros((height, width, 3), np.uint8)
    is_grey = random.random() < 0.5
    colours = random.integers(60, 256, (classes, 1 if is_grey else 3)).repeat(3 if is_grey else 1, axis=1)
    if classes == 1:
        colours[:] = 255
    for _ in range(int(random.integers(1, 9))):
        centre, reach = random.uniform(0.1, 0.9, 2) * (width, height), random.uniform(0.05, 0.35) * min(width, height)
        angles = np.sort(random.uniform(0, 2 * np.pi, int(random.integers(5, 30))))
        radii = reach * random.uniform(0.6, 1.3, len(angles))
        points = centre + np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii[:, None]
        colour = colours[int(random.integers(classes))].tolist()
        cv2.fillPoly(pixels, [np.rint(points).astype(np.int32)], colour)
    return pixels


def drawing(random: Random, photo: Pixels) -> Pixels:
    """Return a drawing: lines and circles of a plan, a plot, or the edges of a photo."""
    match int(random.integers(3)):
        case 0:
            return _plan(random)
        case 1:
            return _plot(random)
    edges = cv2.Canny(cv2.GaussianBlur(cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY), (0, 0), 1.5), 60, 140)
    lines = 255 - cv2.dilate(edges, np.ones((2, 2), np.uint8))
    return np.asarray(lines[..., None].repeat(3, axis=2), np.uint8)


def _plan(random: Random) -> Pixels:
    height, width = (int(each) for each in random.integers(400, 1200, 2))
    pixels = np.full((height, width, 3), 255, np.uint8)
    for _ in range(int(random.integers(15, 80))):
        first, last = ((random.uniform(0.05, 0.95, 2) * (width, height)).astype(int) for _ in range(2))
        thick = int(random.integers(1, 4))
        match int(random.integers(3)):
            case 0:
                axis = int(random.integers(2))
                last[axis] = first[axis]
                cv2.line(pixels, first.tolist(), last.tolist(), (0, 0, 0), thick, cv2.LINE_AA)
            case 1:
                cv2.rectangle(pixels, first.tolist(), last.tolist(), (0, 0, 0), thick)
            case _:
                cv2.circle(pixels, first.tolist(), int(random.integers(5, 120)), (0, 0, 0), thick, cv2.LINE_AA)
    return pixels


def _plot(random: Random) -> Pixels:
    image = Image.new("RGB", (640, 480), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    draw.rectangle((70, 40, 600, 420), outline=(0, 0, 0))
    for tick in range(8):
        draw.text((30, 40 + 50 * tick), f"{random.uniform(0, 100):.1f}", font=font(0, 12), fill=(0, 0, 0))
        draw.text((70 + 70 * tick, 428), f"{10 * tick}", font=font(0, 12), fill=(0, 0, 0))
    write(draw, random, (220, 14, 520, 34), 14, (0, 0, 0))
    x = np.linspace(70, 600, 200)
    for _ in range(int(random.integers(1, 6))):
        y = 230 + np.cumsum(random.normal(0, 12, 200))
        points = [(float(a), float(b)) for a, b in zip(x, np.clip(y, 42, 418), strict=True)]
        draw.line(points, fill=tuple(random.integers(0, 200, 3).tolist()), width=2)
    return np.asarray(image)


def code(random: Random, _photo: Pixels) -> Pixels:
    """Return a matrix of black and white squares with the three marks of a QR code."""
    count, side = 21 + 4 * int(random.integers(0, 8)), int(random.integers(3, 12))
    cells = random.integers(0, 2, (count, count)).astype(np.uint8) * 255
    for row, column in ((0, 0), (0, count - 7), (count - 7, 0)):
        cells[row : row + 7, column : column + 7] = 0
        cells[row + 1 : row + 6, column + 1 : column + 6] = 255
        cells[row + 2 : row + 5, column + 2 : column + 5] = 0
    large = cells.repeat(side, axis=0).repeat(side, axis=1)
    quiet = np.pad(large, 4 * side, constant_values=255)
    return np.asarray(quiet[..., None].repeat(3, axis=2), np.uint8)


def screenshot(random: Random, photo: Pixels) -> Pixels:
    """Return a window of a program: bars, lists of texts, buttons, and sometimes pictures; light or dark."""
    width, height = ((1280, 800), (1920, 1080), (390, 844))[int(random.integers(3))]
    is_dark = random.random() < 0.4
    ground, ink, bar = (
        ((30, 32, 36), (220, 220, 220), (48, 52, 60)) if is_dark else ((250, 250, 250), (30, 30, 30), (225, 228, 235))
    )
    image = Image.new("RGB", (width, height), ground)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width, 48), fill=bar)
    write(draw, random, (16, 14, width // 2, 32), 16, ink)
    left = width // 5 if width > 800 else 0
    if left:
        draw.rectangle((0, 48, left, height), fill=bar)
        for number in range(int(random.integers(6, 16))):
            write(draw, random, (14, 70 + 34 * number, left - 20, 86 + 34 * number), 14, ink)
    accent = tuple(random.integers(40, 220, 3).tolist())
    draw.rounded_rectangle((width - 130, 60, width - 20, 92), 6, fill=accent)
    top = 110
    while top < height - 60:
        if random.random() < 0.3:
            side = int(min(height - top - 10, random.uniform(90, 240)))
            for column in range(left + 20, width - side - 10, side + 16):
                if random.random() < 0.7:
                    shown = cv2.resize(photo, (side, side), interpolation=cv2.INTER_AREA)
                    image.paste(Image.fromarray(np.asarray(np.roll(shown, column, axis=1), np.uint8)), (column, top))
            top += side + 20
        else:
            rows = int(random.integers(2, 8))
            write(draw, random, (left + 24, top, width - 30, min(height - 20, top + 22 * rows)), 15, ink)
            top += 22 * rows + 20
    return np.asarray(image)


def product(random: Random, photo: Pixels) -> Pixels:
    """Return a thing on white with a soft shadow: a round part of a photo."""
    height, width = photo.shape[:2]
    inside = np.zeros((height, width), np.float32)
    axes = (random.uniform(0.2, 0.38, 2) * (width, height)).astype(int).tolist()
    cv2.ellipse(inside, (width // 2, height // 2), axes, float(random.uniform(0, 180)), 0, 360, 1.0, -1, cv2.LINE_AA)
    shadow = cv2.GaussianBlur(np.roll(inside, 6, axis=0), (0, 0), 8)[..., None]
    ground = 255 - 60 * shadow
    return np.asarray(np.rint(photo * inside[..., None] + ground * (1 - inside[..., None])), np.uint8)


KINDS: dict[str, Maker] = {
    "photo": lambda _random, photo: photo,
    "page": page,
    "form": form,
    "mask": mask,
    "drawing": drawing,
    "code": code,
    "screenshot": screenshot,
    "product": product,
}


def pictures(kind: str, photos: list[Pixels], seed: int) -> list[Pixels]:
    """Return a picture of a kind for each photo.

    Args:
        kind: one of :data:`KINDS`.
        photos: uint8, shape (H, W, 3), RGB.
        seed: further pictures are those of another seed.
    """
    return [KINDS[kind](np.random.default_rng((seed, number)), photo) for number, photo in enumerate(photos)]
