"""Detections of an image as bounding boxes."""

from math import isfinite, isnan

from framedex.annotations.boxes import Box, fit_box
from framedex.enrichers.detector import Detector
from framedex.media.decoded_image import DecodedImage


def detected_boxes(detector: Detector, image: DecodedImage, name: str) -> list[Box]:
    """Return bounding boxes of the objects in an image, the most confident first.

    Boxes that do not cover a pixel of the image are dropped.

    Args:
        detector: the detector.
        image: the whole image in full size.
        name: of the image.
    """
    detections = detector.detect(image.pixels)
    parts = zip(detections.boxes.tolist(), detections.labels.tolist(), detections.confidences.tolist(), strict=True)
    boxes = [
        Box(name, x, y, width, height, detector.labels[label], None if isnan(confidence) else round(confidence, 6))
        for (x, y, width, height), label, confidence in parts
        if all(map(isfinite, (x, y, width, height)))
    ]
    fits = (fit_box(box, image.width, image.height).box for box in boxes)
    return [box for box in fits if box is not None]
