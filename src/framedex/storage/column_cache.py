"""Columns of tables in memory, for filters that are asked for one after another.

What is held is found by what it was read from, files that never change: so an edit of one column throws nothing else
out, and nobody is ever handed what was there before it. Memory is bounded: what was used longest ago goes first, and a
column that would take most of it is left to be streamed.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Hashable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from framedex import forks
from framedex.lru_cache import LruCache
from framedex.path_columns import PATH_COLUMNS, SOURCE, PathColumn
from framedex.storage.column_keys import columns_key
from framedex.storage.failures import own_errors
from framedex.storage.row_positions import positions_of
from framedex.storage.sql import Sql
from framedex.storage.tables import READING, ROW_ID, Table

_COLUMN_SHARE = 4  # the part of the memory that one column may take, as a divisor
_HELD_SHARE = 16  # that all answers of conditions may take together
_TABLES, _LARGE = 16, 1024  # tables that are open, and columns known to be too large


def _folder(path: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another one that takes its place; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


class ColumnCache:
    """Columns that were read last, and which rows met the conditions that were asked for last.

    Safe to share between threads: one reads a column that several wait for.

    Args:
        sql: computes what is derived of columns.
        most_bytes: what may be held; 0 for nothing, so that all is streamed.
    """

    def __init__(self, sql: Sql, most_bytes: int) -> None:
        held = most_bytes // _HELD_SHARE
        self._sql, self._column_bytes = sql, most_bytes // _COLUMN_SHARE
        self._columns, self._held = LruCache[Hashable, pa.Array](most_bytes - held), LruCache[Hashable, Any](held)
        self._large: LruCache[Hashable, bool] = LruCache(_LARGE)
        self._keys: WeakKeyDictionary[Table, dict[str, Hashable]] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[Table, list[dict[str, Any]]] = WeakKeyDictionary()
        self._tables: LruCache[tuple[Path, int, tuple[int, int] | None], Table] = LruCache(_TABLES)
        self._lock, self._reading = forks.Lock(), forks.Lock()

    @property
    def is_on(self) -> bool:
        """Whether anything is held at all."""
        return self._column_bytes > 0

    @property
    def nbytes(self) -> int:
        """How many bytes are held."""
        return self._columns.weight + self._held.weight

    def open(self, path: Path, version: int) -> Table:
        """Return a table at a version that a generation names.

        A version never becomes another one, but a table that no state needs goes, and a new one of its name counts its
        versions from the beginning; it is another folder then.

        Raises:
            NotFound: there is no such version.
        """
        key = path, version, _folder(path)
        if (table := self._tables.get(key)) is not None:
            return table
        table = Table(path, version)
        self._tables.put(key, table)
        return table

    def rows(self, path: Path, version: int) -> list[dict[str, Any]]:
        """Return all rows of a small table, as :meth:`open` finds it; nobody may change them.

        Raises:
            NotFound: there is no such version.
            WorkspaceError: the table is damaged.
        """
        table = self.open(path, version)
        with self._lock:
            known = self._rows.get(table)
        if known is None:
            known = table.scan(table.schema.names).read_all().to_pylist()
            with self._lock:
                self._rows[table] = known
        return known

    def read(self, table: Table, columns: Collection[str], *, load: bool = True) -> pa.Table | None:
        """Return columns of all rows, in row order; None if one is too large to be held.

        Args:
            table: the table at a version.
            columns: stored columns, ``_rowid``, and those of :mod:`framedex.path_columns`.
            load: read what is not held yet; else None comes back then.

        Raises:
            WorkspaceError: the table is damaged.
        """
        found = {}
        for name in sorted(columns):
            column = self._column(table, name, load=load)
            if column is None:
                return None
            found[name] = column
        return pa.table(found)

    def take(self, table: Table, row_ids: Sequence[int], columns: Sequence[str], *, load: bool = False) -> pa.Table:
        """Return the rows of those ids, in the given order: from memory what is held, the rest from the table.

        Args:
            table: the table at a version.
            row_ids: which rows.
            columns: stored columns.
            load: hold those columns from now on that are not too large.

        Raises:
            WorkspaceError: the table is damaged.
        """
        held: dict[str, pa.Array] = {}
        if len(row_ids) and self.is_on:
            found = ((name, self._column(table, name, load=load)) for name in columns)
            held = {name: column for name, column in found if column is not None}
        places = self._places(table, row_ids) if held else None
        if places is None:
            return table.take(row_ids, columns)
        rest = [name for name in columns if name not in held]
        others = table.take(row_ids, rest) if rest else None
        schema = pa.schema([table.schema.field(name) for name in columns])
        taken = [held[name].take(places) if name in held else others[name] for name in columns]  # type: ignore[index]
        return pa.table(taken, schema=schema)

    def held(self, table: Table, columns: Collection[str], question: Hashable, answer: Callable[[], Any]) -> Any:
        """Return which rows meet a condition, as bools in row order: what is known of it, or what is answered now.

        Args:
            table: the table at a version.
            columns: the stored columns that the answer depends on.
            question: the condition.
            answer: returns a ``pa.BooleanArray``.
        """
        key = tuple((name, self._key(table, name)) for name in sorted({*columns, ROW_ID})), question
        if (known := self._held.get(key)) is not None:
            return known
        found = answer()
        self._held.put(key, found, weight=found.nbytes + len(repr(question)))
        return found

    def _places(self, table: Table, row_ids: Sequence[int]) -> pa.Array | None:
        """Return the places of rows by their ids; None if that cannot be said."""
        known = self._column(table, ROW_ID, load=True)
        if known is None:
            return None
        # Ids that do not ascend, as files that were put together may have them, are looked for in the table.
        found = positions_of(known.to_numpy(), np.asarray(row_ids, np.uint64))
        return None if found is None else pa.array(found)

    def _column(self, table: Table, name: str, *, load: bool) -> pa.Array | None:
        key = self._key(table, name)
        if (found := self._columns.get(key)) is not None or not load or not self.is_on:
            return found
        with self._reading:
            if (found := self._columns.get(key)) is not None or key in self._large:
                return found
            with own_errors(f"read {table.path}"):
                found = self._read_column(table, name)
            if found is None:
                self._large.put(key, True)
            else:
                self._columns.put(key, found, weight=found.nbytes)
        return found

    def _read_column(self, table: Table, name: str) -> pa.Array | None:
        """Return a column; None if it is too large."""
        if name in PATH_COLUMNS:
            path = self._columns.get(self._key(table, SOURCE))
            path = self._read_stored(table, SOURCE) if path is None else path
            return None if path is None else self._computed(PATH_COLUMNS[name], path)
        return self._read_stored(table, name)

    def _read_stored(self, table: Table, name: str) -> pa.Array | None:
        chunks, size = [], 0
        reader = table.stream([] if name == ROW_ID else [name], row_ids=name == ROW_ID)
        with READING.using():
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
        """Return what a column of a table was read from, and therefore is."""
        source = SOURCE if name in PATH_COLUMNS else name
        with self._lock:
            known = self._keys.setdefault(table, {})
        if source not in known:
            # The names of thousands of files would be hashed at each look-up.
            known[source] = hashlib.blake2b(repr(columns_key(table, {source})).encode(), digest_size=16).digest()
        return name, known[source]
