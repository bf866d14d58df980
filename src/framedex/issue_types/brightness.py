"""Dark and overexposed images."""

from framedex.issue_types.base import ImageSample, IssueType


def _exposure(image: ImageSample) -> float:
    """Return the mean of the median brightness and of the brightness of the darkest 1 %, in [0, 1].

    Overexposure moves both: half of the image is nearly white, and nothing is black. A dark thing before a white wall
    leaves the second low, a light mist the first.
    """
    darkest, median, _ = image.brightness
    return (darkest + median) / 2


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
    "mean of the median brightness and of that of the darkest pixels, 0 to 1",
    0.59,
    above=True,
    worst=1.0,
    measure=_exposure,
    column="exposure",
)
