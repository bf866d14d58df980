"""Suggested labels of a dataset's media without labels, from the kept neighbours."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framedex.analysis.label_suggestions import LEAST_LABELLED, VotedLabels, suggest_labels
from framedex.core.arrays import RowIds
from framedex.errors import InvalidInput
from framedex.jobs.edits.rows import read_row_ids
from framedex.jobs.index.columns import label_codes, read_indexed_rows
from framedex.storage.label_decisions import read_label_decisions
from framedex.storage.media import Media


@dataclass(frozen=True)
class FoundLabels:
    """Suggested labels for media.

    Attributes:
        row_ids: uint64, shape (S,): the media; those with several labels occur several times.
        names: the label of each.
        suggested: shares of votes, confidences, and held-out labels.
        labelled: the number of labelled media that vote.
    """

    row_ids: RowIds
    names: pa.Array
    suggested: VotedLabels
    labelled: int

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return int(1024 + self.names.nbytes + 40 * len(self.row_ids) + 5 * len(self.suggested.held_out))


def find_labels(media: Media, progress: Callable[[float], None]) -> FoundLabels:
    """Return labels for the media without any, by the votes of their neighbours.

    Media of which a person said that no label fits are left out, as are media without an embedding.

    Args:
        media: the media, or the objects.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: too few media have labels.
    """
    table = media.table
    indexed = read_indexed_rows(table, None, 0.0)
    positions = indexed.positions
    column = table.scan(["labels"]).read_all().column(0).combine_chunks()
    ids = table.scan(["media_id"]).read_all().column(0).combine_chunks()
    decisions = read_label_decisions(table.path, media.generation.tables)
    refused = decisions.hold(ids, column)[positions]
    codes = label_codes(column.take(pa.array(positions)), refused)
    unlabelled = np.diff(codes.labels.offsets) == 0
    found = suggest_labels(
        indexed.graph.filled(), indexed.inverse, codes.labels, wanted=unlabelled & ~refused, progress=progress
    )
    if found is None:
        raise InvalidInput(
            f"labels are suggested once {LEAST_LABELLED} media have labels and neighbours with labels: their votes on "
            "each other say how often suggestions are right; label some first"
        )
    rows = read_row_ids(media)[positions[found.item]]
    return FoundLabels(rows, codes.names.take(pa.array(found.code)), found, int(np.count_nonzero(~unlabelled)))
