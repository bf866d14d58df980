"""What uses the disk: which parts of which datasets, and what of it could go."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from framedex.ids import objects_dataset
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
from framedex.storage.table_files import DataFile, data_files, files_of, files_of_head
from framedex.storage.table_names import MEDIA

EMBEDDINGS, INDEX, COLUMNS, REMNANTS = "embeddings", "index columns", "other columns", "deleted rows"
TABLES, SNAPSHOTS, OLD, WORK = "other tables", "snapshots", "old versions", "work under way"
UPLOADS, THUMBNAILS, CATALOG, ORPHANS = "uploads", "thumbnails", "catalog", "deleted datasets"
TEXTS, VECTORS = "text index", "vector index"
PARTS = (
    EMBEDDINGS, COLUMNS, INDEX, REMNANTS, TABLES, UPLOADS, THUMBNAILS, TEXTS, VECTORS, SNAPSHOTS, WORK, OLD, ORPHANS,
    CATALOG,
)  # fmt: skip
FREEABLE = (OLD, ORPHANS)
_OF_ROWS = (MEDIA, OBJECTS)  # tables with embeddings and index columns
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
    """What uses the disk. A notebook shows it with bars.

    Attributes:
        total_bytes: of all files of the workspace; files that clones share count once.
        freeable_bytes: what :meth:`framedex.Workspace.vacuum` frees of it as soon as nobody may still read it.
    """

    def __init__(self, rows: pa.Table, total_bytes: int, freeable_bytes: int) -> None:
        self._rows, self.total_bytes, self.freeable_bytes = rows, total_bytes, freeable_bytes

    def to_arrow(self) -> pa.Table:
        """Return a row for each part of each dataset, datasets newest first; what takes nothing is left out.

        The columns are ``dataset_id, dataset_name`` (null for the catalog and for what is left of deleted datasets),
        ``part, bytes, shared_bytes`` (of them, in files that have another name, too, as in a clone) and ``files`` (a
        file counts where most of it is). Parts are ``embeddings``; ``other columns`` of media and objects; ``index
        columns``, which each reindex writes anew; ``deleted rows``, with columns that were replaced, which a reindex
        lets go when they are many; ``other tables``; ``uploads``; ``thumbnails``; ``text index`` and ``vector index``,
        for searches; ``snapshots``: what they alone keep; ``work under way``, or to go on from when a task is retried;
        ``old versions``, to be freed when nobody may still read them; ``deleted datasets``; ``catalog``, with the
        marker of the workspace and, of each dataset, its manifest.
        """
        return self._rows

    @property
    def by_part(self) -> dict[str, int]:
        """Bytes by part, over all datasets, in the order of :meth:`to_arrow`."""
        found: dict[str, int] = defaultdict(int)
        for row in self._rows.select(["part", "bytes"]).to_pylist():
            found[row["part"]] += row["bytes"]
        return {part: found[part] for part in PARTS if part in found}

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
    """What the files of a part take."""

    size: int = 0
    shared: int = 0
    files: int = 0


@dataclass
class _Counter:
    """Adds up files by part.

    Attributes:
        sums: of the dataset that is being counted, by part.
        seen: files with several names that were counted already.
        total, freeable: bytes of all files, each once.
    """

    sums: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    seen: set[disk.Inode] = field(default_factory=set)
    total: int = 0
    freeable: int = 0

    def add_all(self, folder: Path, part: str) -> None:
        """Count all files below a folder."""
        for _, status in disk.walk_files(folder):
            self.add(status, {part: status.st_size})

    def add(self, status: os.stat_result, sizes: Mapping[str, int]) -> None:
        """Count a file, of which parts have so many bytes; it counts as a file of the largest one."""
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
        """Yield what was counted since the last time."""
        for part in PARTS:
            if (found := self.sums.pop(part, None)) is not None and found.size:
                names = (None, None) if dataset is None else (dataset.id, dataset.display_name)
                yield *names, part, found.size, found.shared, found.files


def read_usage(context: Context) -> DiskUsage:
    """Return what uses the disk; see :meth:`framedex.Workspace.disk_usage`."""
    with context.catalog.read() as connection:
        records = datasets.list_datasets(connection)
    counter = _Counter()
    rows: list[_Row] = []
    for record in records:
        _count_dataset(context, record.id, counter)
        rows += counter.rows(record)
    known = {each for record in records for each in (record.id, objects_dataset(record.id))}
    for parent in (context.layout.datasets, *context.layout.caches):
        for folder in disk.entries(parent):
            if folder.name not in known and names_dataset(folder):
                counter.add_all(folder, TABLES if has_manifest(folder) else ORPHANS)
    for _, status in disk.files_in(context.layout.root):
        counter.add(status, {CATALOG: status.st_size})
    rows += counter.rows(None)
    columns = zip(*rows, strict=True) if rows else ([] for _ in _SCHEMA)
    table = pa.table([pa.array(values, kind.type) for values, kind in zip(columns, _SCHEMA, strict=True)], _SCHEMA)
    return DiskUsage(table, counter.total, counter.freeable)


def _count_dataset(context: Context, dataset_id: str, counter: _Counter) -> None:
    with context.catalog.read() as connection:
        # What was the head a moment ago is an old version here, though vacuum leaves it for a while.
        kept = read_retained(connection, dataset_id, RetentionLimits.ago(0))
        busy = task_rows.is_busy(connection, dataset_id)
    for path in disk.entries(context.layout.dataset(dataset_id)):
        if path.suffix == ".lance":
            try:
                part_of, known = _classified(path, kept)
            except (OSError, ValueError):  # it is damaged, or just being changed: all of it may be needed
                counter.add_all(path, COLUMNS if path.stem in _OF_ROWS else TABLES)
            else:
                _count_table(path, part_of, known, WORK if busy else OLD, counter)
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
    counter.add_all(layout.anchors(dataset_id), VECTORS)


def _classified(path: Path, kept: RetainedStates) -> tuple[dict[str, str], dict[str, DataFile]]:
    """Return which part the files of a table belong to, those that something kept needs; and the files with rows."""
    name = path.stem
    head = kept.head.tables.get(name) if kept.head else None
    snapshots = {each.tables[name] for each in kept.generations if name in each.tables} - {head}
    part_of = dict.fromkeys(files_of(path, [version for each, version in kept.unfinished if each == name]), WORK)
    part_of |= dict.fromkeys(files_of(path, snapshots), SNAPSHOTS)
    part_of |= dict.fromkeys(files_of_head(path, head) if head else (), COLUMNS if name in _OF_ROWS else TABLES)
    return part_of, {file.path: file for file in data_files(path, head)} if name in _OF_ROWS and head else {}


def _count_table(
    path: Path, part_of: Mapping[str, str], known: Mapping[str, DataFile], others: str, counter: _Counter
) -> None:
    for file, status in disk.walk_files(path):
        place = file.relative_to(path).as_posix()
        data = known.get(place)
        counter.add(status, {part_of.get(place, others): status.st_size} if data is None else _split(data, status))


def _split(file: DataFile, status: os.stat_result) -> dict[str, int]:
    """Return how much of a file with rows is what; together that is the file."""
    known: dict[str, float] = defaultdict(float)
    index = set(index_columns_of(file.bytes_of))
    for column, size in file.bytes_of.items():
        known[EMBEDDINGS if column == "embedding" else INDEX if column in index else COLUMNS] += size
    total = sum(known.values())
    # A column's bytes are known of all files together. What a file says about itself belongs to what it has.
    factor = status.st_size / total if total and (total > status.st_size or not file.replaced) else 1.0
    sizes = {part: int(size * factor * file.live) for part, size in known.items()}
    rest = REMNANTS if file.replaced or file.live < 1 else max(sizes, key=lambda part: sizes[part], default=COLUMNS)
    sizes[rest] = sizes.get(rest, 0) + status.st_size - sum(sizes.values())
    return sizes
