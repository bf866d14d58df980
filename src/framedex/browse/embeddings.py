"""Embeddings of media with their ids."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import flat, new_matrix

_BLOCK = 8192  # rows


def vectors(media: Media) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Return (media ids, float32 (N, D)) of the media with an embedding, in row order."""
    positions, embeddings = media.table.vectors()
    ids = media.table.scan(["media_id"]).read_all().column(0).combine_chunks()
    return ids.take(pa.array(positions)).to_pylist(), np.asarray(embeddings)


def selected_vectors(
    media: Media, row_ids: RowIds, *, max_bytes: int | None = None
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Return (media ids, float32 (N, D)) of those of the given rows that have an embedding, in the given order.

    Args:
        media: the media, or the objects.
        row_ids: the rows, in any order.
        max_bytes: a larger result is stored in an unnamed file; by default half of the machine's memory.
    """
    dimension = media.table.schema.field("embedding").type.list_size
    out = new_matrix(len(row_ids), dimension, media.table.path.parent, max_bytes)
    if not len(row_ids) or is_empty_object_view(media):
        return [], out[:0]
    order = np.argsort(row_ids)  # rows are read in the order of the file
    has_vector = np.empty(len(row_ids), bool)
    start = 0
    for block in media.blocks(row_ids[order], ["embedding"]):
        places = order[start : start + len(block)]
        values = block["embedding"].combine_chunks()
        out[places] = flat(values, dimension)
        has_vector[places] = values.is_valid().to_numpy(zero_copy_only=False)
        start += len(block)
    present = np.flatnonzero(has_vector)
    if len(present) < len(out):
        for start in range(0, len(present), _BLOCK):  # moved towards the start, block by block
            chosen = present[start : start + _BLOCK]
            out[start : start + len(chosen)] = out[chosen]
    return media.values_at(row_ids[present], "media_id").to_pylist(), out[: len(present)]
