"""Embeddings of a dataset's captions by a text encoder, computed at the first search.

Each vector belongs to a text, and texts with their vectors never change. So edits, restores, clones, deletions and
killed processes need no change of the cache. A search adds the missing vectors of its state, one for each distinct
text.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Vectors
from framedex.core.counts import counted
from framedex.core.lru_cache import LruCache
from framedex.core.progress import ShareProgress
from framedex.encoders import TextEncoder, Weighted
from framedex.errors import InvalidInput
from framedex.fulltext.segment import Ints, Keys
from framedex.fulltext.store import are_same, renumbered
from framedex.search.captions.index import CaptionIndex
from framedex.search.captions.store import CaptionStore
from framedex.search.state_cache import StateCache
from framedex.search.text.row_texts import RowKeys, TextFields, appended_rows, read_keys, read_texts
from framedex.storage.failures import own_errors
from framedex.storage.media import Media

_FIELDS = TextFields(("caption",), {"caption": "nullif(trim(caption, ' ' || chr(9) || chr(10) || chr(13)), '')"})
_ENCODED = 256  # texts per batch of the encoder
_SEGMENT_TEXTS, _SEGMENT_S = 8192, 20.0  # write vectors after so many texts or seconds: the most that a kill loses
_ENCODING = 0.9  # share of the progress; sorting into cells is the rest
_MOST_INDICES = 4  # held in memory
_SHOWN = 60


def open_captions(
    media: Media, encoder: TextEncoder, *, folder: Path, keep: bool, progress: ShareProgress | None = None
) -> CaptionIndex:
    """Return the caption index of a dataset's state; missing embeddings are computed.

    Args:
        media: the dataset's state.
        encoder: the text encoder; each has its own folder.
        folder: the cache of the dataset's captions; missing or damaged parts are rebuilt.
        keep: whether new embeddings are written to the cache.
        progress: called while embeddings are computed.

    Raises:
        InvalidInput: the encoder returns invalid results.
        WorkspaceError: the media table is damaged, or the vectors cannot be written.
    """
    with own_errors(f"index the captions of {media.table.path}"):
        return _captions(folder / folder_of(encoder), encoder, keep=keep).states.get(media, progress)


def folder_of(encoder: TextEncoder) -> str:
    """Return the name of an encoder's folder, made from its name, dimension and weights."""
    weights = encoder.weights if isinstance(encoder, Weighted) else None
    stated = None if weights is None else {"sha256": weights.sha256, "settings": weights.settings}
    text = json.dumps([encoder.name, encoder.dimension, stated], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def encode(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """Return the embeddings of texts: float32, shape (N, D), scaled to unit length.

    Raises:
        InvalidInput: the encoder returns another shape, or a vector that is zero or not finite.
    """
    vectors = np.asarray(encoder.encode_texts(texts), np.float32)
    if vectors.shape != (len(texts), encoder.dimension):
        raise InvalidInput(
            f"encoder {encoder.name!r} returned shape {vectors.shape} for {counted(len(texts), 'texts')}, "
            f"not {(len(texts), encoder.dimension)}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~((lengths > 0) & np.isfinite(lengths)))
    if len(bad):
        raise InvalidInput(f"encoder {encoder.name!r} returned no direction for {texts[bad[0]][:_SHOWN]!r}")
    return np.asarray(vectors / lengths, np.float32)


class _Captions:
    """The caption indices of one dataset by one encoder.

    Attributes:
        states: the most recently searched states.
        encoder: the encoder of the last call; encoders of the same name and weights return the same vectors.
    """

    def __init__(self, store: CaptionStore, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.states: StateCache[CaptionIndex] = StateCache(_FIELDS.columns, partial(self._state, store))

    def _state(
        self, store: CaptionStore, media: Media, progress: ShareProgress | None, earlier: CaptionIndex | None
    ) -> CaptionIndex:
        return _state(store, self.encoder, media, progress, earlier)


_OPEN: LruCache[tuple[Path, bool], _Captions] = LruCache(_MOST_INDICES)


def _captions(folder: Path, encoder: TextEncoder, *, keep: bool) -> _Captions:
    captions = _OPEN.get_or_make(
        (folder.absolute(), keep),
        lambda: _Captions(CaptionStore(folder, encoder.dimension, keep=keep), encoder),
    )
    captions.encoder = encoder
    return captions


def _state(
    store: CaptionStore,
    encoder: TextEncoder,
    media: Media,
    progress: ShareProgress | None,
    earlier: CaptionIndex | None,
) -> CaptionIndex:
    """Return the index of a state; of rows that were appended to an earlier state, only these are read."""
    progress = progress or (lambda _share: None)
    store.refresh()
    appended = None
    if earlier is not None and are_same(earlier.segments, store.segments()):
        appended = appended_rows(media, earlier.row_ids)
    keys = read_keys(media, _FIELDS, appended)
    if not store.segments():
        with suppress(OSError):  # texts that cannot be copied are encoded
            store.borrow(keys.keys[0][keys.present[0]], progress)
    texts = keys.texts(store.segments())
    if (keys.present & (texts < 0)).any():
        _add_texts(media, keys, texts, store, encoder, lambda share: progress(_ENCODING * share))
        texts = keys.texts(store.segments())
    row_ids, text_of = keys.row_ids, texts[0]
    if earlier is not None and appended is not None:
        known = renumbered(earlier.text_of, earlier.segments, store.segments())
        row_ids, text_of = np.concatenate([earlier.row_ids, row_ids]), np.concatenate([known, text_of])
    with suppress(OSError):  # unmerged segments only cost time
        if store.merge_some(store.used(text_of), lambda share: progress(_ENCODING + (1 - _ENCODING) * share)):
            keys = keys if appended is None else read_keys(media, _FIELDS)
            row_ids, text_of = keys.row_ids, keys.texts(store.segments())[0]
    return CaptionIndex(row_ids, text_of, store.segments())


def _add_texts(
    media: Media, keys: RowKeys, texts: Ints, store: CaptionStore, encoder: TextEncoder, progress: ShareProgress
) -> None:
    """Encode each text that has no embedding yet once."""
    missing = keys.first_missing(texts)[0]
    batch, encoded, total = _Batch(store, encoder), 0, int(missing.sum())
    for positions, block in read_texts(media, _FIELDS, keys.row_ids, missing):
        mask = missing[positions]
        new, new_keys = block["caption"].filter(pa.array(mask)), keys.keys[0][positions[mask]]
        for start in range(0, len(new), _ENCODED):
            stop = min(start + _ENCODED, len(new))
            batch.add(new[start:stop].to_pylist(), new_keys[start:stop])
            encoded += stop - start
            progress(encoded / total)
    batch.flush()


class _Batch:
    """Embeddings collected until they are written as a segment."""

    def __init__(self, store: CaptionStore, encoder: TextEncoder) -> None:
        self._store, self._encoder = store, encoder
        self._clear()

    def _clear(self) -> None:
        self._keys: list[Keys] = []
        self._vectors: list[Vectors] = []
        self._count, self._since = 0, time.monotonic()

    def add(self, texts: list[str], keys: Keys) -> None:
        """Encode some texts."""
        self._vectors.append(encode(self._encoder, texts))
        self._keys.append(keys)
        self._count += len(texts)
        if self._count >= _SEGMENT_TEXTS or time.monotonic() - self._since >= _SEGMENT_S:
            self.flush()

    def flush(self) -> None:
        """Write the collected embeddings as a segment."""
        if self._count:
            low, high = (np.concatenate([getattr(keys, half) for keys in self._keys]) for half in ("low", "high"))
            self._store.add(Keys(low, high), np.concatenate(self._vectors))
        self._clear()
