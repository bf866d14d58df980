"""Pixels to the input of a CLIP model, as open_clip prepares them: resized with Pillow's filters and cropped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from framedex.arrays import Pixels
from framedex.errors import InvalidInput

Window = tuple[int, int, int, int]

_OVERSAMPLED = 3
_RESIZE_MODES = ("shortest", "longest", "squash")
_FILTERS = ("bicubic", "bilinear")


@dataclass(frozen=True)
class Preparation:
    """The steps from an image to the input of a model, by the names of open_clip's ``preprocess_cfg`` (3.3).

    Attributes:
        height, width: of the model's input, in pixels.
        mean, std: of red, green and blue, as shares of full intensity.
        interpolation: ``bicubic`` or ``bilinear``; both average over what is left out.
        resize_mode: ``shortest``: the shorter side fits, the middle is cut out; ``longest``: the longer side fits, the
            rest is filled; ``squash``: both sides fit, the proportions change.
        fill_color: of what is filled, 0 to 255.
    """

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"
    fill_color: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInput: one is none that open_clip knows.
        """
        if self.resize_mode not in _RESIZE_MODES or self.interpolation not in _FILTERS:
            raise InvalidInput(
                f"pictures are resized by {', '.join(_RESIZE_MODES)} with {' or '.join(_FILTERS)}, "
                f"not by {self.resize_mode!r} with {self.interpolation!r}"
            )
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0:
            raise InvalidInput(f"mean and std have three values, std above 0; found {self.mean} and {self.std}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Preparation":
        """Return what a ``preprocess_cfg`` says; its size is one number, or height and width."""
        size = config["size"]
        height, width = (size, size) if isinstance(size, int) else size
        mean, std = (tuple(float(each) for each in config[name]) for name in ("mean", "std"))
        rest = {name: config[name] for name in ("interpolation", "resize_mode", "fill_color")}
        return cls(int(height), int(width), mean, std, **rest)

    @property
    def min_side_px(self) -> int:
        """Pixels of the shorter side that pictures are to be decoded with.

        Of 68 photographs that were decoded so, vectors of a small trained model had a cosine of at least 0.9987 with
        those of the full picture, and 19 in 20 above 0.9997; with twice the pixels that the model takes, instead of
        three times as many, these were 0.9954 and 0.9988.
        """
        return _OVERSAMPLED * max(self.height, self.width)

    def described(self) -> dict[str, str]:
        """Return the values as text, by name."""
        return {name: str(value) for name, value in vars(self).items()}

    def __call__(self, pixels: Pixels) -> Pixels:
        """Return the model's input, not yet normalised: uint8, shape (height, width, 3).

        Only what is seen is computed, so that also a picture of 10,000 × 1 pixels takes little memory.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        from PIL import Image

        height, width = pixels.shape[:2]
        across, down = self._resized(width, height)
        # Parts of the resized picture that are seen, and where they come to lie in the input.
        left, seen_across, to_left = _window(across, self.width)
        top, seen_down, to_top = _window(down, self.height)
        x, y = width / across, height / down
        box = (left * x, top * y, min((left + seen_across) * x, width), min((top + seen_down) * y, height))
        method = Image.Resampling.BILINEAR if self.interpolation == "bilinear" else Image.Resampling.BICUBIC
        seen = np.asarray(Image.fromarray(pixels).resize((seen_across, seen_down), method, box=box))
        if seen.shape[:2] == (self.height, self.width):
            return seen
        out = np.full((self.height, self.width, 3), self.fill_color, np.uint8)
        out[to_top : to_top + seen_down, to_left : to_left + seen_across] = seen
        return out

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        """Return the size of the whole resized picture: pixels across and down."""
        if self.resize_mode == "squash":
            return self.width, self.height
        if self.resize_mode == "shortest" and self.width == self.height:  # torchvision rounds down here
            if width <= height:
                return self.width, int(self.width * height / width)
            return int(self.height * width / height), self.height
        pick = min if self.resize_mode == "shortest" else max
        ratio = pick(height / self.height, width / self.width)
        return max(1, round(width / ratio)), max(1, round(height / ratio))


def _window(length: int, wanted: int) -> tuple[int, int, int]:
    """Return of one side: where the part that is seen begins, its length, and where it goes in the input."""
    if length >= wanted:
        return round((length - wanted) / 2), wanted, 0
    return 0, length, (wanted - length) // 2
