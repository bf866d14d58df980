"""Pictures to vectors: encoders by name."""

from framedex.encoders.base import Encoder, TextEncoder, reading_detail
from framedex.encoders.registry import choose_encoder, register

__all__ = ["Encoder", "TextEncoder", "choose_encoder", "reading_detail", "register"]
