"""Labels as people write them in tables."""

import json
from typing import Any


def parse_labels(value: Any) -> tuple[str, ...]:
    """Return the labels in a cell: a list, a JSON array, a bare list such as ``[dog, puppy]``, or one label."""
    if value is None or value == "" or value != value:  # noqa: PLR0124 - NaN is how tables say "missing"
        return ()
    if isinstance(value, str):
        text = value.strip()
        value = _parse_list(text) if text.startswith("[") and text.endswith("]") else [text]
    elif not isinstance(value, list | tuple):
        value = [value]
    return tuple(dict.fromkeys(str(label).strip() for label in value if str(label).strip()))


def _parse_list(text: str) -> list[Any]:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        return [part.strip().strip("'\"") for part in text[1:-1].split(",")]
    return parsed if isinstance(parsed, list) else [parsed]
