"""Merging of caption segments into one, with its texts in cells if there are many."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, cell_count, find_centroids
from framedex.analysis.codes import Codes, Rows
from framedex.analysis.products import best_products
from framedex.analysis.quantized_ivf import Block, QuantizedIvf, sorted_by_cell
from framedex.core.arrays import Vectors
from framedex.fulltext.segment import Keys, Longs
from framedex.search.captions.segments import CaptionSegment, SegmentWriter
from framedex.search.vectors.building import measure_candidates

ONE_CELL_BYTES = 32 * 2**20
"""Codes up to this size are stored in one cell, so that all are compared, which takes a few milliseconds."""
_BLOCK = 8192
_SAMPLED = 32  # sampled texts per cell for the clustering


def merge_caption_segments(
    segments: Sequence[CaptionSegment],
    masks: Sequence[npt.NDArray[np.bool_]],
    folder: Path,
    progress: Callable[[float], None],
) -> CaptionSegment:
    """Write a segment with texts of others, each text once, and return it.

    Args:
        segments: at least one.
        masks: bool, for each segment: mask of the texts to keep; at least one in all.
        folder: folder of the new segment.
        progress: called with the completed share; raises to stop.

    Raises:
        OSError: the segment cannot be written; no file remains.
    """
    source = _Source(segments, masks)
    writer = SegmentWriter(folder, len(source.keys), segments[0].codes.int8.shape[1])
    try:
        centroids, cell = _cells(source, progress)
        positions, starts = sorted_by_cell(cell, len(centroids))
        written = 0
        for codes, rows in source.blocks():
            target = positions[written : written + len(rows)]
            for name in ("int8", "residual", "scale"):
                getattr(writer.codes, name)[target] = getattr(codes, name)[rows]
            written += len(rows)
            progress(0.6 + 0.2 * written / len(positions))
        order = np.empty_like(positions)
        order[positions] = np.arange(len(positions))
        n_candidates = _candidate_count(QuantizedIvf(centroids, [Block(writer.codes, starts)]), progress)
        return writer.finish(source.keys[order], centroids, starts, n_candidates)
    except BaseException:
        writer.give_up()
        raise


class _Source:
    """The selected texts of several segments, numbered in their order.

    Attributes:
        keys: keys of the texts.
    """

    def __init__(self, segments: Sequence[CaptionSegment], masks: Sequence[npt.NDArray[np.bool_]]) -> None:
        self._segments = segments
        keys = [_keys_by_text(segment) for segment in segments]
        every = Keys(np.concatenate([each.low for each in keys]), np.concatenate([each.high for each in keys]))
        selected = np.flatnonzero(_first_of_each(every, np.concatenate(masks)))
        self.keys = every[selected]
        ends = np.cumsum([0, *(len(segment) for segment in segments)])
        bounds = np.searchsorted(selected, ends)
        self._rows: list[Rows] = [
            selected[first:last] - end for first, last, end in zip(bounds, bounds[1:], ends, strict=False)
        ]

    def blocks(self) -> Iterator[tuple[Codes, Rows]]:
        """Yield the texts in blocks of some thousand: the codes of a segment, and rows of these codes."""
        for segment, rows in zip(self._segments, self._rows, strict=True):
            for start in range(0, len(rows), _BLOCK):
                yield segment.codes, rows[start : start + _BLOCK]

    def vectors(self, requested: npt.NDArray[np.bool_]) -> Iterator[Vectors]:
        """Yield the vectors of some texts, in their order."""
        start = 0
        for codes, rows in self.blocks():
            yield codes.vectors(rows[requested[start : start + len(rows)]])
            start += len(rows)


def _keys_by_text(segment: CaptionSegment) -> Keys:
    order = np.empty_like(segment.key_text)
    order[segment.key_text] = np.arange(len(segment), dtype=order.dtype)
    return segment.keys[order]


def _first_of_each(keys: Keys, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the mask of the first text of each key: two processes may have written the same text."""
    positions = np.flatnonzero(mask)
    selected = keys[positions]
    order = np.lexsort((positions, selected.high, selected.low))
    selected = selected[order]
    repeated = np.zeros(len(order), bool)
    repeated[1:] = (selected.low[1:] == selected.low[:-1]) & (selected.high[1:] == selected.high[:-1])
    first = mask.copy()
    first[positions[order[repeated]]] = False
    return first


def _cells(source: _Source, progress: Callable[[float], None]) -> tuple[Vectors, npt.NDArray[np.int32]]:
    """Return the centroids of the cells, and the cell of each text."""
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
    assigned = 0
    for vectors in source.vectors(np.ones(texts, bool)):
        cell[assigned : assigned + len(vectors)] = assign(vectors, centroids, engine=engine)
        assigned += len(vectors)
        progress(0.3 + 0.3 * assigned / texts)
    return centroids, cell


def _candidate_count(cells: QuantizedIvf, progress: Callable[[float], None]) -> int:
    """Return the number of candidates that a search needs; all texts if there is only one cell."""
    if len(cells.centroids) == 1:
        return len(cells)
    return measure_candidates(cells, lambda share: progress(0.8 + 0.2 * share))


def one_cell(texts: int, dimension: int) -> tuple[Vectors, Longs, int]:
    """Return centroids, starts and number of candidates for :meth:`SegmentWriter.finish` of a small segment."""
    return np.zeros((1, dimension), np.float32), np.array([0, texts]), texts
