"""Vector indices of datasets: nearest media among all rows, or among those that pass a filter."""

import hashlib
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

import numpy as np

from framedex.analysis.quantized_ivf import NEAREST, QuantizedIvf, Selection
from framedex.analysis.relevance import Relevance, measure_relevance
from framedex.core import forks
from framedex.core.arrays import RowIds, Vectors
from framedex.core.forks import cached_property
from framedex.core.lru_cache import LruCache
from framedex.core.progress import Progress
from framedex.search.vectors.building import IndexSource, extend_index, make_index, make_small
from framedex.search.vectors.folder import StoredIndex, read_indices, remove_superseded
from framedex.storage.failures import own_errors
from framedex.storage.media import Media
from framedex.storage.vector_files import Addresses

_MOST_PARTS = 8
_SAMPLED, _PAIRED = 4096, 512  # random rows for the relevance of texts, and for that of images
_OPEN = 4  # open states of datasets
_ANSWERS = 2  # cached results of a state
_FORGOTTEN_S = 86_400.0  # an older unfinished index was abandoned


class VectorIndex:
    """The vectors of a dataset at one state, ready for search. Safe to share between threads.

    Args:
        source: the vectors of the state.
        index: codes of at least all rows of the state.
    """

    def __init__(self, source: IndexSource, index: StoredIndex) -> None:
        self.row_ids, self.dimension, self._n_candidates = source.row_ids, source.dimension, index.n_candidates
        self._reach = index.reach
        self._cells = QuantizedIvf(index.centroids, [each.part for each in index.parts])
        self._code_of = np.full(len(source.row_ids), -1, np.int64)
        first = 0
        for each in index.parts:
            addresses = Addresses(each.files, source.files)
            code_at = np.full(addresses.count + 1, -1, np.int64)  # the last entry is for -1, rows of other files
            code_at[each.numbers] = np.arange(first, first + len(each.numbers))
            codes = code_at[addresses.numbers(source.row_ids)]
            self._code_of = np.where(codes >= 0, codes, self._code_of)
            first += len(each.numbers)
        self._position_of = np.full(len(self._cells), -1, np.int64)
        coded = np.flatnonzero(self._code_of >= 0)
        self._position_of[self._code_of[coded]] = coded
        self._everything = self._cells.select(self._position_of >= 0)
        self._results = LruCache[bytes, Vectors](_ANSWERS)
        self._selections = LruCache[bytes, Selection](_ANSWERS)
        self._threads = forks.Threads(os.cpu_count() or 1, "framedex-vectors")

    def __len__(self) -> int:
        """Return the number of rows with a vector."""
        return self._everything.total

    def select(self, row_ids: RowIds) -> Selection:
        """Return the selection for :meth:`nearest` with the rows that pass a filter.

        The last ones are cached, because searches among the same rows often follow one another.

        Args:
            row_ids: uint64, ascending: ids of the rows.
        """
        key = hashlib.blake2b(np.ascontiguousarray(row_ids).data, digest_size=16).digest()
        if (cached := self._selections.get(key)) is not None:
            return cached
        codes = self._code_of[np.searchsorted(self.row_ids, row_ids)]
        mask = np.zeros(len(self._cells), bool)
        mask[codes[codes >= 0]] = True
        selection = self._cells.select(mask)
        self._selections.put(key, selection)
        return selection

    def nearest(
        self, query: Vectors, k: int, selection: Selection | None = None, *, n_candidates: int | None = None
    ) -> tuple[RowIds, Vectors]:
        """Return the nearest rows, nearest first.

        Args:
            query: float32, shape (D,), unit length.
            k: number of results; fewer if there are not enough rows.
            selection: the result of :meth:`select`; None for all rows.
            n_candidates: number of candidates to compare; by default enough for a recall of 98 %.

        Returns:
            row_ids: uint64, shape (≤ k,).
            similarity: float32, shape (≤ k,): cosines.
        """
        calibrated = n_candidates is None and k <= NEAREST
        rows, similarity = self._cells.nearest(
            query,
            k,
            selection or self._everything,
            n_candidates=n_candidates or max(self._n_candidates, 4 * k),
            reach=self._reach if calibrated else None,
        )
        return self.row_ids[self._position_of[rows]], similarity

    def similarities(self, query: Vectors) -> Vectors:
        """Return the similarity of each row: float32, shape (N,), read-only, NaN for rows without a vector.

        The last results are cached, because pages of one search follow one another.
        """
        key = query.tobytes()
        if (cached := self._results.get(key)) is not None:
            return cached
        by_code = self._cells.all(query, self._threads)
        out = np.full(len(self.row_ids), np.nan, np.float32)
        coded = self._position_of >= 0
        out[self._position_of[coded]] = by_code[coded]
        out.flags.writeable = False
        self._results.put(key, out)
        return out

    @cached_property
    def relevance(self) -> Relevance:
        """The relevance scale of similarities between rows, from a sample of random pairs."""
        vectors = self._random_vectors(_PAIRED)
        return measure_relevance((vectors @ vectors.T)[np.triu_indices(len(vectors), 1)], len(self))

    def relevance_of(self, query: Vectors) -> Relevance:
        """Return the relevance scale of similarities to a text's vector, from a sample of the rows."""
        return measure_relevance(self._sample @ query, len(self))

    @cached_property
    def _sample(self) -> Vectors:
        """The vectors of random rows: float32, shape (S, D)."""
        return self._random_vectors(_SAMPLED)

    def _random_vectors(self, count: int) -> Vectors:
        codes = np.random.default_rng(0).permutation(np.flatnonzero(self._position_of >= 0))[:count]
        return self._cells.vectors(np.sort(codes))  # all at once, as they may have to be read from disk

    def vector(self, row_id: int) -> Vectors | None:
        """Return the vector of a row: float32, shape (D,), unit length; None if the row has no vector."""
        position = int(np.searchsorted(self.row_ids, np.uint64(row_id)))
        code = int(self._code_of[position])
        return None if code < 0 else self._cells.vector(code)


class VectorIndices:
    """The open vector indices. Safe to share between threads.

    Args:
        small_bytes: codes up to this size are held in memory, and all are compared.
        tail_bytes: codes of newer rows up to this size are computed in memory whenever a state is opened.
    """

    def __init__(self, *, small_bytes: int = 32 * 2**20, tail_bytes: int = 64 * 2**20) -> None:
        self._small_bytes, self._tail_bytes = small_bytes, tail_bytes
        self._open: LruCache[tuple[Path, int, str], VectorIndex] = LruCache(_OPEN)
        self._locks: dict[Path, forks.Lock] = {}
        self._lock = forks.Lock()

    def open(
        self, media: Media, *, folder: Path | None, column: str = "embedding", progress: Progress | None = None
    ) -> VectorIndex:
        """Return the index of a dataset's vectors, built or extended if necessary.

        Args:
            media: the dataset's state.
            folder: the folder of the dataset's indices; None if it must not be written.
            column: name of the vector column.
            progress: receives the progress of building.

        Raises:
            WorkspaceError: the table cannot be read, or the index cannot be written.
        """
        key = media.table.path, media.table.version, column
        with self._lock:
            lock = self._locks.setdefault(media.table.path, forks.Lock())
        with lock:  # one thread builds the index while others wait
            if (index := self._open.get(key)) is not None:
                return index
            with own_errors(f"index the vectors of {media.table.path}"):
                index = self._opened(IndexSource.of(media, column), folder, progress or (lambda _stage, _share: None))
            self._open.put(key, index)
            return index

    def close(self) -> None:
        """Release all indices."""
        self._open.clear()

    def _opened(self, source: IndexSource, folder: Path | None, progress: Progress) -> VectorIndex:
        rows = len(source.row_ids)
        if 2 * rows * source.dimension <= self._small_bytes:
            return VectorIndex(source, make_small(source))
        if folder is None:
            scratch = Path(tempfile.mkdtemp(prefix="framedex-"))
            vectors = VectorIndex(source, make_index(source, scratch, progress))
            weakref.finalize(vectors, _remove, scratch, os.getpid())
            return vectors
        stored = read_indices(folder, column=source.column, dimension=source.dimension)
        best = max(stored, key=lambda index: _covered(source, index), default=None)
        if best is None or not _is_worth_keeping(source, best):
            new = make_index(source, folder, progress)
            assert new.folder is not None, "the index was built in a folder"
            remove_superseded(folder, new.folder, is_old=_is_old)
            return VectorIndex(source, new)
        missing = sum(each.rows for each in source.files.values()) - _covered(source, best)
        keep = 2 * missing * source.dimension > self._tail_bytes
        return VectorIndex(source, extend_index(source, best, keep=keep, progress=progress))


def _remove(scratch: Path, maker: int) -> None:
    if os.getpid() == maker:  # the child of a fork does not own the files
        shutil.rmtree(scratch, ignore_errors=True)


def _covered(source: IndexSource, index: StoredIndex) -> int:
    files = {name for part in index.parts for name in part.files}
    return sum(each.rows for name, each in source.files.items() if name in files)


def _is_worth_keeping(source: IndexSource, index: StoredIndex) -> bool:
    """Return whether an index has most of the rows of a state, and few other rows."""
    n_rows = sum(len(part.numbers) for part in index.parts)
    covered = _covered(source, index)
    return 2 * covered >= len(source.row_ids) and 2 * covered >= n_rows and len(index.parts) < _MOST_PARTS


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _FORGOTTEN_S
    except OSError:
        return False
