"""Face detection by a cascade of scikit-image, without downloaded weights and without a GPU."""

from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.enrichers.detector import Detections
from framedex.errors import MissingDependency

_LONGER = 640  # pixels of the longer side at which faces are detected
_SMALLEST = 24  # minimum pixels of a face at this size; the cascade's training size
_SCALE, _STEP, _AGREEING, _OVERLAP = 1.15, 1.0, 4, 0.3


def check_scikit_image() -> None:
    """Check that scikit-image is installed, without loading it.

    Raises:
        MissingDependency: it is not installed.
    """
    if find_spec("skimage") is None:
        raise MissingDependency("the detector 'faces' needs scikit-image: pip install 'framedex[faces]'")


class FaceCascade:
    """A detector of upright frontal faces of at least about 4 % of the image's longer side.

    It uses a cascade of local binary patterns (Liao et al. 2007, Ahonen et al. 2006; Viola and Jones 2001), trained for
    OpenCV, which removed it in version 5. It gives no confidences (NaN). It misses profiles and rotated heads, and has
    some false positives.

    Attributes:
        name: the detector's name for users.
        labels: ``face``.
    """

    name = "faces"
    labels: tuple[str, ...] = ("face",)

    def __init__(self) -> None:
        """Load the cascade.

        Raises:
            MissingDependency: scikit-image is not installed.
        """
        check_scikit_image()
        from skimage.data import lbp_frontal_face_cascade_filename
        from skimage.feature import Cascade

        self._cascade: Any = Cascade(lbp_frontal_face_cascade_filename())  # type: ignore[no-untyped-call]

    def detect(self, pixels: Pixels) -> Detections:
        """Return the faces in an image.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        height, width = pixels.shape[:2]
        shrink = min(_LONGER / max(height, width), 1.0)
        size = max(round(width * shrink), 1), max(round(height * shrink), 1)
        faces: list[dict[str, int]] = []
        if min(size) >= _SMALLEST:
            small = cv2.equalizeHist(
                cv2.cvtColor(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
            )
            faces = self._cascade.detect_multi_scale(
                small,
                scale_factor=_SCALE,
                step_ratio=_STEP,
                min_size=(_SMALLEST, _SMALLEST),
                max_size=(min(size), min(size)),
                min_neighbor_number=_AGREEING,
                intersection_score_threshold=_OVERLAP,
            )
        boxes = np.array([[each["c"], each["r"], each["width"], each["height"]] for each in faces], np.float32)
        scale = np.array([width / size[0], height / size[1]] * 2, np.float32)
        return Detections(
            boxes.reshape(-1, 4) * scale, np.zeros(len(faces), np.int64), np.full(len(faces), np.nan, np.float32)
        )
