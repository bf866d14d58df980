"""User decisions that labels are right, and the label issues that follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask, RowIds
from framedex.core.counts import counted
from framedex.core.ids import new_id
from framedex.errors import Conflict, InvalidInput
from framedex.issue_types import LABEL_OUTLIER, MISLABELS
from framedex.jobs.edits.labels import judge_decided
from framedex.jobs.edits.rows import find_ids, read_row_ids, write_rows
from framedex.records import LabelDecision
from framedex.storage import tables
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS, read_label_decisions, write_label_decisions
from framedex.storage.media import Media
from framedex.storage.media_rows import index_schema
from framedex.storage.table_names import LABEL_DECISIONS, MEDIA

_CLEARED = (MISLABELS.confidence_column, LABEL_OUTLIER.confidence_column, *MISLABELS.details)


def decide_labels(
    media: Media, head: Generation, rows: Mask, decided_by: str, *, are_labelled: bool = True
) -> tuple[LabelDecision, dict[str, int], Summary]:
    """Write the decision that the present labels of some media are right; these have no issue about labels then.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        rows: bool, shape (N,): the media.
        decided_by: the user.
        are_labelled: True if the labels of the media are right; False if no label fits media without any.

    Returns:
        decision: as it was written.
        versions: of the tables of the new generation.
        summary: of the new generation.

    Raises:
        InvalidInput: no media are selected; or a media item has no labels, or has some if no label fits.
    """
    row_ids = read_row_ids(media)[rows]
    if not len(row_ids):
        raise InvalidInput("the selection has no media, so there is nothing to decide")
    stored = media.take(row_ids.tolist(), ["media_id", "labels"])
    ids, labels = stored.column("media_id").to_pylist(), stored.column("labels").to_pylist()
    labels = [each or [] for each in labels]
    for media_id, each in zip(ids, labels, strict=True):
        if not each and are_labelled:
            raise InvalidInput(f"media {media_id!r} has no labels that could be right; nothing was changed")
        if each and not are_labelled:
            raise InvalidInput(f"media {media_id!r} has labels, so some fit; label_is_right() says so")
    decision = LabelDecision(
        decision_id=new_id(), media_ids=ids, labels=labels, decided_by=decided_by, decided_at=datetime.now(UTC)
    )
    return decision, *_add(media, head, decision, row_ids)


def _add(media: Media, head: Generation, decision: LabelDecision, row_ids: RowIds) -> tuple[dict[str, int], Summary]:
    """Write a decision, and the values of the media for which it holds; return versions and summary."""
    versions = dict(head.tables)
    if len(row_ids):
        schema = pa.schema([index_schema().field(name) for name in _CLEARED])
        cleared = pa.RecordBatch.from_arrays([pa.nulls(len(row_ids), each.type) for each in schema], schema=schema)
        versions[MEDIA] = write_rows(media, row_ids, cleared)
        tables.sync(media.table.path)
    decisions = read_label_decisions(media.table.path, head.tables).with_decision(decision)
    versions[LABEL_DECISIONS] = write_label_decisions(media.table.path, decisions)
    return versions, head.summary


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


_ADDED, _WITHDRAWN = "label_decision_added", "label_decision_withdrawn"
_ID, _LABELS, _EXISTS = "media_id", "labels", "exists"


@dataclass(frozen=True)
class LabelChange:
    """The change of a step about a decision: the decision without its media, and whether the step added it."""

    facts: Mapping[str, Any]
    is_added: bool


def label_change(change: Mapping[str, Any]) -> LabelChange | None:
    """Return the change of a step of the journal that added or withdrew a decision; None for another step."""
    for key in (_ADDED, _WITHDRAWN):
        if (facts := change.get(key)) is not None:
            return LabelChange(facts, key == _ADDED)
    return None


def label_facts(media: Media, decision: LabelDecision, *, is_added: bool) -> tuple[dict[str, Any], pa.Table]:
    """Return a decision as the journal keeps it: a change as JSON, and the media with the labels that are right."""
    facts = decision.model_dump(mode="json", exclude={"media_ids", "labels"})
    values = {
        _ID: pa.array(decision.media_ids, pa.string()),
        _LABELS: pa.array(decision.labels, pa.list_(pa.string())),
        _EXISTS: pa.array(find_ids(media, decision.media_ids).exists),
    }
    return {_ADDED if is_added else _WITHDRAWN: facts}, pa.table(values)


def apply_labels(
    media: Media, head: Generation, change: LabelChange, values: pa.Table, *, forward: bool
) -> tuple[dict[str, int], Summary]:
    """Undo a step about a decision, or do it again; return versions and summary.

    A decision that returns has the same id, user, time and labels. It holds for the media that have these labels.

    Raises:
        Conflict: the decision was withdrawn meanwhile, or is back already, or media of it were deleted.
    """
    if change.is_added != forward:
        if (written := withdraw_labels(media, head, change.facts["decision_id"])) is None:
            raise Conflict("the decision was withdrawn meanwhile")
        return written
    if read_label_decisions(media.table.path, head.tables).of(change.facts["decision_id"]):
        raise Conflict("the decision is in the dataset already")  # a snapshot with it was restored meanwhile
    ids = values[_ID].to_pylist()
    decision = LabelDecision(**change.facts, media_ids=ids, labels=values[_LABELS].to_pylist())
    found = find_ids(media, ids)
    if missing := int(np.count_nonzero(values[_EXISTS].to_numpy() & ~found.exists)):
        raise Conflict(f"the dataset has {missing:,} of its {counted(len(ids), 'media')} no longer")
    row_ids = read_row_ids(media)[found.indices >= 0]
    rows = media.take(row_ids.tolist(), [_ID, _LABELS])
    holds = NO_LABEL_DECISIONS.with_decision(decision).hold(*(rows[name].combine_chunks() for name in (_ID, _LABELS)))
    return _add(media, head, decision, row_ids[holds])
