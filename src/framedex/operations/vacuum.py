"""Freeing the disk of what nothing needs any more: all of it on request, old states of a dataset by themselves.

Nobody has to wait for this, and nobody is disturbed by it. What is to go is decided within one short transaction of the
catalog, while no task works on the dataset and no edit can; it goes afterwards, without a lock. That is safe because of
what is chosen: states that are not the head, that no snapshot has, and that nobody has begun to read lately. Whoever
writes next goes on from the head or a snapshot, and whoever reads opens the head, so that nobody comes back to them.
Work that a stopped task could go on from is forgotten in the same transaction. Only files that belong to no state at
all, as those of a writer that was killed, might be those of a writer at work: they are removed within a transaction.
"""

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from framedex import forks
from framedex.checks import is_number
from framedex.errors import Conflict, InvalidInput
from framedex.ids import objects_dataset
from framedex.operations.context import Context
from framedex.records import DatasetRecord, VacuumResult
from framedex.storage import blobs, datasets, disk
from framedex.storage.generation import Generation
from framedex.storage.id_index import IdIndex
from framedex.storage.layout import names_dataset
from framedex.storage.manifest import has_manifest
from framedex.storage.objects import OBJECTS
from framedex.storage.retention import (
    RetentionLimits,
    check_unused,
    has_superseded,
    prune,
    read_retained,
    referenced_uploads,
)
from framedex.storage.table_files import ends_with, old_versions, remove_leftovers, remove_versions, rows_key
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table, roll_back

_PARTIAL_S = 3_600.0
_ANCHOR_S = 86_400.0  # searches by a picture go on for a day
_UPLOAD_S = 86_400.0  # without a change; that its process died is known at once on this machine only
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILES = 8192


@dataclass
class _Count:
    """What was freed so far; fields as in :class:`framedex.records.VacuumResult`."""

    freed_bytes: int = 0
    versions: int = 0
    tables: int = 0
    datasets: int = 0
    thumbnails: int = 0
    uploaded_bytes: int = 0
    partial_files: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def vacuum(
    context: Context, *, older_than_s: float | None, progress: Callable[[str, float], None] | None = None
) -> VacuumResult:
    """Free what nothing needs; see :meth:`framedex.Workspace.vacuum`.

    Args:
        context: the open workspace.
        older_than_s: how long states stay that somebody may still read, and work of stopped tasks.
        progress: called with the name of a dataset and the share that is done; raises to stop.
    """
    limits = _limits(context, older_than_s)
    context.catalog.check_writable()
    with context.catalog.reserve_freed():
        return _vacuum(context, limits, progress)


def _vacuum(context: Context, limits: RetentionLimits, progress: Callable[[str, float], None] | None) -> VacuumResult:
    count, catalog_bytes = _Count(), _catalog_bytes(context)
    _remove_orphans(context, count)
    with context.catalog.read() as connection:
        records = datasets.list_datasets(connection)
    for place, record in enumerate(records):
        if progress is not None:
            progress(record.display_name, place / len(records))
        try:
            _clean_dataset(context, record, limits, count)
        except Exception as error:  # whatever is wrong with one dataset, the others are cleaned
            count.skipped[record.display_name] = str(error) or type(error).__name__
    _remove_partial(context.layout.root.glob(".*.partial"), count)
    context.catalog.shrink()
    count.freed_bytes += max(catalog_bytes - _catalog_bytes(context), 0)
    return VacuumResult(**asdict(count))


def _limits(context: Context, older_than_s: float | None) -> RetentionLimits:
    if older_than_s is None:
        return RetentionLimits.ago(context.settings.keep_versions_s)
    if not is_number(older_than_s) or not older_than_s >= 0:  # nor NaN
        raise InvalidInput(f"older_than_s must be a number of seconds from 0, or None, not {older_than_s!r}")
    return RetentionLimits.ago(older_than_s, older_than_s)


@dataclass(frozen=True)
class _Doomed:
    """What is to go of a dataset's tables.

    Attributes:
        versions: by the folder of the table.
        folders: of whole tables, under names by which nobody looks for them.
    """

    versions: dict[Path, list[int]]
    folders: list[Path]


def _doom(context: Context, dataset_id: str, limits: RetentionLimits, *, thoroughly: bool) -> _Doomed:
    """Decide what is to go of a dataset's tables, so that nobody goes back to it any more.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        limits: how long things stay.
        thoroughly: also what the newest version of a table has that is in no kept state, as after a restore. Else the
            next writer does away with that.

    Raises:
        Conflict: a task works on the dataset.
    """
    versions, folders = {}, []
    with context.catalog.write() as connection:
        check_unused(connection, dataset_id)
        kept = read_retained(connection, dataset_id, limits)
        for path in disk.entries(context.layout.dataset(dataset_id)):
            if disk.is_aside(path):  # of a run that was killed
                folders.append(path)
            elif path.suffix == ".lance" and (needed := kept.versions.get(path.stem)):
                last = kept.head.tables.get(path.stem, max(needed)) if kept.head else max(needed)
                if thoroughly and not ends_with(path, last):
                    roll_back(path, last)
                versions[path] = old_versions(path, needed)
            elif path.suffix == ".lance":
                folders.append(disk.set_aside(path))
        prune(connection, dataset_id, limits)
    return _Doomed(versions, folders)


def _clean_dataset(context: Context, record: DatasetRecord, limits: RetentionLimits, count: _Count) -> None:
    doomed = _doom(context, record.id, limits, thoroughly=True)
    for path, versions in doomed.versions.items():
        before = disk.measure_folder(path)
        remove_versions(path, versions)
        with context.catalog.write() as connection:
            check_unused(connection, record.id)
            remove_leftovers(path)
        count.freed_bytes += disk.freed_since(before, path)
        count.versions += len(versions)
    for path in doomed.folders:
        count.freed_bytes += disk.remove_tree(path)
    count.tables += len(doomed.folders)
    _clean_uploads(context, record.id, limits, count)
    _clean_thumbnails(context, record.id, count)
    for entities in (record.id, objects_dataset(record.id)):
        texts = disk.walk_files(context.layout.texts(entities))
        _remove_partial((path for path, _ in texts if path.suffix == ".partial"), count)
        _clean_vectors(context, entities, count)


def _clean_vectors(context: Context, dataset_id: str, count: _Count) -> None:
    """Remove indices of vectors that did not become whole, and pictures that were searched by some time ago.

    Args:
        context: the open workspace.
        dataset_id: the dataset, or what stands for its objects.
        count: gains what was freed.
    """
    layout = context.layout
    indices = [*disk.entries(layout.vectors(dataset_id)), *disk.entries(layout.captions(dataset_id))]
    for path in [*indices, *(part for index in indices for part in disk.entries(index))]:
        if path.suffix == ".part" and path.is_dir():
            with suppress(OSError):
                if path.lstat().st_mtime < time.time() - _PARTIAL_S:
                    count.freed_bytes += disk.remove_tree(path)
                    count.partial_files += 1
    for path in disk.entries(layout.anchors(dataset_id)):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - _ANCHOR_S:
                count.freed_bytes += disk.remove_file(path)


def _clean_uploads(context: Context, dataset_id: str, limits: RetentionLimits, count: _Count) -> None:
    """Remove lists of uploads that no task needs, and the files that neither a list nor a kept state names."""
    folder = context.layout.dataset(dataset_id)
    with context.catalog.write() as connection:  # a task that is run again now would read its list
        check_unused(connection, dataset_id)
        kept, named = read_retained(connection, dataset_id, limits), referenced_uploads(connection, dataset_id, limits)
        for upload_id, changed_s, is_whole in blobs.uploads(folder):
            # The task of an upload begins when all of it is there; until then nothing names it.
            if upload_id not in named and changed_s < time.time() - (_PARTIAL_S if is_whole else _UPLOAD_S):
                blobs.remove_upload(folder, upload_id)
    if not context.layout.blobs(dataset_id).is_dir():
        return
    still = _unchanged(context, dataset_id, limits, kept.generations)
    hashes = _content_hashes(context.layout.media(dataset_id), sorted(kept.versions.get(MEDIA, ())))
    freed = blobs.remove_unused(folder, hashes, still=still)
    count.uploaded_bytes += freed
    count.freed_bytes += freed


@contextmanager
def _unchanged(context: Context, dataset_id: str, limits: RetentionLimits, before: list[Generation]) -> Iterator[None]:
    """Keep a dataset from being changed; it must not have been since its generations were read."""
    with context.catalog.write() as connection:
        check_unused(connection, dataset_id)
        now = {each.id for each in read_retained(connection, dataset_id, limits).generations}
        if now - {each.id for each in before}:
            raise Conflict("it was changed meanwhile")
        yield


def _content_hashes(path: Path, versions: list[int]) -> Iterator[pa.Array]:
    """Yield the content hashes of all rows of some versions of a media table."""
    for version in {rows_key(path, each): each for each in versions}.values():
        yield Table(path, version).scan(["content_hash"]).read_all().column(0).combine_chunks()


def _clean_thumbnails(context: Context, dataset_id: str, count: _Count) -> None:
    """Remove thumbnails of what the dataset has not; if a snapshot with it comes back, they are made anew."""
    layout = context.layout
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    if head is None:
        return
    for folder, name in (
        (layout.thumbnails(dataset_id), MEDIA),
        (layout.thumbnails(objects_dataset(dataset_id)), OBJECTS),
    ):
        if folder.is_dir():
            version = head.tables.get(name)
            known = None if version is None else IdIndex(Table(layout.table(dataset_id, name), version))
            _remove_unknown(folder, known, count)


def _remove_unknown(folder: Path, known: IdIndex | None, count: _Count) -> None:
    """Remove the thumbnails in a folder but those of known ids; all for None."""
    files = disk.walk_files(folder)
    while group := [path for path, _ in islice(files, _FILES)]:
        _remove_partial((path for path in group if path.suffix == ".partial"), count)
        made = [path for path in group if path.suffix == ".jpg" and _UUID.match(path.name)]
        there = [False] * len(made) if known is None else known.contains([path.name[:36] for path in made])
        for path, is_there in zip(made, there, strict=True):
            if not is_there:
                count.freed_bytes += disk.remove_file(path)
                count.thumbnails += 1


def _remove_partial(files: Iterator[Path], count: _Count) -> None:
    """Remove files that did not become whole in an hour."""
    for path in files:
        with suppress(OSError):  # it has just become whole
            if path.lstat().st_mtime < time.time() - _PARTIAL_S:
                count.freed_bytes += disk.remove_file(path)
                count.partial_files += 1


def _remove_orphans(context: Context, count: _Count) -> None:
    """Remove what is left of datasets that were deleted, as by a process that was killed in the middle of it.

    A folder that still has its manifest was not deleted: the catalog may be an older copy; ``check`` says so.
    """
    folders = disk.entries(context.layout.datasets)
    caches = [path for cache in context.layout.caches for path in disk.entries(cache)]
    # A dataset has its row before its folder, so that one whose row is not there now will never have one.
    with context.catalog.read() as connection:
        there = {record.id for record in datasets.list_datasets(connection)}
    there |= {objects_dataset(dataset_id) for dataset_id in there}
    for place, path in enumerate([*folders, *caches]):
        if path.name not in there and names_dataset(path) and not has_manifest(path):
            count.freed_bytes += disk.remove_tree(path)
            count.datasets += place < len(folders)


def _catalog_bytes(context: Context) -> int:
    layout = context.layout
    return sum(
        status.st_size for path, status in disk.files_in(layout.root) if path.name.startswith(layout.catalog.name)
    )


class AutoClean:
    """Frees old states of a dataset after a change of it; not more often than the settings say, and never failing.

    When there is nothing to free it costs one query of the catalog.

    Args:
        context: the open workspace.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = forks.Lock()
        self._last: dict[str, float] = {}

    def __call__(self, dataset_id: str) -> None:
        """Free old states of a dataset."""
        if self._is_due(dataset_id):
            # What was changed is committed; what cannot be freed now is freed after the next change.
            with suppress(Exception):
                self._clean(dataset_id)

    def _is_due(self, dataset_id: str) -> bool:
        now = time.monotonic()
        with self._lock:
            due = now - self._last.get(dataset_id, -math.inf) >= self._context.settings.clean_every_s
            if due:
                self._last[dataset_id] = now
        return due

    def _clean(self, dataset_id: str) -> None:
        limits = _limits(self._context, None)
        with self._context.catalog.read() as connection:
            if not has_superseded(connection, dataset_id, limits):
                return
        doomed = _doom(self._context, dataset_id, limits, thoroughly=False)
        for path, versions in doomed.versions.items():
            remove_versions(path, versions)
        for path in doomed.folders:
            disk.remove_tree(path)
