"""Dark and overexposed images."""

from framedex.issue_types.base import IssueType

DARK = IssueType(
    "dark",
    "brightness of the brightest pixels, 0 to 1",
    0.32,
    worst=0.0,
    measure=lambda image: image.brightness[1],
    column="highlights",
)
BRIGHT = IssueType(
    "bright",
    "brightness of the darkest pixels, 0 to 1",
    0.95,
    above=True,
    worst=1.0,
    measure=lambda image: image.brightness[0],
    column="shadows",
)
