"""Bad images made from photos: blurred, overexposed, without information. Strengths are those at 500 pixels."""

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Random = np.random.Generator
Damage = Callable[[Pixels, Random], Pixels]


def fitted(pixels: Pixels, side: int = 500) -> Pixels:
    """Return an image of at most a number of pixels on the longer side."""
    height, width = pixels.shape[:2]
    factor = side / max(height, width)
    if factor >= 1:
        return pixels
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def gaussian(pixels: Pixels, _random: Random, sigma: float) -> Pixels:
    """Return an image blurred by a Gaussian."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma), np.uint8)


def defocus(pixels: Pixels, _random: Random, radius: int) -> Pixels:
    """Return an image blurred by a disk."""
    kernel = np.zeros((2 * radius + 1, 2 * radius + 1), np.float32)
    cv2.circle(kernel, (radius, radius), radius, 1, -1)
    return np.asarray(cv2.filter2D(pixels, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT), np.uint8)


def motion(pixels: Pixels, random: Random, length: int) -> Pixels:
    """Return an image blurred along a line of random direction."""
    angle, middle = random.uniform(0, np.pi), length // 2
    kernel = np.zeros((length, length), np.float32)
    step = np.array([np.cos(angle), np.sin(angle)]) * middle
    start, end = (np.rint(middle + sign * step).astype(int) for sign in (-1, 1))
    cv2.line(kernel, tuple(map(int, start)), tuple(map(int, end)), 1, 1)
    return np.asarray(cv2.filter2D(pixels, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT), np.uint8)


def noisy(pixels: Pixels, random: Random, sigma: float) -> Pixels:
    """Return an image with Gaussian noise."""
    return np.asarray(np.clip(np.rint(pixels + random.normal(0, sigma, pixels.shape)), 0, 255), np.uint8)


def framed(pixels: Pixels, share: float, value: int) -> Pixels:
    """Return an image within a frame of one grey; its width is a share of the shorter side."""
    width = round(min(pixels.shape[:2]) * share)
    return np.asarray(
        cv2.copyMakeBorder(pixels, width, width, width, width, cv2.BORDER_CONSTANT, value=(value,) * 3), np.uint8
    )


def brightened(pixels: Pixels, _random: Random, gain: float, offset: float) -> Pixels:
    """Return an overexposed image."""
    return np.asarray(np.clip(np.rint(pixels * gain + offset), 0, 255), np.uint8)


def washed(pixels: Pixels, _random: Random, share: float) -> Pixels:
    """Return an image mixed with a share of white."""
    return np.asarray(np.rint(pixels * (1 - share) + 255 * share), np.uint8)


def flattened(pixels: Pixels, _random: Random, contrast: float) -> Pixels:
    """Return an image whose values lie that much nearer to their mean."""
    mean = pixels.mean(axis=(0, 1))
    return np.asarray(np.clip(np.rint(mean + (pixels - mean) * contrast), 0, 255), np.uint8)


def flat(pixels: Pixels, random: Random, noise: float) -> Pixels:
    """Return one colour with noise."""
    colour = random.integers(20, 236, 3)
    return np.asarray(np.clip(np.rint(colour + random.normal(0, noise, pixels.shape)), 0, 255), np.uint8)


def gradient(pixels: Pixels, random: Random) -> Pixels:
    """Return a gradient between two colours in a random direction."""
    height, width = pixels.shape[:2]
    first, last = random.integers(0, 256, (2, 3))
    angle = random.uniform(0, 2 * np.pi)
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    place = x * np.cos(angle) + y * np.sin(angle)
    place = (place - place.min()) / (place.max() - place.min())
    return np.asarray(np.rint(first + (last - first) * place[..., None]), np.uint8)


def _after(first: Damage, then: Damage) -> Damage:
    return lambda pixels, random: then(first(pixels, random), random)


_SIGMA_5: Damage = partial(gaussian, sigma=5)
BLURRED: dict[str, Damage] = {
    "gaussian 3": partial(gaussian, sigma=3),
    "gaussian 5": _SIGMA_5,
    "gaussian 8": partial(gaussian, sigma=8),
    "gaussian 12": partial(gaussian, sigma=12),
    "defocus 6": partial(defocus, radius=6),
    "defocus 8": partial(defocus, radius=8),
    "motion 21": partial(motion, length=21),
    "motion 41": partial(motion, length=41),
    "gaussian 5, white frame": _after(_SIGMA_5, lambda pixels, _: framed(pixels, 0.1, 255)),
    "gaussian 5, black frame": _after(_SIGMA_5, lambda pixels, _: framed(pixels, 0.1, 0)),
    "gaussian 5, noise 8": _after(_SIGMA_5, partial(noisy, sigma=8)),
    "gaussian 3, noise 8": _after(partial(gaussian, sigma=3), partial(noisy, sigma=8)),
    "defocus 8, noise 8": _after(partial(defocus, radius=8), partial(noisy, sigma=8)),
}
MILD: dict[str, Damage] = {
    "gaussian 1": partial(gaussian, sigma=1),
    "gaussian 2": partial(gaussian, sigma=2),
    "defocus 4": partial(defocus, radius=4),
    "motion 9": partial(motion, length=9),
}
"""Reported, without an aim: people disagree on them."""
BRIGHT: dict[str, Damage] = {
    "gain 2.5, offset 60": partial(brightened, gain=2.5, offset=60),
    "80 % white": partial(washed, share=0.8),
    "90 % white": partial(washed, share=0.9),
    "97 % white": partial(washed, share=0.97),
}
EMPTY: dict[str, Damage] = {
    "one colour": partial(flat, noise=0),
    "one colour, noise 3": partial(flat, noise=3),
    "gradient": gradient,
    "contrast × 0.08": partial(flattened, contrast=0.08),
}
