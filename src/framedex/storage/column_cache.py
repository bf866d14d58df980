"""An in-memory cache of table columns, for sequences of filters over the same data.

Entries are keyed by the files that they were read from. Files never change, so an edit of one column leaves the other
entries valid, and readers never get stale values. Memory is bounded: the least recently used entry is removed first. A
column that would take most of the memory is streamed instead.
"""

import hashlib
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core import forks
from framedex.core.lru_cache import LruCache
from framedex.core.path_columns import PATH_COLUMNS, SOURCE, PathColumn
from framedex.storage.column_keys import columns_key, files_key
from framedex.storage.failures import own_errors
from framedex.storage.row_positions import positions_of
from framedex.storage.sql import Sql
from framedex.storage.table_versions import ROW_ID, Table, TableCache

_MANY_ROWS = 3_000_000  # whose columns are not read for few rows
_VALUES_A_ROW = 5000  # of a column that are read in the time of one row somewhere in the table
_COLUMN_SHARE = 4  # divisor: a column may take 1/4 of the memory
_HELD_SHARE = 16  # divisor: results of conditions may take 1/16 of the memory
_LARGE = 1024  # columns recorded as too large
_DELETIONS = 4  # tables before deletions from which cached columns are taken
_MOST_DELETED = 2**16  # rows that were deleted since


@dataclass(frozen=True)
class _Deletion:
    """Rows that were deleted since a version of a table.

    Attributes:
        before: the table at that version, without its overlay.
        row_ids: uint64: the rows.
    """

    before: Table
    row_ids: npt.NDArray[np.uint64]


class ColumnCache:
    """The most recently read columns and evaluated conditions.

    Safe to share between threads: one thread reads a column while others wait for it.

    Args:
        sql: the engine that evaluates derived columns.
        most_bytes: memory limit in bytes; 0 disables the cache, so that all reads are streamed.
    """

    def __init__(self, sql: Sql, max_bytes: int) -> None:
        mask_bytes = max_bytes // _HELD_SHARE
        self._sql, self._column_bytes = sql, max_bytes // _COLUMN_SHARE
        self._columns, self._masks = (
            LruCache[Hashable, pa.Array](max_bytes - mask_bytes),
            LruCache[Hashable, Any](mask_bytes),
        )
        self._large: LruCache[Hashable, bool] = LruCache(_LARGE)
        self._keys: WeakKeyDictionary[Table, dict[str, Hashable]] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[Table, list[dict[str, Any]]] = WeakKeyDictionary()
        self._tables = TableCache()
        self._deletions: LruCache[Hashable, tuple[_Deletion, ...]] = LruCache(_DELETIONS)
        self._lock, self._reading, self._deriving = forks.Lock(), forks.Lock(), forks.Lock()

    @property
    def is_on(self) -> bool:
        """True if the cache is enabled."""
        return self._column_bytes > 0

    def fits(self, nbytes: int) -> bool:
        """Return whether a value of so many bytes can be cached."""
        return nbytes <= self._column_bytes

    @property
    def nbytes(self) -> int:
        """The number of cached bytes."""
        return self._columns.weight + self._masks.weight

    def open(self, path: Path, version: int) -> Table:
        """Return a table at a version of a generation.

        Raises:
            NotFound: the version does not exist.
        """
        return self._tables.open(path, version)

    def rows(self, path: Path, version: int) -> list[dict[str, Any]]:
        """Return all rows of a small table, opened by :meth:`open`; callers must not change them.

        Raises:
            NotFound: the version does not exist.
            WorkspaceError: the table is damaged.
        """
        table = self.open(path, version)
        with self._lock:
            rows = self._rows.get(table)
        if rows is None:
            rows = table.scan(table.schema.names).read_all().to_pylist()
            with self._lock:
                self._rows[table] = rows
        return rows

    def read(self, table: Table, columns: Collection[str], *, load: bool = True) -> pa.Table | None:
        """Return columns of all rows, in row order; None if one of them is too large for the cache.

        Args:
            table: the table at a version.
            columns: stored columns, ``_rowid``, and those of :mod:`framedex.core.path_columns`.
            load: read columns that are not cached yet; if False, return None when one is missing.

        Raises:
            WorkspaceError: the table is damaged.
        """
        arrays = {}
        for name in sorted(columns):
            column = self._column(table, name, load=load)
            if column is None:
                return None
            arrays[name] = column
        return pa.table(arrays)

    def take(self, table: Table, row_ids: Sequence[int], columns: Sequence[str], *, load: bool = False) -> pa.Table:
        """Return rows by id, in the given order, from cached columns where possible and else from the table.

        Args:
            table: the table at a version.
            row_ids: ids of the rows.
            columns: stored columns.
            load: cache those of the columns that are not too large. Few rows of very many are read from the table
                nevertheless: such columns would displace each other, page by page.

        Raises:
            WorkspaceError: the table is damaged.
        """
        cached, edited = dict[str, pa.Array](), set[str]()
        count = table.count()
        load = load and (count <= _MANY_ROWS or len(row_ids) * _VALUES_A_ROW >= count)
        if len(row_ids) and self.is_on:
            for name in columns:
                column = self._column(table, name, load=False)
                if column is None and name in table.overlay.columns:  # its edits are applied to the taken rows alone
                    column = self._column(table.unedited, name, load=load)
                    edited.add(name)
                elif column is None:
                    column = self._column(table, name, load=load)
                if column is not None:
                    cached[name] = column
        positions = self._positions(table, row_ids) if cached else None
        if positions is None:
            return table.take(row_ids, columns)
        uncached = [name for name in columns if name not in cached]
        stored = table.take(row_ids, uncached) if uncached else None
        schema = pa.schema([table.schema.field(name) for name in columns])
        taken = [cached[name].take(positions) if name in cached else stored[name] for name in columns]  # type: ignore[index]
        for place, name in enumerate(columns):
            if name in edited and name in cached:
                taken[place] = table.overlay.applied(name, taken[place], np.asarray(row_ids, np.uint64))
        return pa.table(taken, schema=schema)

    def mask(self, table: Table, columns: Collection[str], condition: Hashable, evaluate: Callable[[], Any]) -> Any:
        """Return the rows that meet a condition, as bools in row order, from the cache or by evaluating it.

        Args:
            table: the table at a version.
            columns: the stored columns that the condition reads.
            condition: the key of the condition.
            evaluate: returns a ``pa.BooleanArray``.
        """
        key = tuple((name, self._key(table, name)) for name in sorted({*columns, ROW_ID})), condition
        if (cached := self._masks.get(key)) is not None:
            return cached
        mask = evaluate()
        self._masks.put(key, mask, weight=mask.nbytes + len(repr(condition)))
        return mask

    def hold(
        self, key: Hashable, make: Callable[[], Any], *, serves: Callable[[Any], bool] = lambda _held: True
    ) -> Any:
        """Return a value with the attribute ``nbytes`` from the cache; make it if it is not there.

        Args:
            key: the key of the value, which must differ from those of columns.
            make: returns the value.
            serves: returns whether a cached value can be used; else it is made again.
        """
        if (held := self._columns.get(key)) is None or not serves(held):
            held = make()
            if self.fits(held.nbytes):
                self._columns.put(key, held, weight=held.nbytes)
        return held

    def derived(self, table: Table, columns: Collection[str], kind: str, make: Callable[[], Any]) -> Any:
        """Return what follows from some columns of a table, as :meth:`hold` does; one thread makes it for all.

        Args:
            table: the table at a version.
            columns: the stored columns that it follows from.
            kind: what it is.
            make: returns the value.
        """
        key = (kind, *(self._key(table, name) for name in sorted(columns)))
        if (held := self._columns.get(key)) is not None:
            return held
        with self._deriving:
            return self.hold(key, make)

    def holds(self, key: Hashable) -> bool:
        """Return whether a value of :meth:`hold` is in the cache."""
        return key in self._columns

    def follow_deletion(self, before: Table, after: Table, row_ids: npt.NDArray[np.uint64]) -> None:
        """Store a deletion, so that columns of the table are taken from cached ones of tables before it.

        Args:
            before: the table before the deletion.
            after: the table after it, with the same files.
            row_ids: uint64: the rows that were deleted.
        """
        earlier = self._deletions.get((str(before.path), before.layout.rows)) or ()
        steps = [_Deletion(before.unedited, row_ids)]
        steps += [_Deletion(each.before, np.union1d(each.row_ids, row_ids)) for each in earlier]
        # The first one stays, too: its columns may be the only ones that were read.
        steps = steps[: _DELETIONS - 1] + steps[_DELETIONS - 1 :][-1:]
        kept = tuple(each for each in steps if len(each.row_ids) <= _MOST_DELETED)
        self._deletions.put((str(after.path), after.layout.rows), kept)

    def _followed(self, table: Table, name: str) -> pa.Array | None:
        """Return a column from that of a table before the last deletions; None if none is cached."""
        for deletion in self._deletions.get((str(table.path), table.layout.rows)) or ():
            before = deletion.before
            if files_key(before, {name}) != files_key(table, {name}):
                continue
            values, ids = (self._column(before, each, load=False) for each in (name, ROW_ID))
            positions = None if values is None or ids is None else positions_of(ids.to_numpy(), deletion.row_ids)
            if values is not None and positions is not None:
                kept = np.ones(len(values), dtype=bool)
                kept[positions] = False
                return values.filter(pa.array(kept))
        return None

    def _positions(self, table: Table, row_ids: Sequence[int]) -> pa.Array | None:
        """Return the positions of rows by id; None if they cannot be determined from the cache."""
        ids = self._column(table, ROW_ID, load=True)
        if ids is None:
            return None
        # Ids may not ascend in compacted files; such rows are read from the table.
        positions = positions_of(ids.to_numpy(), np.asarray(row_ids, np.uint64))
        return None if positions is None else pa.array(positions)

    def _column(self, table: Table, name: str, *, load: bool) -> pa.Array | None:
        key = self._key(table, name)
        if (array := self._columns.get(key)) is not None or not load or not self.is_on:
            return array
        if name in table.overlay.columns:
            return self._edited_column(table, name, key)
        with self._reading:
            if (array := self._columns.get(key)) is not None or key in self._large:
                return array
            with own_errors(f"read {table.path}"):
                array = None if name in PATH_COLUMNS else self._followed(table, name)
                array = self._read_column(table, name) if array is None else array
            if array is None:
                self._large.put(key, True)
            else:
                self._columns.put(key, array, weight=array.nbytes)
        return array

    def _edited_column(self, table: Table, name: str, key: Hashable) -> pa.Array | None:
        """Return a column with its edits; the values in the data files stay cached, as edits follow one another."""
        values, ids = (self._column(table.unedited, each, load=True) for each in (name, ROW_ID))
        if values is None or ids is None:
            return None
        array = table.overlay.applied(name, values, ids.to_numpy())
        self._columns.put(key, array, weight=array.nbytes)
        return array

    def _read_column(self, table: Table, name: str) -> pa.Array | None:
        """Return a column; None if it is too large for the cache."""
        if name in PATH_COLUMNS:
            path = self._columns.get(self._key(table, SOURCE))
            path = self._read_stored(table, SOURCE) if path is None else path
            return None if path is None else self._computed(PATH_COLUMNS[name], path)
        return self._read_stored(table, name)

    def _read_stored(self, table: Table, name: str) -> pa.Array | None:
        chunks, size = [], 0
        reader = table.stream([] if name == ROW_ID else [name], row_ids=name == ROW_ID)
        for batch in reader:
            size += batch.nbytes
            if size > self._column_bytes:
                return None
            chunks.append(batch.column(name))
        return pa.chunked_array(chunks, reader.schema.field(name).type).combine_chunks()

    def _computed(self, column: PathColumn, path: pa.Array) -> pa.Array:
        paths = {"paths": pa.table({SOURCE: path})}
        return self._sql.query(f"SELECT {column.sql} AS value FROM paths", (), paths)["value"].combine_chunks()

    def _key(self, table: Table, name: str) -> Hashable:
        """Return the cache key of a column: its name and a hash of the files that it is read from."""
        source = SOURCE if name in PATH_COLUMNS else name
        with self._lock:
            keys = self._keys.setdefault(table, {})
        if source not in keys:
            # Hashed once, as a table may have thousands of files.
            keys[source] = hashlib.blake2b(repr(columns_key(table, {source})).encode(), digest_size=16).digest()
        return name, keys[source]
