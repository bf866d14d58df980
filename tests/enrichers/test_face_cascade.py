"""The built-in face detector."""

import numpy as np
import pytest

from framedex.demo import photographs
from framedex.enrichers.face_cascade import FaceCascade
from tests.processes import run


@pytest.mark.slow
@pytest.mark.only_soak
def test_detect__a_face_and_none() -> None:
    """The face in a portrait is detected in its position; a brick wall has none."""
    images = {name: pixels for name, _, pixels in photographs()}
    found = FaceCascade().detect(images["astronaut"])
    left, top, width, height = max(found.boxes.tolist(), key=lambda box: box[2])
    assert 160 < left < left + width < 280
    assert 50 < top < top + height < 180
    assert width > 80
    assert np.isnan(found.confidences).all()
    assert len(FaceCascade().detect(images["brick"]).boxes) == 0


@pytest.mark.slow
def test_faces__without_scikit_image() -> None:
    """Without the package, the message names the extra to install, and the detector is listed as unavailable."""
    out = run(
        """
        import sys
        sys.modules["skimage"] = None
        from framedex import MissingDependency
        from framedex.enrichers import describe_model, make_detector
        from framedex.enrichers.detectors import FACES
        from framedex.settings import Settings
        try:
            make_detector(FACES)
        except MissingDependency as error:
            print(error)
        print(describe_model(FACES, Settings()).status)
        """
    )
    assert out.splitlines()[0] == "the detector 'faces' needs scikit-image: pip install 'framedex[faces]'"
    assert out.splitlines()[1] == "Coming Soon"
