"""Columns as JSON text: a string for each row, without a Python object for any."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SPECIAL = r'[\x00-\x1f"\\]'
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_CONTROL = r"[\x00-\x1f]"
_DIGITS = 6
LINE_END = ",\n"
"""What comes between the elements of a long array."""


def escaped(texts: pa.Array) -> pa.Array:
    """Return texts as they stand between the quotes of a JSON string."""
    special = pc.fill_null(pc.match_substring_regex(texts, _SPECIAL), False)
    if not pc.any(special, min_count=0).as_py():
        return texts
    return pc.replace_with_mask(texts, special, _escape(texts.filter(special)))


def _escape(texts: pa.Array) -> pa.Array:
    for sign, replacement in _ESCAPES:
        texts = pc.replace_substring(texts, sign, replacement)
    rare = pc.match_substring_regex(texts, _CONTROL)
    if not pc.any(rare, min_count=0).as_py():
        return texts
    # json would escape again what is escaped; the signs that are left stand for themselves.
    signs = {number: f"\\u{number:04x}" for number in range(32)}
    return pc.replace_with_mask(
        texts, rare, pa.array([text.translate(signs) for text in texts.filter(rare).to_pylist()], pa.string())
    )


def strings(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings; ``null`` for those that are null."""
    return quoted(escaped(texts))


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts in which nothing needs to be escaped, such as ids, as JSON strings; ``null`` for null ones."""
    return or_null(pc.binary_join_element_wise('"', texts, '"', ""))


def integers(numbers: pa.Array) -> pa.Array:
    """Return whole numbers as JSON; ``null`` for those that are null."""
    return or_null(pc.cast(numbers, pa.string()))


def decimals(numbers: pa.Array) -> pa.Array:
    """Return float32 numbers with the digits that they have, not those of their doubles; ``null`` where not finite."""
    values = np.round(np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), _DIGITS)
    return or_null(pc.cast(pa.array(values, mask=~np.isfinite(values)), pa.string()))


def exact(numbers: pa.Array) -> pa.Array:
    """Return finite float64 numbers with as few digits as lead back to them; ``null`` for those that are null."""
    return or_null(pc.cast(numbers, pa.string()))


def or_null(texts: pa.Array) -> pa.Array:
    """Return JSON texts, ``null`` for those that are null."""
    return pc.fill_null(texts, "null")


def objects(fields: dict[str, pa.Array | str], end: str = "") -> pa.Array:
    """Return a JSON object for each row.

    Args:
        fields: by name the JSON texts of all rows, or one that all share. Rows with a null have no object, but null.
        end: what follows each object.
    """
    parts: list[Any] = []
    literal = "{"
    for place, (name, value) in enumerate(fields.items()):
        literal += f"{', ' if place else ''}{json.dumps(name)}: "
        if isinstance(value, str):
            literal += value
        else:
            parts += [literal, value]
            literal = ""
    return pc.binary_join_element_wise(*parts, literal + "}" + end, "")


def grouped(parts: pa.Array, lists: pa.Array, separator: str = ", ") -> pa.Array:
    """Return for each list its parts, one after the other; null for lists that are empty or null.

    Args:
        parts: texts, one for each value of all lists.
        lists: an Arrow list column.
        separator: what comes between two parts.
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy())])
    rows = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), parts), separator)
    return pc.if_else(pc.greater(lengths, 0), rows, None)


def arrays(lists: pa.Array) -> pa.Array:
    """Return lists of texts as JSON arrays; empty ones for nulls."""
    return pc.binary_join_element_wise("[", pc.fill_null(grouped(strings(lists.flatten()), lists), ""), "]", "")


def text_of(rows: pa.Array, end: str = LINE_END) -> memoryview:
    """Return all texts one after the other, as UTF-8, without a copy and without the end of the last."""
    if not len(rows):
        return memoryview(b"")
    _, offsets, content = rows.buffers()
    first, last = np.frombuffer(offsets, np.int32)[[rows.offset, rows.offset + len(rows)]]
    return memoryview(content)[first : last - len(end)]
