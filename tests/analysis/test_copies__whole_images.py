"""Images of which an image may be a part: those that are left out by a bound are none of the nearest."""

from functools import partial

import numpy as np
import pytest

from framedex.analysis.copies import crops
from framedex.analysis.copies.crops import CropIndex
from framedex.core.borders import BorderedImage
from framedex.encoders.copy_descriptor import describe, prepare_whole
from framedex.encoders.gist import cell_values
from framedex.encoders.placed_image import placements
from framedex.executors import ThreadExecutor
from tests.image_files import textured

COUNT = 40


@pytest.mark.parametrize("seed", [3, 17, 99])  # the last one is of an image that the index lacks
def test_whole_images__are_those_of_all_comparisons(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all images are compared at once or few at first, the nearest, their scores and widths are the same."""
    images = [textured(each, width=(160, 120)[each % 2], height=(120, 160)[each % 2]) for each in range(COUNT)]
    vectors = describe(np.stack([prepare_whole(BorderedImage(each)) for each in images]))
    aspects = np.array([each.shape[1] / each.shape[0] for each in images])
    index = CropIndex.of(COUNT, cell_values, [(vectors.astype(np.float32), aspects)])
    part = BorderedImage(textured(seed, width=160, height=120)[20:90, 30:125])
    with ThreadExecutor(1) as executor:
        search = partial(index.whole_images, 95 / 70, partial(placements, part), 4, executor=executor)
        expected = search()
        for first in (1, 4, 9):
            monkeypatch.setattr(crops, "_FIRST", first)
            found = search()
            np.testing.assert_array_equal(found.rows, expected.rows)
            np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
            np.testing.assert_array_equal(found.widths, expected.widths)
    assert len(expected.rows) == 4
    assert seed == 99 or expected.rows[0] == seed or seed % 2
