"""Kinds of content, and that pages, drawings, masks and things on white have no issue of photos."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from framedex.analysis.quality import measure
from framedex.issue_types import Content, content_of, find_valued_type
from framedex.issue_types.base import ImageSample
from tests.image_files import Pixels, photo

BLACK = (0, 0, 0)


def page(seed: int, *, size: float = 0.5) -> Pixels:
    """Return a page of lines of text in grey on paper."""
    random = np.random.default_rng(seed)
    pixels = np.full((780, 560, 3), 246, np.uint8)
    for top in range(50, 740, 24):
        words = "".join(random.choice(list("abcdefghiklmnoprstuvw   "), 46))
        cv2.putText(pixels, words, (40, top), cv2.FONT_HERSHEY_SIMPLEX, size, (80, 80, 80), 1, cv2.LINE_AA)
    return pixels


def drawing(seed: int) -> Pixels:
    """Return lines and circles in black on white."""
    random = np.random.default_rng(seed)
    pixels = np.full((500, 700, 3), 255, np.uint8)
    for _ in range(50):
        (x, y), (right, bottom) = random.integers(20, 480, (2, 2)).tolist()
        cv2.rectangle(pixels, (x, y), (right, bottom), BLACK, 2)
        cv2.circle(pixels, (y, x), 40, BLACK, 2)
    return pixels


def mask(seed: int, *, scale: int = 1) -> Pixels:
    """Return regions of three classes; their values are the numbers of the classes, times a scale."""
    random = np.random.default_rng(seed)
    pixels = np.zeros((400, 500, 3), np.uint8)
    for number in (1, 2, 3, 1):
        x, y, reach = random.integers(60, 340, 3).tolist()
        cv2.circle(pixels, (x, y), reach // 2, (number * scale,) * 3, -1)
    return pixels


def window(seed: int) -> Pixels:
    """Return texts and images on a dark ground."""
    pixels = 255 - page(seed) // 2 - 100
    pixels[300:500, 60:320] = photo(seed, width=260, height=200)
    return np.asarray(pixels, np.uint8)


def thing_on_white(seed: int) -> Pixels:
    """Return the round middle of a bright photo on white."""
    import skimage.data

    whole: Any = skimage.data
    pixels = cv2.resize(whole.astronaut() // 3 * 2 + 85, (500, 400), interpolation=cv2.INTER_AREA)
    inside = np.zeros((400, 500), np.uint8)
    cv2.ellipse(inside, (250, 200), (120, 90), 20 * seed, 0, 360, 1, -1)
    return np.where(inside[..., None] > 0, pixels, 255).astype(np.uint8)


def issues_of(pixels: Pixels) -> set[str]:
    """Return which of four issues an image has."""
    values = measure(pixels, width=pixels.shape[1], height=pixels.shape[0])
    found = set()
    for issue in map(find_valued_type, ("blur", "bright", "dark", "low_information")):
        value = values[str(issue.column)]
        assert value is not None
        assert issue.threshold is not None
        if (value > issue.threshold) if issue.above else (value < issue.threshold):
            found.add(issue.name)
    return found


ORDINARY: dict[str, tuple[Callable[[int], Pixels], Content]] = {
    "photo": (lambda seed: photo(seed, width=400, height=300), Content.PHOTO),
    "page": (page, Content.PAGE),
    "drawing": (drawing, Content.DRAWING),
    "mask": (lambda seed: mask(seed, scale=60), Content.MASK),
    "numbers of classes": (mask, Content.MASK),
    "window": (window, Content.SCREENSHOT),
    "thing on white": (thing_on_white, Content.PHOTO),
    "one colour": (lambda _seed: np.full((300, 400, 3), 130, np.uint8), Content.OTHER),
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_content__is_recognised(kind: str) -> None:
    """Each kind is recognised, and has no issue but that of an image of one colour, which is empty."""
    make, content = ORDINARY[kind]
    for seed in range(3):
        pixels = make(seed)
        height, width = pixels.shape[:2]
        assert content_of(ImageSample(pixels, pixels, width, height)) is content
        assert issues_of(pixels) == ({"low_information"} if content is Content.OTHER else set())


@pytest.mark.parametrize("kind", ["photo", "page", "drawing", "mask", "window", "thing on white"])
def test_content__that_is_blurred(kind: str) -> None:
    """A blurred image has the issue, whatever it shows."""
    for seed in range(3):
        blurred = np.asarray(cv2.GaussianBlur(ORDINARY[kind][0](seed), (0, 0), 5), np.uint8)
        assert "blur" in issues_of(blurred)


def test_content__black_and_underexposed() -> None:
    """A photo in a few dark tones is dark, unlike a mask."""
    dark = photo(3, width=400, height=300) // 36
    noisy = dark + np.random.default_rng(0).integers(0, 2, dark.shape[:2])[..., None]
    assert "dark" in issues_of(noisy.astype(np.uint8))
    assert "dark" in issues_of(np.zeros((300, 400, 3), np.uint8))


def code(seed: int) -> Pixels:
    """Return a small code of large squares."""
    cells = np.random.default_rng(seed).integers(0, 2, (29, 29)).astype(np.uint8) * 255
    return np.pad(cells.repeat(4, axis=0).repeat(4, axis=1), 16, constant_values=255)[..., None].repeat(3, axis=2)


def dense_lines(seed: int) -> Pixels:
    """Return many short lines in black on white, as the edges of a photo are."""
    random, pixels = np.random.default_rng(seed), np.full((400, 500, 3), 255, np.uint8)
    for x, y, right, down in random.integers((0, 0, -22, -22), (500, 400, 22, 22), (1500, 4)).tolist():
        cv2.line(pixels, (x, y), (x + right, y + down), BLACK, 2)
    return pixels


@pytest.mark.parametrize("make", [code, dense_lines])
def test_blur__of_lines_without_a_ground(make: Callable[[int], Pixels]) -> None:
    """Codes that are small and drawings of dense lines are found out of focus and blurred, and not when sharp."""
    disk = cv2.circle(np.zeros((13, 13), np.float32), (6, 6), 6, 1, -1)
    for seed in range(3):
        sharp = make(seed)
        assert "blur" not in issues_of(sharp)
        out_of_focus = cv2.filter2D(sharp, -1, disk / disk.sum(), borderType=cv2.BORDER_REFLECT)
        for blurred in (out_of_focus, cv2.GaussianBlur(sharp, (0, 0), 3)):
            assert "blur" in issues_of(np.asarray(blurred, np.uint8))
