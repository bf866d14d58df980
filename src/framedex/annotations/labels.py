"""Labels and other text in table cells."""

import json
from typing import Any


def parse_labels(value: Any) -> tuple[str, ...]:
    """Return the labels of a cell: a list, a JSON array, a bare list such as ``[dog, puppy]``, or one label.

    Null characters become U+FFFD.
    """
    if _is_missing(value) or value == "":
        return ()
    if isinstance(value, str):
        text = value.strip()
        value = _parse_list(text) if text.startswith("[") and text.endswith("]") else [text]
    elif not isinstance(value, list | tuple):
        value = [value]
    names = (storable(str(label)).replace("\0", "\ufffd").strip() for label in value if not _is_missing(label))
    return tuple(dict.fromkeys(name for name in names if name))


def storable(text: str) -> str:
    """Return text that a table can store: lone surrogates, such as from invalid UTF-8, become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN is a missing value in tables


def _parse_list(text: str) -> list[Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return [part.strip().strip("'\"") for part in text[1:-1].split(",")]
    return parsed if isinstance(parsed, list) else [parsed]
