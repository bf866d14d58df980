"""The caption of a media item."""

from typing import Any

import pyarrow as pa

from framedex.annotations.labels import storable
from framedex.editable_values.base import EditableValue
from framedex.errors import InvalidInput


def _parse(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"a caption is text or None, not {value!r}")
    return storable(value) if value is not None and value.strip() else None


CAPTION = EditableValue("caption", pa.string(), _parse, from_source=True)
