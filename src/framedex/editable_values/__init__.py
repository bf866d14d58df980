"""Editable values: the values of media that users set, one module each."""

from framedex.editable_values.base import EditableValue
from framedex.editable_values.registry import editable_values, find_editable_value

__all__ = ["EditableValue", "editable_values", "find_editable_value"]
