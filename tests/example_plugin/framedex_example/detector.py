"""A detector: the bounding box of what is bright."""

import numpy as np
import numpy.typing as npt

from framedex.enrichers import Detections, DetectorScheme, ModelEntry
from framedex.records import EnrichmentType


class BrightSpot:
    """Finds the bounding box of all pixels above a limit."""

    name = "bright_spot"
    labels: tuple[str, ...] = ("spot",)

    def detect(self, pixels: npt.NDArray[np.uint8]) -> Detections:
        """Return one box, or none in an image without bright pixels."""
        rows, columns = np.nonzero(pixels.min(axis=2) > 240)
        if not len(rows):
            return Detections(np.empty((0, 4), np.float32), np.empty(0, np.int64), np.empty(0, np.float32))
        left, top = columns.min(), rows.min()
        box = [left, top, columns.max() + 1 - left, rows.max() + 1 - top]
        return Detections(np.array([box], np.float32), np.zeros(1, np.int64), np.ones(1, np.float32))


BRIGHT_SPOT = DetectorScheme(
    "bright_spot",
    lambda _entry: BrightSpot(),
    model=ModelEntry(
        id="bright_spot", type=EnrichmentType.OBJECT_DETECTION, name="Bright spot", detector="bright_spot"
    ),
)
