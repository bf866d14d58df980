"""Random rows and queries of few words, so that they meet often; and rows as an index without a table."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from framedex.fulltext.rows import RowTexts
from framedex.fulltext.segment import Keys, Segment, build_segment
from framedex.fulltext.store import find_texts
from framedex.fulltext.tokenizer import GAP, TextField

WORDS = [
    "dog", "dogs", "Dog's", "dogged", "red", "reddish", "car", "cars", "café", "cafe", "the", "a", "run", "running",
    "ΟΔΟΣ", "οδός", "東京", "東", "कुत्ता", "ไทย", "IMG_12", "12", "x-ray", "…", "❤️", "ﬁne", "don't", "Straße", "İs",
    GAP, "AND", "well\u00a0known", "e\u0301t\u00e9",
]  # fmt: skip
_words = st.sampled_from(WORDS)
texts = st.lists(_words, max_size=6).map(" ".join) | st.text(max_size=8)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "caption": st.none() | texts,
            "labels": st.none() | st.lists(texts, max_size=3),
            "file_name": texts,
        }
    ),
    max_size=8,
)
_quotable = st.lists(_words, min_size=1, max_size=3).map(" ".join)
_leaves = st.one_of(
    st.sampled_from([word for word in WORDS if word not in ("AND", GAP)]),
    _quotable.map('"{}"'.format),
    _quotable.map('"{}"*'.format),
    st.sampled_from(["do*", "d*", "r*", "12*", "東*", "cafe*", "οδοσ*", "x-r*"]),
    st.tuples(st.sampled_from(["caption", "label", "file"]), _quotable).map(lambda pair: f'{pair[0]}:"{pair[1]}"'),
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from([" ", " OR ", " AND ", " -", " NOT ", " AND NOT "]), inner)
    return st.one_of(
        pairs.map("".join), inner.map("({})".format), inner.map("-({})".format), inner.map("label:({})".format)
    )


queries = st.recursive(_leaves, _larger, max_leaves=6)
Row = dict[str, Any]


def text_of(row: Row, field: TextField) -> str | None:
    """Return the text of a field of a row, as the search over a table makes it; None if there is none."""
    if field is TextField.LABELS:
        return f" {GAP} ".join(row["labels"] or ()) or None
    return (row["caption"] if field is TextField.CAPTION else row["file_name"]) or None


def keys_of(texts: Sequence[tuple[TextField, str]]) -> Keys:
    """Return keys of texts."""
    digests = b"".join(hashlib.md5(text.encode()).digest() for _, text in texts)
    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return Keys(halves[:, 0].copy(), halves[:, 1] + np.array([field for field, _ in texts], dtype=np.uint64))


def segment_of(texts: Sequence[tuple[TextField, str]], language: str = "english") -> Segment:
    """Return a segment of some texts, which are all different."""
    fields = np.array([field for field, _ in texts], dtype=np.uint8)
    return build_segment(pa.array([text for _, text in texts], pa.string()), fields, keys_of(texts), language)


def texts_of(rows: Sequence[Row]) -> list[tuple[TextField, str]]:
    """Return the different texts of rows."""
    found = ((field, text_of(row, field)) for row in rows for field in TextField)
    return list(dict.fromkeys((field, text) for field, text in found if text is not None))


def row_texts(rows: Sequence[Row], segments: Sequence[Segment]) -> RowTexts:
    """Return which of the texts of some segments rows have."""
    numbers = np.full((len(TextField), len(rows)), -1, dtype=np.int32)
    for field in TextField:
        for place, row in enumerate(rows):
            text = text_of(row, field)
            if text is not None:
                numbers[field, place] = find_texts(segments, keys_of([(field, text)]))[0]
    return RowTexts(numbers, segments)
