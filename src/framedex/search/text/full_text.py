"""Full-text search over captions, labels and file names of a dataset's media."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.lru_cache import LruCache
from framedex.core.path_columns import FILE_STEM, SOURCE
from framedex.core.progress import ShareProgress
from framedex.fulltext.query import parse_query
from framedex.fulltext.ranking import search
from framedex.fulltext.rows import RowTexts
from framedex.fulltext.segment import Ints, Keys, build_segment
from framedex.fulltext.store import SegmentStore, are_same, renumbered
from framedex.fulltext.tokenizer import GAP, TextField
from framedex.search.state_cache import StateCache
from framedex.search.text.row_texts import RowKeys, TextFields, appended_rows, read_keys, read_texts
from framedex.settings import check_language
from framedex.storage.media import Media

_FIELDS = TextFields(
    ("caption", "labels", SOURCE),
    {  # the order of TextField
        "caption": "nullif(caption, '')",
        "labels": f"nullif(array_to_string(labels, ' ' || chr({ord(GAP)}) || ' '), '')",
        "file_name": f"nullif({FILE_STEM.sql}, '')",
    },
)
_BATCH_TEXTS, _BATCH_BYTES = 2**18, 32 * 2**20  # limits of a new segment
_MOST_INDICES = 4  # held in memory


@dataclass(frozen=True)
class FullTextResult:
    """All rows that match a query.

    Attributes:
        row_ids: uint64, shape (M,), ascending.
        scores: float32, shape (M,): BM25F, at least 0, higher is better; 0 for a query that only excludes words.
    """

    row_ids: RowIds
    scores: npt.NDArray[np.float32]


def full_text(
    media: Media, query: str, *, folder: Path, keep: bool, language: str, progress: ShareProgress | None = None
) -> FullTextResult:
    """Return the rows of a dataset's media that match a query in the syntax of :mod:`framedex.fulltext.query`.

    The first search after texts changed reads the keys of all texts and indexes the new ones. Several threads may
    search at once.

    Args:
        media: the media to search.
        query: the query.
        folder: the cache of the dataset's texts; missing or damaged parts are rebuilt.
        keep: whether new index segments are written to the cache.
        language: a Snowball language, or ``none``.
        progress: called while texts are indexed.

    Raises:
        InvalidInput: the query cannot be parsed, or the language does not exist.
        WorkspaceError: the media table is damaged.
    """
    node = parse_query(query, language)
    state = _index(folder / check_language(language), language, keep=keep).states.get(media, progress)
    hits = search(node, state.texts)
    return FullTextResult(state.row_ids[hits.rows], hits.scores.astype(np.float32))


@dataclass(frozen=True)
class _State:
    """A state of a dataset: its rows, ascending by id, and their texts.

    Attributes:
        row_ids: uint64, shape (N,).
        numbers: int32, shape (fields, N): the numbers of the texts, through the segments of *texts*; -1 for none.
        texts: the rows of each text.
    """

    row_ids: RowIds
    numbers: Ints
    texts: RowTexts


@dataclass(frozen=True)
class _Index:
    """The full-text index of one dataset in one language, with its most recently searched states."""

    store: SegmentStore
    states: StateCache[_State]


_INDICES: LruCache[tuple[Path, bool], _Index] = LruCache(_MOST_INDICES)


def _index(folder: Path, language: str, *, keep: bool) -> _Index:
    def make() -> _Index:
        store = SegmentStore(folder, language, keep=keep)
        return _Index(store, StateCache(_FIELDS.columns, partial(_state, store)))

    return _INDICES.get_or_make((folder.absolute(), keep), make)


def _state(store: SegmentStore, media: Media, progress: ShareProgress | None, earlier: _State | None) -> _State:
    """Return the state of a dataset; of rows that were appended to an earlier state, only these are read."""
    store.refresh()
    appended = None
    if earlier is not None and are_same(earlier.texts.segments, store.segments()):
        appended = appended_rows(media, earlier.row_ids)
    keys = read_keys(media, _FIELDS, appended)
    texts = keys.texts(store.segments())
    if (keys.present & (texts < 0)).any():
        _add_texts(media, keys, texts, store, progress)
        texts = keys.texts(store.segments())
    row_ids = keys.row_ids
    if earlier is not None and appended is not None:
        known = renumbered(earlier.numbers, earlier.texts.segments, store.segments())
        row_ids, texts = np.concatenate([earlier.row_ids, row_ids]), np.concatenate([known, texts], axis=1)
    rows = RowTexts(texts, store.segments())
    number = store.merge_some(rows.used())
    if number is not None:
        texts = np.where(texts >= 0, number[texts], -1)
        rows = RowTexts(texts, store.segments())
    return _State(row_ids, texts, rows)


def _add_texts(media: Media, keys: RowKeys, texts: Ints, store: SegmentStore, progress: ShareProgress | None) -> None:
    """Index each new text once."""
    missing = keys.first_missing(texts)
    batch, indexed, total = _Batch(store), 0, int(missing.sum())
    for positions, columns in read_texts(media, _FIELDS, keys.row_ids, np.logical_or.reduce(missing)):
        for field, name in zip(TextField, _FIELDS.texts, strict=True):
            mask = missing[field, positions]
            batch.add(columns[name].filter(pa.array(mask)), field, keys.keys[field][positions[mask]])
            indexed += int(mask.sum())
        if progress is not None:
            progress(indexed / total)
    batch.flush()


class _Batch:
    """Texts collected until they are indexed as a segment."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._clear()

    def _clear(self) -> None:
        self._texts: list[pa.Array] = []
        self._fields: list[npt.NDArray[np.uint8]] = []
        self._keys: list[Keys] = []
        self._count = self._bytes = 0

    def add(self, texts: pa.ChunkedArray, field: TextField, keys: Keys) -> None:
        """Add texts of one field."""
        self._texts += texts.chunks
        self._fields.append(np.full(len(keys), field, dtype=np.uint8))
        self._keys.append(keys)
        self._count += len(texts)
        self._bytes += texts.nbytes
        if self._count >= _BATCH_TEXTS or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the collected texts as a segment."""
        texts = pa.chunked_array(self._texts, pa.string()).combine_chunks()
        if len(texts):
            low, high = (np.concatenate([getattr(keys, half) for keys in self._keys]) for half in ("low", "high"))
            fields = np.concatenate(self._fields)
            self._store.add(build_segment(texts, fields, Keys(low, high), self._store.language))
        self._clear()
