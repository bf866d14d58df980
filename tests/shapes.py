"""Images of coloured shapes with captions: what the small checkpoint in ``tests/checkpoints`` was trained on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]

COLOURS = {
    "red": (214, 36, 36),
    "green": (40, 160, 60),
    "blue": (38, 70, 210),
    "yellow": (240, 215, 40),
    "orange": (245, 135, 30),
    "purple": (130, 50, 170),
    "pink": (245, 150, 195),
    "brown": (120, 72, 38),
}
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
BACKGROUNDS = {"white": (245, 245, 245), "black": (16, 16, 16), "grey": (128, 128, 128)}
SIZES = {"small": (0.14, 0.18), "large": (0.27, 0.34)}

_FINE = 4  # fractional bits of OpenCV's coordinates


@dataclass(frozen=True)
class Scene:
    """What an image shows, or what a caption says of it; None for what the caption leaves open."""

    colour: str | None
    shape: str | None
    background: str | None = None
    size: str | None = None

    def fits(self, shown: "Scene") -> bool:
        """Return whether all that this says is true of what is *shown*."""
        pairs = zip(vars(self).values(), vars(shown).values(), strict=True)
        return all(said in (None, seen) for said, seen in pairs)

    @property
    def caption(self) -> str:
        """A sentence that says this: ``a large red circle on a white background``."""
        words = " ".join(word for word in (self.size, self.colour, self.shape or "shape") if word)
        article = "an" if words[0] in "aeiou" else "a"
        where = f" on a {self.background} background" if self.background else ""
        return f"{article} {words}{where}"


PAIRS = tuple(product(COLOURS, SHAPES))
HELD_OUT = tuple((colour, SHAPES[(2 + 5 * place) % len(SHAPES)]) for place, colour in enumerate(COLOURS))
"""Pairs of colour and shape that no image and no caption of the training has: one of each colour."""
SEEN = tuple(pair for pair in PAIRS if pair not in HELD_OUT)


def gallery(pairs: tuple[tuple[str, str], ...] = PAIRS) -> Iterator[Scene]:
    """Yield a scene for each pair on each background, of both sizes in turn."""
    sizes = tuple(SIZES)
    for number, ((colour, shape), background) in enumerate(product(pairs, BACKGROUNDS)):
        yield Scene(colour, shape, background, sizes[number % 2])


def queries(pairs: tuple[tuple[str, str], ...]) -> list[Scene]:
    """Return what is asked about some pairs: each alone, and each on each background."""
    alone = [Scene(colour, shape) for colour, shape in pairs]
    return alone + [Scene(colour, shape, background) for (colour, shape), background in product(pairs, BACKGROUNDS)]


def draw(scene: Scene, rng: np.random.Generator, *, width: int = 128, height: int = 128) -> Pixels:
    """Return an image of a scene: uint8, shape (height, width, 3), RGB.

    Place, exact size and angle are random, colours vary a little, and there is noise. The shape lies in the square in
    the middle, which is all that a model sees of a wide image.
    """
    assert scene.colour
    assert scene.shape
    assert scene.background
    assert scene.size
    side = min(width, height)
    radius = side * rng.uniform(*SIZES[scene.size])
    reach = side / 2 - radius * 1.1
    centre = np.array([width, height]) / 2 + rng.uniform(-reach, reach, 2)
    canvas = np.full((height, width, 3), _varied(BACKGROUNDS[scene.background], rng), np.uint8)
    _paint(canvas, scene.shape, centre, radius, rng.uniform(-0.2, 0.2), _varied(COLOURS[scene.colour], rng))
    noise = cv2.resize(rng.normal(0, 8, (height // 2, width // 2, 1)).astype(np.float32), (width, height))
    return np.asarray(np.clip(canvas + noise[..., None], 0, 255), np.uint8)


def _varied(colour: tuple[int, int, int], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(value) for value in np.clip(np.array(colour) + rng.integers(-12, 13, 3), 0, 255))


def _paint(
    canvas: Pixels, shape: str, centre: npt.NDArray[np.float64], radius: float, turn: float, colour: tuple[int, ...]
) -> None:
    at, length = (centre * 2**_FINE).round().astype(int), round(radius * 2**_FINE)
    if shape == "circle":
        cv2.circle(canvas, at.tolist(), length, colour, -1, cv2.LINE_AA, _FINE)
    elif shape == "ring":
        cv2.circle(canvas, at.tolist(), round(length * 0.8), colour, max(2, round(radius * 0.4)), cv2.LINE_AA, _FINE)
    else:
        corners = _OUTLINES[shape] @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        points = ((centre + radius * corners) * 2**_FINE).round().astype(np.int32)
        cv2.fillPoly(canvas, [points], colour, cv2.LINE_AA, _FINE)


def _around(*radii: float, start: float = -0.25) -> npt.NDArray[np.float64]:
    """Return corners at equal angles, shape (N, 2), the first one at *start* of a turn."""
    angles = 2 * np.pi * (start + np.arange(len(radii)) / len(radii))
    return np.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.array(radii)[:, None])


_ARM = 0.33
_OUTLINES = {
    "square": _around(1.1, 1.1, 1.1, 1.1, start=0.125),
    "triangle": _around(1.15, 1.15, 1.15),
    "star": _around(*[1.15, 0.45] * 5),
    "cross": np.array(
        [(x, y) for x, y in (
            (-_ARM, -1), (_ARM, -1), (_ARM, -_ARM), (1, -_ARM), (1, _ARM), (_ARM, _ARM),
            (_ARM, 1), (-_ARM, 1), (-_ARM, _ARM), (-1, _ARM), (-1, -_ARM), (-_ARM, -_ARM),
        )]
    ),
}  # fmt: skip
"""Corners of shapes of radius 1, shape (N, 2): x to the right, y down."""
