"""Pairs of copies: a table of its own, because neither the embeddings nor their neighbours show them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import Vectors
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import COPY_DESCRIPTOR, DUPLICATES, LOCAL_FEATURES, PANEL_DESCRIPTORS, copy_schema
from framedex.storage.table_names import COPIES
from framedex.storage.table_versions import Table, flat

Rows = npt.NDArray[np.int64]
Pairs = tuple[Rows, Rows, Vectors]
"""(item, other item, similarity)"""
CROPPED = "cropped to"
"""Part of the reasons of copies that show a part of the original only."""
_ENDS = ("media_id", "other_id")
_FEW_SHARE = 16  # fewer rows than this part of the table are read by number
_SCHEMA = pa.schema(
    [
        pa.field("media_id", pa.string(), nullable=False),
        pa.field("other_id", pa.string(), nullable=False),
        pa.field("similarity", pa.float32(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("share", pa.float32(), nullable=False),
        pa.field("covered", pa.float32()),
        pa.field("residual", pa.float32()),
    ]
)


@dataclass(frozen=True)
class CopyPairs:
    """Pairs of media of which one is a copy of the other.

    Attributes:
        a, b: int64, shape (P,): their rows in the media table; a is the copy where that is known.
        similarity: float32, shape (P,), at least the lowest level of near-duplicates.
        reasons: what was done to the copy; None if the descriptors alone show it.
        shares: float32, shape (P,), in (0, 1]: the part of the copy that is not beside other content, as in a collage.
        covered: float32, shape (P,), in [0, 1]: the share of what both show over which something was laid; NaN if it
            was not measured.
        residual: float32, shape (P,): the mean difference of grey levels elsewhere, after the light was fitted; or NaN.
    """

    a: Rows
    b: Rows
    similarity: Vectors
    reasons: Sequence[str | None]
    shares: Vectors
    covered: Vectors
    residual: Vectors

    @classmethod
    def by_descriptor(cls, a: Rows, b: Rows, similarity: Vectors) -> "CopyPairs":
        """Return pairs that are known by their descriptors alone."""
        unknown = np.full(len(a), np.nan, np.float32)
        return cls(a, b, similarity, [None] * len(a), np.ones(len(a), np.float32), unknown, unknown)

    def __len__(self) -> int:
        return len(self.a)

    def joined(self, other: "CopyPairs") -> "CopyPairs":
        """Return the pairs of both."""
        return CopyPairs(
            np.concatenate([self.a, other.a]),
            np.concatenate([self.b, other.b]),
            np.concatenate([self.similarity, other.similarity]),
            [*self.reasons, *other.reasons],
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("shares", "covered", "residual")
            ),
        )

    def take(self, selected: npt.NDArray[np.bool_]) -> "CopyPairs":
        """Return the selected pairs: bool, shape (P,)."""
        reasons = [reason for reason, kept in zip(self.reasons, selected.tolist(), strict=True) if kept]
        numbers = (self.shares[selected], self.covered[selected], self.residual[selected])
        return CopyPairs(self.a[selected], self.b[selected], self.similarity[selected], reasons, *numbers)

    def moved(self, new_row: Rows) -> "CopyPairs":
        """Return the pairs with other row numbers; pairs with a row that becomes -1 are left out."""
        a, b = new_row[self.a], new_row[self.b]
        kept = (a >= 0) & (b >= 0)
        return replace(self, a=a, b=b).take(kept)

    def items(self, positions: Rows) -> Pairs:
        """Return the pairs that belong together, by the numbers of items, whose ascending rows are *positions*.

        A collage belongs to the first of the images that it shows, so that these do not become copies of each other;
        nor do their crops.
        """
        kept = np.isin(self.a, positions) & np.isin(self.b, positions) & ~self._is_further_part()
        a, b = (np.searchsorted(positions, rows[kept]) for rows in (self.a, self.b))
        return a, b, self.similarity[kept]

    def shares_beside(self, groups: npt.NDArray[np.integer]) -> dict[int, float]:
        """Return the shares of the rows that show another member of their group beside other content, by row.

        Args:
            groups: shape (rows,): the group of each row.
        """
        beside = np.flatnonzero((self.shares < 1) & (groups[self.a] == groups[self.b]))
        order = beside[np.argsort(self.shares[beside], kind="stable")]  # the largest share of a row is the last
        return dict(zip(self.a[order].tolist(), self.shares[order].tolist(), strict=True))

    def verified(self) -> "CopyPairs":
        """Return the pairs that were shown to be copies, not by their descriptors or groups alone."""
        return self.take(np.isfinite(self.covered) | np.array([reason is not None for reason in self.reasons], bool))

    def crops(self, groups: npt.NDArray[np.integer]) -> set[int]:
        """Return the rows that show only a part of another member of their group.

        Args:
            groups: shape (rows,): the group of each row.
        """
        return set(self.a[self._is_crop() & (groups[self.a] == groups[self.b])].tolist())

    def _is_crop(self) -> npt.NDArray[np.bool_]:
        return np.array([CROPPED in (reason or "") for reason in self.reasons] or [False] * len(self), dtype=np.bool_)

    def _is_further_part(self) -> npt.NDArray[np.bool_]:
        beside = np.flatnonzero(self.shares < 1)
        order = beside[np.lexsort((self.b[beside], self.a[beside]))]
        further = self._is_crop() & np.isin(self.b, self.a[beside])
        further[order[1:][np.diff(self.a[order]) == 0]] = True
        return further


NO_PAIRS = CopyPairs.by_descriptor(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def raise_similarity(similarity: Vectors, pairs: Pairs) -> None:
    """Raise the similarities of items, in place, to those of their pairs: float32, shape (N,)."""
    for items in pairs[:2]:
        np.maximum.at(similarity, items, pairs[2])


def has_own_descriptor(table: Table) -> bool:
    """Return whether copies are compared by descriptors that are not the embeddings."""
    return COPY_DESCRIPTOR in table.schema.names


def compared_column(table: Table) -> str:
    """Return the column of vectors by which near-duplicates are found."""
    return COPY_DESCRIPTOR if has_own_descriptor(table) else "embedding"


def read_descriptors(table: Table, rows: Rows) -> tuple[Rows, Vectors]:
    """Read the vectors by which copies of some rows are found.

    Args:
        table: the media table.
        rows: ascending.

    Returns:
        The places in *rows* of those that have a vector, ascending, and these vectors: float32, shape (places, D).
    """
    name = compared_column(table)
    dimension = table.schema.field(name).type.list_size
    if not len(rows):
        return np.empty(0, np.int64), np.empty((0, dimension), np.float32)
    column = table.take_positions(rows, name)
    places = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return places, flat(column, dimension)[places]


def copy_schema_of(schema: pa.Schema) -> pa.Schema | None:
    """Return the columns for finding copies among those of a media table; None if it has none."""
    if PANEL_DESCRIPTORS not in schema.names:
        return None
    names = (COPY_DESCRIPTOR, PANEL_DESCRIPTORS, LOCAL_FEATURES)
    return pa.schema([schema.field(name) for name in names if name in schema.names])


def video_owners(table: Table, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | None:
    """Return the number of the video of each row, -1 for images: int32, shape (len(positions),); None without videos.

    Frames of one video are no copies of each other.
    """
    if "video_id" not in table.schema.names:
        return None
    if len(positions) < table.count() // _FEW_SHARE:
        ids = table.take_positions(positions, "video_id")
    else:
        ids = table.scan(["video_id"]).read_all().column(0).combine_chunks().take(pa.array(positions))
    encoded = ids.dictionary_encode()
    if not len(encoded.dictionary):
        return None
    return np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)


def keep_descriptors(table: Table, versions: Mapping[str, int]) -> Table:
    """Return a media table whose embeddings can be replaced: where they are copy descriptors, these get a column.

    Args:
        table: the media table, at its newest version.
        versions: of the tables of the generation.
    """
    if COPIES not in versions or has_own_descriptor(table):
        return table
    schema = copy_schema(table.schema.field("embedding").type.list_size, is_embedding=False)
    field = schema.field(COPY_DESCRIPTOR)
    batches = (
        pa.RecordBatch.from_arrays([batch.column(0)], schema=pa.schema([field]))
        for batch in table.vector_batches("embedding", 0)
    )
    return Table(table.path, tables.put_columns(table, batches, pa.schema([field])))


def write_pairs(pairs: CopyPairs, table: Table) -> int:
    """Write pairs of rows of a media table, by media ids; return the version of their table."""
    ids = table.scan(["media_id"]).read_all().column(0)
    columns = [ids.take(pa.array(rows)).combine_chunks() for rows in (pairs.a, pairs.b)]
    arrays = [
        *columns,
        pa.array(pairs.similarity, pa.float32()),
        pa.array(list(pairs.reasons), pa.string()),
        pa.array(pairs.shares, pa.float32()),
        pa.array(pairs.covered, pa.float32(), from_pandas=True),
        pa.array(pairs.residual, pa.float32(), from_pandas=True),
    ]
    path = _path(table.path)
    version = tables.replace(path, [pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)], _SCHEMA)
    tables.sync(path)
    return version


def read_pairs(
    table: Table, versions: Mapping[str, int], find: Callable[[pa.Array], Rows] | None = None
) -> CopyPairs | None:
    """Read the pairs of a generation as rows of its media table; None if it has no table of pairs.

    Args:
        table: the media table at the version of the generation, or a later one with the same or fewer ids.
        versions: of the tables of the generation.
        find: returns the rows of media ids, -1 for none; by default the column of ids is read.
    """
    if COPIES not in versions or PANEL_DESCRIPTORS not in table.schema.names:
        return None
    stored = Table(_path(table.path), versions[COPIES])
    stored = stored.scan([name for name in _SCHEMA.names if name in stored.schema.names]).read_all()
    if "covered" not in stored.column_names:
        stored = pa.concat_tables([stored, _pairs_of_groups(table)], promote_options="default")
    if not len(stored):
        return NO_PAIRS
    ends = [stored.column(name).combine_chunks() for name in _ENDS]
    named = pc.unique(pa.concat_arrays(ends))
    row_of = _rows_of(table, named) if find is None else find(named)
    a, b = (row_of[pc.index_in(each, value_set=named).to_numpy(zero_copy_only=False)] for each in ends)
    kept = (a >= 0) & (b >= 0)
    pairs = CopyPairs.by_descriptor(a, b, stored.column("similarity").to_numpy())
    numbers = {  # an older version of the program stored fewer
        name: stored.column(column).fill_null(np.nan).to_numpy()
        for name, column in (("shares", "share"), ("covered", "covered"), ("residual", "residual"))
        if column in stored.schema.names
    }
    return replace(pairs, reasons=stored.column("reason").to_pylist(), **numbers).take(kept)


def _pairs_of_groups(table: Table) -> pa.Table:
    """Return pairs that hold the groups of a table together: older versions of the program stored no others."""
    columns = [name for name in DUPLICATES if name in table.schema.names]
    rows = table.scan(["media_id", *columns]).read_all().combine_chunks()
    parts = [_SCHEMA.empty_table()]
    for name in columns:
        group = rows.column(name).fill_null(-1).to_numpy()
        order = np.argsort(group, kind="stable")
        together = np.flatnonzero((group[order[1:]] == group[order[:-1]]) & (group[order[1:]] >= 0))
        similarity = np.full(len(together), DUPLICATE_LEVELS[DUPLICATES.index(name)], np.float32)
        ends = [rows.column("media_id").take(pa.array(order[together + step])) for step in (0, 1)]
        values = [*ends, similarity, pa.nulls(len(together), pa.string()), np.ones(len(together), np.float32)]
        parts.append(pa.table(values, schema=pa.schema(list(_SCHEMA)[:5])))
    return pa.concat_tables(parts, promote_options="default")


def _rows_of(table: Table, media_ids: pa.Array) -> Rows:
    """Return the rows of media ids, -1 for those that do not exist."""
    row_of, start = np.full(len(media_ids), -1, dtype=np.int64), 0
    for batch in table.scan(["media_id"]):
        places = pc.index_in(batch.column(0), value_set=media_ids).fill_null(-1).to_numpy(zero_copy_only=False)
        listed = np.flatnonzero(places >= 0)
        row_of[places[listed]] = start + listed
        start += batch.num_rows
    return row_of


class StoredPair(NamedTuple):
    """A pair with a media item: its similarity, what was done to the copy, and whether it was shown to be one."""

    similarity: float
    reason: str | None
    is_verified: bool


def pairs_with(table: Table, versions: Mapping[str, int], media_id: str) -> dict[str, StoredPair]:
    """Return the pairs with a media item, by the id of the other one.

    Args:
        table: the media table.
        versions: of the tables of the generation.
        media_id: the item.
    """
    if COPIES not in versions:
        return {}
    stored = Table(_path(table.path), versions[COPIES])
    names = [name for name in (*_ENDS, "similarity", "reason", "covered") if name in stored.schema.names]
    pairs = stored.scan(names).read_all()
    is_end = (pc.equal(pairs.column(name), media_id) for name in _ENDS)
    rows = pairs.filter(pc.or_(*is_end)).to_pylist()
    return {
        row[_ENDS[row[_ENDS[0]] == media_id]]: StoredPair(
            row["similarity"], row["reason"], row["reason"] is not None or row.get("covered") is not None
        )
        for row in rows
    }


def reasons_of(table: Table, versions: Mapping[str, int], media_ids: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return what was done to copies among some media, by (id of the copy, id of the original)."""
    if COPIES not in versions or not media_ids:
        return {}
    stored = Table(_path(table.path), versions[COPIES]).scan(["media_id", "other_id", "reason"]).read_all()
    values = pa.array(media_ids, pa.string())
    chosen = stored.filter(pc.and_(*(pc.is_in(stored.column(name), value_set=values) for name in _ENDS)))
    return {(row["media_id"], row["other_id"]): row["reason"] for row in chosen.to_pylist() if row["reason"]}


def _path(table: Path) -> Path:
    return table.with_name(f"{COPIES}.lance")
