"""Detections of an image as bounding boxes."""

from math import isfinite, isnan

from framedex.annotations.boxes import Box, fit_box
from framedex.enrichers.detector import Detector
from framedex.media.decode import Picture


def detected_boxes(detector: Detector, picture: Picture, name: str) -> list[Box]:
    """Return bounding boxes of the objects in an image, the most confident first.

    Boxes that do not cover a pixel of the image are dropped.

    Args:
        detector: the detector.
        picture: the whole image in full size.
        name: of the image.
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
