"""Models that datasets are enriched by: which there are, which can run here, and what they say of pictures."""

from framedex.enrichers.available import describe
from framedex.enrichers.detector import Detections, Detector
from framedex.enrichers.models_file import ModelEntry, read_models
from framedex.enrichers.onnx_detector import OnnxDetector
from framedex.enrichers.tagging import Tagger, Tags, make_tagger

__all__ = [
    "Detections",
    "Detector",
    "ModelEntry",
    "OnnxDetector",
    "Tagger",
    "Tags",
    "describe",
    "make_tagger",
    "read_models",
]
