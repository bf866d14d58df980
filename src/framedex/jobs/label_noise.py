"""Labels of a dataset's media that are probably wrong, from kept neighbours, embeddings and given probabilities."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.label_noise import LEAST_LABELLED, Evidence, LabelNoise, label_noise
from framedex.core.arrays import RowIds
from framedex.errors import InvalidInput
from framedex.jobs.edits.rows import read_row_ids
from framedex.jobs.index.columns import read_indexed_rows, read_label_codes
from framedex.storage.label_decisions import read_label_decisions
from framedex.storage.media import Media


@dataclass(frozen=True)
class RankedLabels:
    """Labelled media, those with probably wrong labels first, without those whose labels are right by decision.

    Attributes:
        row_ids: uint64, shape (Q,): the media.
        names: the label of each code.
        noise: the ranking and the estimate.
    """

    row_ids: RowIds
    names: pa.Array
    noise: LabelNoise


def rank_labels(
    media: Media, evidence: frozenset[Evidence], probabilities: pa.Table | None, progress: Callable[[float], None]
) -> RankedLabels:
    """Return the labelled media in the order of the evidence against their labels.

    Args:
        media: the media.
        evidence: the kinds that are used.
        probabilities: ``media_id`` and a column for each label, 0 to 1; media without a row have no such evidence.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: too few media have labels, all have the same, or a label has no column.
    """
    table = media.table
    indexed = read_indexed_rows(table, None, 0.0)
    codes = read_label_codes(table, indexed.positions, read_label_decisions(table.path, media.generation.tables))
    vectors = None
    if Evidence.HEAD in evidence:
        positions, vectors = table.vectors()
        if len(positions) != len(indexed.positions):  # media that were added since the index
            vectors = vectors[np.isin(positions, indexed.positions)]
    noise = label_noise(
        indexed.graph,
        indexed.inverse,
        codes.labels,
        evidence=evidence,
        are_right=codes.are_right,
        vectors=vectors,
        probabilities=None if probabilities is None else _matrix(media, indexed.positions, probabilities, codes.names),
        progress=progress,
    )
    if noise is None:
        raise InvalidInput(
            f"labels are ranked once {LEAST_LABELLED} media have labels, at least two different ones; label some first"
        )
    rows = read_row_ids(media)[indexed.positions[noise.item]]
    return RankedLabels(rows, codes.names, noise)


def _matrix(
    media: Media, positions: npt.NDArray[np.int64], probabilities: pa.Table, names: pa.Array
) -> npt.NDArray[np.float32]:
    """Return probabilities in the order of media and labels: float32, shape (N, labels); equal ones without a row."""
    ids = media.table.scan(["media_id"]).read_all().column(0).take(pa.array(positions))
    labels = names.to_pylist()
    missing = [name for name in labels if name not in probabilities.column_names]
    if missing:
        raise InvalidInput(
            f"probabilities need a column for each label, and have none for {missing[0]!r:.80} "
            f"({len(missing)} of {len(labels)} labels)"
        )
    places = pc.index_in(ids, probabilities["media_id"].combine_chunks()).combine_chunks()
    has_row = np.asarray(places.is_valid())
    matrix = np.full((len(ids), len(labels)), 1 / max(len(labels), 1), np.float32)
    rows = places.drop_null()
    for code, name in enumerate(labels):
        matrix[has_row, code] = probabilities[name].take(rows).to_numpy()
    if not (np.isfinite(matrix).all() and matrix.min(initial=0) >= 0 and matrix.max(initial=0) <= 1):
        raise InvalidInput("probabilities must be numbers from 0 to 1")
    return matrix
