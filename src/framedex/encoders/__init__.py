"""Encoders, which turn images and texts into vectors, by name."""

from framedex.encoders.availability import check_onnx
from framedex.encoders.base import MEASURED_SIDE_PX, Encoder, Preparation, TextEncoder, decode_side_px
from framedex.encoders.local_models import FETCHED, LocalModel, add_model, fetch_model, local_models
from framedex.encoders.model_list import ListedModel, listed_model, listed_models
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.onnx_classifier import OnnxClassifier
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.registry import (
    absolute_name,
    check_multimodal,
    choose_encoder,
    choose_text_encoder,
    is_loaded_by_name,
    register,
)
from framedex.encoders.scheme import Scheme
from framedex.encoders.weights import Weighted, check_weights, weights_of

__all__ = [
    "FETCHED",
    "MEASURED_SIDE_PX",
    "Encoder",
    "ListedModel",
    "LocalModel",
    "OnnxClassifier",
    "OnnxEncoder",
    "OpenClipEncoder",
    "Preparation",
    "Scheme",
    "TextEncoder",
    "Weighted",
    "absolute_name",
    "add_model",
    "check_multimodal",
    "check_onnx",
    "check_weights",
    "choose_encoder",
    "choose_text_encoder",
    "decode_side_px",
    "fetch_model",
    "is_loaded_by_name",
    "listed_model",
    "listed_models",
    "local_models",
    "register",
    "weights_of",
]
