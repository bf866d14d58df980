"""Dark and overexposed images."""

from framedex.issue_types.base import ImageSample, IssueType


def _exposure(image: ImageSample) -> float:
    """Return the mean brightness of the darkest 1 % and the median, less half of what the brightest 1 % lack of white.

    Overexposure moves both: half of the image is nearly white, and nothing is black. A dark thing before a white wall
    leaves the first low, a light mist the second. Both also move in a pale scene without shadows, such as cells under a
    microscope. If that is well exposed, its brightest 1 % stay below white; the distance counts against it.

    Returns:
        The value, in [0, 1].
    """
    darkest, median, brightest = image.brightness
    return max(0.0, (darkest + median - (1 - brightest)) / 2)


DARK = IssueType(
    "dark",
    "brightness of the brightest pixels, 0 to 1",
    0.32,
    worst=0.0,
    measure=lambda image: image.brightness[2],
    column="highlights",
)
BRIGHT = IssueType(
    "bright",
    "mean brightness of the median and the darkest pixels, less half of what the brightest lack of white, 0 to 1",
    0.59,
    above=True,
    worst=1.0,
    measure=_exposure,
    column="exposure",
)
