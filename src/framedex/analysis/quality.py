"""Measures of an image's quality, from its pixels."""

import logging
import math

from framedex.arrays import Pixels
from framedex.issue_types import ImageSample, IssueType, is_built_in, measured_types

_LOG = logging.getLogger("framedex")


def measure(
    pixels: Pixels, *, width: int, height: int, sample: Pixels | None = None, bands: int = 3
) -> dict[str, float | None]:
    """Return the measures of an image, by the names of their columns.

    Those of plugins are None where the plugin raises an error or returns no finite number; the log says so.

    Args:
        pixels: uint8, shape (H, W, 3), RGB; may be a smaller version of the image.
        width: the whole image's width in pixels.
        height: its height.
        sample: pixels of the whole image for the statistics of pixel values, uint8, shape (h, w, 3), because averaged
            ones have less noise and fewer extremes. By default *pixels* themselves.
        bands: channels that the file stores: 1 for a grey one.
    """
    image = ImageSample(pixels, pixels if sample is None else sample, width, height, bands)
    return {each.column: _value(each, image) for each in measured_types() if each.column is not None}


def _value(issue: IssueType, image: ImageSample) -> float | None:
    assert issue.measure is not None, "the type is a measured one"
    if is_built_in(issue):
        return issue.measure(image)
    try:
        value = float(issue.measure(image))
    except Exception as error:  # whatever the other package does; an image more or less says nothing of others
        said = f"{type(error).__name__}: {error}"
        _LOG.warning("the measure of the issue type %r of a plugin failed: %s", issue.name, said)
        return None
    return value if math.isfinite(value) else None
