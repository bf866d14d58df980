"""The vectors of a dataset's captions by a text encoder, made when they are first searched.

Vectors belong to texts, and neither ever changes. So edits, restores, clones, deletions, kills and other processes need
nothing of the cache; what a state lacks is added when it is first searched, each distinct text once.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.arrays import Vectors
from framedex.encoders import TextEncoder, Weighted
from framedex.errors import InvalidInput
from framedex.fulltext.segment import Ints, Keys
from framedex.lru_cache import LruCache
from framedex.progress import ShareProgress
from framedex.search.captions.index import CaptionIndex
from framedex.search.captions.store import CaptionStore
from framedex.search.state_cache import StateCache
from framedex.search.text.row_texts import RowKeys, TextFields, read_keys, read_texts
from framedex.storage.failures import own_errors
from framedex.storage.media import Media

_FIELDS = TextFields(("caption",), {"caption": "nullif(trim(caption, ' ' || chr(9) || chr(10) || chr(13)), '')"})
_ENCODED = 256  # texts that the encoder is given at a time
_SEGMENT_TEXTS, _SEGMENT_S = 8192, 20.0  # after which vectors are written: a kill loses no more
_ENCODING = 0.9  # of the work; sorting into cells is the rest
_MOST_INDICES = 4  # that are held in memory
_SHOWN = 60


def open_captions(
    media: Media, encoder: TextEncoder, *, folder: Path, keep: bool, progress: ShareProgress | None = None
) -> CaptionIndex:
    """Return the captions of a state of a dataset by their vectors; what is missing is made.

    Args:
        media: the state.
        encoder: what makes vectors of texts; each has a folder of its own.
        folder: the cache of the dataset's captions; what is missing or damaged there is made anew.
        keep: whether what is made now stays there.
        progress: called while vectors are made.

    Raises:
        InvalidInput: the encoder does not return what it should.
        WorkspaceError: the media table is damaged, or the disk refuses the vectors.
    """
    with own_errors(f"index the captions of {media.table.path}"):
        return _captions(folder / folder_of(encoder), encoder, keep=keep).states.at(media, progress)


def folder_of(encoder: TextEncoder) -> str:
    """Return the name of the folder for what an encoder makes: of its name, its dimension and its weights."""
    weights = encoder.weights if isinstance(encoder, Weighted) else None
    stated = None if weights is None else {"sha256": weights.sha256, "settings": weights.settings}
    text = json.dumps([encoder.name, encoder.dimension, stated], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def encode(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts: float32, shape (N, D), of unit length whatever the encoder returns.

    Raises:
        InvalidInput: they are of another shape, or one has no direction.
    """
    vectors = np.asarray(encoder.encode_texts(texts), np.float32)
    if vectors.shape != (len(texts), encoder.dimension):
        raise InvalidInput(
            f"encoder {encoder.name!r} returned shape {vectors.shape} for {len(texts)} texts, "
            f"not {(len(texts), encoder.dimension)}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~((lengths > 0) & np.isfinite(lengths)))
    if len(bad):
        raise InvalidInput(f"encoder {encoder.name!r} returned no direction for {texts[bad[0]][:_SHOWN]!r}")
    return np.asarray(vectors / lengths, np.float32)


class _Captions:
    """The captions of one dataset by one encoder.

    Attributes:
        states: that were searched last.
        encoder: the one that was given last; others of the same name and weights make the same vectors.
    """

    def __init__(self, store: CaptionStore, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.states = StateCache(_FIELDS.columns, lambda media, progress: _state(store, self.encoder, media, progress))


_OPEN: LruCache[tuple[Path, bool], _Captions] = LruCache(_MOST_INDICES)


def _captions(folder: Path, encoder: TextEncoder, *, keep: bool) -> _Captions:
    found = _OPEN.get_or_make(
        (folder.absolute(), keep),
        lambda: _Captions(CaptionStore(folder, encoder.dimension, keep=keep), encoder),
    )
    found.encoder = encoder
    return found


def _state(store: CaptionStore, encoder: TextEncoder, media: Media, progress: ShareProgress | None) -> CaptionIndex:
    progress = progress or (lambda _share: None)
    keys = read_keys(media, _FIELDS)
    store.refresh()
    if not store.segments():
        with suppress(OSError):  # what cannot be copied is encoded
            store.borrow(keys.keys[0][keys.present[0]], progress)
    texts = keys.texts(store.segments())
    if (keys.present & (texts < 0)).any():
        _add_texts(media, keys, texts, store, encoder, lambda share: progress(_ENCODING * share))
        texts = keys.texts(store.segments())
    with suppress(OSError):  # many segments only cost time
        if store.merge_some(store.used(texts[0]), lambda share: progress(_ENCODING + (1 - _ENCODING) * share)):
            texts = keys.texts(store.segments())
    return CaptionIndex(keys.row_ids, texts[0], store.segments())


def _add_texts(
    media: Media, keys: RowKeys, texts: Ints, store: CaptionStore, encoder: TextEncoder, progress: ShareProgress
) -> None:
    """Encode the texts that are not known yet, each once."""
    wanted = keys.first_missing(texts)[0]
    batch, done, total = _Batch(store, encoder), 0, int(wanted.sum())
    for places, block in read_texts(media, _FIELDS, keys.row_ids, wanted):
        chosen = wanted[places]
        new, new_keys = block["caption"].filter(pa.array(chosen)), keys.keys[0][places[chosen]]
        for start in range(0, len(new), _ENCODED):
            stop = min(start + _ENCODED, len(new))
            batch.add(new[start:stop].to_pylist(), new_keys[start:stop])
            done += stop - start
            progress(done / total)
    batch.flush()


class _Batch:
    """Vectors that become a segment when they are enough, or have waited."""

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
        """Make a segment of what there is."""
        if self._count:
            low, high = (np.concatenate([getattr(keys, half) for keys in self._keys]) for half in ("low", "high"))
            self._store.add(Keys(low, high), np.concatenate(self._vectors))
        self._clear()
