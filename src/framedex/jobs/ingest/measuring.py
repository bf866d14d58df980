"""Quality measures of decoded images, frames and crops."""

from dataclasses import replace
from functools import partial

from framedex.analysis.quality import measure
from framedex.core import forks
from framedex.encoders import MEASURED_SIDE_PX
from framedex.media.decode import DecodedImage, reduced

SHORT_CALLS = forks.Lock()
"""Held by the thread that measures or describes images.

This takes some hundred short calls of NumPy and OpenCV for each image, each of which releases the interpreter lock.
Two threads that make them wake each other up all the time: on two cores, ingestion took a quarter more processor time,
and longer. The other threads read and decode meanwhile, which are few long calls.
"""


def measure_image(image: DecodedImage) -> dict[str, float | None]:
    """Return the quality measures of an image, by column name.

    An image at full size, such as a crop, is reduced first as files are at ingestion. So a crop of the whole image has
    the measures of the image.
    """
    if image.larger is None:
        whole = image.pixels
        image = replace(
            image, pixels=reduced(whole, MEASURED_SIDE_PX), larger=partial(reduced, whole, 2 * MEASURED_SIDE_PX)
        )
    return measure(
        image.pixels,
        width=image.width,
        height=image.height,
        sample=image.sample,
        bands=image.bands,
        is_damaged=image.damage is not None,
        larger=image.larger,
        bordered=image.bordered,
    )
