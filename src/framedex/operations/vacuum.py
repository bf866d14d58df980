"""Removal of unreferenced files: everything on request, and superseded versions after each commit.

Readers do not wait for this. The versions to remove are chosen in a short transaction of the catalog, while no task
changes the dataset. They are removed afterwards. That is safe because only generations are chosen that are not the
head, belong to no snapshot, and were not opened lately: the next writer continues from the head or a snapshot, and
readers open the head. Checkpoints of stopped tasks are deleted in the same transaction. Files that belong to no
generation, for example of a killed process, could belong to a writer at work, so they are removed under the lease of
the dataset.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from framedex.core import forks
from framedex.core.checks import is_number
from framedex.core.ids import is_id, objects_dataset
from framedex.errors import Conflict, InvalidInput, NotFound, WorkspaceError
from framedex.operations.context import Context
from framedex.operations.orphans import remove_remains
from framedex.operations.short_edits import editing
from framedex.operations.uploads import remove_discarded, remove_expired, remove_processed
from framedex.records import DatasetRecord, VacuumResult
from framedex.storage import blobs, datasets, disk
from framedex.storage.generation import Generation
from framedex.storage.id_index import IdIndex
from framedex.storage.journal_files import JOURNAL
from framedex.storage.journal_rows import follow_head, journal_files
from framedex.storage.leases import is_leased, leased
from framedex.storage.objects import OBJECTS
from framedex.storage.retention import (
    RetentionLimits,
    check_no_task,
    check_unused,
    has_superseded,
    prune,
    read_retained,
    referenced_uploads,
)
from framedex.storage.table_files import ends_with, old_versions, remove_leftovers, remove_versions, rows_key
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.storage.tables import fold_edits, roll_back, sync

_LOG = logging.getLogger(__name__)
_PARTIAL_S = 3_600.0
_ANCHOR_S = 86_400.0  # an uploaded query image can be used for a day
_UPLOAD_S = 86_400.0  # without a change; a dead process of another machine is not detected
_FILES = 8192
_ID_LENGTH = 36


@dataclass
class _Totals:
    """Running totals of what was freed; fields as in :class:`framedex.records.VacuumResult`."""

    freed_bytes: int = 0
    versions: int = 0
    tables: int = 0
    datasets: int = 0
    thumbnails: int = 0
    uploaded_bytes: int = 0
    partial_files: int = 0
    uploads: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def vacuum(
    context: Context, *, older_than_s: float | None, progress: Callable[[str, float], None] | None = None
) -> VacuumResult:
    """Free unreferenced files; see :meth:`framedex.Workspace.vacuum`.

    Args:
        context: the open workspace.
        older_than_s: minimum age in seconds of superseded generations and of checkpoints of stopped tasks.
        progress: called with the name of a dataset and the share that is done; raises to stop.
    """
    _limits(context, older_than_s)  # raises for a wrong age
    context.catalog.check_writable()
    totals, catalog_bytes = _Totals(), _catalog_bytes(context)
    with context.catalog.reserve_freed():
        orphans = remove_remains(context)
        totals.freed_bytes += orphans.freed_bytes
        totals.datasets += orphans.datasets
        totals.uploads = len(remove_expired(context))
        with context.catalog.read() as connection:
            records = datasets.list_datasets(connection)
        for position, record in enumerate(records):
            if progress is not None:
                progress(record.display_name, position / len(records))
            _clean_if_possible(context, record, older_than_s, totals)
        _remove_partial(context.layout.root.glob(".*.partial"), totals)
        context.catalog.shrink()
    if context.catalog.keep_reserve():  # else folding would take the bytes that deletions need
        edited = [record for record in records if _has_edits(context, record)]
        for record in edited:
            _fold_edits(context, record)
        for record in edited:
            _clean_if_possible(context, record, older_than_s, totals)
    totals.freed_bytes += max(catalog_bytes - _catalog_bytes(context), 0)
    _LOG.info("vacuum freed %d bytes, of %d versions among others", totals.freed_bytes, totals.versions)
    return VacuumResult(**asdict(totals))


def _has_edits(context: Context, record: DatasetRecord) -> bool:
    """Return whether edited values of a dataset lie beside the files of their columns."""
    with context.catalog.read() as connection:
        head = datasets.head(connection, record.id)
    if head is None:
        return False
    with suppress(NotFound, WorkspaceError):  # it was deleted, or is damaged
        return bool(Table(context.layout.media(record.id), head.tables[MEDIA]).overlay.layers)
    return False


def _fold_edits(context: Context, record: DatasetRecord) -> None:
    """Write the edited values of a dataset into the files of their columns, as a new generation of the same content.

    Nothing is lost where this is not possible now, because a task runs or the disk is full.
    """
    with suppress(Conflict, NotFound, WorkspaceError), editing(context, record.id, "vacuum") as edit:
        table = edit.media(context).table
        version = fold_edits(table)
        sync(table.path)
        head = edit.job.head
        edit.commit(
            {**head.tables, MEDIA: version},
            head.summary,
            also=lambda connection: follow_head(connection, record.id, head.id),
        )


def _limits(context: Context, older_than_s: float | None) -> RetentionLimits:
    if older_than_s is None:
        return RetentionLimits.ago(context.settings.keep_versions_s)
    if not is_number(older_than_s) or not older_than_s >= 0:  # rejects NaN
        raise InvalidInput(f"older_than_s must be a number of seconds from 0, or None, not {older_than_s!r}")
    return RetentionLimits.ago(older_than_s, older_than_s)


@dataclass(frozen=True)
class _Removals:
    """Files of a dataset's tables to remove.

    Attributes:
        versions: table versions, by the folder of the table.
        folders: folders of whole tables, renamed so that nobody opens them.
    """

    versions: dict[Path, list[int]]
    folders: list[Path]


def _choose_removals(context: Context, dataset_id: str, limits: RetentionLimits) -> _Removals:
    """Choose the table versions to remove and delete their records, so that nobody opens them again.

    Tables whose newest version has no generation, for example after a restore, are rolled back. The caller holds the
    lease of the dataset.
    """
    versions, folders = {}, []
    with context.catalog.write() as connection:
        prune(connection, dataset_id, limits)
        retained = read_retained(connection, dataset_id, limits)
    for path in disk.entries(context.layout.dataset(dataset_id)):
        if disk.is_aside(path):  # left by a killed process
            folders.append(path)
        elif path.suffix == ".lance" and (needed := retained.versions.get(path.stem)):
            last = retained.head.tables.get(path.stem, max(needed)) if retained.head else max(needed)
            if not ends_with(path, last):
                roll_back(path, last)
            versions[path] = old_versions(path, needed)
        elif path.suffix == ".lance":
            folders.append(disk.set_aside(path))
    return _Removals(versions, folders)


def _choose_superseded(context: Context, dataset_id: str, limits: RetentionLimits) -> _Removals:
    """Choose the table versions before the head that need not stay, as an edit may be in progress behind the head.

    Whole tables are chosen only while there is no edit, which may have begun one. Records are deleted.

    Raises:
        Conflict: a task is in progress on the dataset.
    """
    with context.catalog.write() as connection:
        check_no_task(connection, dataset_id)
        prune(connection, dataset_id, limits)
        retained = read_retained(connection, dataset_id, limits)
        unneeded = [
            disk.set_aside(path)
            for path in disk.entries(context.layout.dataset(dataset_id))
            if path.suffix == ".lance" and path.stem not in retained.versions and not is_leased(connection, dataset_id)
        ]
    versions = {}
    for name, last in retained.head.tables.items() if retained.head else ():
        path = context.layout.table(dataset_id, name)
        versions[path] = [each for each in old_versions(path, retained.versions[name]) if each < last]
    return _Removals(versions, unneeded)


@contextmanager
def _exclusive(context: Context, dataset_id: str) -> Iterator[None]:
    """Block changes of a dataset within the block.

    Raises:
        Conflict: a task is in progress, or another process edits it for long.
    """
    with leased(context.catalog, dataset_id, "vacuum", lambda connection: check_unused(connection, dataset_id)):
        yield


def _clean_if_possible(context: Context, record: DatasetRecord, older_than_s: float | None, totals: _Totals) -> None:
    """Remove unreferenced files of a dataset; add a failure to the totals, so that the others are cleaned."""
    try:
        with context.catalog.reserve_freed():
            _clean_dataset(context, record, _limits(context, older_than_s), totals)
    except Exception as error:
        totals.skipped[record.display_name] = str(error) or type(error).__name__
        _LOG.info("vacuum leaves out dataset %s: %s", record.id, totals.skipped[record.display_name])


def _clean_dataset(context: Context, record: DatasetRecord, limits: RetentionLimits, totals: _Totals) -> None:
    with _exclusive(context, record.id):
        removals = _choose_removals(context, record.id, limits)
    for path, versions in removals.versions.items():
        before = disk.measure_folder(path)
        remove_versions(path, versions)
        with _exclusive(context, record.id):
            remove_leftovers(path)
        totals.freed_bytes += disk.freed_since(before, path)
        totals.versions += len(versions)
    for path in removals.folders:
        totals.freed_bytes += disk.remove_tree(path)
    totals.tables += len(removals.folders)
    _clean_journal(context, record.id, totals)
    _clean_uploads(context, record.id, limits, totals)
    _clean_thumbnails(context, record.id, totals)
    for entities in (record.id, objects_dataset(record.id)):
        texts = disk.walk_files(context.layout.texts(entities))
        _remove_partial((path for path, _ in texts if path.suffix == ".partial"), totals)
        _clean_vectors(context, entities, totals)


def _clean_journal(context: Context, dataset_id: str, totals: _Totals) -> None:
    """Remove files of the journal that no step needs."""
    folder = context.layout.dataset(dataset_id) / JOURNAL
    if not folder.is_dir():
        return
    with _exclusive(context, dataset_id):
        with context.catalog.read() as connection:
            needed = journal_files(connection, dataset_id)
        for path, _ in disk.walk_files(folder):
            if path.name not in needed:
                totals.freed_bytes += disk.remove_file(path)


def _clean_vectors(context: Context, dataset_id: str, totals: _Totals) -> None:
    """Remove incomplete vector indices, and uploaded query images older than a day.

    Args:
        context: the open workspace.
        dataset_id: id of the dataset, or of its objects.
        totals: updated with the freed bytes.
    """
    layout = context.layout
    indices = [*disk.entries(layout.vectors(dataset_id)), *disk.entries(layout.captions(dataset_id))]
    for path in [*indices, *(part for index in indices for part in disk.entries(index))]:
        if path.suffix == ".part" and path.is_dir():
            with suppress(OSError):
                if path.lstat().st_mtime < time.time() - _PARTIAL_S:
                    totals.freed_bytes += disk.remove_tree(path)
                    totals.partial_files += 1
    for path in disk.entries(layout.anchors(dataset_id)):
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - _ANCHOR_S:
                totals.freed_bytes += disk.remove_file(path)


def _clean_uploads(context: Context, dataset_id: str, limits: RetentionLimits, totals: _Totals) -> None:
    """Remove upload lists that no task needs, and uploaded files without a list or a retained generation."""
    folder = context.layout.dataset(dataset_id)
    remove_discarded(context, dataset_id)
    with context.catalog.write() as connection:  # a task retried now would read its list
        check_unused(connection, dataset_id)
        retained, referenced = (
            read_retained(connection, dataset_id, limits),
            referenced_uploads(connection, dataset_id, limits),
        )
        for upload_id, changed_s, is_whole in blobs.uploads(folder):
            # The task starts after the upload; until then the upload is unreferenced.
            if upload_id not in referenced and changed_s < time.time() - (_PARTIAL_S if is_whole else _UPLOAD_S):
                blobs.remove_upload(folder, upload_id)
    if not context.layout.blobs(dataset_id).is_dir():
        return
    still = _unchanged(context, dataset_id, limits, retained.generations)
    hashes = _content_hashes(context.layout.media(dataset_id), sorted(retained.versions.get(MEDIA, ())))
    freed = blobs.remove_unused(folder, hashes, still=still)
    totals.uploaded_bytes += freed
    totals.freed_bytes += freed


@contextmanager
def _unchanged(context: Context, dataset_id: str, limits: RetentionLimits, before: list[Generation]) -> Iterator[None]:
    """Block changes of a dataset within the block.

    Raises:
        Conflict: it was changed since *before* was read.
    """
    with _exclusive(context, dataset_id):
        with context.catalog.read() as connection:
            now = {each.id for each in read_retained(connection, dataset_id, limits).generations}
        if now - {each.id for each in before}:
            raise Conflict("it was changed meanwhile")
        yield


def _content_hashes(path: Path, versions: list[int]) -> Iterator[pa.Array]:
    """Yield the content hashes of all rows of some versions of a media table."""
    for version in {rows_key(path, each): each for each in versions}.values():
        yield Table(path, version).scan(["content_hash"]).read_all().column(0).combine_chunks()


def _clean_thumbnails(context: Context, dataset_id: str, totals: _Totals) -> None:
    """Remove thumbnails of media that the head does not have; they are made again after a restore."""
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
            existing = None if version is None else IdIndex(Table(layout.table(dataset_id, name), version))
            _remove_unreferenced(folder, existing, totals)


def _remove_unreferenced(folder: Path, existing: IdIndex | None, totals: _Totals) -> None:
    """Remove the thumbnails in a folder, except those of existing ids; None removes all."""
    files = disk.walk_files(folder)
    while group := [path for path, _ in islice(files, _FILES)]:
        _remove_partial((path for path in group if path.suffix == ".partial"), totals)
        thumbnails = [path for path in group if path.suffix == ".jpg" and is_id(path.name[:_ID_LENGTH])]
        existing_ids = (
            [False] * len(thumbnails)
            if existing is None
            else existing.contains([path.name[:36] for path in thumbnails])
        )
        for path, exists in zip(thumbnails, existing_ids, strict=True):
            if not exists:
                totals.freed_bytes += disk.remove_file(path)
                totals.thumbnails += 1


def _remove_partial(files: Iterator[Path], totals: _Totals) -> None:
    """Remove incomplete files that are older than an hour."""
    for path in files:
        with suppress(OSError):  # it was completed or removed meanwhile
            if path.lstat().st_mtime < time.time() - _PARTIAL_S:
                totals.freed_bytes += disk.remove_file(path)
                totals.partial_files += 1


def _catalog_bytes(context: Context) -> int:
    layout = context.layout
    return sum(
        status.st_size for path, status in disk.files_in(layout.root) if path.name.startswith(layout.catalog.name)
    )


def clean_expired_uploads(context: Context) -> None:
    """Remove the upload transactions that nobody changed for seven days, with their files; never raises.

    If no transaction has expired, it costs one query of the catalog.
    """
    with suppress(Exception):  # vacuum tries again, and reports what fails
        limits = _limits(context, None)
        for dataset_id in set(remove_expired(context)):
            with suppress(Exception):
                _clean_uploads(context, dataset_id, limits, _Totals())


class AutoClean:
    """Removal of superseded versions after a commit, at most as often as the settings allow; it never raises.

    The lists of processed upload transactions are removed after each commit. If nothing is superseded, both cost a
    query of the catalog each.

    Args:
        context: the open workspace.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = forks.Lock()
        self._last: dict[str, float] = {}

    def __call__(self, dataset_id: str) -> None:
        """Remove superseded versions of a dataset, and lists of processed upload transactions."""
        with suppress(Exception):  # vacuum tries again
            remove_processed(self._context, dataset_id)
        if self._is_due(dataset_id):
            try:
                self._clean(dataset_id)
            except Exception as error:  # the change is committed; removal is tried again after the next commit
                _LOG.info("superseded versions of dataset %s are not removed: %s", dataset_id, error)

    def _is_due(self, dataset_id: str) -> bool:
        now = time.monotonic()
        with self._lock:
            is_due = now - self._last.get(dataset_id, -math.inf) >= self._context.settings.clean_every_s
            if is_due:
                self._last[dataset_id] = now
        return is_due

    def _clean(self, dataset_id: str) -> None:
        limits = _limits(self._context, None)
        with self._context.catalog.read() as connection:
            if not has_superseded(connection, dataset_id, limits):
                return
        removals = _choose_superseded(self._context, dataset_id, limits)
        for path, versions in removals.versions.items():
            _LOG.debug("%s: removing %d superseded versions", path, len(versions))
            remove_versions(path, versions)
        for path in removals.folders:
            disk.remove_tree(path)
