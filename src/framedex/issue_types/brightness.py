"""Dark and overexposed images."""

from framedex.issue_types.base import ImageSample, IssueType
from framedex.issue_types.content_kinds import Content, content_of, has_sure_lines

_DARK, _LIMIT = 0.32, 0.59


def _exposure(image: ImageSample) -> float:
    """Return the mean brightness of the darkest 1 % and the median, less half of what the brightest 1 % lack of white.

    Overexposure moves both: half of the image is nearly white, and nothing is black. A dark thing before a white wall
    leaves the first low, a light mist the second. Both also move in a pale scene without shadows, such as cells under a
    microscope. If that is well exposed, its brightest 1 % stay below white; the distance counts against it.

    A thing on white is not overexposed, nor is a page: of bright images, uniform borders are left out, and sharp lines
    count as black.

    Returns:
        The value, in [0, 1].
    """
    exposure = _exposure_of(image.brightness)
    if exposure <= _LIMIT:
        return exposure
    darkest, median, brightest = image.inner_brightness
    return _exposure_of((0.0 if has_sure_lines(image) else darkest, median, brightest))


def _exposure_of(brightness: tuple[float, float, float]) -> float:
    darkest, median, brightest = brightness
    return max(0.0, (darkest + median - (1 - brightest)) / 2)


def _highlights(image: ImageSample) -> float:
    """Return the brightness of the brightest 1 %, in [0, 1]; 1 for a mask, whose values are numbers of classes."""
    brightest = image.brightness[2]
    return 1.0 if brightest < _DARK and content_of(image) is Content.MASK else brightest


DARK = IssueType(
    "dark",
    "brightness of the brightest pixels, 0 to 1",
    _DARK,
    worst=0.0,
    measure=_highlights,
    column="highlights",
)
BRIGHT = IssueType(
    "bright",
    "mean brightness of the median and the darkest pixels, less half of what the brightest lack of white, 0 to 1",
    _LIMIT,
    above=True,
    worst=1.0,
    measure=_exposure,
    column="exposure",
)
