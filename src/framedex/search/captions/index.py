"""The media whose captions are nearest to a query's vector, at one state of a dataset."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex import forks
from framedex.analysis.cells import group_rows
from framedex.analysis.quantized_ivf import Selection
from framedex.analysis.relevance import Relevance, SimilarityDistribution, query_relevance
from framedex.arrays import RowIds, Vectors
from framedex.forks import cached_property
from framedex.fulltext.segment import Ints, Longs
from framedex.lru_cache import LruCache
from framedex.search.captions.segments import CaptionSegment

_SAMPLED = 4096  # captions that tell how near a query is to those that have nothing to do with it
_PAIRED = 512  # of these, that tell how near captions at random are to each other
_KEPT = 2  # answers and selections of a state


@dataclass(frozen=True)
class ChosenRows:
    """Rows that may be answers.

    Attributes:
        rows: bool, shape (N,): which; None for all.
        counts: int64, shape (texts,): how many of them have each text.
        texts: for each segment, its texts that one of them has.
    """

    rows: npt.NDArray[np.bool_] | None
    counts: Longs
    texts: tuple[Selection, ...]


class CaptionIndex:
    """The captions of a dataset's media at one state, ready to be searched. Safe to share between threads.

    Each distinct caption is compared once, however many media have it.

    Args:
        row_ids: uint64, shape (N,), ascending: of all rows.
        text_of: int32, shape (N,): the text of each, counted over the segments; -1 for rows without a caption.
        segments: the texts.
    """

    def __init__(self, row_ids: RowIds, text_of: Ints, segments: Sequence[CaptionSegment]) -> None:
        self.row_ids, self._text_of, self._segments = row_ids, text_of, tuple(segments)
        self._ends = np.cumsum([0, *map(len, self._segments)])
        self._held = np.flatnonzero(text_of >= 0)
        order, self._starts = group_rows(text_of[self._held], int(self._ends[-1]))
        self._rows = self._held[order]
        self._everything = self._chosen(None, np.diff(self._starts))
        self._answers = LruCache[bytes, Vectors](_KEPT)
        self._selections = LruCache[bytes, ChosenRows](_KEPT)
        self._threads = forks.Threads(os.cpu_count() or 1, "framedex-captions")

    def __len__(self) -> int:
        """How many rows have a caption."""
        return len(self._held)

    def _chosen(self, rows: npt.NDArray[np.bool_] | None, counts: Longs) -> ChosenRows:
        parts = zip(self._segments, self._ends, self._ends[1:], strict=False)
        return ChosenRows(rows, counts, tuple(each.cells.select(counts[a:b] > 0) for each, a, b in parts))

    def select(self, row_ids: RowIds) -> ChosenRows:
        """Return what :meth:`nearest` needs to know of the rows that a filter leaves; the last ones are kept.

        Args:
            row_ids: uint64, ascending: of these rows.
        """
        key = hashlib.blake2b(np.ascontiguousarray(row_ids).data, digest_size=16).digest()
        if (known := self._selections.get(key)) is not None:
            return known
        places = np.searchsorted(self.row_ids, row_ids)
        rows = np.zeros(len(self.row_ids), bool)
        rows[places] = True
        texts = self._text_of[places]
        found = self._chosen(rows, np.bincount(texts[texts >= 0], minlength=int(self._ends[-1])))
        self._selections.put(key, found)
        return found

    def nearest(
        self, query: Vectors, k: int, selection: ChosenRows | None = None, *, n_candidates: int | None = None
    ) -> tuple[RowIds, Vectors]:
        """Return the rows with the nearest captions, nearest first; of equally near ones the first.

        Args:
            query: float32, shape (D,), unit length.
            k: how many; fewer come back where there are no more.
            selection: what :meth:`select` returned; None for all.
            n_candidates: how many texts of each segment to compare; by default enough for 98 % of the true nearest.

        Returns:
            row_ids: uint64, shape (≤ k,).
            similarity: float32, shape (≤ k,): cosines.
        """
        chosen = selection or self._everything
        texts, similarity = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        for segment, start, some in zip(self._segments, self._ends, chosen.texts, strict=False):
            enough = n_candidates or max(segment.n_candidates, 4 * k)
            found, near = segment.cells.nearest(query, k, some, n_candidates=enough)
            texts.append(found + start)
            similarity.append(near)
        every, near = np.concatenate(texts), np.concatenate(similarity)
        order = np.argsort(-near, kind="stable")
        return self._rows_with(every[order], near[order], chosen, k)

    def _rows_with(self, texts: Longs, similarity: Vectors, chosen: ChosenRows, k: int) -> tuple[RowIds, Vectors]:
        """Return the first k rows that have some texts, which come with descending similarities."""
        held = np.minimum(chosen.counts[texts], k)
        enough = int(np.searchsorted(np.cumsum(held), k)) + 1
        if enough < len(texts):  # equally near ones may have rows that come first
            enough = int(np.searchsorted(-similarity, -similarity[enough - 1], side="right"))
        rows = [np.empty(0, np.int64)]
        for text in texts[:enough].tolist():
            some = self._rows[self._starts[text] : self._starts[text + 1]]
            rows.append((some if chosen.rows is None else some[chosen.rows[some]])[:k])
        every, near = np.concatenate(rows), np.repeat(similarity[:enough], held[:enough])
        order = np.lexsort((every, -near))[:k]
        return self.row_ids[every[order]], near[order]

    def similarities(self, query: Vectors) -> Vectors:
        """Return the similarity of each row: float32, shape (N,), read-only, NaN for rows without a caption.

        The last answers are kept: pages of one search are asked for one after another.
        """
        key = query.tobytes()
        if (known := self._answers.get(key)) is not None:
            return known
        found = np.concatenate(
            [np.empty(0, np.float32), *(each.cells.all(query, self._threads) for each in self._segments)]
        )
        out = np.full(len(self.row_ids), np.nan, np.float32)
        out[self._held] = found[self._text_of[self._held]]
        out.flags.writeable = False
        self._answers.put(key, out)
        return out

    def relevance_of(self, query: Vectors) -> Relevance:
        """Return what similarities of captions to a query mean.

        They are held against those of a sample of all captions, which spread at least as those of captions at random.
        """
        texts = int(np.count_nonzero(self._everything.counts))
        return query_relevance(self._sample @ query, texts, least_spread=self._spread)

    @cached_property
    def _spread(self) -> float:
        some = self._sample[np.random.default_rng(0).permutation(len(self._sample))[:_PAIRED]]
        pairs = (some @ some.T)[np.triu_indices(len(some), 1)]
        return SimilarityDistribution.of(pairs).spread if len(pairs) else 0.0

    @cached_property
    def _sample(self) -> Vectors:
        texts = np.flatnonzero(self._everything.counts)
        chosen = np.sort(np.random.default_rng(0).choice(texts, min(_SAMPLED, len(texts)), replace=False))
        bounds = np.searchsorted(chosen, self._ends)
        parts = zip(self._segments, bounds, bounds[1:], self._ends, strict=False)
        return np.concatenate([each.codes.vectors(chosen[a:b] - first) for each, a, b, first in parts])

    def vector(self, row_id: int) -> Vectors | None:
        """Return the vector of a row's caption: float32, shape (D,), unit length; None if it has none."""
        text = int(self._text_of[int(np.searchsorted(self.row_ids, np.uint64(row_id)))])
        if text < 0:
            return None
        number = int(np.searchsorted(self._ends, text, side="right")) - 1
        return self._segments[number].codes.vector(text - int(self._ends[number]))
