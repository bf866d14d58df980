"""Images are shown whole and in proportion, and boxes are converted back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.enrichers.letterbox import Letterbox
from tests.image_files import GREEN, RED, flat
from tests.laws import examples

_side = st.integers(1, 500)


@examples(50)
@given(_side, _side, st.sampled_from([(32, 32), (64, 96), (416, 416)]), st.booleans())
def test_show__the_whole_image_between_bars(height: int, width: int, size: tuple[int, int], centred: bool) -> None:
    """The covered part shows exactly the image; the rest is grey."""
    where = Letterbox.of((height, width), size, centred=centred)
    shown = where.show(flat(RED, width=width, height=height), size)
    inside = shown[where.top : where.top + where.down, where.left : where.left + where.across]
    assert shown.shape == (*size, 3)
    assert (inside == RED).all()
    assert (shown == 114).all(axis=2).sum() == size[0] * size[1] - where.down * where.across
    assert where.down == size[0] or where.across == size[1] or min(height, width) == 1 or not centred
    assert (where.top, where.left) == (0, 0) or centred


@examples(50)
@given(_side, _side, st.booleans(), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_back__of_a_part(height: int, width: int, centred: bool, part: list[float]) -> None:
    """A part of the image's area in the input is converted to the same part of the image."""
    where = Letterbox.of((height, width), (416, 416), centred=centred)
    left, right, top, bottom = *sorted(part[:2]), *sorted(part[2:])
    corners = [
        where.left + left * where.across,
        where.top + top * where.down,
        where.left + right * where.across,
        where.top + bottom * where.down,
    ]
    found = where.back(np.array([corners], np.float32))[0]
    expected = [left * width, top * height, right * width, bottom * height]
    np.testing.assert_allclose(found, expected, atol=1e-3 * max(width, height))
    assert found[2] <= width
    assert found[3] <= height


def test_back__cuts_at_the_edges() -> None:
    """Boxes in the bars are not part of the image."""
    where = Letterbox.of((50, 100), (32, 32), centred=True)
    assert (where.top, where.down) == (8, 16)
    assert where.back(np.array([[-5, 0, 40, 32]], np.float32)).tolist() == [[0, 0, 100, 50]]


@pytest.mark.parametrize(("centred", "at"), [(True, (12, 0)), (False, (0, 0))])
def test_of__where_a_flat_image_goes(centred: bool, at: tuple[int, int]) -> None:
    """The image is centred, or in the upper left corner."""
    where = Letterbox.of((10, 40), (32, 32), centred=centred)
    assert (where.top, where.left, where.down, where.across) == (*at, 8, 32)


def test_show__averages_what_is_more_than_halved() -> None:
    """Thin lines of a large image stay visible."""
    pixels = flat(GREEN, width=320, height=320)
    pixels[::10] = RED
    shown = Letterbox.of((320, 320), (32, 32), centred=False).show(pixels, (32, 32))
    assert np.ptp(shown, axis=(0, 1)).max() <= 1
    assert 20 <= shown[0, 0, 0] <= 30
