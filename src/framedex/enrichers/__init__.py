"""Models that enrich datasets: their registry, their availability on this machine, and their results for images."""

from framedex.enrichers.availability import describe_model
from framedex.enrichers.captioner import Captioner
from framedex.enrichers.detector import Detections, Detector
from framedex.enrichers.detectors import DetectorScheme, make_detector, models_without_files
from framedex.enrichers.models_file import ModelEntry, read_models
from framedex.enrichers.onnx_detector import OnnxDetector
from framedex.enrichers.tagging import Tagger, Tags, make_tagger
from framedex.enrichers.transformers_captioner import TransformersCaptioner, make_captioner

__all__ = [
    "Captioner",
    "Detections",
    "Detector",
    "DetectorScheme",
    "ModelEntry",
    "OnnxDetector",
    "Tagger",
    "Tags",
    "TransformersCaptioner",
    "describe_model",
    "make_captioner",
    "make_detector",
    "make_tagger",
    "models_without_files",
    "read_models",
]
