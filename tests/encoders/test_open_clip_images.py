"""Images are prepared as by open_clip's own transforms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from framedex.core.arrays import Pixels
from framedex.encoders.open_clip_images import ClipPreparation
from framedex.encoders.open_clip_loading import load_open_clip
from framedex.errors import InvalidInput
from tests.encoders import clip as _needs_the_extra  # noqa: F401 - skips without it
from tests.image_files import photo
from tests.laws import examples

MEAN, STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)
MODES = st.sampled_from(["shortest", "longest", "squash"])


def by_open_clip(pixels: Pixels, config: dict[str, Any]) -> Pixels:
    """Return the result of open_clip's transform of an image before normalisation."""
    load_open_clip()
    from open_clip.transform import PreprocessCfg, image_transform_v2

    normalised = image_transform_v2(PreprocessCfg(**config), is_train=False)(Image.fromarray(pixels))
    shares = normalised.permute(1, 2, 0).numpy() * np.array(STD) + np.array(MEAN)
    return np.asarray(np.rint(shares * 255), np.uint8)


@pytest.mark.slow
@given(
    width=st.integers(8, 260),
    height=st.integers(8, 260),
    size=st.sampled_from([24, 64, (32, 48), (48, 32)]),
    mode=MODES,
    interpolation=st.sampled_from(["bicubic", "bilinear"]),
)
@examples(150)
def test_prepare__equals_open_clip(width: int, height: int, size: Any, mode: str, interpolation: str) -> None:
    """Whatever the proportions, sizes and modes, pixels are those of open_clip, up to rounding.

    Pillow has the corners of what it cuts out as float32, so a pixel in some thousands is off by more than one.
    """
    if mode == "shortest" and not isinstance(size, int):
        interpolation = "bicubic"  # open_clip 3.3 forgets it there
    pixels = photo(width * 1000 + height, width=width, height=height)
    config = {
        "size": size, "mean": MEAN, "std": STD, "interpolation": interpolation, "resize_mode": mode, "fill_color": 7
    }  # fmt: skip
    ours, theirs = ClipPreparation.of(config)(pixels), by_open_clip(pixels, config)
    assert ours.dtype == np.uint8
    assert ours.shape == theirs.shape
    difference = np.abs(ours.astype(int) - theirs)
    assert difference.max() <= 4
    assert difference.mean() <= 0.4


@given(width=st.integers(1, 3), height=st.integers(20_000, 60_000), turned=st.booleans(), mode=MODES)
@examples(20)
def test_prepare__extreme_proportions(width: int, height: int, turned: bool, mode: str) -> None:
    """A very long image has the model's size; resizing the whole image would take gigabytes."""
    pixels = np.full((height, width, 3), 90, np.uint8)
    made = ClipPreparation(64, 64, MEAN, STD, resize_mode=mode, fill_color=90)(
        np.ascontiguousarray(pixels.transpose(1, 0, 2)) if turned else pixels
    )
    assert made.shape == (64, 64, 3)
    assert (made == 90).all()


def test_prepare__fills_what_is_left() -> None:
    """If the longer side fits, the rest has the fill colour."""
    made = ClipPreparation(40, 40, MEAN, STD, resize_mode="longest", fill_color=9)(np.full((50, 100, 3), 200, np.uint8))
    assert (made[10:30] == 200).all()
    assert (made[:10] == 9).all()
    assert (made[30:] == 9).all()


def test_min_side_px__three_times_the_size() -> None:
    """Images are decoded with three times the side of the input."""
    assert ClipPreparation(224, 224, MEAN, STD).min_side_px == 672


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resize_mode": "crop"}, "shortest, longest, squash with bicubic or bilinear, not by 'crop'"),
        ({"interpolation": "nearest"}, "not by 'shortest' with 'nearest'"),
        ({"std": (1.0, 1.0, 0.0)}, "std above 0"),
        ({"mean": (1.0, 1.0)}, "three values"),
    ],
)
def test_preparation__values_that_cannot_be(change: dict[str, Any], message: str) -> None:
    """Values that open_clip does not support are rejected."""
    usual: dict[str, Any] = {"height": 8, "width": 8, "mean": MEAN, "std": STD}
    with pytest.raises(InvalidInput, match=message):
        ClipPreparation(**(usual | change))
