"""Printed and drawn pictures that share a template: pages, forms, screenshots, plots, maps, music, tables, codes."""

from itertools import pairwise

import cv2
import numpy as np
from PIL import Image, ImageDraw
from printed import MONO, Box, Pixels, Random, font, lines, scanned, write
from variants import Variant

SIZES = ((420, 540), (850, 1100), (1240, 1754), (1700, 2200))
_INK, _GREY, _PEN, _WHITE = (20, 20, 20), (110, 110, 110), (20, 20, 120), (255, 255, 255)
_COLOURS = ((31, 119, 180), (214, 92, 20), (44, 140, 44), (190, 40, 40), (120, 80, 170))
_NAMES = ("Keller", "Okafor", "Lindqvist", "Marchetti", "Tanaka", "Novak", "Duarte", "Haddad", "Byrne", "Sokolov")
_FIRST = ("Anna", "Chidi", "Elsa", "Paolo", "Yuki", "Petra", "Rui", "Leila", "Sean", "Vera")
_STREETS = ("Mill Road", "Station Street", "Park Lane", "Church Way", "Harbour Row", "King Street", "Field Path")
_GOODS = ("Coffee", "Bread", "Apples", "Milk", "Cheese", "Rice", "Soap", "Tea", "Honey", "Pasta", "Olives", "Paper")


def _sheet(size: tuple[int, int], ground: tuple[int, ...] = _WHITE) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", size, ground)
    return image, ImageDraw.Draw(image)


def _one(random: Random, values: tuple[str, ...]) -> str:
    return values[int(random.integers(len(values)))]


def _digits(random: Random, count: int) -> str:
    return "".join(str(each) for each in random.integers(0, 10, count))


def _date(random: Random) -> str:
    return f"20{random.integers(10, 30):02d}-{random.integers(1, 13):02d}-{random.integers(1, 29):02d}"


def _price(random: Random, most: float = 99) -> str:
    return f"{random.uniform(1, most):.2f}"


def _right(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, ink: tuple[int, ...]) -> None:
    draw.text(at, text, font=font(MONO, size), fill=ink, anchor="ra")


def page(variant: Variant) -> Pixels:
    """Return a page of a book: font, margins, head and grid of lines of the template, other words.

    In every second set all lines are full; in the others some are short, where a paragraph ends.
    """
    template, own = variant.template, variant.own
    width, height = SIZES[variant.set % len(SIZES)]
    image, draw = _sheet((width, height), (int(template.integers(246, 256)),) * 3)
    size, margin = max(9, int(width * template.uniform(0.018, 0.024))), int(width * template.uniform(0.08, 0.11))
    face, columns = int(template.integers(4)), int(template.integers(1, 3))
    head = lines(template, 1, 30, is_plain=True)[0]
    draw.text((margin, margin), head, font=font(face, int(1.4 * size)), fill=_INK)
    wide = (width - 2 * margin) // columns
    for column in range(columns):
        left = margin + column * wide
        box = (left, margin + 3 * size, left + wide - size, height - margin - size)
        _paragraphs(draw, own, box, size, face, (0, 0.08)[variant.set % 2])
    draw.text((width / 2, height - margin / 2), str(variant.number + 1), font=font(face, size), fill=_INK, anchor="mm")
    return np.asarray(image)


def _paragraphs(draw: ImageDraw.ImageDraw, own: Random, box: Box, size: int, face: int, ends_at: float) -> None:
    """Write lines that fill the width of a box, but for a share that end a paragraph."""
    left, top, right, bottom = box
    rows = int((bottom - top) / (1.4 * size))
    for row, line in enumerate(lines(own, rows, int((right - left) / (0.4 * size)), is_plain=True)):
        words, ends = list[str](), [0.0]
        for word in line.split():
            end = ends[-1] + font(face, size).getlength(word)
            if left + end + 0.3 * size * len(words) > right:
                break
            words.append(word)
            ends.append(end)
        space = (right - left - ends[-1]) / max(1, len(words) - 1)
        if own.random() < ends_at:
            words, space = words[: 1 + int(own.integers(len(words)))] if words else words, 0.3 * size
        for number, word in enumerate(words):
            at = (left + ends[number] + number * space, top + int(1.4 * size * row))
            draw.text(at, word, font=font(face, size), fill=_INK)


def form(variant: Variant) -> Pixels:
    """Return a filled form of a printed template; some differ from most others in one or two fields only."""
    template, own = variant.template, variant.own
    width, height = SIZES[1 + variant.set % 2]
    image, draw = _sheet((width, height))
    size, margin = int(width * 0.018), int(width * 0.07)
    write(draw, template, (margin, margin, width - margin, margin + 2 * size), 2 * size, _INK, 0)
    boxes: list[Box] = []
    top = margin + 4 * size
    while top < height - margin - 6 * size:
        count = int(template.integers(1, 4))
        wide = (width - 2 * margin) // count
        boxes += [(margin + wide * each, top, margin + wide * (each + 1), top + 3 * size) for each in range(count)]
        top += int(3.4 * size)
    write(draw, template, (margin, top + size, width - margin, height - margin), int(0.8 * size), _GREY, 1)
    usual = [_value(template) for _ in boxes]
    changed = int(own.choice([1, 2, 5, len(boxes)]))
    for place in own.choice(len(boxes), changed, replace=False):
        usual[place] = _value(own)
    for (left, high, right, low), value in zip(boxes, usual, strict=True):
        draw.rectangle((left, high, right, low), outline=_GREY, width=max(1, size // 10))
        label = lines(template, 1, 14, is_plain=True)[0]
        draw.text((left + size // 2, high + 2), label, font=font(0, int(0.7 * size)), fill=_GREY)
        draw.text((left + size, high + 1.3 * size), value, font=font(1, size), fill=_PEN)
    return np.asarray(image)


def _value(random: Random) -> str:
    match int(random.integers(4)):
        case 0:
            return f"{_one(random, _FIRST)} {_one(random, _NAMES)} {random.integers(100):02d}"
        case 1:
            return _date(random)
        case 2:
            return f"{random.integers(1, 200)} {_one(random, _STREETS)}"
    return _digits(random, 6)


def screenshot(variant: Variant) -> Pixels:
    """Return a window of one program: the same bars and side list, other content."""
    template, own = variant.template, variant.own
    width, height = ((1280, 800), (1600, 900), (390, 844), (1024, 768))[variant.set % 4]
    is_dark = variant.set % 2 == 1
    ground, ink, bar = (
        ((30, 32, 36), (220, 220, 220), (48, 52, 60)) if is_dark else (_WHITE, (30, 30, 30), (225, 228, 235))
    )
    image, draw = _sheet((width, height), ground)
    draw.rectangle((0, 0, width, 48), fill=bar)
    write(draw, template, (16, 14, width // 2, 32), 16, ink, 0)
    accent = tuple(template.integers(40, 220, 3).tolist())
    draw.rounded_rectangle((width - 110, 10, width - 16, 38), 6, fill=accent)
    draw.text((width - 90, 16), "Save as", font=font(0, 14), fill=_WHITE)
    left = width // 5 if width > 800 else 0
    chosen = int(own.integers(10))
    for row in range(10 if left else 0):
        if row == chosen:
            draw.rectangle((0, 64 + 34 * row, left - 1, 96 + 34 * row), fill=accent)
        write(draw, template, (14, 70 + 34 * row, left - 20, 86 + 34 * row), 14, ink, 0)
    draw.line((left, 48, left, height), fill=_GREY)
    match variant.set % 3:
        case 0:
            write(draw, own, (left + 24, 70, width - 30, height - 20), 15, ink, 0)
        case 1:
            for row, top in enumerate(range(70, height - 40, 28)):
                name = f"{_one(own, _GOODS).lower()}_{_digits(own, 4)}.txt"
                draw.text((left + 24, top), name, font=font(0, 15), fill=ink)
                draw.text((left + 0.45 * (width - left), top), _date(own), font=font(0, 15), fill=ink)
                _right(draw, (width - 40, top), f"{own.integers(1, 9999)} KB", 15, ink)
                draw.line((left + 20, top + 22, width - 20, top + 22), fill=bar if row % 2 else _GREY)
        case _:
            top = 70
            while top < height - 80:
                is_mine = own.random() < 0.5
                wide, rows = int((width - left) * own.uniform(0.3, 0.6)), int(own.integers(1, 4))
                start = width - wide - 20 if is_mine else left + 20
                draw.rounded_rectangle(
                    (start, top, start + wide, top + 22 * rows + 14), 10, fill=accent if is_mine else bar
                )
                write(draw, own, (start + 12, top + 7, start + wide - 8, top + 7 + 21 * rows), 15, ink, 0)
                top += 22 * rows + 28
    return np.asarray(image)


def scan(variant: Variant) -> Pixels:
    """Return a page in grey: tilted by less than 1°, noisy, in uneven light."""
    pixels = page(variant)
    own = variant.own
    grey = scanned(pixels, own, tilt=float(own.uniform(-0.9, 0.9)), noise=own.uniform(1.5, 4))
    height, width = grey.shape[:2]
    coarse = own.uniform(0.86, 1, (3, 3)).astype(np.float32)
    light = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)[..., None]
    return np.asarray(np.clip(grey * np.minimum(light, 1), 0, 255), np.uint8)


def _axes(
    template: Random, size: tuple[int, int], *, has_numbers: bool
) -> tuple[Image.Image, ImageDraw.ImageDraw, Box]:
    """Return a sheet with axes, ticks and titles, and the box of the plot."""
    image, draw = _sheet(size)
    width, height = size
    left, top, right, bottom = box = (70, 46, width - 24, height - 56)
    draw.rectangle(box, outline=_INK)
    for share in np.linspace(0, 1, 6):
        y, x = bottom + share * (top - bottom), left + share * (right - left)
        draw.line((left, y, right, y), fill=(225, 225, 225))
        _right(draw, (left - 8, y - 7), f"{100 * share:.0f}", 13, _INK)
        if has_numbers:
            draw.text((x, bottom + 8), f"{50 * share:.0f}", font=font(0, 13), fill=_INK, anchor="ma")
    draw.rectangle(box, outline=_INK)
    draw.text((width / 2, 24), lines(template, 1, 32, is_plain=True)[0], font=font(0, 18), fill=_INK, anchor="mm")
    draw.text(
        (width / 2, height - 16), lines(template, 1, 14, is_plain=True)[0], font=font(0, 14), fill=_INK, anchor="mm"
    )
    return image, draw, box


def line_plot(variant: Variant) -> Pixels:
    """Return lines within the same axes; the lines of a set follow one trend, every second set closely."""
    template, own = variant.template, variant.own
    image, draw, (left, top, right, bottom) = _axes(
        template, ((640, 480), (1000, 600))[variant.set % 2], has_numbers=True
    )
    count = int(template.integers(1, 4))
    spread = 0.12 if variant.set % 2 else 0.03
    x = np.linspace(left, right, 120)
    for number in range(count):
        trend = 0.5 + 0.25 * np.sin(template.uniform(0, 6) + np.linspace(0, template.uniform(2, 8), 120))
        walk = np.cumsum(own.normal(0, spread / 5, 120)) + own.normal(0, spread / 4, 120)
        y = bottom + np.clip(trend + walk, 0.02, 0.98) * (top - bottom)
        draw.line(list(zip(x.tolist(), y.tolist(), strict=True)), fill=_COLOURS[number], width=2)
        at = (right - 130, top + 10 + 18 * number)
        draw.line((at[0], at[1] + 7, at[0] + 24, at[1] + 7), fill=_COLOURS[number], width=2)
        draw.text((at[0] + 32, at[1]), _one(template, _NAMES), font=font(0, 13), fill=_INK)
    return np.asarray(image)


def bar_chart(variant: Variant) -> Pixels:
    """Return bars of the same categories within the same axes."""
    template, own = variant.template, variant.own
    image, draw, (left, top, right, bottom) = _axes(
        template, ((640, 480), (1000, 600))[variant.set % 2], has_numbers=False
    )
    count, series = int(template.integers(5, 12)), int(template.integers(1, 3))
    wide = (right - left) / count
    for number in range(count):
        for each in range(series):
            start = left + wide * (number + 0.15 + 0.7 * each / series)
            high = bottom + own.uniform(0.08, 0.95) * (top - bottom)
            draw.rectangle((start, high, start + 0.7 * wide / series - 1, bottom), fill=_COLOURS[each])
        name = _GOODS[number % len(_GOODS)]
        draw.text((left + wide * (number + 0.5), bottom + 8), name, font=font(0, 11), fill=_INK, anchor="ma")
    return np.asarray(image)


def street_map(variant: Variant) -> Pixels:
    """Return a part of a town: streets on about the same grid, in the same colours, with other blocks and names."""
    template, own = variant.template, variant.own
    side = (600, 900)[variant.set % 2]
    land, street, park, water = ((242, 239, 233), _WHITE, (200, 230, 190), (170, 211, 223))
    image, draw = _sheet((side, side), land)
    count = int(template.integers(7, 11))
    step = side / count
    jitter = 0.3 * step
    xs, ys = (np.arange(count + 1) * step + own.uniform(-jitter, jitter, count + 1) for _ in range(2))
    for left, right in pairwise(xs):
        for top, bottom in pairwise(ys):
            if own.random() < 0.1:
                draw.rectangle((left, top, right, bottom), fill=park)
                continue
            for _ in range(int(own.integers(2, 9))):
                x, y = left + own.uniform(0.1, 0.75) * (right - left), top + own.uniform(0.1, 0.75) * (bottom - top)
                draw.rectangle((x, y, x + own.uniform(5, 14), y + own.uniform(5, 14)), fill=(217, 208, 201))
    river = np.clip(own.uniform(0.1, 0.9) * side + np.cumsum(own.normal(0, 26, 14)), 0, side)
    draw.line([(side * at / 13, float(y)) for at, y in enumerate(river)], fill=water, width=side // 30, joint="curve")
    size = side // 50
    for is_row, places in ((True, ys), (False, xs)):
        for place in places.tolist():
            wide = int(own.choice([8, 8, 8, 14])) * side // 900 + 2
            start, end = (own.uniform(0, 0.4), own.uniform(0.6, 1)) if own.random() < 0.3 else (0, 1)
            ends = ((start * side, place), (end * side, place))
            points = ends if is_row else tuple((y, x) for x, y in ends)
            draw.line(points, fill=(190, 190, 190), width=wide + 2)
            draw.line(points, fill=(247, 220, 120) if wide > 12 else street, width=wide)
            if is_row:
                at = (own.uniform(0.1, 0.7) * side, place)
                draw.text(at, _one(own, _STREETS), font=font(0, size), fill=(90, 90, 90), anchor="lm")
    return np.asarray(image)


def sheet_music(variant: Variant) -> Pixels:
    """Return a page of notes on the same staves."""
    template, own = variant.template, variant.own
    width, height = ((850, 1100), (1240, 1754))[variant.set % 2]
    image, draw = _sheet((width, height))
    gap = max(8, int(width * 0.0105))
    margin = int(width * 0.08)
    draw.text(
        (width / 2, margin), lines(template, 1, 22, is_plain=True)[0], font=font(1, 3 * gap), fill=_INK, anchor="mm"
    )
    step = 11 * gap
    for base in range(margin + 7 * gap, height - margin - 4 * gap, step):
        for line in range(5):
            draw.line((margin, base + line * gap, width - margin, base + line * gap), fill=_INK)
        for share in np.linspace(0, 1, 5):
            x = margin + share * (width - 2 * margin)
            draw.line((x, base, x, base + 4 * gap), fill=_INK, width=1 + int(share in {0, 1}))
        draw.arc((margin + gap, base - gap, margin + 3 * gap, base + 3 * gap), 90, 400, fill=_INK, width=2)
        draw.line((margin + 2 * gap, base - 2 * gap, margin + 2 * gap, base + 5.5 * gap), fill=_INK, width=2)
        _notes(draw, own, (margin + 5 * gap, base, width - margin - gap, base + 4 * gap), gap)
    return np.asarray(image)


def _notes(draw: ImageDraw.ImageDraw, own: Random, box: Box, gap: int) -> None:
    left, top, right, _ = box
    x, level, last = float(left), 4.0, None
    while x < right - gap:
        level = float(np.clip(level + own.integers(-3, 4), -1, 9))
        y = top + level * gap / 2
        is_half = own.random() < 0.2
        head = (x - 0.65 * gap, y - 0.45 * gap, x + 0.65 * gap, y + 0.45 * gap)
        draw.ellipse(head, outline=_INK, width=2, fill=None if is_half else _INK)
        is_low = level > 4
        end = (x + 0.6 * gap, y - 3.3 * gap) if is_low else (x - 0.6 * gap, y + 3.3 * gap)
        draw.line((end[0], y, *end), fill=_INK, width=2)
        if last and last[2] == is_low and not is_half and own.random() < 0.4:
            draw.line((*last[:2], *end), fill=_INK, width=gap // 2)
            last = None
        else:
            last = None if is_half else (*end, is_low)
        x += gap * own.choice([2.2, 2.8, 4.4])


def spreadsheet(variant: Variant) -> Pixels:
    """Return a table of one layout: the same heads and names of rows, other numbers."""
    template, own = variant.template, variant.own
    width, height = ((1000, 700), (1400, 900))[variant.set % 2]
    image, draw = _sheet((width, height))
    row_height, columns = int(template.integers(20, 27)), int(template.integers(5, 9))
    wide = width // (columns + 1)
    size = row_height - 9
    for number, top in enumerate(range(0, height - row_height, row_height)):
        is_head = number == 0
        if is_head or number % 2 == 0:
            draw.rectangle((0, top, width, top + row_height), fill=(205, 220, 240) if is_head else (245, 247, 250))
        draw.text((6, top + 3), _one(template, _GOODS), font=font(0, size), fill=_INK)
        for column in range(1, columns + 1):
            text = _one(template, _NAMES) if is_head else _price(own, 9999)
            _right(draw, (wide * (column + 1) - 8, top + 3), text, size, _INK)
        draw.line((0, top + row_height, width, top + row_height), fill=(200, 200, 200))
    for column in range(1, columns + 1):
        draw.line((wide * column, 0, wide * column, height), fill=(200, 200, 200))
    return np.asarray(image)


def cad_drawing(variant: Variant) -> Pixels:
    """Return a drawing of a part in the same frame, with a title block of the same firm."""
    template, own = variant.template, variant.own
    width, height = ((1000, 700), (1600, 1130))[variant.set % 2]
    image, draw = _sheet((width, height))
    unit = width // 100
    draw.rectangle((unit, unit, width - unit, height - unit), outline=_INK)
    draw.rectangle((2 * unit, 2 * unit, width - 2 * unit, height - 2 * unit), outline=_INK, width=2)
    left, top = width - 36 * unit, height - 14 * unit
    draw.rectangle((left, top, width - 2 * unit, height - 2 * unit), fill=_WHITE, outline=_INK, width=2)
    texts = (
        lines(template, 1, 20, is_plain=True)[0],
        _one(own, _GOODS) + " holder",
        f"No. {_digits(own, 6)}",
        _date(own),
    )
    for row, text in enumerate(texts):
        y = top + 3 * unit * row
        draw.line((left, y, width - 2 * unit, y), fill=_INK)
        draw.text((left + unit, y + unit // 2), text, font=font(0, 2 * unit), fill=_INK)
    for centre in ((0.27 * width, 0.38 * height), (0.7 * width, 0.38 * height)):
        reach = own.uniform(0.1, 0.19, 2) * (width, 1.3 * height)
        box = (centre[0] - reach[0], centre[1] - reach[1], centre[0] + reach[0], centre[1] + reach[1])
        draw.rounded_rectangle(box, int(own.integers(0, 6)) * unit, outline=_INK, width=3)
        for _ in range(int(own.integers(1, 7))):
            x, y = centre + own.uniform(-0.7, 0.7, 2) * reach
            radius = own.uniform(0.08, 0.25) * min(reach)
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=_INK, width=2)
            draw.line((x - 1.4 * radius, y, x + 1.4 * radius, y), fill=_GREY)
            draw.line((x, y - 1.4 * radius, x, y + 1.4 * radius), fill=_GREY)
        y = box[3] + 3 * unit
        draw.line((box[0], y, box[2], y), fill=_INK)
        for x in (box[0], box[2]):
            draw.line((x, box[3] + unit, x, y + unit), fill=_INK)
        draw.text((centre[0], y), f"{2 * reach[0] / unit:.1f}", font=font(0, 2 * unit), fill=_INK, anchor="md")
    return np.asarray(image)


def code(variant: Variant) -> Pixels:
    """Return a QR code of one version, or an EAN-13 bar code."""
    if variant.set % 2:
        return _bars(_digits(variant.own, 12))
    parameters = cv2.QRCodeEncoder_Params()  # type: ignore[attr-defined]
    parameters.version = (2, 5)[variant.set // 2 % 2]
    address = f"https://example.org/{_digits(variant.own, 10)}"
    cells = cv2.QRCodeEncoder.create(parameters).encode(address)
    large = np.pad(np.asarray(cells, np.uint8), 4, constant_values=255).repeat(8, axis=0).repeat(8, axis=1)
    return large[..., None].repeat(3, axis=2)


def _bars(digits: str) -> Pixels:
    """Return an EAN-13 bar code of twelve digits (ISO/IEC 15420)."""
    lefts = [f"{value:07b}" for value in (13, 25, 19, 61, 35, 49, 47, 59, 55, 11)]
    parities = ("LLLLLL", "LLGLGG", "LLGGLG", "LLGGGL", "LGLLGG", "LGGLLG", "LGGGLL", "LGLGLG", "LGLGGL", "LGGLGL")
    values = [int(each) for each in digits]
    values.append(-sum(value * (3 if place % 2 else 1) for place, value in enumerate(values)) % 10)
    rights = [each.translate(str.maketrans("01", "10")) for each in lefts]
    of_left = [
        lefts[value] if parity == "L" else rights[value][::-1]
        for value, parity in zip(values[1:7], parities[values[0]], strict=True)
    ]
    bits = "101" + "".join(of_left) + "01010" + "".join(rights[value] for value in values[7:]) + "101"
    image, draw = _sheet((4 * (len(bits) + 22), 280))
    for place, bit in enumerate(bits):
        if bit == "1":
            draw.rectangle((4 * (11 + place), 20, 4 * (12 + place) - 1, 230), fill=(0, 0, 0))
    text = " ".join("".join(map(str, values[start:end])) for start, end in ((0, 1), (1, 7), (7, 13)))
    draw.text((image.width / 2, 236), text, font=font(MONO, 32), fill=(0, 0, 0), anchor="ma")
    return np.asarray(image)


def slide(variant: Variant) -> Pixels:
    """Return a slide of one presentation: the same bar and footer, another title and points, sometimes a chart."""
    template, own = variant.template, variant.own
    width, height = ((1280, 720), (960, 720))[variant.set % 2]
    image, draw = _sheet((width, height))
    colour = tuple(template.integers(20, 150, 3).tolist())
    draw.rectangle((0, 0, width, 90), fill=colour)
    draw.text((40, 24), lines(own, 1, int(own.integers(14, 30)), is_plain=True)[0], font=font(0, 36), fill=_WHITE)
    draw.rectangle((0, height - 40, width, height), fill=(235, 235, 235))
    draw.text((40, height - 30), lines(template, 1, 30, is_plain=True)[0], font=font(0, 16), fill=_GREY)
    _right(draw, (width - 40, height - 30), str(variant.number % 10 + 1), 16, _GREY)
    draw.ellipse((width - 80, 20, width - 30, 70), fill=_WHITE)
    has_chart = own.random() < 0.3
    end = width // 2 if has_chart else width - 60
    for row in range(int(own.integers(3, 7))):
        top = 130 + 74 * row
        draw.ellipse((50, top + 8, 62, top + 20), fill=colour)
        write(draw, own, (80, top, int(80 + (end - 80) * own.uniform(0.6, 1)), top + 34), 24, _INK, 0)
    if has_chart:
        for bar in range(5):
            x, high = width // 2 + 60 + 90 * bar * width // 1280, own.uniform(140, height - 120)
            draw.rectangle((x, high, x + 55, height - 90), fill=colour)
    return np.asarray(image)


def receipt(variant: Variant) -> Pixels:
    """Return a receipt of one shop; half of them differ from others by the date, the number and one article only."""
    template, own = variant.template, variant.own
    width = (420, 620)[variant.set % 2]
    size = width // 26
    count = int(template.integers(9, 18))
    image, draw = _sheet((width, int(size * (1.5 * count + 16))), (250, 249, 245))
    middle = width / 2
    draw.text((middle, size), f"{_one(template, _NAMES)} & Co", font=font(0, 2 * size), fill=_INK, anchor="ma")
    address = f"{template.integers(1, 99)} {_one(template, _STREETS)}"
    draw.text((middle, 4 * size), address, font=font(MONO, size), fill=_INK, anchor="ma")
    draw.text(
        (size, 6 * size),
        f"{_date(own)} {own.integers(8, 20):02d}:{own.integers(60):02d}",
        font=font(MONO, size),
        fill=_INK,
    )
    _right(draw, (width - size, 6 * size), f"No. {_digits(own, 5)}", size, _INK)
    draw.line((size, 7.8 * size, width - size, 7.8 * size), fill=_GREY)
    items = [(_one(template, _GOODS), float(_price(template))) for _ in range(count)]
    changed = 1 if own.random() < 0.5 else count
    for place in own.choice(count, changed, replace=False):
        items[place] = (_one(own, _GOODS), float(_price(own)))
    for row, (name, price) in enumerate(items):
        top = (8.4 + 1.5 * row) * size
        draw.text((size, top), name, font=font(MONO, size), fill=_INK)
        _right(draw, (width - size, top), f"{price:.2f}", size, _INK)
    end = (9 + 1.5 * count) * size
    draw.line((size, end, width - size, end), fill=_GREY)
    draw.text((size, end + size / 2), "TOTAL", font=font(0, int(1.4 * size)), fill=_INK)
    _right(draw, (width - size, end + size / 2), f"{sum(price for _, price in items):.2f}", int(1.4 * size), _INK)
    draw.text((middle, end + 4 * size), "Thank you for your visit", font=font(MONO, size), fill=_INK, anchor="ma")
    return np.asarray(image)
