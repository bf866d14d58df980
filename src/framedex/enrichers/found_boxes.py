"""What a detector finds in a picture, as boxes."""

import math

from framedex.enrichers.detector import Detector
from framedex.media.boxes import Box, fit_box
from framedex.media.decode import Picture


def found_boxes(detector: Detector, picture: Picture, name: str) -> list[Box]:
    """Return boxes of the objects in a picture, the surest first; those without a pixel within it are none.

    Args:
        detector: finds them.
        picture: all of it, not reduced.
        name: of the picture.
    """
    found = detector.detect(picture.pixels)
    boxes = [
        Box(name, *map(float, box), detector.labels[label], round(float(confidence), 6))
        for box, label, confidence in zip(found.boxes, found.labels.tolist(), found.confidences, strict=True)
        if all(map(math.isfinite, box))
    ]
    fits = (fit_box(box, picture.width, picture.height).box for box in boxes)
    return [box for box in fits if box is not None]
