"""Rows that do not fit, and two issue types whose values cannot be computed."""

import numpy as np

from framedex.encoders import Scheme
from framedex.encoders.gist import Gist
from framedex.enrichers import DetectorScheme
from framedex.enrichers.face_cascade import FaceCascade
from framedex.issue_types import Derived, ImageSample, IssueType

NUMBER = 12
GIST = Scheme("gist", lambda _name, _settings: Gist())
DETECTOR = DetectorScheme("another_name", lambda _entry: FaceCascade())


def _fails(_image: ImageSample) -> float:
    raise ZeroDivisionError("no light")


FAILS = IssueType("fails", "nothing", 0.5, measure=_fails)
FAILS_LATER = IssueType(
    "fails_later", "nothing", 0.5, derived=Derived(("width",), lambda _width: np.zeros(1, np.float32))
)
ODD_COLUMN = IssueType("odd_column", "nothing", 0.5, measure=lambda _image: 0.0, column="embedding")
RED_CAST = IssueType("red_cast", "nothing", 0.5, measure=lambda _image: 0.0)
