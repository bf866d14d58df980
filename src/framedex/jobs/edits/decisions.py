"""User decisions about duplicates: a table of its own, and the duplicate groups that follow from it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.stability import keep_numbers
from framedex.core.ids import new_id
from framedex.errors import InvalidInput, NotFound
from framedex.issue_types import DUPLICATES as DUPLICATE_ISSUE
from framedex.jobs.index.columns import Columns, duplicate_column, to_batches
from framedex.jobs.index.index import FIRST_NUMBERS, near_duplicates
from framedex.records import DUPLICATE_LEVELS, DuplicateDecision
from framedex.storage import tables
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, read_pairs
from framedex.storage.generation import Generation, Summary
from framedex.storage.media_rows import DUPLICATES, index_schema
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table

DECISIONS = "decisions"
_SCHEMA = pa.schema(
    [
        pa.field("decision_id", pa.string(), nullable=False),
        pa.field("media_ids", pa.list_(pa.string()), nullable=False),
        pa.field("decided_by", pa.string(), nullable=False),
        pa.field("decided_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_COLUMNS = (*DUPLICATES, "duplicate_similarity", DUPLICATE_ISSUE.confidence_column)


def read_decisions(table: Path, versions: Mapping[str, int]) -> list[DuplicateDecision]:
    """Return the decisions of a generation, oldest first.

    Args:
        table: folder of the dataset's media table.
        versions: of the generation's tables.
    """
    if DECISIONS not in versions:
        return []
    rows = Table(_path(table), versions[DECISIONS]).scan(_SCHEMA.names).read_all().to_pylist()
    return [DuplicateDecision(**row) for row in rows]


def decide(
    table: Path, head: Generation, media_ids: Sequence[str], decided_by: str
) -> tuple[DuplicateDecision, dict[str, int], Summary]:
    """Write the decision that no two of some media are duplicates, and the duplicate groups that follow.

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
    decisions = [*read_decisions(table, head.tables), decision]
    versions, summary = _apply(table, head, decisions, ids)
    return decision, versions, summary


def withdraw(table: Path, head: Generation, decision_id: str) -> tuple[dict[str, int], Summary]:
    """Delete a decision and write the duplicate groups that follow; return versions and summary.

    Raises:
        NotFound: the dataset has no such decision.
    """
    decisions = read_decisions(table, head.tables)
    withdrawn = next((each for each in decisions if each.decision_id == decision_id), None)
    if withdrawn is None:
        raise NotFound(f"no decision {decision_id!r} in this dataset")
    remaining = [each for each in decisions if each is not withdrawn]
    return _apply(table, head, remaining, withdrawn.media_ids, must_exist=False)


def _apply(
    table: Path,
    head: Generation,
    decisions: Sequence[DuplicateDecision],
    changed: Sequence[str],
    *,
    must_exist: bool = True,
) -> tuple[dict[str, int], Summary]:
    version = tables.roll_back(table, head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    media = Table(table, version)
    positions, count = _positions(media, changed, must_exist=must_exist), media.count()
    columns, free = _regrouped(media, positions, [each.media_ids for each in decisions], head)
    written = tables.put_columns(
        media, to_batches(columns, count, _COLUMNS), pa.schema([index_schema().field(name) for name in _COLUMNS])
    )
    rows = pa.RecordBatch.from_pylist([each.model_dump() for each in decisions], schema=_SCHEMA)
    versions = {**head.tables, MEDIA: written, DECISIONS: tables.replace(_path(table), [rows], _SCHEMA)}
    tables.sync(table)
    tables.sync(_path(table))
    return versions, head.summary.with_(first_free={**head.summary.first_free, **free})


def _path(table: Path) -> Path:
    return table.with_name(f"{DECISIONS}.lance")


def _positions(media: Table, ids: Sequence[str], *, must_exist: bool) -> npt.NDArray[np.int64]:
    """Return the row numbers of media in the table, ascending."""
    row_of_id: dict[str, int] = {}
    start, id_set = 0, set(ids)
    for batch in media.scan(["media_id"]):
        names = batch.column(0).to_pylist()
        row_of_id |= {name: start + offset for offset, name in enumerate(names) if name in id_set}
        start += len(names)
    missing = id_set - row_of_id.keys()
    if missing and must_exist:
        raise NotFound(f"no media {sorted(missing)[0]!r} in this dataset")
    return np.array(sorted(row_of_id.values()), dtype=np.int64)


def _regrouped(
    media: Table, changed: npt.NDArray[np.int64], cannot_link: Sequence[Sequence[str]], head: Generation
) -> tuple[Columns, dict[str, int]]:
    """Return the columns about duplicates after regrouping some media, and the next free group numbers.

    A group is always part of one group of the coarsest level without any decision. So only the rows that can form
    groups with the changed ones are read: their groups, copies and near neighbours.
    """
    index_rows = media.scan([*_COLUMNS, "original", "neighbours", "neighbour_similarity"]).read_all()
    columns: Columns = {
        name: index_rows.column(name)
        .fill_null(np.nan if "similarity" in name or "issue" in name else -1)
        .to_numpy()
        .copy()
        for name in _COLUMNS
    }
    original = index_rows.column("original").fill_null(-1).to_numpy()
    copies = read_pairs(media, head.tables)
    summary = head.summary
    members = _related_rows(columns[DUPLICATES[0]], original, index_rows, changed, copies or NO_PAIRS)
    groups, similarity = near_duplicates(media, copies or NO_PAIRS, cannot_link, members)
    free = {}
    for level, name in enumerate(DUPLICATES):
        group_of_row = np.full(len(original), -1, dtype=np.int32)
        group_of_row[members] = groups[:, level]
        old = columns[name].astype(np.int32)
        previous = np.full(len(original), -1, dtype=np.int32)
        previous[members] = old[members]
        next_free = summary.first_free.get(name, FIRST_NUMBERS[name])
        numbers, free[name] = keep_numbers(previous, group_of_row, first_free=next_free)
        old[members] = numbers[members]
        columns[name] = old
    limit = summary.limit(DUPLICATE_ISSUE.name) or DUPLICATE_LEVELS[0]
    return _scored(columns, members, similarity, groups >= 0, duplicate_column(limit)), free


def _scored(
    columns: Columns,
    members: npt.NDArray[np.int64],
    similarity: npt.NDArray[np.float32],
    grouped: npt.NDArray[np.bool_],
    level: int,
) -> Columns:
    """Return the columns with the similarity and the confidence of regrouped media.

    Args:
        columns: changed in place.
        members: int64, shape (M,): the rows of these media.
        similarity: float32, shape (M,): to the most similar other one.
        grouped: bool, shape (M, levels): true for members of a group of the level.
        level: the level that the limit of the issue stands for.
    """
    new = columns["duplicate_similarity"]
    # Media beyond the related rows are less similar than the coarsest level, so similarities above it are exact.
    new[members] = np.where(
        grouped[:, 0], similarity, np.minimum(np.maximum(similarity, new[members]), DUPLICATE_LEVELS[0])
    )
    confidence = columns[DUPLICATE_ISSUE.confidence_column]
    confidence[members] = np.where(grouped[:, level], np.clip(similarity, 0, 1), np.nan)
    return columns


def _related_rows(
    group: npt.NDArray[np.int32],
    original: npt.NDArray[np.int32],
    index_rows: pa.Table,
    changed: npt.NDArray[np.int64],
    copies: CopyPairs,
) -> npt.NDArray[np.int64]:
    """Return the rows that can form groups with some rows: their groups, copies and near neighbours, transitively."""
    is_related = np.zeros(len(group), dtype=bool)
    is_related[changed[original[changed] >= 0]] = True
    while True:
        before = int(is_related.sum())
        is_related |= np.isin(group, np.unique(group[is_related & (group >= 0)]))
        is_related |= np.isin(original, np.unique(original[is_related])) & (original >= 0)
        rows = np.unique(original[is_related])
        lists = index_rows.take(pa.array(rows))
        flat, near = (lists.column(name).combine_chunks().flatten() for name in ("neighbours", "neighbour_similarity"))
        close = near.fill_null(-1).to_numpy(zero_copy_only=False) >= DUPLICATE_LEVELS[0] - 1e-6
        is_related[flat.fill_null(0).to_numpy(zero_copy_only=False)[close]] = True
        is_related[copies.a[is_related[copies.b]]] = True
        is_related[copies.b[is_related[copies.a]]] = True
        if int(is_related.sum()) == before:
            return np.flatnonzero(is_related)
