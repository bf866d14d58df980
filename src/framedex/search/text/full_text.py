"""Full-text search over captions, labels and file names of a dataset's media."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.fulltext.query import parse_query
from framedex.fulltext.ranking import search
from framedex.fulltext.rows import RowTexts
from framedex.fulltext.segment import Ints, Keys, build_segment
from framedex.fulltext.store import SegmentStore
from framedex.fulltext.tokenizer import GAP, TextField
from framedex.lru_cache import LruCache
from framedex.path_columns import FILE_STEM, SOURCE
from framedex.progress import ShareProgress
from framedex.search.state_cache import StateCache
from framedex.search.text.row_texts import RowKeys, TextFields, read_keys, read_texts
from framedex.settings import check_language
from framedex.storage.media import Media

_FIELDS = TextFields(
    ("caption", "labels", SOURCE),
    {  # in the order of TextField
        "caption": "nullif(caption, '')",
        "labels": f"nullif(array_to_string(labels, ' ' || chr({ord(GAP)}) || ' '), '')",
        "file_name": f"nullif({FILE_STEM.sql}, '')",
    },
)
_BATCH_TEXTS, _BATCH_BYTES = 2**18, 32 * 2**20  # of a segment when it is new
_MOST_INDICES = 4  # that are held in memory


@dataclass(frozen=True)
class FullTextResult:
    """The rows that a query finds, all of them.

    Attributes:
        row_ids: uint64, shape (M,), ascending.
        scores: float32, shape (M,): BM25F, from 0 and the higher the better; 0 where a query only says what rows
            must not have.
    """

    row_ids: RowIds
    scores: npt.NDArray[np.float32]


def full_text(
    media: Media, query: str, *, folder: Path, keep: bool, language: str, progress: ShareProgress | None = None
) -> FullTextResult:
    """Return what a query finds among a dataset's media; :mod:`framedex.fulltext.query` says what queries mean.

    The first search after texts were changed looks which texts the rows have, and indexes those that are new. Several
    threads may search at once.

    Args:
        media: where to search.
        query: what for.
        folder: the cache of the dataset's texts; what is missing or damaged there is made anew.
        keep: whether what is indexed now stays there.
        language: one of Snowball's, or ``none``.
        progress: called while texts are indexed.

    Raises:
        InvalidInput: the query cannot be understood, or there is no such language.
        WorkspaceError: the media table is damaged.
    """
    node = parse_query(query, language)
    state = _index(folder / check_language(language), language, keep=keep).states.at(media, progress)
    hits = search(node, state.texts)
    return FullTextResult(state.row_ids[hits.rows], hits.scores.astype(np.float32))


@dataclass(frozen=True)
class _State:
    """A state of a dataset: its rows, ascending by id, and their texts."""

    row_ids: RowIds
    texts: RowTexts


@dataclass(frozen=True)
class _Index:
    """The index of one dataset in one language, and the states that were searched last."""

    store: SegmentStore
    states: StateCache[_State]


_INDICES: LruCache[tuple[Path, bool], _Index] = LruCache(_MOST_INDICES)


def _index(folder: Path, language: str, *, keep: bool) -> _Index:
    def make() -> _Index:
        store = SegmentStore(folder, language, keep=keep)
        return _Index(store, StateCache(_FIELDS.columns, partial(_state, store)))

    return _INDICES.get_or_make((folder.absolute(), keep), make)


def _state(store: SegmentStore, media: Media, progress: ShareProgress | None) -> _State:
    keys = read_keys(media, _FIELDS)
    store.refresh()
    texts = keys.texts(store.segments())
    if (keys.present & (texts < 0)).any():
        _add_texts(media, keys, texts, store, progress)
        texts = keys.texts(store.segments())
    rows = RowTexts(texts, store.segments())
    number = store.merge_some(rows.used())
    if number is not None:
        rows = RowTexts(np.where(texts >= 0, number[texts], -1), store.segments())
    return _State(keys.row_ids, rows)


def _add_texts(media: Media, keys: RowKeys, texts: Ints, store: SegmentStore, progress: ShareProgress | None) -> None:
    """Index the texts that are not known yet, each once."""
    wanted = keys.first_missing(texts)
    batch, done, total = _Batch(store), 0, int(wanted.sum())
    for places, columns in read_texts(media, _FIELDS, keys.row_ids, np.logical_or.reduce(wanted)):
        for field, name in zip(TextField, _FIELDS.texts, strict=True):
            chosen = wanted[field, places]
            batch.add(columns[name].filter(pa.array(chosen)), field, keys.keys[field][places[chosen]])
            done += int(chosen.sum())
        if progress is not None:
            progress(done / total)
    batch.flush()


class _Batch:
    """Texts that become a segment when they are enough."""

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
        """Make a segment of what there is."""
        texts = pa.chunked_array(self._texts, pa.string()).combine_chunks()
        if len(texts):
            low, high = (np.concatenate([getattr(keys, half) for keys in self._keys]) for half in ("low", "high"))
            fields = np.concatenate(self._fields)
            self._store.add(build_segment(texts, fields, Keys(low, high), self._store.language))
        self._clear()
