"""A table at one version: what readers open.

A version has the columns of its data files, with the edited values of its overlay (:mod:`framedex.storage.overlay`).
A version never changes.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core import forks
from framedex.core.forks import cached_property
from framedex.core.lru_cache import LruCache
from framedex.core.memory import usable_memory
from framedex.errors import NotFound
from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import CHECK, damage, is_missing, on_table, own_errors
from framedex.storage.overlay import CONFIG_KEY, Overlay

ROW_ID = "_rowid"
_BATCH_ROWS = 8192
_BATCH_BYTES = 2**20
_TABLES, _EDITED_TABLES = 16, 4  # tables that a cache keeps open
_CONTENT_BYTES, _CONTENT_SHARE = 2**24, 16  # memory for the rows of small tables; a table may take this part of it


class Table:
    """A table at one version, which never changes.

    Attributes:
        path: folder of the table.
        version: the version to read.
    """

    def __init__(self, path: Path, version: int, handle: Any = None) -> None:
        self.path, self.version, self._handle = path, version, handle
        forks.renew_after_forks(self)
        self._check()

    def __reduce__(self) -> Any:
        """Return the parts of which another process opens the same version."""
        return _opened, (self.path, self.version)

    @engine_call
    def _check(self) -> None:
        assert self._lance is not None

    @property
    def _lance(self) -> Any:
        if self._handle is None:
            self._handle = self._open()
        return self._handle

    def _open(self) -> Any:
        import lance

        try:
            return lance.dataset(str(self.path), version=self.version)
        except (ValueError, OSError) as error:
            if not is_missing(error):
                raise damage(f"cannot read version {self.version} of {self.path}", error) from error
            raise NotFound(f"{self.path} has no version {self.version}: {error}{CHECK}") from error
        except BaseException:
            with own_errors(f"read {self.path}"):
                raise

    def with_edits(self, version: int, handle: Any, overlay: Overlay) -> "Table":
        """Return the table at a later version that has the same files and another overlay.

        Args:
            version: the version.
            handle: of the engine, at that version.
            overlay: its edited values.
        """
        table = Table(self.path, version, handle)
        table.__dict__["overlay"] = overlay
        if "layout" in self.unedited.__dict__:
            table.unedited.__dict__["layout"] = self.unedited.layout
        return table

    def renew(self) -> None:
        """Discard the handle in the child of a fork."""
        forks.abandon(self._handle)
        self._handle = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._schema()

    @engine_call
    def _schema(self) -> pa.Schema:
        return self._lance.schema

    @cached_property
    def overlay(self) -> Overlay:
        """The edited values of the version."""
        return Overlay.of(self.path, self._config())

    @engine_call
    @on_table("read")
    def _config(self) -> str | None:
        config: dict[str, str] = self._lance.config()
        return config.get(CONFIG_KEY)

    @property
    def layout(self) -> "TableLayout":
        """The files of the version."""
        return self.unedited.layout

    @cached_property
    def unedited(self) -> "Table":
        """The same version without its overlay."""
        return _UneditedTable(self.path, self.version, self._handle)

    @engine_call
    @on_table("read")
    def count(self) -> int:
        """Return the number of rows."""
        return int(self._lance.count_rows())

    def scan(self, columns: Sequence[str], *, row_ids: bool = False) -> pa.RecordBatchReader:
        """Return a reader over some columns in row order, in batches of bounded size.

        Args:
            columns: names of columns.
            row_ids: include ``_rowid`` (uint64), the ids for :meth:`take`.

        Raises:
            WorkspaceError: the table is damaged; raised by the reader.
        """
        return self._guarded(self.stream(columns, row_ids=row_ids))

    def stream(self, columns: Sequence[str], *, row_ids: bool = False) -> pa.RecordBatchReader:
        """Return the reader of :meth:`scan` for use by another engine, with Lance's own errors."""
        edited = [name for name in columns if name in self.overlay.columns]
        if not edited:
            return self._stored(columns, row_ids=row_ids)
        for name in edited:
            self.overlay.values(name)  # raises the errors of the overlay
        reader = self._stored(columns, row_ids=True)
        schema = reader.schema if row_ids else pa.schema([each for each in reader.schema if each.name != ROW_ID])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                ids = batch.column(ROW_ID).to_numpy()
                arrays = [
                    self.overlay.applied(name, batch.column(name), ids) if name in edited else batch.column(name)
                    for name in schema.names
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    @engine_call
    @on_table("read")
    def _stored(self, columns: Sequence[str], *, row_ids: bool) -> pa.RecordBatchReader:
        scanner = self._lance.scanner(
            columns=list(columns), with_row_id=row_ids, batch_size=_BATCH_ROWS, scan_in_order=True
        )
        return scanner.to_reader()

    def _guarded(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            with own_errors(f"read {self.path}"):
                yield from reader

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def vector_batches(self, column: str, start: int) -> pa.RecordBatchReader:
        """Return a reader over a column of vectors, from a row on, without edits: those of rows are never edited.

        It reads little ahead: allocating buffers of the size of a table takes longer than reading them.
        """
        return self._guarded(self._vector_stream(column, start))

    @engine_call
    @on_table("read")
    def _vector_stream(self, column: str, start: int) -> pa.RecordBatchReader:
        size = 4 * self.schema.field(column).type.list_size
        scanner = self._lance.scanner(
            columns=[column],
            offset=start or None,
            scan_in_order=True,
            batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // size)),
            batch_readahead=4,
            fragment_readahead=1,
            io_buffer_size=32 * _BATCH_BYTES,
        )
        return scanner.to_reader()

    def take(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return rows by id, in the given order, without reading other rows."""
        if not len(row_ids):
            fields = [self.schema.field(name) for name in columns]
            return pa.schema(fields).empty_table()
        rows = self._take_ids(list(row_ids), list(columns))
        for place, name in enumerate(columns):
            if name in self.overlay.columns:
                values = self.overlay.applied(
                    name, rows.column(place).combine_chunks(), np.asarray(row_ids, dtype=np.uint64)
                )
                rows = rows.set_column(place, rows.schema.field(place), values)
        return rows

    @engine_call
    @on_table("read")
    def _take_ids(self, row_ids: list[int], columns: list[str]) -> pa.Table:
        return self._lance._take_rows(row_ids, columns=columns)

    @engine_call
    @on_table("read")
    def take_positions(self, positions: npt.NDArray[np.int64], column: str) -> pa.Array:
        """Return the vectors of a column at some 0-based positions in row order, ascending."""
        return self._lance.take(positions, columns=[column]).column(0).combine_chunks()

    def vectors(
        self, column: str = "embedding", *, start: int = 0, max_bytes: int | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the positions of rows with a vector, and their vectors.

        Args:
            column: name of the column.
            start: position of the first row to read.
            max_bytes: a larger result is stored in an unnamed file beside the table, which is removed with the array;
                by default half of the machine's memory.

        Returns:
            positions: int64, shape (M,), ascending: 0-based positions in row order.
            vectors: float32, shape (M, D), C order, writable; the only copy in memory.
        """
        dimension = self.schema.field(column).type.list_size
        out = new_matrix(self.count() - start, dimension, self.path.parent, max_bytes)
        positions = np.empty(len(out), dtype=np.int64)
        filled = 0
        for batch in self.vector_batches(column, start):
            array = batch.column(0)
            valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
            if len(valid):
                present = array.drop_null() if array.null_count else array  # drop_null copies
                flat = present.flatten().to_numpy(zero_copy_only=True)
                out[filled : filled + len(valid)] = flat.reshape(-1, dimension)
                positions[filled : filled + len(valid)] = valid + start
            start, filled = start + len(array), filled + len(valid)
        if column in self.overlay.columns:
            self._apply_vectors(column, positions[:filled], out)
        return positions[:filled], out[:filled]

    def _apply_vectors(self, column: str, positions: npt.NDArray[np.int64], out: npt.NDArray[np.float32]) -> None:
        """Replace vectors, in place, by edited ones; an edit neither adds nor removes a vector."""
        row_ids, values = self.overlay.values(column)
        ids = self.scan([], row_ids=True).read_all().column(0).to_numpy()[positions]
        places = np.flatnonzero(np.isin(ids, row_ids))
        at = np.searchsorted(row_ids, ids[places])
        out[places] = flat(values, out.shape[1])[at]


class _UneditedTable(Table):
    """A table at one version, without its overlay."""

    overlay = Overlay(Path())

    @cached_property
    def layout(self) -> "TableLayout":
        """The files of the version."""
        return self._layout()

    @engine_call
    @on_table("read")
    def _layout(self) -> "TableLayout":
        fragments = [each.metadata for each in self._lance.get_fragments()]
        return TableLayout(
            fields={each.name(): tuple(_numbers(each)) for each in self._lance.lance_schema.fields()},
            rows=tuple((each.id, each.physical_rows, _deletions(each)) for each in fragments),
            # `path` defines a class at each access, which takes longer than all else here.
            files=tuple(tuple((file._path, frozenset(file.fields)) for file in each.files) for each in fragments),
        )

    @property
    def unedited(self) -> Table:
        """The table itself."""
        return self

    def __reduce__(self) -> Any:
        """Return the parts of which another process opens the same version."""
        return _UneditedTable, (self.path, self.version)


@dataclass(frozen=True)
class TableLayout:
    """The files of a table at one version.

    Attributes:
        fields: the numbers of each column and of the columns within it, by its name.
        rows: for each fragment its number, the number of its rows with the deleted ones, and the file of its deletions.
        files: for each fragment its files, with the numbers of their columns.
    """

    fields: Mapping[str, tuple[int, ...]]
    rows: tuple[tuple[int, int, tuple[int, int] | None], ...]
    files: tuple[tuple[tuple[str, frozenset[int]], ...], ...]


def _numbers(field: Any) -> list[int]:
    return [field.id(), *(number for child in field.children() for number in _numbers(child))]


def _deletions(fragment: Any) -> tuple[int, int] | None:
    """Return the identity of a fragment's deletions: after a restore, an equal number of other rows may be deleted."""
    file = fragment.deletion_file
    return None if file is None else (file.read_version, file.id)


class TableCache:
    """The most recently opened tables.

    Args:
        count: the maximum number of tables.
    """

    def __init__(self, count: int = _TABLES) -> None:
        self._tables: LruCache[tuple[Path, int, tuple[int, int] | None], Table] = LruCache(count)

    def put(self, table: Table) -> None:
        """Add an open table, unless it has it already."""
        key = table.path, table.version, _folder(table.path)
        if self._tables.get(key) is None:
            self._tables.put(key, table)

    def open(self, path: Path, version: int) -> Table:
        """Return a table at a version.

        A version never changes. But an unreferenced table is removed, and a new table of the same name counts versions
        from 1 again; it then has another folder.

        Raises:
            NotFound: the version does not exist.
        """
        key = path, version, _folder(path)
        if (table := self._tables.get(key)) is not None:
            return table
        table = Table(path, version)
        self._tables.put(key, table)
        return table


_OPENED, _EDITED = TableCache(), TableCache(_EDITED_TABLES)


_CONTENTS: LruCache[tuple[Path, int, tuple[int, int] | None], pa.Table] = LruCache(_CONTENT_BYTES)


def small_table(path: Path, version: int, columns: Sequence[str]) -> pa.Table:
    """Return the rows of a table of definitions or decisions, from memory if possible.

    Args:
        path: folder of the table.
        version: the version to read.
        columns: names of its columns, the same in each call for a table.

    Raises:
        NotFound: the version does not exist.
        WorkspaceError: the table is damaged.
    """
    key = path, version, _folder(path)
    if (rows := _CONTENTS.get(key)) is None:
        rows = Table(path, version).scan(columns).read_all()
        if rows.nbytes <= _CONTENT_BYTES // _CONTENT_SHARE:
            _CONTENTS.put(key, rows, weight=rows.nbytes + 1)
    return rows


def _opened(path: Path, version: int) -> Table:
    """Return a table of another process."""
    return _OPENED.open(path, version)


def edited_table(path: Path, version: int) -> Table:
    """Return a table that an edit reads or wrote; the steps of edits open it once.

    Raises:
        NotFound: the version does not exist.
    """
    return _EDITED.open(path, version)


def keep_edited(table: Table) -> None:
    """Keep an open table for :func:`edited_table`."""
    _EDITED.put(table)


def _folder(path: Path) -> tuple[int, int] | None:
    """Return the identity of a folder, which differs from that of a later folder at the same path; None if missing."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def flat(column: pa.FixedSizeListArray, dimension: int) -> npt.NDArray[np.float32]:
    """Return the lists of a column as a matrix without a copy, including null lists: shape (rows, dimension)."""
    values = column.values.slice(column.offset * dimension, len(column) * dimension)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, dimension)


def new_matrix(rows: int, columns: int, folder: Path, max_bytes: int | None) -> npt.NDArray[np.float32]:
    """Return an empty matrix, in memory or in an unnamed file."""
    limit = usable_memory() // 2 if max_bytes is None else max_bytes
    if rows * columns * 4 <= limit:
        return np.empty((rows, columns), dtype=np.float32)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=(rows, columns))
