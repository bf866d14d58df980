"""Two issue types: one is measured on pixels, the value of the other follows from stored columns."""

from framedex.issue_types import Derived, ImageSample, IssueType


def _red_cast(image: ImageSample) -> float:
    red, green, blue = (float(channel.mean()) for channel in image.channels)
    return (red - max(green, blue)) / 255


RED_CAST = IssueType(
    "red_cast", "excess of red over the other channels, -1 to 1", 0.4, above=True, worst=1.0, measure=_red_cast
)
WIDE = IssueType(
    "wide",
    "width / height",
    2.0,
    above=True,
    derived=Derived(("width", "height"), lambda width, height: width / height),
)
