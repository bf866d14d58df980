"""Files that an undo or a restore cannot bring back: those of media that return to a dataset."""

import os

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.counts import counted
from framedex.jobs.edits.rows import read_row_ids
from framedex.storage.media import LOCATION, Media

_BLOCK_ROWS = 8192


def count_lost_files(before: Media, after: Media) -> int:
    """Return how many media return without their file.

    Args:
        before: the state that is left.
        after: the state that comes back. Of its media that *before* lacks, those are counted whose file was on this
            machine and does not exist any more.
    """
    ids, known = (pa.chunked_array([batch.column(0) for batch in media.scan(["media_id"])], pa.string())
                  for media in (after, before))  # fmt: skip
    returning = read_row_ids(after)[pc.invert(pc.is_in(ids, value_set=known)).to_numpy()]
    lost = 0
    for start in range(0, len(returning), _BLOCK_ROWS):
        for block in after.blocks(returning[start : start + _BLOCK_ROWS], list(LOCATION)):
            paths = [after.file_of(row) for row in block.to_pylist()]
            lost += sum(path is not None and not os.path.exists(path) for path in paths)  # noqa: PTH110
    return lost


def lost_words(lost: int) -> str:
    """Return the words about media without a file that follow those about what was done; empty for none."""
    return f"; gone for good: the files of {counted(lost, 'media')}" if lost else ""
