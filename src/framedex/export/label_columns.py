"""What the formats for labels and captions have in common: their columns, and all labels by number."""

import pyarrow as pa
import pyarrow.compute as pc

from framedex.export.chosen import Chosen
from framedex.export.columns import EXPORTED
from framedex.export.places import column
from framedex.progress import ShareProgress

IMAGES = "images/"
"""The folder of the pictures in an export."""


def columns(chosen: Chosen, *names: str) -> pa.Schema:
    """Return a schema of what the names of pictures need, and of some columns of the export."""
    stored = chosen.media.table.schema
    return pa.schema(
        [*(stored.field(name) for name in (*chosen.media.location, "media_id", "format")), *map(EXPORTED.field, names)]
    )


def all_labels(chosen: Chosen, progress: ShareProgress) -> pa.Array:
    """Return the labels of the media, each once, sorted."""
    known = pa.array([], pa.string())
    for block in chosen.blocks(pa.schema([EXPORTED.field("labels")]), progress):
        known = pc.unique(pa.concat_arrays([known, pc.unique(column(block, "labels").flatten())]))
    return known.take(pc.sort_indices(known))


def numbers_of(labels: pa.Array, known: pa.Array) -> pa.Array:
    """Return the numbers, from 0, of the labels of lists: one for each value of all lists."""
    return pc.index_in(labels.flatten(), value_set=known)
