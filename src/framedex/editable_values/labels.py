"""The labels of a media item."""

from numbers import Real
from typing import Any

import pyarrow as pa

from framedex.annotations.labels import parse_labels
from framedex.editable_values.base import EditableValue
from framedex.errors import InvalidInput


def _parse(value: Any) -> list[str] | None:
    """Return labels by the rules of ingestion."""
    parts = value if isinstance(value, list | tuple) else [value]
    if not all(part is None or isinstance(part, str | Real) for part in parts):
        raise InvalidInput(f"the labels of a media item are a list of texts, or one text, not {value!r}")
    if any(isinstance(part, str) and "\0" in part for part in parts):
        raise InvalidInput(f"a label has no null characters; this is {value!r}")
    return list(parse_labels(value)) or None


LABELS = EditableValue("labels", pa.list_(pa.string()), _parse, from_source=True, decides_label_issues=True)
