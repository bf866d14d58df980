"""The rows of a clean-up plan, with the reasons in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.cleanup.choice import CandidateRows, CleanupDecision, CleanupRequest, Numbers, choose_rows
from framedex.cleanup.last_copies import Losses, keep_last_copies
from framedex.core.arrays import Mask, RowIds
from framedex.core.ids import Kind, content_group_id, group_prefix
from framedex.core.path_columns import FILE
from framedex.errors import InvalidInput
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, NEAR
from framedex.storage.objects import objects_of
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark
from framedex.storage.table_versions import ROW_ID
from framedex.vql import duplicate_level

PLAN_SCHEMA = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("action", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("issue_type", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("kept_media_id", pa.string()),
        pa.field("confidence", pa.float32()),
        pa.field("size_bytes", pa.int64()),
        pa.field("warning", pa.string()),
        pa.field("protected", pa.string()),
    ]
)
TAKEN_OUT = "taken out of the plan by hand"


@dataclass(frozen=True)
class PlanRows:
    """The media that a plan removes, and the media kept in their place.

    Attributes:
        rows: the columns of :data:`PLAN_SCHEMA`; a row for each media item that is removed, for each that is kept in
            place of other members of its group, and for each that would be removed but stays, in the order of
            ingestion.
        row_ids: uint64, ascending: the ids of these rows.
        losses: the removed rows that have copies.
        emptied: uint64: the ids of rows that stay and leave the basket.
        n_unsure: the number of duplicate groups that are left out, because it is not sure which one is the original.
    """

    rows: pa.Table
    row_ids: RowIds
    losses: Losses
    emptied: RowIds
    n_unsure: int

    @property
    def removed(self) -> RowIds:
        """The row ids of the removed media: uint64, ascending."""
        is_removed: Mask = pc.equal(self.rows["action"], "remove").to_numpy()
        return self.row_ids[is_removed]

    def without(self, media_ids: Sequence[str]) -> "PlanRows":
        """Return the plan that leaves some of the media in the dataset; those that it keeps stay the same.

        Raises:
            InvalidInput: it does not remove one of them.
        """
        rows = self.rows
        is_removed = pc.equal(rows["action"], "remove")
        chosen = pc.is_in(rows["media_id"], value_set=pa.array(media_ids, pa.string()))
        out = pc.and_(chosen, is_removed).combine_chunks()
        if pc.sum(out).as_py() != len(set(media_ids)):
            known = set(rows["media_id"].filter(out).to_pylist())
            wrong = next(each for each in media_ids if each not in known)
            raise InvalidInput(f"the plan does not remove media {wrong!r}, so it cannot be taken out")
        reasons = pc.binary_join_element_wise(f"{TAKEN_OUT}: ", rows["reason"], "")
        values = {
            "action": "keep", "issue_type": None, "kept_media_id": None, "warning": None, "protected": None,
            "reason": reasons,
        }  # fmt: skip
        for name, value in values.items():
            field = rows.schema.field(name)
            new = value if name == "reason" else pa.scalar(value, field.type)
            rows = rows.set_column(rows.schema.get_field_index(name), field, pc.if_else(out, new, rows[name]))
        return replace(self, rows=rows, losses=self.losses.without(self.row_ids[out.to_numpy(zero_copy_only=False)]))


def plan_rows(media: Media, condition: Condition, request: CleanupRequest) -> PlanRows:
    """Return the media to remove, and the media to keep in their place.

    Media with a requested issue are removed, and on request those in the basket. Each duplicate group keeps one member,
    the one that people chose, or the best without these issues and outside the basket. Of the copies of an image one
    stays in any case, as does what people chose to keep. Groups with only one member that meets the condition lose no
    duplicates.

    Args:
        media: the media of a dataset.
        condition: the condition for media to be removed, or kept in place of others.
        request: the request.
    """
    candidates = CandidateRows.read(media, condition, request)
    decided, losses = keep_last_copies(media, candidates, request, choose_rows(candidates, request))
    indices = _listed(candidates, decided)
    stays = indices[~decided.removed[indices] & (candidates.columns[IN_BASKET][indices] > 0)]
    return PlanRows(
        _plan_table(media, request, candidates, decided, indices),
        candidates.row_ids[indices],
        losses,
        candidates.row_ids[stays if request.basket else stays[:0]],
        decided.n_unsure,
    )


def _listed(candidates: CandidateRows, decided: CleanupDecision) -> Numbers:
    """Return the indices of the rows that a plan shows: those that go, and those that stay although they might go."""
    kept_index, removed = decided.kept_index, decided.removed
    keeps = np.zeros(len(removed), dtype=bool)
    keeps[kept_index[removed & (kept_index >= 0)]] = True
    loses = (kept_index >= 0) & keeps[kept_index]
    may_go = decided.named | (loses & (decided.kept | (candidates.columns[KEEPER] == KeeperMark.CHOSEN)))
    return np.flatnonzero(removed | may_go)


def _plan_table(
    media: Media, request: CleanupRequest, candidates: CandidateRows, decided: CleanupDecision, indices: Numbers
) -> pa.Table:
    """Return the plan's rows, with reasons in words."""
    rows = _columns(media, request, candidates, decided, indices)
    text = _TEXT.format(
        names=_names(candidates.issues),
        file_name=FILE.sql,
        lost_labels=_lost("planned.labels", "stays.labels"),
        lost_classes=_lost("boxes.classes", "its_boxes.classes"),
    )
    reader = media.table.scan(["media_id", "path", "frame_time_s", "size_bytes", "labels"], row_ids=True)
    tables = {"media": reader, "decided": rows, "objects": _boxes(media)}
    return media.sql.query(text, (), tables).cast(PLAN_SCHEMA)


def _boxes(media: Media) -> pa.RecordBatchReader:
    """Return the media item and the labels of each object of a dataset: ``parent_id``, ``labels``."""
    objects = objects_of(media)
    if objects is None:
        return pa.RecordBatchReader.from_batches(_BOXES, [])
    return objects.table.scan(_BOXES.names)


def _columns(
    media: Media, request: CleanupRequest, candidates: CandidateRows, decided: CleanupDecision, indices: Numbers
) -> pa.Table:
    """Return the values from which the reasons of rows are composed."""
    kept, reason, exact = decided.kept_index[indices], decided.reason[indices], decided.exact[indices]
    similarity = np.where(exact, 1, candidates.columns["duplicate_similarity"][indices])
    similarity[decided.members[indices] == 0] = np.nan
    is_wanted_away = (candidates.columns[IN_BASKET][indices] > 0) & request.basket
    confidences = np.where(np.isnan(candidates.confidence[indices]), -1, candidates.confidence[indices])
    highest = confidences.max(axis=1, initial=-1)
    first = confidences.argmax(axis=1) if candidates.issues else np.zeros(len(indices), dtype=np.int64)
    of_group = np.where(decided.kept[indices], decided.cohesion[indices], similarity)
    copies = candidates.columns[DUPLICATES[0]]
    is_alike = request.duplicates == NEAR
    columns = {
        ROW_ID: pa.array(candidates.row_ids[indices]),
        "goes": pa.array(decided.removed[indices]),
        "issue_type": pa.array([*candidates.issues, ""]).take(pa.array(first, mask=highest < 0)),
        "kept": pa.array(candidates.row_ids[kept], mask=kept < 0),
        "members": pa.array(decided.members[indices]),
        "sound": pa.array(decided.sound[indices]),
        "similarity": pa.array(similarity),
        "unwanted": pa.array(decided.unwanted[indices]),
        "exact": pa.array(exact),
        "alike": pa.array(np.full(len(indices), is_alike)),
        "is_near": pa.array(is_alike & (copies[indices] != copies[kept])),  # unknown groups differ
        "basket": pa.array(is_wanted_away),
        "named": pa.array(decided.named[indices]),
        "chosen": pa.array(candidates.columns[KEEPER][indices] == KeeperMark.CHOSEN),
        "confidence": pa.array(np.clip(np.where(highest < 0, of_group, highest), 0, 1), pa.float32(), from_pandas=True),
        "why": decided.reasons.take(pa.array(reason, mask=reason < 0)),
        "group_id": _group_ids(media, request, candidates, indices),
    }
    columns |= {f"c_{number}": pa.array(values, mask=values < 0) for number, values in enumerate(confidences.T)}
    return pa.table(columns)


def _group_ids(media: Media, request: CleanupRequest, candidates: CandidateRows, indices: Numbers) -> pa.Array:
    key = candidates.key[indices]
    if request.duplicates is None:
        return pa.nulls(len(indices), pa.string())
    distinct, inverse = np.unique(key, return_inverse=True)
    if candidates.keys is None:
        level = duplicate_level(request.duplicates)
        prefix = group_prefix(media.dataset_id, Kind.DUPLICATE_GROUP, level)
        ids = [f"{prefix}{number:08x}" if number >= 0 else None for number in distinct.tolist()]
    else:
        digests = candidates.keys.take(pa.array(distinct, mask=distinct < 0)).to_pylist()
        ids = [None if digest is None else content_group_id(media.dataset_id, digest) for digest in digests]
    return pa.array(ids, pa.string()).take(pa.array(inverse))


def _lost(values: str, other: str) -> str:
    """Return an SQL expression for a text with the values of one list that another one lacks; null for none."""
    lost = f"list_filter({values}, lambda value: NOT list_contains(coalesce({other}, []), value))"
    return f"nullif(array_to_string(list_sort(list_distinct({lost})), ', '), '')"


def _names(issues: Sequence[str]) -> str:
    """Return an SQL expression for a text with what names a row: its issues with their confidences, and the basket."""
    words = [f"'{issue} ' || printf('%.2f', planned.c_{number})" for number, issue in enumerate(issues)]
    return f"concat_ws(', ', {', '.join([*words, _BASKET_WORDS])})"


_BASKET_WORDS = "CASE WHEN planned.basket THEN 'in the basket' END"
_BOXES = pa.schema([pa.field("parent_id", pa.string()), pa.field("labels", pa.list_(pa.string()))])
# Similarities have the format of the issue `duplicates`.
_TEXT = """
WITH planned AS MATERIALIZED (
    SELECT decided.*, media_id, labels, path,
        CASE WHEN frame_time_s IS NULL THEN size_bytes END AS size_bytes,
        path || coalesce(printf(' at %.1f s', frame_time_s), '') AS name,
        coalesce(nullif({file_name}, ''), path) AS file_name
    FROM decided JOIN media USING (_rowid)
),
boxes AS MATERIALIZED (
    SELECT parent_id AS media_id, array_agg(DISTINCT label) AS classes
    FROM (SELECT parent_id, unnest(labels) AS label FROM objects) WHERE parent_id IN (SELECT media_id FROM planned)
    GROUP BY parent_id
)
SELECT planned.media_id, planned.file_name, planned.path,
    CASE WHEN planned.goes THEN 'remove' ELSE 'keep' END AS action,
    CASE
        WHEN planned.goes AND planned.named THEN {names} || coalesce('; its group keeps ' || stays.name, '')
        WHEN planned.goes AND planned.exact THEN 'same content as ' || stays.name
        WHEN planned.goes AND planned.is_near THEN 'alike, no copy; its group keeps ' || stays.name
        WHEN planned.goes THEN printf('near-duplicate (%.4f); its group keeps ', planned.similarity) || stays.name
        WHEN planned.chosen THEN concat_ws('; ', nullif({names}, ''), 'kept: a person chose it')
        WHEN planned.why IS NULL THEN {names} || '; kept as the last one: clean-ups removed its copies'
        ELSE concat_ws('; ', nullif({names}, ''), 'kept of ' || printf('%d ', planned.members)
            || CASE WHEN planned.exact THEN 'files with equal content' WHEN planned.alike THEN 'images that are alike'
               ELSE 'near-duplicates' END
            || CASE WHEN planned.sound = 0 THEN ', none without an issue'
               WHEN planned.sound < planned.members THEN printf(', %d without an issue', planned.sound) ELSE '' END
            || CASE WHEN planned.unwanted > 0 THEN printf(', %d in the basket', planned.unwanted) ELSE '' END
            || CASE WHEN planned.why = '' THEN '' ELSE ': ' || planned.why END)
    END AS reason,
    CASE WHEN planned.goes
        THEN coalesce(planned.issue_type,
            CASE WHEN planned.basket THEN 'basket' WHEN planned.is_near THEN 'near' ELSE 'duplicates' END)
    END AS issue_type,
    planned.group_id,
    stays.media_id AS kept_media_id,
    planned.confidence,
    planned.size_bytes,
    CASE WHEN planned.goes AND stays.media_id IS NOT NULL THEN nullif(concat_ws('; ',
        'labels that the image to keep lacks: ' || {lost_labels},
        'boxes of classes that it has none of: ' || {lost_classes}), '') END AS warning,
    CASE WHEN planned.goes THEN NULL WHEN planned.chosen THEN 'chosen' WHEN planned.why IS NULL THEN 'last'
        WHEN planned.named THEN 'best' END AS protected
FROM planned LEFT JOIN planned AS stays ON planned.kept = stays._rowid
LEFT JOIN boxes ON boxes.media_id = planned.media_id
LEFT JOIN boxes AS its_boxes ON its_boxes.media_id = stays.media_id
ORDER BY planned._rowid
"""
