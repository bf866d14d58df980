"""User decisions that labels are right, and the label issues that follow."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask
from framedex.core.ids import new_id
from framedex.errors import InvalidInput
from framedex.issue_types import LABEL_OUTLIER, MISLABELS
from framedex.jobs.edits.labels import judge_decided
from framedex.jobs.edits.rows import find_ids, read_row_ids, write_rows
from framedex.records import LabelDecision
from framedex.storage import tables
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import read_label_decisions, write_label_decisions
from framedex.storage.media import Media
from framedex.storage.media_rows import index_schema
from framedex.storage.table_names import LABEL_DECISIONS, MEDIA

_CLEARED = (MISLABELS.confidence_column, LABEL_OUTLIER.confidence_column, *MISLABELS.details)


def decide_labels(
    media: Media, head: Generation, rows: Mask, decided_by: str
) -> tuple[LabelDecision, dict[str, int], Summary]:
    """Write the decision that the present labels of some media are right; these have no issue about labels then.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        rows: bool, shape (N,): the media.
        decided_by: the user.

    Returns:
        decision: as it was written.
        versions: of the tables of the new generation.
        summary: of the new generation.

    Raises:
        InvalidInput: no media are selected, or a media item has no labels.
    """
    row_ids = read_row_ids(media)[rows]
    if not len(row_ids):
        raise InvalidInput("the selection has no media, so there is nothing to decide")
    stored = media.take(row_ids.tolist(), ["media_id", "labels"])
    ids, labels = stored.column("media_id").to_pylist(), stored.column("labels").to_pylist()
    for media_id, each in zip(ids, labels, strict=True):
        if not each:
            raise InvalidInput(f"media {media_id!r} has no labels that could be right; nothing was changed")
    decision = LabelDecision(
        decision_id=new_id(), media_ids=ids, labels=labels, decided_by=decided_by, decided_at=datetime.now(UTC)
    )
    schema = pa.schema([index_schema().field(name) for name in _CLEARED])
    cleared = pa.RecordBatch.from_arrays([pa.nulls(len(ids), each.type) for each in schema], schema=schema)
    version = write_rows(media, row_ids, cleared)
    tables.sync(media.table.path)
    decisions = read_label_decisions(media.table.path, head.tables).with_decision(decision)
    versions = {MEDIA: version, LABEL_DECISIONS: write_label_decisions(media.table.path, decisions)}
    return decision, {**head.tables, **versions}, head.summary


def withdraw_labels(media: Media, head: Generation, decision_id: str) -> tuple[dict[str, int], Summary] | None:
    """Delete a decision about labels, and write the issues that follow; return versions and summary.

    Returns:
        None if the dataset has no such decision about labels.
    """
    decisions = read_label_decisions(media.table.path, head.tables)
    withdrawn = decisions.of(decision_id)
    if not withdrawn:
        return None
    remaining = decisions.without(decision_id)
    (record,) = withdrawn.records()
    rows = np.flatnonzero(find_ids(media, record.media_ids).indices >= 0)
    versions = dict(head.tables)
    if len(rows):  # else they were deleted since
        versions |= judge_decided(media, head, rows, remaining).versions
        tables.sync(media.table.path)
    versions[LABEL_DECISIONS] = write_label_decisions(media.table.path, remaining)
    return versions, head.summary
