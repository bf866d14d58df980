"""User decisions about duplicates: a table of its own, and the duplicate groups that follow from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.stability import keep_numbers
from framedex.core.arrays import RowIds
from framedex.core.ids import new_id
from framedex.errors import InvalidInput, NotFound
from framedex.issue_types import DUPLICATES as DUPLICATE_ISSUE
from framedex.jobs.edits.neighbourhood import Neighbourhood, among
from framedex.jobs.edits.numbered_rows import NumberedRows
from framedex.jobs.edits.rows import write_rows
from framedex.jobs.index.columns import Columns, duplicate_column, to_batch
from framedex.jobs.index.index import FIRST_NUMBERS, duplicates_among
from framedex.records import DUPLICATE_LEVELS, DuplicateDecision
from framedex.storage import tables
from framedex.storage.copy_pairs import CopyPairs
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, GROUPS, NEAR
from framedex.storage.overlay import Values
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import small_table

DECISIONS = "decisions"
Rows = npt.NDArray[np.int64]
_SCHEMA = pa.schema(
    [
        pa.field("decision_id", pa.string(), nullable=False),
        pa.field("media_ids", pa.list_(pa.string()), nullable=False),
        pa.field("decided_by", pa.string(), nullable=False),
        pa.field("decided_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


def read_decisions(table: Path, versions: Mapping[str, int]) -> list[DuplicateDecision]:
    """Return the decisions of a generation, oldest first.

    Args:
        table: folder of the dataset's media table.
        versions: of the generation's tables.
    """
    if DECISIONS not in versions:
        return []
    rows = small_table(_path(table), versions[DECISIONS], _SCHEMA.names).to_pylist()
    return [DuplicateDecision(**row) for row in rows]


def decide(
    media: Media, head: Generation, media_ids: Sequence[str], decided_by: str
) -> tuple[DuplicateDecision, dict[str, int], Summary]:
    """Write the decision that no two of some media are duplicates, and the duplicate groups that follow.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        media_ids: the media.
        decided_by: the user.

    Returns:
        decision: as it was written.
        versions: of the tables of the new generation.
        summary: of the new generation.

    Raises:
        InvalidInput: the argument is not a list of two or more different media ids.
        NotFound: a media item is not in the dataset.
    """
    ids = [] if isinstance(media_ids, str) or not isinstance(media_ids, Iterable) else list(media_ids)
    if not all(isinstance(each, str) for each in ids) or not 2 <= len(set(ids)) == len(ids):
        raise InvalidInput(f"a decision is about two or more different media ids, not {media_ids!r}")
    decision = DuplicateDecision(
        decision_id=new_id(), media_ids=ids, decided_by=decided_by, decided_at=datetime.now(UTC)
    )
    decisions = [*read_decisions(media.table.path, head.tables), decision]
    versions, summary = _apply(media, head, decisions, ids)
    return decision, versions, summary


def restore_decision(media: Media, head: Generation, decision: DuplicateDecision) -> tuple[dict[str, int], Summary]:
    """Write a decision that was withdrawn again, and the duplicate groups that follow; return versions and summary.

    Raises:
        NotFound: a media item is not in the dataset any more.
    """
    decisions = read_decisions(media.table.path, head.tables)
    others = [each for each in decisions if each.decision_id != decision.decision_id]
    ordered = sorted([*others, decision], key=lambda each: each.decided_at)
    return _apply(media, head, ordered, decision.media_ids)


def withdraw(media: Media, head: Generation, decision_id: str) -> tuple[dict[str, int], Summary]:
    """Delete a decision and write the duplicate groups that follow; return versions and summary.

    Raises:
        NotFound: the dataset has no such decision.
    """
    decisions = read_decisions(media.table.path, head.tables)
    withdrawn = next((each for each in decisions if each.decision_id == decision_id), None)
    if withdrawn is None:
        raise NotFound(f"no decision {decision_id!r} in this dataset")
    remaining = [each for each in decisions if each is not withdrawn]
    return _apply(media, head, remaining, withdrawn.media_ids, must_exist=False)


def _apply(
    media: Media,
    head: Generation,
    decisions: Sequence[DuplicateDecision],
    changed: Sequence[str],
    *,
    must_exist: bool = True,
) -> tuple[dict[str, int], Summary]:
    path, cannot_link = media.table.path, [each.media_ids for each in decisions]
    around = Neighbourhood(media)
    row_of = around.numbered.find_all({*changed, *(each for ids in cannot_link for each in ids)})
    missing = sorted(set(changed) - row_of.keys())
    if missing and must_exist:
        raise NotFound(f"no media {missing[0]!r} in this dataset")
    rows = np.array(sorted(row_of[each] for each in changed if each in row_of), dtype=np.int64)
    sets = [np.array([row_of[each] for each in ids if each in row_of], dtype=np.int64) for ids in cannot_link]
    written, free = media.table.version, dict[str, int]()
    if len(rows):  # else all media of the decision were deleted
        row_ids, values, free = _regrouped(media, around, rows, sets, head)
        written = write_rows(media, row_ids, values)
    versions = {**head.tables, MEDIA: written, DECISIONS: write_decisions(path, decisions)}
    tables.sync(path)
    return versions, head.summary.with_(first_free={**head.summary.first_free, **free})


def write_decisions(table: Path, decisions: Sequence[DuplicateDecision]) -> int:
    """Write all decisions about duplicates of a dataset, sync them, and return the version of their table.

    Args:
        table: folder of the dataset's media table.
        decisions: oldest first.
    """
    stored = pa.RecordBatch.from_pylist([each.model_dump() for each in decisions], schema=_SCHEMA)
    version = tables.replace(_path(table), [stored], _SCHEMA)
    tables.sync(_path(table))
    return version


def _path(table: Path) -> Path:
    return table.with_name(f"{DECISIONS}.lance")


def _regrouped(
    media: Media, around: Neighbourhood, changed: Rows, cannot_link: Sequence[Rows], head: Generation
) -> tuple[RowIds, pa.RecordBatch, dict[str, int]]:
    """Return the new groups of some media, and of those that can form groups with them.

    A group is always part of one group of the coarsest level without any decision. So only the rows that can form
    groups with the changed ones are read: their groups, copies and near neighbours.

    Returns:
        The ids of the regrouped rows, their values of the columns about duplicates, and the next free group numbers.
    """
    copies = around.numbered.copies(head)
    members = related_rows(around, changed, copies)
    values, free = regroup(media, around.numbered, members, copies, cannot_link, head)
    return around.row_ids[members], values, free


def regroup(
    media: Media,
    numbered: NumberedRows,
    members: Rows,
    copies: CopyPairs | None,
    cannot_link: Sequence[Rows],
    head: Generation,
    *,
    nearest: Values | None = None,
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Return the near-duplicate groups of some media that form groups with no others.

    Args:
        media: the media.
        numbered: their rows by number.
        members: int64, shape (M,), ascending: the numbers of some rows.
        copies: pairs of copies, as numbers; None where similar embeddings are duplicates.
        cannot_link: sets of numbers; no two rows of a set are duplicates.
        head: the generation that is edited.
        nearest: similarities to the nearest other media, of some rows, that replace the stored ones.

    Returns:
        Their values of the columns about duplicates, and the next free group numbers.
    """
    row_ids = numbered.row_ids[members]
    summary, columns = head.summary, _columns_of(media, row_ids)
    if nearest is not None and len(nearest[0]):
        at = np.minimum(np.searchsorted(nearest[0], row_ids), len(nearest[0]) - 1)
        is_known = nearest[0][at] == row_ids
        columns["duplicate_similarity"][is_known] = nearest[1].to_numpy()[at[is_known]]
    pairs = None if copies is None else replace(copies, a=numbered.rows(copies.a), b=numbered.rows(copies.b))
    sets = [numbered.rows(each) for each in cannot_link]
    groups, similarity = duplicates_among(media.table, pairs, sets, numbered.rows(members))
    free = {}
    for level, name in enumerate(GROUPS):
        if name not in columns:  # of an older version of the program
            continue
        next_free = summary.first_free.get(name, FIRST_NUMBERS[name])
        columns[name], free[name] = keep_numbers(columns[name].astype(np.int32), groups[:, level], first_free=next_free)
    limit = summary.limit(DUPLICATE_ISSUE.name) or DUPLICATE_LEVELS[0]
    if copies is None:
        # Media beyond the related rows are less similar than the coarsest level, so similarities above it are exact.
        old = columns["duplicate_similarity"]
        below = np.minimum(np.maximum(similarity, old), np.float32(DUPLICATE_LEVELS[0]))
        similarity = np.where(groups[:, 0] >= 0, similarity, below)
    columns["duplicate_similarity"] = similarity
    grouped = groups[:, GROUPS.index(DUPLICATES[duplicate_column(limit)])] >= 0
    confidence = np.where(grouped, np.clip(similarity, 0, 1), np.nan)
    columns[DUPLICATE_ISSUE.confidence_column] = confidence.astype(np.float32)
    return to_batch(columns, list(columns)), free


def _columns_of(media: Media, row_ids: RowIds) -> Columns:
    """Return the columns about duplicates that a table has."""
    all_of_them = (*GROUPS, "duplicate_similarity", DUPLICATE_ISSUE.confidence_column)
    names = [name for name in all_of_them if name in media.table.schema.names]
    rows = media.table.take(row_ids.tolist(), names)
    return {name: rows.column(name).fill_null(-1 if name in GROUPS else np.nan).to_numpy().copy() for name in names}


def widest_groups(numbered: NumberedRows) -> npt.NDArray[np.int32]:
    """Return the group of each row that holds all its others; -1 for none."""
    names = numbered.media.table.schema.names
    return numbered.integers(NEAR if NEAR in names else DUPLICATES[0])


def related_rows(around: Neighbourhood, changed: Rows, copies: CopyPairs | None) -> Rows:
    """Return the rows that can form groups with some rows: their groups, and copies or near neighbours of these."""
    group, original = widest_groups(around.numbered), around.original
    related = changed[original[changed] >= 0]
    while True:
        groups = np.unique(group[related])
        is_related = among(group, groups[groups >= 0])
        is_related[related] = True
        if copies is None:
            is_related |= among(original, original[is_related & (original >= 0)])
            near, similarity = around.lists(np.unique(original[is_related & (original >= 0)]))
            is_related[near[(near >= 0) & (similarity >= DUPLICATE_LEVELS[0] - 1e-6)]] = True
        else:
            is_related[copies.a[is_related[copies.b]]] = True
            is_related[copies.b[is_related[copies.a]]] = True
        if int(is_related.sum()) == len(related):
            return related
        related = np.flatnonzero(is_related)
