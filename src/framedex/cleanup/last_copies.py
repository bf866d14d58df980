"""The protection of last copies: of a group, one member stays in the dataset, whatever names them for removal."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.browse.equal_files import exact_key
from framedex.cleanup.choice import CandidateRows, CleanupDecision, CleanupRequest, Numbers, best_of_groups
from framedex.core.arrays import Mask, RowIds
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, MISSING_SINCE
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark
from framedex.storage.table_versions import ROW_ID

_NONE = -1
_FEW = 100  # rows in a table for each row that is read by itself
Key = tuple[str, tuple[str, ...]]
"""An SQL expression that is equal for the members of a group, and the columns that it reads."""


@dataclass(frozen=True)
class Losses:
    """Removed rows that have copies, each with one of its group that stays.

    Attributes:
        lost: uint64, shape (N,): the ids of the removed rows.
        survivor: uint64, shape (N,): the id of the row that stays for each.
    """

    lost: RowIds
    survivor: RowIds

    def without(self, stay: RowIds) -> "Losses":
        """Return the losses of a plan from which some rows were taken out."""
        left = ~np.isin(self.lost, stay)
        return Losses(self.lost[left], self.survivor[left])


def keep_last_copies(
    media: Media, rows: CandidateRows, request: CleanupRequest, decision: CleanupDecision
) -> tuple[CleanupDecision, Losses]:
    """Return the decision by which one member of each group stays, and the losses.

    Groups are those of near-duplicates at the lowest similarity, and files of equal content that are in none. A row
    whose copies earlier clean-ups removed is a group by itself.

    Args:
        media: the media of the dataset.
        rows: the candidate rows.
        request: the request.
        decision: the decision by the rules alone; each group of the request's similarity keeps a row.
    """
    repeated = np.flatnonzero(decision.removed & (decision.kept_index >= 0))
    lost, survivor = [rows.row_ids[repeated]], [rows.row_ids[decision.kept_index[repeated]]]
    unsettled = np.flatnonzero(decision.removed & (decision.kept_index < 0))
    for key, is_exact in _keys(media):
        if not len(keys := _keys_of(media, key, rows.row_ids[unsettled])):
            continue
        groups = _Groups.read(media, key, rows, keys)
        decision = groups.rescue(rows, request, decision, is_exact=is_exact)
        pairs = groups.losses(rows, decision)
        lost.append(pairs.lost)
        survivor.append(pairs.survivor)
        unsettled = unsettled[~np.isin(rows.row_ids[unsettled], groups.row_ids[groups.sizes[groups.code] > 1])]
    is_last = rows.columns[KEEPER][unsettled] == KeeperMark.LAST
    removed = decision.removed.copy()
    removed[unsettled[is_last]] = False
    return replace(decision, removed=removed), Losses(np.concatenate(lost), np.concatenate(survivor))


def _keys(media: Media) -> list[tuple[Key, bool]]:
    """Return the keys of groups of copies, each with whether their files are equal."""
    near, (content, columns) = DUPLICATES[0], exact_key(media)
    if near not in media.table.schema.names:
        return [((content, columns), True)]
    alone = f"CASE WHEN {near} IS NULL THEN {content} END"
    return [((near, (near,)), False), ((alone, (near, *columns)), True)]


@dataclass(frozen=True)
class _Groups:
    """The M members of the groups of some rows, in row order.

    Attributes:
        row_ids: uint64, shape (M,).
        code: int64, shape (M,): the number of the group.
        sizes: int64, by group: the number of members.
        index: int64, shape (M,): the index among the candidate rows; -1 for others.
        in_basket: bool, shape (M,).
        is_chosen: bool, shape (M,): whether a person chose it.
        is_missing: bool, shape (M,): whether its file is gone, so that it is no copy of others any more.
    """

    row_ids: RowIds
    code: Numbers
    sizes: Numbers
    index: Numbers
    in_basket: Mask
    is_chosen: Mask
    is_missing: Mask

    @classmethod
    def read(cls, media: Media, key: Key, rows: CandidateRows, keys: pa.Array) -> "_Groups":
        """Return the members of the groups with some keys."""
        marks = [name for name in (IN_BASKET, KEEPER, MISSING_SINCE.name) if name in media.table.schema.names]
        text, columns = key[0], sorted({*key[1], *marks})
        relations = {"wanted": pa.table({"key": keys})}
        test = Condition(f"coalesce({text} IN (SELECT key FROM wanted), FALSE)", (), frozenset(columns), (), relations)
        table = media.query(
            f"SELECT {', '.join([ROW_ID, *marks])}, {text} AS key FROM chosen ORDER BY {ROW_ID}",
            test,
            columns,
            keep=key[1] == (text,),  # the hashes of all files take much memory
        )
        row_ids = table[ROW_ID].to_numpy()
        place = np.minimum(np.searchsorted(rows.row_ids, row_ids), max(len(rows.row_ids) - 1, 0))
        index = np.where(rows.row_ids[place] == row_ids, place, _NONE)
        in_basket = _is(table, IN_BASKET, True)
        is_chosen = _is(table, KEEPER, KeeperMark.CHOSEN)
        code = np.asarray(table["key"].combine_chunks().dictionary_encode().indices.to_numpy(), dtype=np.int64)
        is_missing = np.zeros(len(table), dtype=bool)
        if MISSING_SINCE.name in marks:
            is_missing = np.asarray(table[MISSING_SINCE.name].is_valid().to_numpy())
        return cls(row_ids, code, np.bincount(code), index, in_basket, is_chosen, is_missing)

    def rescue(
        self, rows: CandidateRows, request: CleanupRequest, decision: CleanupDecision, *, is_exact: bool
    ) -> CleanupDecision:
        """Return the decision by which the best member of each group stays that would lose all of them."""
        n_groups, goes = len(self.sizes), self._removed(decision) | self.is_missing
        loses_all = (self.sizes > 1) & (np.bincount(self.code, ~goes, n_groups) == 0)
        removed, kept = decision.removed.copy(), decision.kept.copy()
        leaves = np.flatnonzero(loses_all[self.code] & ~self.is_missing)
        groups, group = np.unique(self.code[leaves], return_inverse=True)
        best, reasons, codes, _ = best_of_groups(self.index[leaves], group, len(groups), rows, request)
        removed[best], kept[best] = False, True
        best_of = np.full(n_groups, _NONE, dtype=np.int64)
        best_of[groups] = best
        kept_index, reason = decision.kept_index.copy(), decision.reason.copy()
        reason[best] = len(decision.reasons) + codes
        index, code = self.index[leaves], self.code[leaves]
        kept_index[index] = best_of[code]
        has_issue = np.zeros(len(self.code), dtype=bool)
        has_issue[leaves] = ~np.isnan(rows.confidence[index]).all(axis=1)
        counts = {
            "members": self.sizes,
            "sound": self.sizes - np.bincount(self.code, has_issue, n_groups),
            "unwanted": np.bincount(self.code, self.in_basket, n_groups),
            "exact": np.full(n_groups, is_exact),
        }
        filled = {}
        for name, of_group in counts.items():
            filled[name] = getattr(decision, name).copy()
            filled[name][index] = of_group[code]
        return replace(
            decision,
            removed=removed,
            kept=kept,
            kept_index=kept_index,
            reasons=pa.concat_arrays([decision.reasons, reasons]),
            reason=reason,
            **filled,
        )

    def losses(self, rows: CandidateRows, decision: CleanupDecision) -> Losses:
        """Return the losses of groups of several members, each with a member that stays: that people chose, if any."""
        goes, is_kept = self._removed(decision), decision.kept[self.index] & (self.index >= 0)
        rank = np.select([self.is_chosen, is_kept, ~self.in_basket], [0, 1, 2], 3)
        stays = np.flatnonzero(~goes & ~self.is_missing)
        order = stays[np.lexsort((stays, rank[stays], self.code[stays]))]
        groups, first = np.unique(self.code[order], return_index=True)
        survivor = np.zeros(len(self.sizes), dtype=np.uint64)
        survivor[groups] = self.row_ids[order[first]]
        lost = goes & (self.sizes[self.code] > 1)
        return Losses(self.row_ids[lost], survivor[self.code[lost]])

    def _removed(self, decision: CleanupDecision) -> Mask:
        return decision.removed[self.index] & (self.index >= 0)


def _keys_of(media: Media, key: Key, row_ids: RowIds) -> pa.Array:
    """Return the different keys of rows; those of few rows without reading the columns."""
    text, columns = key
    if not len(row_ids):
        return pa.array([])
    if len(row_ids) * _FEW < media.table.count():
        rows = media.take(row_ids.tolist(), list(columns))
        if columns == (text,):
            return rows[text].combine_chunks().unique().drop_null()
        found = media.sql.query(f"SELECT DISTINCT {text} AS key FROM chosen", (), {"chosen": rows})
    else:
        only = Condition(f"{ROW_ID} IN (SELECT {ROW_ID} FROM gone)", relations={"gone": pa.table({ROW_ID: row_ids})})
        found = media.query(f"SELECT DISTINCT {text} AS key FROM chosen", only, list(columns), keep=False)
    return found["key"].combine_chunks().drop_null()


def _is(table: pa.Table, column: str, value: int) -> Mask:
    if column not in table.column_names:
        return np.zeros(len(table), dtype=bool)
    return np.asarray(pc.fill_null(pc.equal(table[column], value), fill_value=False).to_numpy())
