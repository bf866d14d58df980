"""Writes to the versioned tables of Lance: each makes a new version.

Facts of Lance 14 that this relies on, each proved by a test: a version never changes. Columns are added as new files
beside the old ones, matched by row order. A restored version is a new version with the old content.
"""

import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.storage import disk
from framedex.storage.engine_calls import engine_call
from framedex.storage.failures import on_table
from framedex.storage.fragments import Fragment
from framedex.storage.overlay import CONFIG_KEY, REMOVED, ROW_NUMBERS, Values
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.table_versions import ROW_ID, Table, keep_edited

_LOG = logging.getLogger(__name__)
_GONE = "__gone"
_MANY_FILES, _SMALL_FILE, _FILE_ROWS = 64, 2048, 131_072  # files, and rows per file
_SYNCED: "dict[Path, dict[str, _Synced]]" = {}  # by table and folder


def warm_up() -> None:
    """Import the engine, which takes most of a second, before its first use."""
    import lance  # noqa: F401 - loading is the purpose


@engine_call
@on_table("write")
def append(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Append batches to the table at *path*, creating it if necessary; return its new version.

    Columns that the table lacks are added with null in the existing rows, as the table may be older than a measure.
    """
    import lance

    reader = pa.RecordBatchReader.from_batches(schema, batches)
    table = _completed(path, schema)
    if table is None:
        return int(lance.write_dataset(reader, str(path), schema=schema, mode="create").version)
    return int(lance.write_dataset(reader, table, schema=schema, mode="append").version)


def _completed(path: Path, schema: pa.Schema) -> Any:
    """Return the table at *path* with all columns of a schema; None if there is none.

    Columns that it lacked are null in its rows.
    """
    import lance

    if not path.exists():
        return None
    try:
        table = lance.dataset(str(path))
    except ValueError:  # a folder without a version, as a killed process leaves it
        return None
    if missing := [field for field in schema if field.name not in table.schema.names]:
        table.add_columns(pa.schema(missing))
    return table


@engine_call
@on_table("write")
def ensure_table(path: Path, schema: pa.Schema) -> int:
    """Create the table at *path* without rows if it is missing, or add the columns that it lacks; return its version.

    Fragments with these columns can be written beside it then.
    """
    import lance

    table = _completed(path, schema)
    if table is None:
        nothing = pa.RecordBatchReader.from_batches(schema, [])
        table = lance.write_dataset(nothing, str(path), schema=schema, mode="create")
    return int(table.version)


@engine_call
@on_table("write")
def append_fragments(path: Path, fragments: Sequence[Fragment]) -> int:
    """Append the rows of fragments to the table at *path*, in their order; return its new version."""
    import lance
    from lance.fragment import FragmentMetadata

    table = lance.dataset(str(path))
    operation = lance.LanceOperation.Append([FragmentMetadata.from_json(each.metadata) for each in fragments])
    return int(lance.LanceDataset.commit(table, operation, read_version=table.version).version)


@engine_call
@on_table("write")
def replace(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Replace the content of the table at *path*, creating it if necessary; return its new version."""
    import lance

    reader = pa.RecordBatchReader.from_batches(schema, batches)
    mode = "overwrite" if path.exists() else "create"
    dataset = lance.write_dataset(reader, str(path), schema=schema, mode=mode)
    if CONFIG_KEY in dataset.config():  # edits of the replaced rows
        dataset.update_config({CONFIG_KEY: None})
    return int(dataset.version)


@engine_call
@on_table("write")
def put_columns(table: Table, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> int:
    """Add columns to *table*, or replace columns of the same names and their edits; return the new version.

    Args:
        table: the table, at its newest version.
        batches: as many rows as the table has, in row order. Their errors reach the caller; the columns are dropped
            then.
        schema: the columns of the batches.
    """
    import lance

    failures: list[BaseException] = []

    def pulled() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:  # Lance wraps it in another error
            failures.append(error)
            raise

    dataset = lance.dataset(str(table.path), version=table.version)
    present = [name for name in schema.names if name in dataset.schema.names]
    if present:
        dataset.drop_columns(present)
    try:
        dataset.add_columns(pa.RecordBatchReader.from_batches(schema, pulled()))
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    return _without_edits(dataset, table, schema.names)


def _without_edits(dataset: Any, table: Table, columns: Sequence[str]) -> int:
    """Remove the edits of some columns from the newest version of a table; return its version."""
    written = {*columns, REMOVED} if set(ROW_NUMBERS) <= set(columns) else set(columns)
    if not table.overlay.columns.isdisjoint(written):
        dataset.update_config({CONFIG_KEY: table.overlay.without(written).config})
    return int(dataset.version)


@engine_call
@on_table("write")
def put_values(table: Table, changes: Mapping[str, Values]) -> int:
    """Replace some values of columns, in the overlay of a table; return the new version.

    Its cost does not depend on the number of rows.

    Args:
        table: the table, at its newest version.
        changes: by column of the table: the ids of the edited rows, and their values.
    """
    overlay = table.overlay.with_values(changes)
    dataset = table._lance.checkout_version(table.version)
    dataset.update_config({CONFIG_KEY: overlay.config})
    keep_edited(table.with_edits(int(dataset.version), dataset, overlay))
    return int(dataset.version)


def fold_edits(table: Table) -> int:
    """Write the edited columns of a table at its newest version into its data files; return the new version.

    Where rows were deleted, the columns that name rows by number then have the numbers of the present rows.
    """
    overlay, names = table.overlay, set(table.schema.names)
    edited = sorted(overlay.columns & names | (set(ROW_NUMBERS) & names if REMOVED in overlay.columns else set()))
    if not edited:
        return table.version
    _LOG.debug("%s: edited values are folded into %s", table.path, ", ".join(edited))
    schema = pa.schema([table.schema.field(name) for name in edited])
    numbers = RowNumbers.of(overlay)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.scan(edited):
            columns = [
                numbers.renumbered(column) if name in ROW_NUMBERS and len(numbers.removed) else column
                for name, column in zip(edited, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return put_columns(table, batches(), schema)


@engine_call
@on_table("write")
def add_empty_columns(table: Table, schema: pa.Schema) -> int:
    """Add columns that are null in all rows to a table at its newest version; return the new version.

    Only metadata is written.
    """
    import lance

    dataset = lance.dataset(str(table.path), version=table.version)
    dataset.add_columns(schema)
    return int(dataset.version)


@engine_call
@on_table("write")
def drop_columns(table: Table, names: Sequence[str]) -> int:
    """Drop some columns, where present, from a table at its newest version; return the new version."""
    import lance

    dataset = lance.dataset(str(table.path), version=table.version)
    if present := [name for name in names if name in dataset.schema.names]:
        dataset.drop_columns(present)
    return _without_edits(dataset, table, present)


@engine_call
@on_table("write")
def delete_rows(table: Table, deleted: npt.NDArray[np.bool_]) -> int:
    """Delete rows; return the new version. The other rows keep their order and are not rewritten.

    Args:
        table: the table, at its newest version.
        deleted: bool, shape (rows,): mask of the rows to delete.
    """
    import lance

    marked = pa.RecordBatch.from_arrays([pa.array(deleted)], names=[_GONE])
    dataset = lance.dataset(str(table.path), version=table.version)
    dataset.add_columns(pa.RecordBatchReader.from_batches(marked.schema, [marked]))
    # Deletes by a column, because parsing a list of a hundred thousand ids takes minutes.
    dataset.delete(_GONE)
    dataset.drop_columns([_GONE])
    return int(dataset.version)


@engine_call
@on_table("write")
def delete_row_ids(table: Table, row_ids: Sequence[int]) -> int:
    """Delete few rows by id; return the new version. The other rows keep their ids and their order.

    Args:
        table: the table, at its newest version.
        row_ids: up to some thousand, since the engine parses a list of them.
    """
    import lance

    dataset = lance.dataset(str(table.path), version=table.version)
    dataset.delete(f"{ROW_ID} IN ({', '.join(map(str, map(int, row_ids)))})")
    return int(dataset.version)


@engine_call
@on_table("write")
def compact(table: Table, *, without: Sequence[str] = ()) -> int:
    """Merge small files of a table if there are many, and drop deleted rows; return the newest version.

    Rows keep their order. Without it, every read after many small additions would open as many files.

    Args:
        table: the table, at its newest version.
        without: columns to drop first, for example because they are rewritten next. In a file with other columns they
            would otherwise remain unused.
    """
    import lance

    dataset = lance.dataset(str(table.path), version=table.version)
    if present := [name for name in without if name in dataset.schema.names]:
        dataset.drop_columns(present)
        _without_edits(dataset, table, present)
    fragments = dataset.get_fragments()
    rows = max(dataset.count_rows(), 1)
    deleted = sum(fragment.num_deletions for fragment in fragments)
    if (len(fragments) > _MANY_FILES and rows / len(fragments) < _SMALL_FILE) or deleted > rows // 4:
        dataset = lance.dataset(
            str(table.path), version=fold_edits(Table(table.path, dataset.version))
        )  # row ids change
        dataset.optimize.compact_files(target_rows_per_fragment=_FILE_ROWS)
    return int(dataset.version)


def sync(path: Path) -> None:
    """Sync all files of a table to disk, so that a generation that references it survives a power failure.

    Folders and files that this process synced before and that did not change are skipped, because a table has thousands
    of files after a thousand edits. The others are synced at the same time, which file systems do in one turn: a
    deletion writes a file for each fragment.
    """
    disk.sync_tree(path, partial(_unsynced_tree, path))


def _unsynced_tree(path: Path) -> disk.UnsyncedTree:
    synced, found = _SYNCED.pop(path, {}), dict[str, _Synced]()
    unsynced_files, unsynced_folders, pending = list[str](), list[str](), [os.fspath(path)]
    while pending:
        folder = pending.pop()
        changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116 - thousands of times
        known = synced.get(folder)
        if known is None or known.changed_ns != changed_ns:
            known, files = _unsynced(folder, changed_ns, known.files if known else frozenset())
            unsynced_files += files
            unsynced_folders.append(folder)
        found[folder] = known
        pending += known.folders

    def remember() -> None:
        _SYNCED[path] = found

    return disk.UnsyncedTree(unsynced_files, unsynced_folders, remember)


@dataclass(frozen=True)
class _Synced:
    """A synced folder.

    Attributes:
        changed_ns: its modification time.
        files: name and inode of its files; a file is written once.
        folders: the folders in it.
    """

    changed_ns: int
    files: frozenset[tuple[str, int]]
    folders: tuple[str, ...]


def _unsynced(folder: str, changed_ns: int, synced: frozenset[tuple[str, int]]) -> tuple[_Synced, list[str]]:
    """Return a folder as it is once it is synced, and its files that are not synced yet."""
    files, folders, unsynced = set(), [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            mark = entry.name, entry.inode()  # as a table has thousands of files, they are not looked at one by one
            if mark not in synced:
                unsynced.append(entry.path)
            files.add(mark)
    return _Synced(changed_ns, frozenset(files), tuple(folders)), unsynced


@engine_call
@on_table("write")
def roll_back(path: Path, version: int | None) -> int | None:
    """Make the content of *version* the newest of the table at *path*, undoing what an interrupted run wrote.

    Args:
        path: folder of the table; may be missing.
        version: the head's version; None if the head has no such table, which removes it.

    Returns:
        The newest version, from which the next writer continues: *version*, or a later one of the same content.
    """
    if version is None:
        shutil.rmtree(path, ignore_errors=True)
        _SYNCED.pop(path, None)  # new files may get the names and inodes of the removed ones
        return None
    import lance

    dataset = lance.dataset(str(path))
    if dataset.latest_version == version:
        keep_edited(Table(path, version, dataset))  # edits open it next
        return version
    _LOG.info("%s is rolled back from version %d to %d", path, dataset.latest_version, version)
    dataset = dataset.checkout_version(version)
    dataset.restore()  # type: ignore[no-untyped-call] # Lance's own annotations end there
    return int(dataset.latest_version)
