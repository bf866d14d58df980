"""Counts of the rows that meet conditions, of which those of appended rows alone are counted again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.path_columns import relation_with, stored
from framedex.operations.context import Context
from framedex.storage.column_keys import ColumnsKey, columns_key, extends
from framedex.storage.condition import Condition
from framedex.storage.failures import own_errors
from framedex.storage.media import Media
from framedex.storage.table_versions import ROW_ID

_FEW = 8  # divisor: up to 1/8 of the rows are read by id
_BYTES_OF_FRAGMENT = 200


@dataclass(frozen=True)
class _Counted:
    """The rows of a version that meet a condition.

    Attributes:
        key: of the columns that the condition reads.
        n_rows: the number of all rows.
        last: the largest row id.
        count: the number of rows that meet the condition.
    """

    key: ColumnsKey
    n_rows: int
    last: int
    count: int

    def is_part_of(self, key: ColumnsKey, row_ids: RowIds) -> bool:
        """Return whether a version has the same rows with the same values, before all its others, which are few.

        Args:
            key: of the version's columns that the condition reads.
            row_ids: uint64, ascending: all its rows.
        """
        if not self.n_rows or (len(row_ids) - self.n_rows) * _FEW > len(row_ids):
            return False
        # All rows of this version are in the other one, so as many rows up to the last id are the same ones.
        return extends(key, self.key) and int(row_ids[self.n_rows - 1]) == self.last


def count_rows(context: Context, media: Media, conditions: Sequence[Condition]) -> list[int]:
    """Return the number of rows that meet each of some conditions.

    An addition leaves the values of most columns as they are. A condition that was counted before such an addition is
    counted among the new rows alone. The columns of the index, which an addition writes again, are read in full.

    Args:
        context: the workspace, whose memory keeps the counts.
        media: the media, or the objects.
        conditions: conditions without relations.
    """
    parts = [batch.column(0).to_numpy() for batch in media.scan([ROW_ID])]
    row_ids = np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))
    names = [frozenset(stored(each.columns)) for each in conditions]
    keys = {each: columns_key(media.table, each) for each in set(names)}
    memory = [("count", str(media.table.path), each.text, repr(each.params)) for each in conditions]
    known: dict[int, _Counted] = {}
    for place, (columns, name) in enumerate(zip(names, memory, strict=True)):
        earlier = context.selections.get(name)
        if earlier is not None and earlier.is_part_of(keys[columns], row_ids):
            known[place] = earlier
    counts = _appended(context, media, conditions, known, row_ids)
    others = [place for place in range(len(conditions)) if place not in known]
    if others:
        counts |= dict(zip(others, media.counts([conditions[place] for place in others]), strict=True))
    if len(row_ids):
        for place, (columns, name) in enumerate(zip(names, memory, strict=True)):
            counted = _Counted(keys[columns], len(row_ids), int(row_ids[-1]), counts[place])
            weight = _BYTES_OF_FRAGMENT * (1 + len(counted.key[1])) + len(name[2]) + len(name[3])
            context.selections.put(name, counted, weight=weight)
    return [counts[place] for place in range(len(conditions))]


def _appended(
    context: Context,
    media: Media,
    conditions: Sequence[Condition],
    known: Mapping[int, _Counted],
    row_ids: RowIds,
) -> dict[int, int]:
    """Return the counts of conditions that were counted in part, by their places."""
    counts: dict[int, int] = {}
    for n_rows in {each.n_rows for each in known.values()}:
        places = [place for place, each in known.items() if each.n_rows == n_rows]
        counts |= {place: known[place].count for place in places}
        if n_rows < len(row_ids):
            found = count_block(context, media, [conditions[place] for place in places], row_ids[n_rows:])
            for place, count in zip(places, found, strict=True):
                counts[place] += count
    return counts


def count_block(context: Context, media: Media, conditions: Sequence[Condition], row_ids: RowIds) -> list[int]:
    """Return the number of the given rows that meet each of some conditions without relations."""
    columns = frozenset[str]().union(*(each.columns for each in conditions))
    block = media.take(row_ids.tolist(), sorted(stored(columns) - {ROW_ID})).append_column(ROW_ID, pa.array(row_ids))
    tests, params = tests_of(conditions)
    with own_errors(f"read {media.table.path}"):
        found = context.sql.query(f"SELECT {tests} FROM {relation_with(columns, 'media')}", params, {"media": block})
    return [int(found[f"n{number}"][0].as_py()) for number in range(len(conditions))]


def tests_of(conditions: Sequence[Condition]) -> tuple[str, list[object]]:
    """Return a select list that counts the rows that meet each condition, as ``n0``, ``n1``…, and its parameters."""
    tests, params = [], list[object]()
    for number, each in enumerate(conditions):
        tests.append(f"count(*) FILTER (WHERE {each.numbered_from(len(params) + 1)}) AS n{number}")
        params += each.params
    return ", ".join(tests), params
