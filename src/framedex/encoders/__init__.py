"""Encoders, which turn images and texts into vectors, by name."""

from framedex.encoders.availability import check_onnx
from framedex.encoders.base import MEASURED_SIDE_PX, Encoder, TextEncoder, decode_side_px
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.onnx_classifier import OnnxClassifier
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.registry import absolute_name, check_multimodal, choose_encoder, choose_text_encoder, register
from framedex.encoders.scheme import Scheme
from framedex.encoders.weights import Weighted, check_weights, weights_of

__all__ = [
    "MEASURED_SIDE_PX",
    "Encoder",
    "OnnxClassifier",
    "OnnxEncoder",
    "OpenClipEncoder",
    "Scheme",
    "TextEncoder",
    "Weighted",
    "absolute_name",
    "check_multimodal",
    "check_onnx",
    "check_weights",
    "choose_encoder",
    "choose_text_encoder",
    "decode_side_px",
    "register",
    "weights_of",
]
