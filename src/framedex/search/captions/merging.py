"""Many segments of captions' vectors become one, whose texts are sorted into cells when they are many."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, cell_count, find_centroids
from framedex.analysis.codes import Codes, Rows
from framedex.analysis.products import best_products
from framedex.analysis.quantized_ivf import Block, QuantizedIvf, sorted_by_cell
from framedex.arrays import Vectors
from framedex.fulltext.segment import Keys, Longs
from framedex.search.captions.segments import CaptionSegment, SegmentWriter
from framedex.search.vectors.building import measure_candidates

ONE_CELL_BYTES = 32 * 2**20
"""Codes up to that size are in one cell, so that all of them are compared: that takes a few milliseconds."""
_BLOCK = 8192
_SAMPLED = 32  # texts for each cell, where cells are found


def merge_segments(
    segments: Sequence[CaptionSegment],
    chosen: Sequence[npt.NDArray[np.bool_]],
    folder: Path,
    progress: Callable[[float], None],
) -> CaptionSegment:
    """Write a segment with texts of others, each once, and return it.

    Args:
        segments: at least one.
        chosen: bool, for each of them: which of its texts; at least one of all.
        folder: where it goes.
        progress: called with the share that is done; raises to stop.

    Raises:
        OSError: the disk refuses it; nothing stays of it.
    """
    source = _Source(segments, chosen)
    writer = SegmentWriter(folder, len(source.keys), segments[0].codes.int8.shape[1])
    try:
        centroids, cell = _cells(source, progress)
        place, starts = sorted_by_cell(cell, len(centroids))
        done = 0
        for codes, rows in source.blocks():
            target = place[done : done + len(rows)]
            for name in ("int8", "residual", "scale"):
                getattr(writer.codes, name)[target] = getattr(codes, name)[rows]
            done += len(rows)
            progress(0.6 + 0.2 * done / len(place))
        order = np.empty_like(place)
        order[place] = np.arange(len(place))
        n_candidates = _compared(QuantizedIvf(centroids, [Block(writer.codes, starts)]), progress)
        return writer.finish(source.keys[order], centroids, starts, n_candidates)
    except BaseException:
        writer.give_up()
        raise


class _Source:
    """Texts of some segments, numbered through in their order.

    Attributes:
        keys: of the texts.
    """

    def __init__(self, segments: Sequence[CaptionSegment], chosen: Sequence[npt.NDArray[np.bool_]]) -> None:
        self._segments = segments
        keys = [_keys_by_text(segment) for segment in segments]
        every = Keys(np.concatenate([each.low for each in keys]), np.concatenate([each.high for each in keys]))
        held = np.flatnonzero(_first_of_each(every, np.concatenate(chosen)))
        self.keys = every[held]
        ends = np.cumsum([0, *(len(segment) for segment in segments)])
        bounds = np.searchsorted(held, ends)
        self._rows: list[Rows] = [
            held[first:last] - end for first, last, end in zip(bounds, bounds[1:], ends, strict=False)
        ]

    def blocks(self) -> Iterator[tuple[Codes, Rows]]:
        """Yield the texts, some thousand at a time: the codes of a segment, and rows of these."""
        for segment, rows in zip(self._segments, self._rows, strict=True):
            for start in range(0, len(rows), _BLOCK):
                yield segment.codes, rows[start : start + _BLOCK]

    def vectors(self, wanted: npt.NDArray[np.bool_]) -> Iterator[Vectors]:
        """Yield the vectors of some texts, in their order."""
        start = 0
        for codes, rows in self.blocks():
            yield codes.vectors(rows[wanted[start : start + len(rows)]])
            start += len(rows)


def _keys_by_text(segment: CaptionSegment) -> Keys:
    order = np.empty_like(segment.key_text)
    order[segment.key_text] = np.arange(len(segment), dtype=order.dtype)
    return segment.keys[order]


def _first_of_each(keys: Keys, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of the chosen texts are the first with their key: two processes may have made the same."""
    places = np.flatnonzero(chosen)
    some = keys[places]
    order = np.lexsort((places, some.high, some.low))
    some = some[order]
    again = np.zeros(len(order), bool)
    again[1:] = (some.low[1:] == some.low[:-1]) & (some.high[1:] == some.high[:-1])
    found = chosen.copy()
    found[places[order[again]]] = False
    return found


def _cells(source: _Source, progress: Callable[[float], None]) -> tuple[Vectors, npt.NDArray[np.int32]]:
    """Return the centroids of cells, and the cell of each text."""
    texts = len(source.keys)
    first = next(source.vectors(np.ones(texts, bool)))
    if 2 * texts * first.shape[1] <= ONE_CELL_BYTES:
        return np.zeros((1, first.shape[1]), np.float32), np.zeros(texts, np.int32)
    count, random, engine = cell_count(texts), np.random.default_rng(0), best_products()
    sampled = np.zeros(texts, bool)
    sampled[random.choice(texts, min(texts, _SAMPLED * count), replace=False)] = True
    sample = np.concatenate(list(source.vectors(sampled)))
    centroids = find_centroids(
        sample, min(count, len(sample)), engine=engine, random=random, progress=lambda share: progress(0.3 * share)
    )
    cell = np.empty(texts, np.int32)
    done = 0
    for vectors in source.vectors(np.ones(texts, bool)):
        cell[done : done + len(vectors)] = assign(vectors, centroids, engine=engine)
        done += len(vectors)
        progress(0.3 + 0.3 * done / texts)
    return centroids, cell


def _compared(cells: QuantizedIvf, progress: Callable[[float], None]) -> int:
    """Return how many texts a search has to compare; all where there is but one cell."""
    if len(cells.centroids) == 1:
        return len(cells)
    return measure_candidates(cells, lambda share: progress(0.8 + 0.2 * share))


def one_cell(texts: int, dimension: int) -> tuple[Vectors, Longs, int]:
    """Return centroids, starts and how many texts to compare, for :meth:`SegmentWriter.finish` of a small segment."""
    return np.zeros((1, dimension), np.float32), np.array([0, texts]), texts
