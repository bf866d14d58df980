"""The rows of a media table by number, which deletions and edits leave as they are.

Index columns name rows by their places when the index was written, see :mod:`framedex.storage.row_numbers`. Arrays by
number are therefore read once, and serve one deletion after another; the rows that were deleted and the values that
were edited meanwhile are few.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.jobs.edits.rows import find_ids
from framedex.storage.column_keys import files_key
from framedex.storage.copy_pairs import CopyPairs, read_pairs
from framedex.storage.generation import Generation
from framedex.storage.media import Media
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.tables import ROW_ID

_ID = "media_id"
_ID_BYTES, _HASHED_BYTES = 36, 8  # of a media id, and of its part that is looked up
_MANY = 64  # more ids than one of so many rows are looked up in one pass over all ids
_NO_ROW = np.iinfo(np.uint64).max
Rows = npt.NDArray[np.int64]


class NumberedRows:
    """The rows of a state of media by number.

    Args:
        media: the media.
    """

    def __init__(self, media: Media) -> None:
        self.media, self._numbers = media, RowNumbers.of(media.table)

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
        likely = [place for place, each in enumerate(media_ids) if len(each) == _ID_BYTES and each.isascii()]
        if not likely:
            return numbers
        wanted = _hashes(pa.array([media_ids[place] for place in likely], pa.string()))
        hashes = self._hold("hashes of ids", _ID, _hashes).values
        is_wanted = np.zeros(2**16, dtype=bool)
        is_wanted[wanted.astype(np.uint16)] = True
        candidates = np.flatnonzero(is_wanted[hashes.astype(np.uint16)])
        candidates = candidates[np.isin(hashes[candidates], wanted) & ~self._is_removed(candidates)]
        ids = self.media.table.take(self.row_ids[candidates].tolist(), [_ID]).column(0).to_pylist()
        number_of = dict(zip(ids, candidates.tolist(), strict=True))
        numbers[likely] = [number_of.get(media_ids[place], -1) for place in likely]
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

    def stored_lists(self, column: str, width: int) -> npt.NDArray[np.int32] | None:
        """Return a column of lists of numbers before its edits; null is a list of -1.

        Args:
            column: its name.
            width: the length of the lists.

        Returns:
            int32, shape (count, width); arbitrary for deleted rows. None if it is too large for the cache.
        """
        columns = self.media.columns
        if columns is None or not columns.fits(4 * width * self.count):
            return None
        values: npt.NDArray[np.int32] = self._hold(column, column, list_matrix).values
        return values

    @cached_property
    def _row_ids(self) -> "_Held":
        return self._hold(ROW_ID, "original", lambda _batches: None)

    def _is_removed(self, numbers: Rows) -> npt.NDArray[np.bool_]:
        places = np.minimum(np.searchsorted(self.removed, numbers), max(len(self.removed) - 1, 0))
        return self.removed[places] == numbers if len(self.removed) else np.zeros(len(numbers), dtype=bool)

    def _hold(self, kind: str, column: str, convert: Callable[[pa.Array], Any]) -> "_Held":
        """Return the values of a column in the files by number, from the cache if possible."""
        columns, table = self.media.columns, self.media.table

        def make() -> _Held:
            return self._row_ids_by_number() if kind == ROW_ID else self._by_number(column, convert)

        if columns is None or not columns.is_on:
            return make()
        key = "by number", kind, str(table.path), files_key(table, {"original", column})
        # A restore brings rows back that were deleted when the values were read.
        held: _Held = columns.hold(key, make, serves=lambda held: held.serves(self.removed))
        return held

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

    def _row_ids_by_number(self) -> "_Held":
        values = np.full(self.count, _NO_ROW, dtype=np.uint64)
        ids = [batch.to_numpy() for batch in self._batches(ROW_ID)]
        numbers = self._numbers.numbers(np.arange(self._present)) if len(self.removed) else slice(None)
        values[numbers] = np.concatenate(ids)
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


def _hashes(ids: pa.StringArray) -> npt.NDArray[np.uint32]:
    """Return a hash of each media id: of its first digits, which are those of a hash."""
    _, offsets, content = ids.buffers()
    first = int(np.frombuffer(offsets, np.int32)[ids.offset])
    text = np.frombuffer(content, np.uint8)[first : first + len(ids) * _ID_BYTES].reshape(-1, _ID_BYTES)
    digits = np.ascontiguousarray(text[:, :_HASHED_BYTES]).view(np.uint64).ravel()
    return ((digits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)).astype(np.uint32)
