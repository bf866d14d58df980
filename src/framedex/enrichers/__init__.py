"""Models that say something of pictures: detectors of objects."""

from framedex.enrichers.detector import Detections, Detector
from framedex.enrichers.onnx_detector import OnnxDetector

__all__ = ["Detections", "Detector", "OnnxDetector"]
