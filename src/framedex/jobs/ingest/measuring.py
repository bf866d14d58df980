"""Quality measures of decoded images, frames and crops."""

from collections.abc import Sequence
from functools import partial

from framedex.analysis.quality import measure_samples
from framedex.core import forks
from framedex.core.borders import BorderedImage
from framedex.encoders import MEASURED_SIDE_PX
from framedex.issue_types import content_of, measure_columns
from framedex.issue_types.base import ImageSample
from framedex.media.decoded_image import DecodedImage, reduced
from framedex.storage.media_rows import CONTENT

SHORT_CALLS = forks.Lock()
"""Held by the thread that measures or describes images.

This takes some hundred short calls of NumPy and OpenCV for each image, each of which releases the interpreter lock.
Two threads that make them wake each other up all the time: on two cores, ingestion took a quarter more processor time,
and longer. The other threads read and decode meanwhile, which are few long calls.
"""


Measures = dict[str, float | str | None]
"""The quality measures of an image and the kind of its content, by column name."""


def no_measures() -> Measures:
    """Return the values of an image that was not measured."""
    return dict.fromkeys([*measure_columns(), CONTENT.name])


def measure_image(image: DecodedImage) -> Measures:
    """Return the quality measures of an image, and the kind of its content."""
    return measure_images([image])[0]


def measure_images(images: Sequence[DecodedImage]) -> list[Measures]:
    """Return the quality measures of several images, and the kinds of their content; faster than one by one.

    An image at full size, such as a crop, is reduced first as files are at ingestion. So a crop of the whole image has
    the measures of the image.
    """
    samples = [_sample(image) for image in images]
    kinds = ({CONTENT.name: str(content_of(sample))} for sample in samples)
    return [{**measures, **kind} for measures, kind in zip(measure_samples(samples), kinds, strict=True)]


def _sample(image: DecodedImage) -> ImageSample:
    pixels, larger, bordered = image.pixels, image.larger, image.bordered
    if larger is None:
        pixels, larger = reduced(pixels, MEASURED_SIDE_PX), partial(reduced, pixels, 2 * MEASURED_SIDE_PX)
        bordered = BorderedImage(pixels)
    is_damaged = image.damage is not None
    return ImageSample(pixels, image.sample, image.width, image.height, image.bands, is_damaged, larger, bordered)
