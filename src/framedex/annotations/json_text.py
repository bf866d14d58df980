"""Arrow columns as JSON text: one string a row, without a Python object for each value."""

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
"""Separator between the elements of a long array."""


def escape_json(texts: pa.Array) -> pa.Array:
    """Return texts escaped for use between the quotes of a JSON string."""
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
    # json would escape the escapes again; the remaining characters need no escape.
    signs = {number: f"\\u{number:04x}" for number in range(32)}
    return pc.replace_with_mask(
        texts, rare, pa.array([text.translate(signs) for text in texts.filter(rare).to_pylist()], pa.string())
    )


def strings(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings, and nulls as ``null``."""
    return quoted(escape_json(texts))


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts without characters to escape, such as ids, as JSON strings, and nulls as ``null``."""
    return or_null(pc.binary_join_element_wise('"', texts, '"', ""))


def integers(numbers: pa.Array) -> pa.Array:
    """Return integers as JSON numbers, and nulls as ``null``."""
    return or_null(pc.cast(numbers, pa.string()))


def decimals(numbers: pa.Array) -> pa.Array:
    """Return float32 numbers with their own shortest digits; ``null`` for numbers that are not finite."""
    values = np.round(np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), _DIGITS)
    return or_null(pc.cast(pa.array(values, mask=~np.isfinite(values)), pa.string()))


def exact(numbers: pa.Array) -> pa.Array:
    """Return finite float64 numbers with the fewest digits that restore them, and nulls as ``null``."""
    return or_null(pc.cast(numbers, pa.string()))


def or_null(texts: pa.Array) -> pa.Array:
    """Return JSON texts, with ``null`` in the place of nulls."""
    return pc.fill_null(texts, "null")


def object_texts(fields: dict[str, pa.Array | str], end: str = "") -> pa.Array:
    """Return a JSON object for each row.

    Args:
        fields: by name the JSON texts of all rows, or one text for all rows. A row with a null becomes null.
        end: the text after each object.
    """
    parts: list[Any] = []
    literal = "{"
    for position, (name, value) in enumerate(fields.items()):
        literal += f"{', ' if position else ''}{json.dumps(name)}: "
        if isinstance(value, str):
            literal += value
        else:
            parts += [literal, value]
            literal = ""
    return pc.binary_join_element_wise(*parts, literal + "}" + end, "")


def join_lists(parts: pa.Array, lists: pa.Array, separator: str = ", ") -> pa.Array:
    """Return the parts of each list joined to one text; null for lists that are empty or null.

    Args:
        parts: one text for each value of all lists.
        lists: an Arrow list column.
        separator: the text between two parts.
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy())])
    rows = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), parts), separator)
    return pc.if_else(pc.greater(lengths, 0), rows, None)


def arrays(lists: pa.Array) -> pa.Array:
    """Return lists of texts as JSON arrays; an empty array for a null."""
    return pc.binary_join_element_wise("[", pc.fill_null(join_lists(strings(lists.flatten()), lists), ""), "]", "")


def join_rows(rows: pa.Array, end: str = LINE_END) -> memoryview:
    """Return all texts joined as UTF-8, without a copy and without the end of the last text."""
    if not len(rows):
        return memoryview(b"")
    _, offsets, content = rows.buffers()
    first, last = np.frombuffer(offsets, np.int32)[[rows.offset, rows.offset + len(rows)]]
    return memoryview(content)[first : last - len(end)]
