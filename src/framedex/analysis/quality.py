"""Quality measures of an image, from its pixels."""

import logging
import math
from collections.abc import Callable, Sequence

from framedex.core.arrays import Pixels
from framedex.core.borders import BorderedImage
from framedex.issue_types import ImageSample, IssueType, is_built_in, measured_types

_LOG = logging.getLogger(__name__)


def measure(
    pixels: Pixels,
    *,
    width: int,
    height: int,
    sample: Pixels | None = None,
    bands: int = 3,
    is_damaged: bool = False,
    larger: Callable[[], Pixels] | None = None,
    bordered: BorderedImage | None = None,
) -> dict[str, float | None]:
    """Return the quality measures of an image, by column name.

    A measure of a plugin is None if the plugin raises an error, which is logged, or returns no finite number.

    Args:
        pixels: uint8, shape (H, W, 3), RGB; may be a reduced version of the image.
        width: width of the original image in pixels.
        height: height of the original image in pixels.
        sample: pixels of the original image for statistics of pixel values, uint8, shape (h, w, 3); averaged pixels of
            a reduced image have less noise and fewer extremes. By default *pixels*.
        bands: the number of channels in the file: 1 for a greyscale image.
        is_damaged: whether the decoder found damage in the file.
        larger: returns a less reduced version of the image; None if there is none.
        bordered: *pixels*, with their part within uniform borders; by default it is found.
    """
    sample = pixels if sample is None else sample
    return measure_samples([ImageSample(pixels, sample, width, height, bands, is_damaged, larger, bordered)])[0]


def measure_samples(images: Sequence[ImageSample]) -> list[dict[str, float | None]]:
    """Return the quality measures of several images, each by column name, as :func:`measure`.

    Each measure is taken of all images before the next one. So its code stays in the cache of the processor, which
    saves a third of the time at 16 images.
    """
    columns = {each.column: [_value(each, image) for image in images] for each in measured_types() if each.column}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _value(issue: IssueType, image: ImageSample) -> float | None:
    assert issue.measure is not None, "the type has a measure"
    if is_built_in(issue):
        return issue.measure(image)
    try:
        value = float(issue.measure(image))
    except Exception as error:  # a plugin may raise anything; other images are not affected
        message = f"{type(error).__name__}: {error}"
        _LOG.warning("the measure of the issue type %r of a plugin failed: %s", issue.name, message)
        return None
    return value if math.isfinite(value) else None
