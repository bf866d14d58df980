"""An index of the captions of a dataset's state, for the rows nearest to a query's vector."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows
from framedex.analysis.quantized_ivf import Selection
from framedex.analysis.relevance import Relevance, measure_relevance, spread_of
from framedex.core import forks
from framedex.core.arrays import RowIds, Vectors
from framedex.core.forks import cached_property
from framedex.core.lru_cache import LruCache
from framedex.fulltext.segment import Ints, Longs
from framedex.search.captions.segments import CaptionSegment

_SAMPLED = 4096  # sample of captions for a query's similarity to unrelated captions
_PAIRED = 512  # part of the sample, for the similarity of random pairs
_KEPT = 2  # cached results and selections of a state


@dataclass(frozen=True)
class ChosenRows:
    """The candidate rows of a search.

    Attributes:
        rows: bool, shape (N,): mask of the rows; None for all.
        counts: int64, shape (texts,): number of candidate rows with each text.
        texts: for each segment, its texts that occur in the candidate rows.
    """

    rows: npt.NDArray[np.bool_] | None
    counts: Longs
    texts: tuple[Selection, ...]


class CaptionIndex:
    """The captions of a dataset's media at one state, ready for search. Safe to share between threads.

    Each distinct caption is compared once, even if many media share it.

    Args:
        row_ids: uint64, shape (N,), ascending: the ids of all rows.
        text_of: int32, shape (N,): number of each row's text, counted through all segments; -1 for rows without a
            caption.
        segments: the segments with the texts.
    """

    def __init__(self, row_ids: RowIds, text_of: Ints, segments: Sequence[CaptionSegment]) -> None:
        self.row_ids, self.text_of, self.segments = row_ids, text_of, tuple(segments)
        self._ends = np.cumsum([0, *map(len, self.segments)])
        self._rows_with_text = np.flatnonzero(text_of >= 0)
        order, self._starts = group_rows(text_of[self._rows_with_text], int(self._ends[-1]))
        self._rows = self._rows_with_text[order]
        self._everything = self._select(None, np.diff(self._starts))
        self._results = LruCache[bytes, Vectors](_KEPT)
        self._selections = LruCache[bytes, ChosenRows](_KEPT)
        self._threads = forks.Threads(os.cpu_count() or 1, "framedex-captions")

    def __len__(self) -> int:
        """Return the number of rows with a caption."""
        return len(self._rows_with_text)

    def _select(self, rows: npt.NDArray[np.bool_] | None, counts: Longs) -> ChosenRows:
        parts = zip(self.segments, self._ends, self._ends[1:], strict=False)
        return ChosenRows(rows, counts, tuple(each.cells.select(counts[a:b] > 0) for each, a, b in parts))

    def select(self, row_ids: RowIds) -> ChosenRows:
        """Return the selection for :meth:`nearest` with the rows that pass a filter; the last ones are cached.

        Args:
            row_ids: uint64, ascending: ids of the rows.
        """
        key = hashlib.blake2b(np.ascontiguousarray(row_ids).data, digest_size=16).digest()
        if (cached := self._selections.get(key)) is not None:
            return cached
        positions = np.searchsorted(self.row_ids, row_ids)
        rows = np.zeros(len(self.row_ids), bool)
        rows[positions] = True
        texts = self.text_of[positions]
        selection = self._select(rows, np.bincount(texts[texts >= 0], minlength=int(self._ends[-1])))
        self._selections.put(key, selection)
        return selection

    def nearest(
        self, query: Vectors, k: int, selection: ChosenRows | None = None, *, n_candidates: int | None = None
    ) -> tuple[RowIds, Vectors]:
        """Return the rows with the nearest captions, nearest first; ties are in row order.

        Args:
            query: float32, shape (D,), unit length.
            k: number of results; fewer if there are not enough rows.
            selection: the result of :meth:`select`; None for all rows.
            n_candidates: number of candidate texts per segment; by default enough for a recall of 98 %.

        Returns:
            row_ids: uint64, shape (≤ k,).
            similarity: float32, shape (≤ k,): cosines.
        """
        rows = selection or self._everything
        texts, similarity = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        for segment, start, candidates in zip(self.segments, self._ends, rows.texts, strict=False):
            enough = n_candidates or max(segment.n_candidates, 4 * k)
            numbers, near = segment.cells.nearest(query, k, candidates, n_candidates=enough)
            texts.append(numbers + start)
            similarity.append(near)
        every, near = np.concatenate(texts), np.concatenate(similarity)
        order = np.argsort(-near, kind="stable")
        return self._rows_with(every[order], near[order], rows, k)

    def _rows_with(self, texts: Longs, similarity: Vectors, selection: ChosenRows, k: int) -> tuple[RowIds, Vectors]:
        """Return the first k rows with some texts, which are sorted by descending similarity."""
        counts = np.minimum(selection.counts[texts], k)
        enough = int(np.searchsorted(np.cumsum(counts), k)) + 1
        if enough < len(texts):  # tied texts may have earlier rows
            enough = int(np.searchsorted(-similarity, -similarity[enough - 1], side="right"))
        rows = [np.empty(0, np.int64)]
        for text in texts[:enough].tolist():
            text_rows = self._rows[self._starts[text] : self._starts[text + 1]]
            rows.append((text_rows if selection.rows is None else text_rows[selection.rows[text_rows]])[:k])
        every, near = np.concatenate(rows), np.repeat(similarity[:enough], counts[:enough])
        order = np.lexsort((every, -near))[:k]
        return self.row_ids[every[order]], near[order]

    def similarities(self, query: Vectors) -> Vectors:
        """Return the similarity of each row: float32, shape (N,), read-only, NaN for rows without a caption.

        The last results are cached, because pages of one search follow one another.
        """
        key = query.tobytes()
        if (cached := self._results.get(key)) is not None:
            return cached
        by_text = np.concatenate(
            [np.empty(0, np.float32), *(each.cells.all(query, self._threads) for each in self.segments)]
        )
        out = np.full(len(self.row_ids), np.nan, np.float32)
        out[self._rows_with_text] = by_text[self.text_of[self._rows_with_text]]
        out.flags.writeable = False
        self._results.put(key, out)
        return out

    def relevance_of(self, query: Vectors) -> Relevance:
        """Return the relevance scale of caption similarities to a query.

        The reference is a sample of all captions, with at least the spread of random pairs of captions.
        """
        texts = int(np.count_nonzero(self._everything.counts))
        return measure_relevance(self._sample @ query, texts, least_spread=self._spread)

    @cached_property
    def _spread(self) -> float:
        sample = self._sample[np.random.default_rng(0).permutation(len(self._sample))[:_PAIRED]]
        return spread_of((sample @ sample.T)[np.triu_indices(len(sample), 1)])

    @cached_property
    def _sample(self) -> Vectors:
        texts = np.flatnonzero(self._everything.counts)
        sample = np.sort(np.random.default_rng(0).choice(texts, min(_SAMPLED, len(texts)), replace=False))
        bounds = np.searchsorted(sample, self._ends)
        parts = zip(self.segments, bounds, bounds[1:], self._ends, strict=False)
        return np.concatenate([each.codes.vectors(sample[a:b] - first) for each, a, b, first in parts])

    def vector(self, row_id: int) -> Vectors | None:
        """Return the embedding of a row's caption: float32, shape (D,), unit length; None without a caption."""
        text = int(self.text_of[int(np.searchsorted(self.row_ids, np.uint64(row_id)))])
        if text < 0:
            return None
        number = int(np.searchsorted(self._ends, text, side="right")) - 1
        return self.segments[number].codes.vector(text - int(self._ends[number]))
