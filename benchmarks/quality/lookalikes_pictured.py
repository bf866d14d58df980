"""Generated pictures of cameras and instruments that share a template: X-rays, stars, products, heat, depth, cells.

Bursts and frames of a scene are "near": the same moment or place, seen more than once, and no copies.
"""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw
from printed import Pixels, Random, font
from variants import SET, Variant

Values = npt.NDArray[np.float64]


def _grid(height: int, width: int) -> tuple[Values, Values]:
    """Return x and y of each pixel, as shares of the width."""
    y, x = np.mgrid[0:height, 0:width] / width
    return x, y


def _soft(x: Values, y: Values, centre: tuple[float, float], reach: tuple[float, float], edge: float = 0.06) -> Values:
    """Return 1 within an ellipse and 0 outside, with a soft edge."""
    distance = np.hypot((x - centre[0]) / reach[0], (y - centre[1]) / reach[1])
    return 1 / (1 + np.exp(np.clip((distance - 1) / edge, -30, 30)))


def _cloud(random: Random, cells: int, height: int, width: int) -> Values:
    """Return smooth noise of mean 0 and about unit deviation."""
    coarse = random.normal(0, 1, (cells * height // width + 1, cells))
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float64)


def _pixels(values: npt.NDArray[np.floating[Any]]) -> Pixels:
    """Return grey values or colours as pixels of three channels."""
    rounded: Pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return rounded if rounded.ndim == 3 else rounded[..., None].repeat(3, axis=2)


def x_ray(variant: Variant) -> Pixels:
    """Return a chest: persons differ little; each fifth is the person before, taken again, with a faint nodule."""
    side = (512, 700, 1024)[variant.set % 3]
    is_again = variant.number % 5 == 4
    person, exposure = (variant.before if is_again else variant.own), variant.own
    x, y = _grid(side, side)

    def about(value: float, share: float = 0.04) -> float:
        return float(value * person.normal(1, share))

    middle = about(0.5, 0.01)
    values = 40 + 130 * _soft(x, y, (middle, 0.75), (about(0.46), about(0.68)), 0.05)
    values += 25 * _soft(x, y, (middle, 0.05), (about(0.12), 0.25), 0.1)
    lungs = np.zeros_like(x)
    for sign in (-1, 1):
        lungs += _soft(x, y, (middle + sign * about(0.185), about(0.45)), (about(0.135), about(0.29)), 0.07)
    values -= 95 * np.clip(lungs, 0, 1)
    values += np.clip(lungs, 0, 1) * (5 * _cloud(person, 24, side, side) + 4 * _cloud(person, 60, side, side))
    heart = _soft(x, y, (middle + about(0.055), about(0.6)), (about(0.13), about(0.12)), 0.08)
    values += (195 - values) * 0.75 * heart
    for sign in (-1, 1):
        dome = _soft(x, y, (middle + sign * 0.2, about(0.86)), (about(0.23), about(0.17)), 0.06)
        values += np.maximum(0, 195 - values) * dome
    spine = np.exp(-(((x - middle) / about(0.035)) ** 2)) * (0.8 + 0.2 * np.sin(y * about(95) + about(1, 0.5)))
    values += 45 * spine
    start, step, slope = about(0.16), about(0.062), about(0.55)
    side_of = np.abs(x - middle)
    for rib in range(10):
        line = start + step * rib - 0.03 + slope * side_of - 1.9 * (side_of - 0.12) ** 2
        within = 1 / (1 + np.exp(np.clip((side_of - 0.34) * 60, -30, 30)))
        values += 20 * np.exp(-(((y - line) / 0.011) ** 2)) * within * (side_of > 0.03)
    collar = np.abs(y - (about(0.16) - 0.12 * side_of)) < about(0.012)
    values += 26 * cv2.GaussianBlur((collar & (side_of < 0.33) & (side_of > 0.04)).astype(float), (0, 0), side / 250)
    if is_again:
        centre = (middle + (0.19 if variant.number % 2 else -0.19), float(exposure.uniform(0.32, 0.55)))
        reach = float(exposure.uniform(0.016, 0.026))
        values += exposure.uniform(24, 38) * _soft(x, y, centre, (reach, reach), 0.25)
    shift = np.array([[1, 0, 0], [0, 1, 0]]) + [[0, 0, 1]] * exposure.normal(0, side / 200, (2, 1))
    moved = cv2.warpAffine(values, shift, (side, side), borderMode=cv2.BORDER_REPLICATE)
    grain = cv2.GaussianBlur(exposure.normal(0, 5, (side, side)), (0, 0), 0.8)
    image = Image.fromarray(_pixels(exposure.uniform(0.95, 1.05) * moved + grain))
    ImageDraw.Draw(image).text((0.9 * side, 0.05 * side), "L", font=font(0, side // 18), fill=(230, 230, 230))
    return np.asarray(image)


def star_field(variant: Variant) -> Pixels:
    """Return stars on a dark sky: the same camera and sky, other stars."""
    template, own = variant.template, variant.own
    side = (512, 800, 1200)[variant.set % 3]
    sky, width = template.uniform(6, 18), template.uniform(0.8, 1.2)
    count, tail = int(template.integers(200, 700)), (4.0, 1.6)[variant.set % 2]  # few bright ones, or some
    stars = np.zeros((side, side))
    places = own.integers(0, side, (count, 2))
    np.add.at(stars, (places[:, 0], places[:, 1]), 60 * own.pareto(tail, count) + 30)
    values = cv2.GaussianBlur(np.minimum(stars, 6000), (0, 0), width) * (8, 2.2)[variant.set % 2] + sky
    values += 3 * _cloud(template, 3, side, side) + own.normal(0, 2, (side, side))
    return _pixels(values)


_OUTLINES = {
    "bottle": (0.09, 0.09, 0.1, 0.3, 0.34, 0.34, 0.34, 0.33),
    "vase": (0.2, 0.12, 0.14, 0.28, 0.36, 0.32, 0.2, 0.22),
    "jar": (0.3, 0.3, 0.36, 0.37, 0.37, 0.37, 0.37, 0.35),
    "lamp": (0.1, 0.22, 0.36, 0.42, 0.06, 0.05, 0.05, 0.28),
    "goblet": (0.3, 0.34, 0.33, 0.26, 0.06, 0.05, 0.06, 0.26),
    "can": (0.25, 0.27, 0.27, 0.27, 0.27, 0.27, 0.27, 0.25),
}


def product(variant: Variant) -> Pixels:
    """Return a turned thing on white, at the same place in the same light: other outline, colours, bands and label.

    In every second set things are small and of one material.
    """
    template, own = variant.template, variant.own
    is_small = variant.set % 2 == 0
    side = (500, 800)[variant.set % 2]
    x, y = _grid(side, side)
    outline = np.array(list(_OUTLINES.values())[int(own.integers(len(_OUTLINES)))]) * own.uniform(0.65, 0.9, 8)
    top, bottom = (0.4, 0.78) if is_small else (0.14, 0.86)
    outline *= (bottom - top) / 0.72
    rows = np.clip((y[:, 0] - top) / (bottom - top), 0, 1)
    smooth = np.interp(
        rows, np.linspace(0, 1, 64), cv2.resize(outline[None], (64, 1), interpolation=cv2.INTER_LINEAR)[0]
    )
    half = cv2.GaussianBlur(smooth[:, None], (0, 0), side / 40)
    across = (x - 0.5) / half
    inside = (np.abs(across) < 1) & (y > top) & (y < bottom)
    colour, second = (
        template.uniform(90, 200, 3) + own.normal(0, 8, (2, 3)) if is_small else own.uniform(20, 235, (2, 3))
    )
    base = np.broadcast_to(colour, (side, side, 3)).copy()
    for _ in range(int(own.integers(0, 4))):
        start = own.uniform(top, bottom - 0.1)
        base[(y > start) & (y < start + own.uniform(0.01, 0.12))] = second
    image = Image.fromarray(_pixels(base))
    if own.random() < 0.7:
        draw, high = ImageDraw.Draw(image), own.uniform(0.5, 0.62) * side
        label = 0.06 if is_small else 0.12
        draw.rectangle(((0.5 - label) * side, high, (0.5 + label) * side, high + label * side), fill=(245, 240, 228))
        name = "".join(own.choice(list("AEIOUBDKLMNRST"), 5).tolist())
        draw.text(
            (0.5 * side, high + label / 2 * side),
            name,
            font=font(1, int(0.4 * label * side)),
            fill=(30, 30, 30),
            anchor="mm",
        )
    light = 0.35 + 0.75 * np.sqrt(np.clip(1 - (across + 0.25) ** 2, 0, 1))
    shine = 120 * np.exp(-(((across + 0.45) / 0.07) ** 2)) * own.uniform(0, 1)
    shadow = _soft(x, y, (0.52, bottom), (0.47 * (bottom - top), 0.035), 0.4)
    ground = 255 - 70 * shadow[..., None].repeat(3, axis=2)
    mask = cv2.GaussianBlur(inside.astype(float), (0, 0), 0.7)[..., None]
    return _pixels(ground * (1 - mask) + mask * (np.asarray(image) * light[..., None] + shine[..., None]))


def thermal(variant: Variant) -> Pixels:
    """Return warm spots in false colours, with the scale and the marks of one camera."""
    template, own = variant.template, variant.own
    height, width = ((480, 640), (240, 320))[variant.set % 2]
    x, y = _grid(height, width)
    values = 50 + 20 * (height / width - y) + 4 * _cloud(template, 4, height, width)
    for _ in range(int(own.integers(3, 8))):
        centre = (float(own.uniform(0.05, 0.85)), float(own.uniform(0.05, 0.7)))
        reach = own.uniform(0.03, 0.16, 2)
        values += own.uniform(30, 150) * _soft(x, y, centre, (float(reach[0]), float(reach[1])), 0.25)
    warm = _pixels(values + own.normal(0, 1.5, values.shape))
    colours = int(template.choice([cv2.COLORMAP_INFERNO, cv2.COLORMAP_JET, cv2.COLORMAP_HOT]))
    warm[10:-10, -24:-10] = np.linspace(255, 0, height - 20)[:, None, None]
    image = Image.fromarray(cv2.cvtColor(cv2.applyColorMap(warm, colours), cv2.COLOR_BGR2RGB))
    draw, middle = ImageDraw.Draw(image), (width // 2, height // 2)
    for dx, dy in ((12, 0), (0, 12)):
        draw.line((middle[0] - dx, middle[1] - dy, middle[0] + dx, middle[1] + dy), fill=(255, 255, 255))
    text = f"{warm[middle[1], middle[0], 0] / 5 + 5:.1f} °C"
    draw.text((8, 6), text, font=font(0, height // 20), fill=(255, 255, 255))
    return np.asarray(image)


def depth_map(variant: Variant) -> Pixels:
    """Return the depth of one room with other things in it; near is bright."""
    template, own = variant.template, variant.own
    height, width = ((480, 640), (360, 640))[variant.set % 2]
    x, y = _grid(height, width)
    horizon, wall = template.uniform(0.2, 0.3), template.uniform(5, 7)
    depth = np.minimum(wall, 0.6 / np.maximum(y - horizon, 1e-3))
    depth = np.minimum(depth, 0.9 / np.maximum(template.uniform(0.35, 0.45) - x, 1e-3))
    for _ in range(int(own.integers(4, 10))):
        away = float(own.uniform(1.4, 5))
        foot = horizon + 0.6 / away
        centre, wide, high = own.uniform(0.15, 1), own.uniform(0.1, 0.45) / away, own.uniform(0.15, 0.7) / away
        if own.random() < 0.5:
            is_thing = (np.abs(x - centre) < wide) & (y < foot) & (y > foot - high)
            front = away + 0.6 * (x - centre)
        else:
            square = 1 - ((x - centre) / wide) ** 2 - ((y - foot + wide) / wide) ** 2
            is_thing, front = square > 0, away - 0.5 * np.sqrt(np.maximum(square, 0))
        depth = np.where(is_thing, np.minimum(depth, front), depth)
    values = np.minimum(255, 250 * 1.1 / depth) + own.normal(0, 0.7, depth.shape)
    if variant.set % 2:
        return np.asarray(
            cv2.cvtColor(cv2.applyColorMap(_pixels(values), cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB), np.uint8
        )
    return _pixels(values)


def cells(variant: Variant) -> Pixels:
    """Return cells under a microscope: stained on a bright ground, or shining on a dark one."""
    template, own = variant.template, variant.own
    side = (512, 800)[variant.set % 2]
    is_dark = variant.set % 2 == 1
    ground, body, kernel = (
        ((8, 12, 10), (20, 110, 60), (60, 90, 220)) if is_dark else ((238, 222, 232), (222, 170, 200), (110, 70, 150))
    )
    pixels: Pixels = np.full((side, side, 3), ground, np.uint8)
    size = side * ((0.009, 0.027)[variant.set % 2]) * template.uniform(0.8, 1.3)
    for _ in range(int(0.06 * (side / size) ** 2)):
        x, y = own.integers(0, side, 2).tolist()
        axes = np.maximum(2, np.rint(size * own.uniform(0.7, 1.3, 2))).astype(int).tolist()
        turn = float(own.uniform(0, 180))
        cv2.ellipse(pixels, (x, y), axes, turn, 0, 360, body, -1, cv2.LINE_AA)
        inner = [max(2, int(axis * own.uniform(0.35, 0.55))) for axis in axes]
        cv2.ellipse(pixels, (x, y), inner, turn, 0, 360, kernel, -1, cv2.LINE_AA)
    values = cv2.GaussianBlur(pixels, (0, 0), side / 500).astype(np.float64)
    light = 1 - 0.12 * np.hypot(*(axis - 0.5 for axis in _grid(side, side)))
    return _pixels(values * light[..., None] + own.normal(0, 3, values.shape))


def fields(variant: Variant) -> Pixels:
    """Return parcels from above, or a slice of a head, by the set."""
    return _head(variant) if variant.set % 2 else _parcels(variant)


def _parcels(variant: Variant) -> Pixels:
    template, own = variant.template, variant.own
    side = 700
    large = int(1.5 * side)
    rectangles = [(0, 0, large, large)]
    for _ in range(int(template.integers(40, 70))):
        rectangles.sort(key=lambda each: (each[2] - each[0]) * (each[3] - each[1]))
        left, top, right, bottom = rectangles.pop()
        share = own.uniform(0.35, 0.65)
        if right - left > bottom - top:
            cut = int(left + share * (right - left))
            rectangles += [(left, top, cut, bottom), (cut, top, right, bottom)]
        else:
            cut = int(top + share * (bottom - top))
            rectangles += [(left, top, right, cut), (left, cut, right, bottom)]
    palette = np.array([(96, 122, 62), (134, 148, 84), (172, 158, 110), (120, 96, 70), (70, 98, 52), (190, 180, 140)])
    values = np.zeros((large, large, 3))
    rows, columns = np.mgrid[0:large, 0:large]
    for left, top, right, bottom in rectangles:
        colour = palette[int(own.integers(len(palette)))] + own.normal(0, 7, 3)
        angle, pitch = own.uniform(0, np.pi), own.uniform(4, 9)
        part = np.s_[top:bottom, left:right]
        furrows = np.sin((rows[part] * np.cos(angle) + columns[part] * np.sin(angle)) * 2 * np.pi / pitch)
        values[part] = colour + own.uniform(1, 8) * furrows[..., None]
        cv2.rectangle(values, (left, top), (right, bottom), (78, 92, 58), int(own.integers(1, 5)))
    turn = cv2.getRotationMatrix2D((large / 2, large / 2), float(template.uniform(-30, 30)), 1)
    turned = cv2.warpAffine(values, turn, (large, large))
    start = (large - side) // 2
    seen = turned[start : start + side, start : start + side]
    return _pixels(seen + 6 * _cloud(own, 12, side, side)[..., None] + own.normal(0, 3, (side, side, 1)))


def _head(variant: Variant) -> Pixels:
    template, own = variant.template, variant.own
    side = (256, 512)[variant.set // 2 % 2]
    x, y = _grid(side, side)

    def about(value: float) -> float:
        return float(value * own.normal(1, 0.035))

    wide, high = about(0.36), about(0.43)
    skin, skull, brain = (_soft(x, y, (0.5, 0.5), (wide * share, high * share), 0.02) for share in (1, 0.95, 0.87))
    values = 8 + 190 * skin - 165 * skull + 95 * brain
    folds = _cloud(own, 26, side, side) + 0.7 * _cloud(own, 44, side, side)
    values += brain * 18 * np.tanh(2 * folds)
    values += brain * 25 * _soft(x, y, (0.5, 0.5), (wide * 0.6, high * 0.62), 0.2)
    for sign in (-1, 1):
        centre = (0.5 + sign * about(0.055), about(0.46))
        values -= 90 * _soft(x, y, centre, (about(0.035), about(0.1)), 0.12)
    values -= 60 * np.exp(-(((x - 0.5) / 0.006) ** 2)) * brain * (np.abs(y - 0.5) > 0.14)
    values *= 1 + 0.06 * _cloud(template, 3, side, side)
    return _pixels(values + own.normal(0, 3, (side, side)))


def burst(variant: Variant, photo: Pixels) -> Pixels:
    """Return a frame of a burst: the photo of the set with noise, shifted by a few pixels, with one part moved."""
    template, own = variant.template, variant.own
    height, width = photo.shape[:2]
    across, down = template.uniform(0.15, 0.25, 2) * (width, height)
    left, top = (template.uniform(0.1, 0.4, 2) * (width, height)).astype(int).tolist()
    part = photo[top : top + int(down), left : left + int(across)]
    high, wide = part.shape[:2]
    mask = cv2.ellipse(
        np.zeros((high, wide)), (wide // 2, high // 2), (wide // 2 - 3, high // 2 - 3), 0, 0, 360, 1.0, -1
    )
    weight = np.asarray(cv2.GaussianBlur(mask, (0, 0), 2), np.float64)[..., None]
    values = photo.astype(np.float64)
    x = int(width * (0.1 + 0.6 * (variant.number % SET) / SET))
    y = int(height * own.uniform(0.5, 0.55))
    under = values[y : y + high, x : x + wide]
    under[:] = under * (1 - weight) + part * weight
    shift = np.array([[1, 0, own.uniform(-4, 4)], [0, 1, own.uniform(-4, 4)]])
    moved = cv2.warpAffine(values, shift, (width, height), borderMode=cv2.BORDER_REPLICATE)
    return _pixels(moved + own.normal(0, 4, moved.shape))


def frame(variant: Variant, _photo: Pixels) -> Pixels:
    """Return a frame of a rendered scene: a still street, with cars and persons that move."""
    template, own = variant.template, variant.own
    height, width = 450, 800
    _, y = _grid(height, width)
    sky = np.stack([120 + 160 * y, 160 + 130 * y, np.full_like(y, 230)], axis=2)
    image = Image.fromarray(_pixels(sky))
    draw = ImageDraw.Draw(image)
    left = -20
    while left < width:
        wide, high = int(template.integers(70, 160)), int(template.integers(120, 260))
        top = 300 - high
        draw.rectangle((left, top, left + wide, 300), fill=tuple(template.integers(90, 200, 3).tolist()))
        for row in range(top + 14, 290, 34):
            for column in range(left + 10, left + wide - 18, 28):
                draw.rectangle((column, row, column + 14, row + 20), fill=(70, 90, 110))
        left += wide
    draw.rectangle((0, 300, width, height), fill=(96, 96, 100))
    for x in range(0, width, 90):
        draw.rectangle((x, 378, x + 45, 384), fill=(230, 230, 220))
    for _ in range(int(own.integers(1, 4))):
        x, y0 = int(own.integers(-60, width)), int(own.choice([325, 395]))
        draw.rounded_rectangle((x + 22, y0 - 22, x + 88, y0 + 10), 10, fill=(60, 80, 95))
        draw.rounded_rectangle((x, y0, x + 120, y0 + 30), 8, fill=tuple(own.integers(30, 240, 3).tolist()))
        for wheel in (24, 92):
            draw.ellipse((x + wheel - 12, y0 + 18, x + wheel + 12, y0 + 42), fill=(20, 20, 20))
    for _ in range(int(own.integers(1, 5))):
        x = int(own.integers(0, width))
        draw.ellipse((x - 6, 262, x + 6, 274), fill=(205, 160, 130))
        draw.rounded_rectangle((x - 8, 274, x + 8, 306), 4, fill=tuple(own.integers(30, 220, 3).tolist()))
    return np.asarray(image)
