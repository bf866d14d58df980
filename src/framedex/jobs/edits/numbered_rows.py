"""The rows of a media table by number, which deletions and edits leave as they are.

Index columns name rows by their places when the index was written, see :mod:`framedex.storage.row_numbers`. Arrays by
number are therefore read once, and serve one deletion after another; the rows that were deleted and the values that
were edited meanwhile are few.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.core.ids import is_id
from framedex.jobs.edits.rows import find_ids
from framedex.storage.column_keys import files_key
from framedex.storage.copy_pairs import CopyPairs, read_pairs
from framedex.storage.generation import Generation
from framedex.storage.id_index import id_halves
from framedex.storage.media import Media
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.table_versions import ROW_ID

_ID = "media_id"
_MANY = 64  # more ids than one of so many rows are looked up in one pass over all ids
_VALUES = "values"
_NO_ROW = np.iinfo(np.uint64).max
Rows = npt.NDArray[np.int64]


class NumberedRows:
    """The rows of a state of media by number.

    Args:
        media: the media.
    """

    def __init__(self, media: Media) -> None:
        self.media, self._numbers = media, RowNumbers.of(media.table.overlay)
        self._keys: dict[str, Hashable] = {}

    @property
    def removed(self) -> Rows:
        """The numbers of rows that were deleted since the index was written, ascending."""
        return self._numbers.removed

    @property
    def count(self) -> int:
        """The number of rows, deleted ones included."""
        return self._present + len(self.removed)

    @cached_property
    def _present(self) -> int:
        return self.media.table.count()

    def rows(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the places of numbers in the table; see :meth:`framedex.storage.row_numbers.RowNumbers.rows`."""
        return self._numbers.rows(numbers)

    def numbers(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the numbers of places in the table."""
        return self._numbers.numbers(rows)

    @property
    def row_ids(self) -> RowIds:
        """The row ids by number, uint64, shape (count,); arbitrary for deleted rows."""
        values: RowIds = self._row_ids.values
        return values

    def find_row_ids(self, row_ids: RowIds) -> Rows:
        """Return the numbers of rows given by id; -1 for rows that do not exist, or were deleted."""
        held = self._row_ids
        ids = held.values if held.order is None else held.values[held.order]
        places = np.minimum(np.searchsorted(ids, row_ids), max(len(ids) - 1, 0))
        numbers = places if held.order is None else held.order[places]
        exists = held.values[numbers] == row_ids if len(ids) else np.zeros(len(row_ids), dtype=bool)
        return np.asarray(np.where(exists & ~self._is_removed(numbers), numbers, -1), dtype=np.int64)

    def find(self, media_ids: Sequence[str]) -> Rows:
        """Return the numbers of media; -1 for those that do not exist."""
        numbers = np.full(len(media_ids), -1, dtype=np.int64)
        if len(media_ids) * _MANY > self.count:
            places = find_ids(self.media, media_ids).indices
            rows = np.flatnonzero(places >= 0)
            numbers[places[rows]] = self.numbers(rows)
            return numbers
        likely = [place for place, each in enumerate(media_ids) if is_id(each)]
        if not likely:
            return numbers
        wanted = id_halves(pa.array([media_ids[place] for place in likely], pa.string()))
        halves = self._hold("ids", _ID, id_halves).values
        is_wanted = np.zeros(2**16, dtype=bool)
        is_wanted[wanted[:, 0].astype(np.uint16)] = True
        candidates = np.flatnonzero(is_wanted[halves[:, 0].astype(np.uint16)])
        candidates = candidates[np.isin(halves[candidates, 0], wanted[:, 0]) & ~self._is_removed(candidates)]
        number_of = dict(zip(map(tuple, halves[candidates].tolist()), candidates.tolist(), strict=True))
        numbers[likely] = [number_of.get(tuple(each), -1) for each in wanted.tolist()]
        return numbers

    def find_all(self, media_ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those of some media that exist, by media id."""
        ids = list(media_ids)
        return {each: number for each, number in zip(ids, self.find(ids).tolist(), strict=True) if number >= 0}

    def copies(self, head: Generation) -> CopyPairs | None:
        """Return the pairs of copies of a generation, as numbers; see :func:`read_pairs`."""
        return read_pairs(self.media.table, head.tables, lambda media_ids: self.find(media_ids.to_pylist()))

    def integers(self, column: str) -> npt.NDArray[np.int32]:
        """Return a column of numbers of at least 0 after its edits: int32, shape (count,).

        Null is -1, and so are the values of deleted rows.
        """
        values: npt.NDArray[np.int32] = self._hold(column, column, _integers).values.copy()
        if column in self.media.table.overlay.columns:
            row_ids, edited = self.media.table.overlay.values(column)
            numbers = self.find_row_ids(row_ids)
            exists = numbers >= 0
            values[numbers[exists]] = edited.fill_null(-1).to_numpy(zero_copy_only=False)[exists]
        values[self.removed] = -1
        return values

    def stored_lists(self, column: str, width: int) -> npt.NDArray[Any] | None:
        """Return a column of lists of numbers before its edits; null is a list of -1.

        Args:
            column: its name.
            width: the length of the lists.

        Returns:
            shape (count, width); arbitrary for deleted rows. None if it is too large for the cache.
        """
        columns = self.media.columns
        if columns is None or not columns.fits(4 * width * self.count):
            return None
        values: npt.NDArray[Any] = self._hold(column, column, list_matrix).values
        return values

    def lists(self, column: str, width: int, numbers: Rows) -> npt.NDArray[Any]:
        """Return the lists of some rows, after their edits; arguments as for :meth:`stored_lists`."""
        overlay, row_ids = self.media.table.overlay, self.row_ids[numbers]
        is_held = self._is_held(column) or len(numbers) * _MANY > self.count
        if not is_held or (stored := self.stored_lists(column, width)) is None:
            return list_matrix(self.media.table.take(row_ids.tolist(), [column]).column(0).combine_chunks())
        values: npt.NDArray[Any] = stored[numbers]
        if column in overlay.columns:
            edited, lists = overlay.values(column)
            places = np.minimum(np.searchsorted(edited, row_ids), len(edited) - 1)
            is_edited = np.flatnonzero(edited[places] == row_ids)
            values[is_edited] = list_matrix(lists.take(pa.array(places[is_edited])))
        return values

    def take(self, numbers: Rows, columns: Sequence[str]) -> list[pa.Array]:
        """Return some columns for some rows, after their edits.

        For many rows they are read from columns in memory, which are loaded where they fit: reading many scattered rows
        of a file takes longer than all of it.
        """
        is_many = len(numbers) * _MANY > self.count
        held = {name: self._arrow(name) for name in columns if is_many or self._is_held(name, _VALUES)}
        row_ids = self.row_ids[numbers]
        read = [name for name in columns if held.get(name) is None]
        stored = self.media.table.take(row_ids.tolist(), read) if read else None
        taken = []
        for name in columns:
            if (values := held.get(name)) is not None:
                array = values.take(pa.array(numbers))
                if name in self.media.table.overlay.columns:
                    array = self.media.table.overlay.applied(name, array, row_ids)
            else:
                assert stored is not None, "columns that are not held are read"
                array = stored.column(name).combine_chunks()
            taken.append(array)
        return taken

    def _arrow(self, column: str) -> pa.Array | None:
        """Return a column before its edits by number; None if it is too large for the cache, or the table lacks it."""
        columns, table = self.media.columns, self.media.table.unedited
        if columns is None or not columns.is_on or column not in table.schema.names:
            return None
        if not self._is_held(column, _VALUES) and columns.read(table, {column}) is None:
            return None
        values: pa.Array = self._hold(_VALUES, column, lambda _batch: None).values
        return values

    @cached_property
    def _row_ids(self) -> "_Held":
        return self._hold(ROW_ID, "original", lambda _batches: None)

    def _is_removed(self, numbers: Rows) -> npt.NDArray[np.bool_]:
        places = np.minimum(np.searchsorted(self.removed, numbers), max(len(self.removed) - 1, 0))
        return self.removed[places] == numbers if len(self.removed) else np.zeros(len(numbers), dtype=bool)

    def _hold(self, kind: str, column: str, convert: Callable[[pa.Array], Any]) -> "_Held":
        """Return the values of a column in the files by number, from the cache if possible."""
        columns = self.media.columns

        def make() -> _Held:
            if kind == ROW_ID:
                return self._row_ids_by_number()
            return self._arrow_by_number(column) if kind == _VALUES else self._by_number(column, convert)

        if columns is None or not columns.is_on:
            return make()
        key = self._key(kind, column)
        # A restore brings rows back that were deleted when the values were read.
        held: _Held = columns.hold(key, make, serves=lambda held: held.serves(self.removed))
        return held

    def _key(self, kind: str, column: str) -> Hashable:
        if (files := self._keys.get(column)) is None:
            files = self._keys[column] = files_key(self.media.table, {"original", column})
        return "by number", kind, column, str(self.media.table.path), files

    def _is_held(self, column: str, kind: str | None = None) -> bool:
        return self.media.columns is not None and self.media.columns.holds(self._key(kind or column, column))

    def _by_number(self, column: str, convert: Callable[[pa.Array], Any]) -> "_Held":
        numbers, start, values = None, 0, None
        if len(self.removed):
            numbers = self._numbers.numbers(np.arange(self._present))
        for batch in self._batches(column):
            converted = convert(batch)
            if values is None:
                values = np.zeros((self.count, *converted.shape[1:]), dtype=converted.dtype)
            stop = start + len(converted)
            values[slice(start, stop) if numbers is None else numbers[start:stop]] = converted
            start = stop
        assert values is not None, "the table has rows"
        return _Held(self.removed, values)

    def _arrow_by_number(self, column: str) -> "_Held":
        values = pa.chunked_array(self._batches(column)).combine_chunks()
        if len(self.removed):
            rows = self._numbers.rows(np.arange(self.count))
            values = values.take(pa.array(np.clip(rows, 0, len(values) - 1)))
        return _Held(self.removed, values)

    def _row_ids_by_number(self) -> "_Held":
        values = np.full(self.count, _NO_ROW, dtype=np.uint64)
        ids = [batch.to_numpy() for batch in self._batches(ROW_ID)]
        numbers = self._numbers.numbers(np.arange(self._present)) if len(self.removed) else slice(None)
        values[numbers] = np.concatenate([values[:0], *ids])  # no batches where all rows were deleted
        ascends = bool((values[1:] > values[:-1]).all())
        return _Held(self.removed, values, None if ascends else np.argsort(values, kind="stable"))

    def _batches(self, column: str) -> Iterator[pa.Array]:
        table, columns = self.media.table.unedited, self.media.columns
        cached = None if columns is None else columns.read(table, {column}, load=False)
        if cached is not None:
            yield from cached.column(0).chunks
            return
        is_id = column == ROW_ID
        for batch in table.scan([] if is_id else [column], row_ids=is_id):
            yield batch.column(0)


@dataclass(frozen=True)
class _Held:
    """Values of a column by number.

    Attributes:
        missing: the numbers of the rows that were deleted before the values were read, ascending.
        values: shape (count, ...); arbitrary for missing rows.
        order: int64: the numbers in the order of the values, where these do not ascend; else None.
    """

    missing: Rows
    values: npt.NDArray[Any]
    order: Rows | None = None

    def serves(self, removed: Rows) -> bool:
        """Return whether no row is missing that is there in a state in which some rows are removed."""
        if not len(self.missing) or self.missing is removed:
            return True
        places = np.minimum(np.searchsorted(removed, self.missing), len(removed) - 1)
        return bool(len(removed)) and bool((removed[places] == self.missing).all())

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return int(self.values.nbytes + (0 if self.order is None else self.order.nbytes))


def _integers(values: pa.Array) -> npt.NDArray[np.int32]:
    return np.asarray(values.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)


def list_matrix(lists: pa.FixedSizeListArray) -> npt.NDArray[Any]:
    """Return lists of numbers as a matrix, shape (lists, length); null is a list of -1."""
    width = lists.type.list_size
    present = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)  # without the lists that are null
    if not lists.null_count:
        return np.asarray(present)
    matrix = np.full((len(lists), width), -1, dtype=present.dtype)
    matrix[lists.is_valid().to_numpy(zero_copy_only=False)] = present
    return matrix
