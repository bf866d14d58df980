"""Pictures to vectors: encoders by name."""

from framedex.encoders.base import Encoder
from framedex.encoders.registry import choose_encoder, register

__all__ = ["Encoder", "choose_encoder", "register"]
