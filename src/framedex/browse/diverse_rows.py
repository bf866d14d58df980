"""Rows that cover a selection: vectors of a sample, then one pass over all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.coverage import Covered, choose_covering, covered_by, sample_size
from framedex.analysis.products import best_products
from framedex.core.arrays import RowIds, Vectors
from framedex.core.progress import ShareProgress
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import flat

_VECTOR = "embedding"
_SAMPLE_SHARE, _CHOICE_SHARE = 0.05, 0.6  # of the progress


@dataclass(frozen=True)
class DiverseRows:
    """The rows that were chosen, and what they cover.

    Attributes:
        chosen: uint64, shape (n,): in the order in which they add most.
        rows: uint64, shape (N,), ascending: the rows of the selection with an embedding.
        covered: what covers each of them.
    """

    chosen: RowIds
    rows: RowIds
    covered: Covered


_NOTHING = DiverseRows(
    np.empty(0, np.uint64), np.empty(0, np.uint64), Covered(np.empty(0, np.int32), np.empty(0, np.float32))
)


def find_diverse_rows(media: Media, row_ids: RowIds, count: int, *, seed: int, progress: ShareProgress) -> DiverseRows:
    """Return the rows that cover a selection best; all with an embedding if there are no more than *count*.

    Args:
        media: the media, or the objects.
        row_ids: uint64, in any order: the selection.
        count: the number of rows.
        seed: decides about the sample among which rows are chosen.
        progress: called with the share that is done; raises to stop.
    """
    rows = np.sort(row_ids)
    if not len(rows) or not count or is_empty_object_view(media):
        return _NOTHING
    draw = np.random.default_rng(seed)
    sample = np.sort(draw.permutation(rows)[: sample_size(count)])
    kept, vectors = _read(media, sample)
    if len(kept) < min(count, len(rows)):  # most rows have no embedding, so the sample is too small
        kept, vectors = _read(media, rows)
    if not len(kept):
        return _NOTHING
    progress(_SAMPLE_SHARE)
    order = draw.permutation(len(kept))
    kept, vectors = kept[order], vectors[order]
    engine = best_products()

    def choosing(share: float) -> None:
        progress(_SAMPLE_SHARE + (_CHOICE_SHARE - _SAMPLE_SHARE) * share)

    numbers = choose_covering(vectors, count, engine=engine, progress=choosing)
    chosen = vectors[numbers]
    with_vector = list[RowIds]()

    def blocks() -> Iterator[Vectors]:
        for block_rows, block in _blocks(media, rows):
            with_vector.append(block_rows)
            yield block

    covered = covered_by(
        blocks(),
        len(rows),
        chosen,
        engine=engine,
        after_block=lambda done: progress(_CHOICE_SHARE + (1 - _CHOICE_SHARE) * done / len(rows)),
    )
    found = np.concatenate([_NOTHING.rows, *with_vector])
    return DiverseRows(kept[numbers], found, Covered(covered.by[: len(found)], covered.similarity[: len(found)]))


def _read(media: Media, rows: RowIds) -> tuple[RowIds, Vectors]:
    """Return those of some rows, ascending, that have an embedding, and the embeddings."""
    found = list(_blocks(media, rows))
    dimension = media.table.schema.field(_VECTOR).type.list_size
    return (
        np.concatenate([np.empty(0, np.uint64), *(each for each, _ in found)]),
        np.concatenate([np.empty((0, dimension), np.float32), *(each for _, each in found)]),
    )


def _blocks(media: Media, rows: RowIds) -> Iterator[tuple[RowIds, Vectors]]:
    """Yield those of some rows, ascending, that have an embedding, with it: float32, shape (≤ block, D)."""
    dimension = media.table.schema.field(_VECTOR).type.list_size
    start = 0
    for block in media.blocks(EVERYTHING if len(rows) == media.table.count() else rows, [_VECTOR]):
        values = block[_VECTOR].combine_chunks()
        is_valid: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
        yield rows[start : start + len(block)][is_valid], np.asarray(flat(values, dimension), np.float32)[is_valid]
        start += len(block)
