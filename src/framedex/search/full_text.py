"""Full-text search over captions, labels and file names of a dataset's media."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.fulltext.query import parse
from framedex.fulltext.ranking import search
from framedex.fulltext.rows import RowTexts
from framedex.fulltext.segment import Ints, Keys, build
from framedex.fulltext.store import SegmentStore, find_texts
from framedex.fulltext.words import GAP, Field, check_language
from framedex.storage.column_keys import columns_key
from framedex.storage.media import EVERYTHING, Media, RowIds
from framedex.storage.tables import ROW_ID

Progress = Callable[[float], None]
"""Called with the share of the texts that is indexed, in [0, 1]; raises to stop."""
_COLUMNS = ("caption", "labels", "path")
_NAMES = {Field.CAPTION: "caption", Field.LABELS: "labels", Field.FILE_NAME: "file_name"}
_TEXTS = (
    "nullif(caption, '') AS caption, "
    f"nullif(array_to_string(labels, ' ' || chr({ord(GAP)}) || ' '), '') AS labels, "
    "nullif(parse_filename(path, true, 'both_slash'), '') AS file_name"
)
_HASHES = ", ".join(f"unhex(md5({name})) AS {name}" for name in _NAMES.values())
_BATCH_TEXTS, _BATCH_BYTES = 2**18, 32 * 2**20  # of a segment when it is new
_MOST_INDICES, _MOST_STATES, _MOST_NAMES = 4, 3, 64  # that are held in memory
_SCANNED = 8  # where more than one row in so many is needed, all are read


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
    media: Media, query: str, *, folder: Path, keep: bool, language: str, progress: Progress | None = None
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
    node = parse(query, language)
    state = _index(folder / check_language(language), language, keep=keep).at(media, progress)
    hits = search(node, state.texts)
    return FullTextResult(state.row_ids[hits.rows], hits.scores.astype(np.float32))


@dataclass(frozen=True)
class _State:
    """A state of a dataset: its rows, ascending by id, and their texts."""

    row_ids: RowIds
    texts: RowTexts


class _Index:
    """The index of one dataset in one language, and the states that were searched last."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._names: OrderedDict[tuple[str, int], Hashable] = OrderedDict()
        self._states: OrderedDict[Hashable, _State] = OrderedDict()

    def at(self, media: Media, progress: Progress | None) -> _State:
        """Return a state, indexing what is new in it; who asks for a state that is known does not wait for others."""
        name = self._name(media)
        if (state := self._known(name)) is not None:
            return state
        with self._store.lock:
            if (state := self._known(name)) is not None:
                return state
            state = _state(media, self._store, progress)
            with self._lock:
                self._states[name] = state
                while len(self._states) > _MOST_STATES:
                    self._states.popitem(last=False)
            return state

    def _name(self, media: Media) -> Hashable:
        """Return what is the same for states of the same texts, as most changes of a dataset leave them."""
        generation = media.generation.id, media.table.version
        with self._lock:
            if generation in self._names:
                return self._names[generation]
        name = columns_key(media.table, _COLUMNS)
        with self._lock:
            self._names[generation] = name
            while len(self._names) > _MOST_NAMES:
                self._names.popitem(last=False)
        return name

    def _known(self, name: Hashable) -> _State | None:
        with self._lock:
            if name in self._states:
                self._states.move_to_end(name)
            return self._states.get(name)


_INDICES: OrderedDict[tuple[Path, bool], _Index] = OrderedDict()
_LOCK = threading.Lock()


def _index(folder: Path, language: str, *, keep: bool) -> _Index:
    name = folder.absolute(), keep
    with _LOCK:
        if name not in _INDICES:
            _INDICES[name] = _Index(SegmentStore(folder, language, keep=keep))
        _INDICES.move_to_end(name)
        while len(_INDICES) > _MOST_INDICES:
            _INDICES.popitem(last=False)
        return _INDICES[name]


@dataclass(frozen=True)
class _Hashed:
    """The texts of all rows by their keys, rows ascending by id.

    Attributes:
        row_ids: uint64, shape (N,).
        keys: of each field.
        present: bool, shape (fields, N): whether there is a text.
    """

    row_ids: RowIds
    keys: tuple[Keys, ...]
    present: npt.NDArray[np.bool_]

    def texts(self, store: SegmentStore) -> Ints:
        """Return the text of each field of each row, counted over the segments: int32, (fields, N); -1 if not known."""
        found = np.full(self.present.shape, -1, dtype=np.int32)
        for field, keys in enumerate(self.keys):
            there = np.flatnonzero(self.present[field])
            found[field, there] = find_texts(store.segments(), keys[there])
        return found


def _state(media: Media, store: SegmentStore, progress: Progress | None) -> _State:
    hashed = _hashed(media)
    store.refresh()
    texts = hashed.texts(store)
    if (hashed.present & (texts < 0)).any():
        _add_texts(media, hashed, texts, store, progress)
        texts = hashed.texts(store)
    rows = RowTexts(texts, store.segments())
    number = store.merge_some(rows.used())
    if number is not None:
        rows = RowTexts(np.where(texts >= 0, number[texts], -1), store.segments())
    return _State(hashed.row_ids, rows)


def _hashed(media: Media) -> _Hashed:
    found = media.query(
        f"SELECT {ROW_ID}, {_HASHES} FROM (SELECT {ROW_ID}, {_TEXTS} FROM chosen)", EVERYTHING, _COLUMNS
    )
    row_ids = np.asarray(found[ROW_ID].to_numpy(), dtype=np.uint64)
    order = np.argsort(row_ids)
    keys, present = [], []
    for field, name in _NAMES.items():
        column = found[name].combine_chunks()
        there = column.is_valid().to_numpy(zero_copy_only=False)
        halves = np.zeros((len(column), 2), dtype="<u8")
        halves[there] = _halves(column.drop_null())
        keys.append(Keys(halves[order, 0], halves[order, 1] + np.uint64(field)))
        present.append(there[order])
    return _Hashed(row_ids[order], tuple(keys), np.array(present))


def _halves(hashes: pa.Array) -> npt.NDArray[np.uint64]:
    """Return hashes of 16 bytes as two numbers each."""
    fixed = hashes.cast(pa.binary(16))
    data = np.frombuffer(fixed.buffers()[1], dtype="<u8", count=2 * len(fixed), offset=16 * fixed.offset)
    return data.reshape(-1, 2)


def _add_texts(media: Media, hashed: _Hashed, texts: Ints, store: SegmentStore, progress: Progress | None) -> None:
    """Index the texts that are not known yet, each once."""
    wanted = np.array([_first(keys, hashed.present[f] & (texts[f] < 0)) for f, keys in enumerate(hashed.keys)])
    batch, done, total = _Batch(store), 0, int(wanted.sum())
    for places, block in _blocks(media, hashed.row_ids, np.logical_or.reduce(wanted)):
        columns = media.sql.query(f"SELECT {_TEXTS} FROM block", (), {"block": block})
        for field, name in _NAMES.items():
            chosen = wanted[field, places]
            batch.add(columns[name].filter(pa.array(chosen)), field, hashed.keys[field][places[chosen]])
            done += int(chosen.sum())
        if progress is not None:
            progress(done / total)
    batch.flush()


def _first(keys: Keys, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each distinct key of some rows the first row of it."""
    places = np.flatnonzero(missing)
    some = keys[places]
    order = some.order()
    some = some[order]
    is_new = np.concatenate([[True], (some.low[1:] != some.low[:-1]) | (some.high[1:] != some.high[:-1])])
    out = np.zeros(len(missing), dtype=np.bool_)
    out[places[order[is_new[: len(order)]]]] = True
    return out


def _blocks(
    media: Media, row_ids: RowIds, wanted: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    """Yield the rows that are wanted, or all where they are many, and their places, some thousand at a time."""
    places = np.flatnonzero(wanted)
    if len(places) * _SCANNED > len(row_ids):
        for batch in media.table.scan(_COLUMNS, row_ids=True):
            yield np.searchsorted(row_ids, batch[ROW_ID].to_numpy()), pa.Table.from_batches([batch])
        return
    done = 0
    for block in media.blocks(row_ids[places], _COLUMNS):
        yield places[done : done + len(block)], block
        done += len(block)


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

    def add(self, texts: pa.ChunkedArray, field: Field, keys: Keys) -> None:
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
            self._store.add(build(texts, fields, Keys(low, high), self._store.language))
        self._clear()
