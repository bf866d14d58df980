"""Pictures to vectors: encoders by name."""

from framedex.encoders.base import Encoder, TextEncoder, reading_detail
from framedex.encoders.here import beside, check_classifier, check_multimodal
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.onnx_classifier import OnnxClassifier
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.registry import choose_encoder, register
from framedex.encoders.text_registry import choose_text_encoder, register_text_encoder
from framedex.encoders.weights import Weighted, check_weights, weights_of

__all__ = [
    "Encoder",
    "OnnxClassifier",
    "OnnxEncoder",
    "OpenClipEncoder",
    "TextEncoder",
    "Weighted",
    "beside",
    "check_classifier",
    "check_multimodal",
    "check_weights",
    "choose_encoder",
    "choose_text_encoder",
    "reading_detail",
    "register",
    "register_text_encoder",
    "weights_of",
]
