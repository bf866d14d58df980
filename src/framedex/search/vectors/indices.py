"""The nearest media of a vector: among all of a dataset's, or those that a filter leaves."""

import hashlib
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

import numpy as np

from framedex import forks
from framedex.analysis.quantized_ivf import QuantizedIvf, Selection
from framedex.analysis.relevance import Relevance, measure_relevance, query_relevance
from framedex.arrays import RowIds, Vectors
from framedex.forks import cached_property
from framedex.lru_cache import LruCache
from framedex.progress import Progress
from framedex.search.vectors.building import IndexSource, extend_index, make_index, make_small
from framedex.search.vectors.folder import StoredIndex, read_indices, remove_others
from framedex.storage.failures import own_errors
from framedex.storage.media import Media
from framedex.storage.vector_files import Addresses

_MOST_PARTS = 8
_SAMPLED, _ASKED, _NEIGHBOURS, _COPY = 512, 128, 5, 0.9999  # rows, queries, neighbours of each, similarity
_OPEN = 4  # states of datasets
_ANSWERS = 2  # of a state, that are kept
_FORGOTTEN_S = 86_400.0  # an unfinished index of that age is nobody's work


class VectorIndex:
    """The vectors of a dataset at one state, ready to be searched. Safe to share between threads.

    Args:
        source: the state.
        index: codes of at least all of its rows.
    """

    def __init__(self, source: IndexSource, index: StoredIndex) -> None:
        self.row_ids, self.dimension, self._compared = source.row_ids, source.dimension, index.n_candidates
        self._cells = QuantizedIvf(index.centroids, [each.part for each in index.parts])
        self._code_of = np.full(len(source.row_ids), -1, np.int64)
        first = 0
        for each in index.parts:
            addresses = Addresses(each.files, source.files)
            code_at = np.full(addresses.count + 1, -1, np.int64)  # the last one is for -1, rows of other files
            code_at[each.numbers] = np.arange(first, first + len(each.numbers))
            found = code_at[addresses.numbers(source.row_ids)]
            self._code_of = np.where(found >= 0, found, self._code_of)
            first += len(each.numbers)
        self._place_of = np.full(len(self._cells), -1, np.int64)
        held = np.flatnonzero(self._code_of >= 0)
        self._place_of[self._code_of[held]] = held
        self._everything = self._cells.select(self._place_of >= 0)
        self._answers = LruCache[bytes, Vectors](_ANSWERS)
        self._selections = LruCache[bytes, Selection](_ANSWERS)
        self._threads = forks.Threads(os.cpu_count() or 1, "framedex-vectors")

    def __len__(self) -> int:
        """How many rows have a vector."""
        return self._everything.total

    def select(self, row_ids: RowIds) -> Selection:
        """Return what :meth:`nearest` needs to know of the rows that a filter leaves.

        The last ones are kept: one search among the same rows follows another.

        Args:
            row_ids: uint64, ascending: of these rows.
        """
        key = hashlib.blake2b(np.ascontiguousarray(row_ids).data, digest_size=16).digest()
        if (known := self._selections.get(key)) is not None:
            return known
        codes = self._code_of[np.searchsorted(self.row_ids, row_ids)]
        mask = np.zeros(len(self._cells), bool)
        mask[codes[codes >= 0]] = True
        found = self._cells.select(mask)
        self._selections.put(key, found)
        return found

    def nearest(
        self, query: Vectors, k: int, selection: Selection | None = None, *, n_candidates: int | None = None
    ) -> tuple[RowIds, Vectors]:
        """Return the nearest rows, nearest first.

        Args:
            query: float32, shape (D,), unit length.
            k: how many; fewer come back where there are no more.
            selection: what :meth:`select` returned; None for all.
            n_candidates: how many rows to compare; by default as many as find 98 % of the true nearest.

        Returns:
            row_ids: uint64, shape (≤ k,).
            similarity: float32, shape (≤ k,): cosines.
        """
        rows, similarity = self._cells.nearest(
            query, k, selection or self._everything, n_candidates=n_candidates or max(self._compared, 4 * k)
        )
        return self.row_ids[self._place_of[rows]], similarity

    def similarities(self, query: Vectors) -> Vectors:
        """Return the similarity of each row: float32, shape (N,), read-only, NaN for rows without a vector.

        The last answers are kept: pages of one search are asked for one after another.
        """
        key = query.tobytes()
        if (known := self._answers.get(key)) is not None:
            return known
        found = self._cells.all(query, self._threads)
        out = np.full(len(self.row_ids), np.nan, np.float32)
        held = self._place_of >= 0
        out[self._place_of[held]] = found[held]
        out.flags.writeable = False
        self._answers.put(key, out)
        return out

    @cached_property
    def relevance(self) -> Relevance:
        """What similarities mean here, from samples of neighbours and of pairs at random."""
        random = np.random.default_rng(0)
        codes = np.flatnonzero(self._place_of >= 0)
        chosen = random.choice(codes, min(_SAMPLED, len(codes)), replace=False)
        vectors = np.stack([self._cells.vector(int(each)) for each in chosen]) if len(chosen) else np.empty((0, 1))
        random_pairs = (vectors @ vectors.T)[~np.eye(len(vectors), dtype=bool)]
        found = [self.nearest(vector, _NEIGHBOURS + 1)[1] for vector in vectors[:_ASKED]]
        neighbours = np.concatenate([np.empty(0, np.float32), *found])
        # A copy, as of the query itself, says nothing of what is alike.
        return measure_relevance(neighbours[neighbours < _COPY], np.asarray(random_pairs, np.float32))

    def relevance_of(self, query: Vectors) -> Relevance:
        """Return what similarities to a text's vector mean."""
        similarity = self.similarities(query)
        similarity = similarity[~np.isnan(similarity)]
        return query_relevance(similarity, len(similarity))

    def vector(self, row_id: int) -> Vectors | None:
        """Return the vector of a row: float32, shape (D,), unit length; None if it has none."""
        place = int(np.searchsorted(self.row_ids, np.uint64(row_id)))
        code = int(self._code_of[place])
        return None if code < 0 else self._cells.vector(code)


class VectorIndices:
    """The indices that are open. Safe to share between threads.

    Args:
        small_bytes: codes up to that size are held in memory, and all of them compared.
        tail_bytes: codes of newer rows up to that size are made in memory, each time that a state is opened.
    """

    def __init__(self, *, small_bytes: int = 32 * 2**20, tail_bytes: int = 64 * 2**20) -> None:
        self._small_bytes, self._tail_bytes = small_bytes, tail_bytes
        self._open: LruCache[tuple[Path, int, str], VectorIndex] = LruCache(_OPEN)
        self._locks: dict[Path, forks.Lock] = {}
        self._lock = forks.Lock()

    def open(
        self, media: Media, *, folder: Path | None, column: str = "embedding", progress: Progress | None = None
    ) -> VectorIndex:
        """Return the index of a dataset's vectors; it is made or extended where need be.

        Args:
            media: the state that is searched.
            folder: where indices of the dataset are kept; None where nothing may be written.
            column: which vectors.
            progress: hears how far the making is.

        Raises:
            WorkspaceError: the table cannot be read, or the index not be written.
        """
        key = media.table.path, media.table.version, column
        with self._lock:
            lock = self._locks.setdefault(media.table.path, forks.Lock())
        with lock:  # one thread makes what the others wait for
            if (found := self._open.get(key)) is not None:
                return found
            with own_errors(f"index the vectors of {media.table.path}"):
                found = self._opened(IndexSource.of(media, column), folder, progress or (lambda _stage, _share: None))
            self._open.put(key, found)
            return found

    def close(self) -> None:
        """Let go of all."""
        self._open.clear()

    def _opened(self, source: IndexSource, folder: Path | None, progress: Progress) -> VectorIndex:
        rows = len(source.row_ids)
        if 2 * rows * source.dimension <= self._small_bytes:
            return VectorIndex(source, make_small(source))
        if folder is None:
            scratch = Path(tempfile.mkdtemp(prefix="framedex-"))
            found = VectorIndex(source, make_index(source, scratch, progress))
            weakref.finalize(found, _remove, scratch, os.getpid())
            return found
        known = read_indices(folder, column=source.column, dimension=source.dimension)
        best = max(known, key=lambda index: _covered(source, index), default=None)
        if best is None or not _is_worth_keeping(source, best):
            made = make_index(source, folder, progress)
            assert made.folder is not None, "it was given a folder"
            remove_others(folder, made.folder, is_old=_is_old)
            return VectorIndex(source, made)
        missing = sum(each.rows for each in source.files.values()) - _covered(source, best)
        keep = 2 * missing * source.dimension > self._tail_bytes
        return VectorIndex(source, extend_index(source, best, keep=keep, progress=progress))


def _remove(scratch: Path, maker: int) -> None:
    if os.getpid() == maker:  # the child of a fork has the object, and not the files
        shutil.rmtree(scratch, ignore_errors=True)


def _covered(source: IndexSource, index: StoredIndex) -> int:
    files = {name for part in index.parts for name in part.files}
    return sum(each.rows for name, each in source.files.items() if name in files)


def _is_worth_keeping(source: IndexSource, index: StoredIndex) -> bool:
    """Return whether an index has most of the rows, and not too much else."""
    held = sum(len(part.numbers) for part in index.parts)
    covered = _covered(source, index)
    return 2 * covered >= len(source.row_ids) and 2 * covered >= held and len(index.parts) < _MOST_PARTS


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _FORGOTTEN_S
    except OSError:
        return False
