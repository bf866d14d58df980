"""Disk usage of a workspace, by dataset and part, and the bytes that can be freed."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from framedex.core.ids import objects_dataset
from framedex.operations.context import Context
from framedex.records import DatasetRecord
from framedex.render import html
from framedex.render.sizes import bytes_text
from framedex.storage import datasets, disk, task_rows
from framedex.storage.layout import names_dataset
from framedex.storage.manifest import MANIFEST, has_manifest
from framedex.storage.media_rows import index_columns_of
from framedex.storage.objects import OBJECTS
from framedex.storage.retention import RetainedStates, RetentionLimits, read_retained
from framedex.storage.table_files import DataFile, data_files, files_of, files_of_head, files_of_snapshots
from framedex.storage.table_names import MEDIA

EMBEDDINGS, INDEX, COLUMNS, REMNANTS = "embeddings", "index columns", "other columns", "deleted rows"
TABLES, SNAPSHOTS, OLD, WORK = "other tables", "snapshots", "old versions", "work under way"
UPLOADS, THUMBNAILS, CATALOG, ORPHANS = "uploads", "thumbnails", "catalog", "deleted datasets"
TEXTS, VECTORS, MAPS = "text index", "vector index", "maps"
PARTS = (
    EMBEDDINGS, COLUMNS, INDEX, REMNANTS, TABLES, UPLOADS, THUMBNAILS, TEXTS, VECTORS, MAPS, SNAPSHOTS, WORK, OLD,
    ORPHANS, CATALOG,
)  # fmt: skip
FREEABLE = (OLD, ORPHANS)
_ROW_TABLES = (MEDIA, OBJECTS)  # tables with embeddings and index columns
_SCHEMA = pa.schema(
    [
        pa.field("dataset_id", pa.string()),
        pa.field("dataset_name", pa.string()),
        pa.field("part", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("shared_bytes", pa.int64()),
        pa.field("files", pa.int64()),
    ]
)

_Row = tuple[str | None, str | None, str, int, int, int]


class DiskUsage:
    """The disk usage of a workspace. A notebook displays it with bars.

    Attributes:
        total_bytes: the size of all files of the workspace; files that clones share count once.
        freeable_bytes: the size of the files that :meth:`framedex.Workspace.vacuum` can delete, once no reader may need
            them.

    Examples:
        >>> usage = ws.disk_usage()
        >>> usage
        <framedex.DiskUsage: ... MB, ... to be freed>
    """

    def __init__(self, rows: pa.Table, total_bytes: int, freeable_bytes: int) -> None:
        self._rows, self.total_bytes, self.freeable_bytes = rows, total_bytes, freeable_bytes

    def to_arrow(self) -> pa.Table:
        """Return a row for each non-empty part of each dataset, newest datasets first.

        The columns are ``dataset_id`` and ``dataset_name`` (null for the catalog and the remains of deleted datasets);
        ``part``; ``bytes``; ``shared_bytes``: the bytes in files with several hard links, for example of a clone; and
        ``files``: each file counts for its largest part. The parts are:

        - ``embeddings``;
        - ``other columns`` of media and objects;
        - ``index columns``, which each reindex rewrites;
        - ``deleted rows``, and replaced columns, which a reindex removes if there are many;
        - ``other tables``;
        - ``uploads``;
        - ``thumbnails``;
        - ``text index`` and ``vector index``, for searches;
        - ``maps``;
        - ``snapshots``: data that only snapshots reference;
        - ``work under way``: data of running tasks, their temporary files, and checkpoints for retries;
        - ``old versions``: superseded data, deleted when no reader may need it;
        - ``deleted datasets``;
        - ``catalog``, with the marker of the workspace and the manifests of the datasets.

        Examples:
            >>> ws.disk_usage().to_arrow().column_names
            ['dataset_id', 'dataset_name', 'part', 'bytes', 'shared_bytes', 'files']
        """
        return self._rows

    @property
    def by_part(self) -> dict[str, int]:
        """The bytes by part, summed over all datasets, in the order of :meth:`to_arrow`.

        Examples:
            >>> list(ws.disk_usage().by_part)[:3]
            ['embeddings', 'other columns', 'index columns']
        """
        sizes: dict[str, int] = defaultdict(int)
        for row in self._rows.select(["part", "bytes"]).to_pylist():
            sizes[row["part"]] += row["bytes"]
        return {part: sizes[part] for part in PARTS if part in sizes}

    def __repr__(self) -> str:
        return f"<framedex.DiskUsage: {bytes_text(self.total_bytes)}, {bytes_text(self.freeable_bytes)} to be freed>"

    def _repr_html_(self) -> str:
        rows = [
            (row["dataset_name"] or "", row["part"], bytes_text(row["bytes"]), bytes_text(row["shared_bytes"]))
            for row in self._rows.to_pylist()
        ]
        return html.block(
            html.heading(bytes_text(self.total_bytes), 2),
            html.note(f"{bytes_text(self.freeable_bytes)} of it to be freed; what clones share counts once"),
            html.bars(self.by_part.items(), shown=bytes_text),
            html.table(("dataset", "part", "size", "shared with others"), rows),
        )


@dataclass
class _Sum:
    """The size of the files of a part: bytes, shared bytes, and number of files."""

    size: int = 0
    shared: int = 0
    files: int = 0


@dataclass
class _Counter:
    """A counter of files by part.

    Attributes:
        sums: the sums of the current dataset, by part.
        seen: the files with several hard links that were counted.
        total, freeable: the bytes of all files, each counted once.
    """

    sums: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    seen: set[disk.Inode] = field(default_factory=set)
    total: int = 0
    freeable: int = 0

    def add_all(self, folder: Path, part: str) -> None:
        """Count all files below a folder for one part."""
        for _, status in disk.walk_files(folder):
            self.add(status, {part: status.st_size})

    def add(self, status: os.stat_result, sizes: Mapping[str, int]) -> None:
        """Count a file, given its bytes by part; the number of files is counted for the largest part."""
        shared = status.st_nlink > 1
        for part, size in sizes.items():
            self.sums[part].size += size
            self.sums[part].shared += size if shared else 0
        largest = max(sizes, key=lambda part: sizes[part])
        self.sums[largest].files += 1
        if shared and disk.inode_of(status) in self.seen:
            return
        self.total += status.st_size
        if shared:
            self.seen.add(disk.inode_of(status))
        elif largest in FREEABLE:
            self.freeable += status.st_size

    def rows(self, dataset: DatasetRecord | None) -> Iterator[_Row]:
        """Yield the rows of the current dataset, and reset the sums."""
        for part in PARTS:
            if (total := self.sums.pop(part, None)) is not None and total.size:
                names = (None, None) if dataset is None else (dataset.id, dataset.display_name)
                yield *names, part, total.size, total.shared, total.files


def read_usage(context: Context) -> DiskUsage:
    """Return the disk usage; see :meth:`framedex.Workspace.disk_usage`."""
    with context.catalog.read() as connection:
        records = datasets.list_datasets(connection)
    counter = _Counter()
    rows: list[_Row] = []
    for record in records:
        _count_dataset(context, record.id, counter)
        rows += counter.rows(record)
    ids = {each for record in records for each in (record.id, objects_dataset(record.id))}
    for parent in (context.layout.datasets, *context.layout.caches):
        for folder in disk.entries(parent):
            if folder.name not in ids and names_dataset(folder):
                counter.add_all(folder, TABLES if has_manifest(folder) else ORPHANS)
    for _, status in disk.files_in(context.layout.root):
        counter.add(status, {CATALOG: status.st_size})
    rows += counter.rows(None)
    columns = zip(*rows, strict=True) if rows else ([] for _ in _SCHEMA)
    table = pa.table([pa.array(values, kind.type) for values, kind in zip(columns, _SCHEMA, strict=True)], _SCHEMA)
    return DiskUsage(table, counter.total, counter.freeable)


def _count_dataset(context: Context, dataset_id: str, counter: _Counter) -> None:
    with context.catalog.read() as connection:
        # Superseded versions count as old at once, although vacuum keeps them for a while.
        retained = read_retained(connection, dataset_id, RetentionLimits.ago(0), of_journal=False)
        busy = task_rows.is_busy(connection, dataset_id)
    for path in disk.entries(context.layout.dataset(dataset_id)):
        if path.suffix == ".lance":
            try:
                part_of, data = _classified(path, retained)
            except (OSError, ValueError):  # damaged, or being changed: all files may be needed
                counter.add_all(path, COLUMNS if path.stem in _ROW_TABLES else TABLES)
            else:
                _count_table(path, part_of, data, WORK if busy else OLD, counter)
        elif path.name == MANIFEST:
            counter.add_all(path, CATALOG)
        else:
            counter.add_all(path, OLD if disk.is_aside(path) else UPLOADS)
    layout = context.layout
    for entities in (dataset_id, objects_dataset(dataset_id)):
        counter.add_all(layout.thumbnails(entities), THUMBNAILS)
        counter.add_all(layout.texts(entities), TEXTS)
        counter.add_all(layout.captions(entities), VECTORS)
        counter.add_all(layout.vectors(entities), VECTORS)
        counter.add_all(layout.maps(entities), MAPS)
    counter.add_all(layout.anchors(dataset_id), VECTORS)
    counter.add_all(layout.keypoints(dataset_id), VECTORS)
    counter.add_all(layout.spill / dataset_id, WORK)


def _classified(path: Path, retained: RetainedStates) -> tuple[dict[str, str], dict[str, DataFile]]:
    """Return the parts of a table's referenced files, and the data files of the head, by path."""
    name = path.stem
    head = retained.head.tables.get(name) if retained.head else None
    snapshots = {each.tables[name] for each in retained.generations if name in each.tables} - {head}
    part_of = dict.fromkeys(files_of(path, [version for each, version in retained.unfinished if each == name]), WORK)
    part_of |= dict.fromkeys(files_of_snapshots(path, snapshots, is_in_head=head is not None), SNAPSHOTS)
    part_of |= dict.fromkeys(files_of_head(path, head) if head else (), COLUMNS if name in _ROW_TABLES else TABLES)
    return part_of, {file.path: file for file in data_files(path, head)} if name in _ROW_TABLES and head else {}


def _count_table(
    path: Path, part_of: Mapping[str, str], data: Mapping[str, DataFile], default: str, counter: _Counter
) -> None:
    for file, status in disk.walk_files(path):
        name = file.relative_to(path).as_posix()
        if (rows := data.get(name)) is None:
            counter.add(status, {part_of.get(name, default): status.st_size})
        else:
            counter.add(status, _split(rows, status))


def _split(file: DataFile, status: os.stat_result) -> dict[str, int]:
    """Return the bytes of a data file by part; their sum is the size of the file."""
    bytes_of: dict[str, float] = defaultdict(float)
    index = set(index_columns_of(file.bytes_of))
    for column, size in file.bytes_of.items():
        bytes_of[EMBEDDINGS if column == "embedding" else INDEX if column in index else COLUMNS] += size
    total = sum(bytes_of.values())
    # Column sizes are known only for all files of a table together. A file's metadata counts for its columns.
    factor = status.st_size / total if total and (total > status.st_size or not file.replaced) else 1.0
    sizes = {part: int(size * factor * file.live) for part, size in bytes_of.items()}
    rest = REMNANTS if file.replaced or file.live < 1 else max(sizes, key=lambda part: sizes[part], default=COLUMNS)
    sizes[rest] = sizes.get(rest, 0) + status.st_size - sum(sizes.values())
    return sizes
