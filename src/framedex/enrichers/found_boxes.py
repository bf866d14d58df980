"""Detections in an image, as bounding boxes."""

from math import isfinite, isnan

from framedex.annotations.boxes import Box, fit_box
from framedex.enrichers.detector import Detector
from framedex.media.decode import Picture


def found_boxes(detector: Detector, picture: Picture, name: str) -> list[Box]:
    """Return boxes of the objects in a picture, the surest first; those without a pixel within it are none.

    Args:
        detector: finds them.
        picture: all of it, not reduced.
        name: of the picture.
    """
    found = detector.detect(picture.pixels)
    parts = zip(found.boxes.tolist(), found.labels.tolist(), found.confidences.tolist(), strict=True)
    boxes = [
        Box(name, x, y, width, height, detector.labels[label], None if isnan(confidence) else round(confidence, 6))
        for (x, y, width, height), label, confidence in parts
        if all(map(isfinite, (x, y, width, height)))
    ]
    fits = (fit_box(box, picture.width, picture.height).box for box in boxes)
    return [box for box in fits if box is not None]
