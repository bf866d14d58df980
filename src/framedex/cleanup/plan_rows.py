"""A plan of what to remove, with the reasons in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.cleanup.choice import EXACT, CandidateRows, CleanupDecision, CleanupRequest, Numbers, choose_rows
from framedex.ids import Kind, content_group_id, group_prefix
from framedex.path_columns import FILE
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.tables import ROW_ID
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
    ]
)


@dataclass(frozen=True)
class PlanRows:
    """What goes and what stays in its place.

    Attributes:
        rows: columns of :data:`PLAN_SCHEMA`, a row for each media item that goes, and for each that stays of a group of
            which others go, in the order of ingestion.
        removed: uint64, ascending: the row ids of those that go.
    """

    rows: pa.Table
    removed: RowIds


def plan_rows(media: Media, condition: Condition, wanted: CleanupRequest) -> PlanRows:
    """Return what goes and what stays.

    Media that have an issue go. Of each group of duplicates one stays that has none of the issues; if all have, none
    does. Groups of which one member meets the condition are left as they are.

    Args:
        media: what is cleaned up.
        condition: which of it may go; what does not meet it neither goes nor counts as what stays.
        wanted: what is to go.
    """
    found = CandidateRows.read(media, condition, wanted)
    decided = choose_rows(found, wanted)
    return PlanRows(_plan_table(media, wanted, found, decided), found.row_ids[decided.goes])


def _plan_table(media: Media, wanted: CleanupRequest, found: CandidateRows, decided: CleanupDecision) -> pa.Table:
    """Return the plan's rows, with reasons in words."""
    places = np.flatnonzero(decided.goes | decided.stays)
    rows = _columns(media, wanted, found, decided, places)
    text = _TEXT.format(issues=_issue_words(found.issues), file_name=FILE.sql)
    reader = media.table.scan(["media_id", "path", "size_bytes"], row_ids=True)
    told = media.sql.query(text, (), {"media": reader, "decided": rows})
    return told.cast(PLAN_SCHEMA)


def _columns(
    media: Media, wanted: CleanupRequest, found: CandidateRows, decided: CleanupDecision, places: Numbers
) -> pa.Table:
    """Return what the reasons of some rows are made of."""
    kept, word, exact = decided.kept[places], decided.word[places], wanted.duplicates == EXACT
    similarity = np.ones(len(places)) if exact else found.columns["duplicate_similarity"][places]
    held = np.where(np.isnan(found.confidence[places]), -1, found.confidence[places])
    most = held.max(axis=1, initial=-1)
    first = held.argmax(axis=1) if found.issues else np.zeros(len(places), dtype=np.int64)
    of_group = np.where(decided.stays[places], decided.alike[places], similarity)
    columns = {
        ROW_ID: pa.array(found.row_ids[places]),
        "goes": pa.array(decided.goes[places]),
        "issue_type": pa.array([*found.issues, ""]).take(pa.array(first, mask=most < 0)),
        "kept": pa.array(found.row_ids[kept], mask=kept < 0),
        "members": pa.array(decided.members[places]),
        "whole": pa.array(decided.whole[places]),
        "similarity": pa.array(similarity),
        "exact": pa.array(np.full(len(places), exact)),
        "confidence": pa.array(np.clip(np.where(most < 0, of_group, most), 0, 1), pa.float32(), from_pandas=True),
        "why": decided.words.take(pa.array(word, mask=word < 0)),
        "group_id": _group_ids(media, wanted, found, places),
    }
    columns |= {f"c_{place}": pa.array(values, mask=values < 0) for place, values in enumerate(held.T)}
    return pa.table(columns)


def _group_ids(media: Media, wanted: CleanupRequest, found: CandidateRows, places: Numbers) -> pa.Array:
    key = found.key[places]
    if wanted.duplicates is None:
        return pa.nulls(len(places), pa.string())
    distinct, place = np.unique(key, return_inverse=True)
    if found.keys is None:
        prefix = group_prefix(media.dataset_id, Kind.DUPLICATE_GROUP, duplicate_level(float(wanted.duplicates)))
        ids = [f"{prefix}{number:08x}" if number >= 0 else None for number in distinct.tolist()]
    else:
        digests = found.keys.take(pa.array(distinct, mask=distinct < 0)).to_pylist()
        ids = [None if digest is None else content_group_id(media.dataset_id, digest) for digest in digests]
    return pa.array(ids, pa.string()).take(pa.array(place))


def _issue_words(issues: Sequence[str]) -> str:
    """Return an SQL expression for the issues of a row in words; names are our own."""
    words = [f"'{issue} ' || printf('%.2f', told.c_{place})" for place, issue in enumerate(issues)]
    return f"concat_ws(', ', {', '.join(words)})" if words else "''"


# A group of which none is whole has no row that stays. Similarities are said as they are in the issue `duplicates`.
_TEXT = """
WITH told AS MATERIALIZED (
    SELECT decided.*, media_id, path, size_bytes,
        coalesce(nullif({file_name}, ''), path) AS file_name
    FROM decided JOIN media USING (_rowid)
)
SELECT told.media_id, told.file_name, told.path,
    CASE WHEN told.goes THEN 'remove' ELSE 'keep' END AS action,
    CASE
        WHEN told.issue_type IS NOT NULL THEN {issues} || CASE
            WHEN told.members > 0 AND told.whole = 0
            THEN printf('; all %d of its group have an issue, so that none of it stays', told.members)
            WHEN told.members > 0 THEN '; of its group ' || stays.path || ' stays'
            ELSE '' END
        WHEN told.goes AND told.exact THEN 'the same content as ' || stays.path
        WHEN told.goes THEN printf('near-duplicate (%.4f) of a group of which ', told.similarity)
            || stays.path || ' stays'
        ELSE 'stays of ' || printf('%d ', told.members)
            || CASE WHEN told.exact THEN 'files of the same content' ELSE 'near-duplicates' END
            || CASE WHEN told.whole < told.members THEN printf(', of which %d have no issue', told.whole) ELSE '' END
            || CASE WHEN told.why = '' THEN '' ELSE ': ' || told.why END
    END AS reason,
    CASE WHEN told.goes THEN coalesce(told.issue_type, 'duplicates') END AS issue_type,
    told.group_id,
    stays.media_id AS kept_media_id,
    told.confidence,
    told.size_bytes
FROM told LEFT JOIN told AS stays ON told.kept = stays._rowid
ORDER BY told._rowid
"""
