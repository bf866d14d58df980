"""Copies of a catalog for a backup, with the manifests of its datasets, and the files that a copy names."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from framedex.core.progress import ShareProgress
from framedex.records import BackupDataset
from framedex.storage import datasets, export_rows, journal_rows, snapshot_rows, task_rows, upload_rows
from framedex.storage.catalog import Catalog
from framedex.storage.leases import forget_leases
from framedex.storage.manifest import note_change
from framedex.storage.retention import RetentionLimits, prune, read_retained, referenced_uploads
from framedex.storage.schema import BLOBS_ROOT


@dataclass(frozen=True)
class NamedFiles:
    """The files of a dataset that a catalog names.

    Attributes:
        record: the dataset.
        versions: the versions of its tables to which the head, snapshots and steps of the journal refer, by table.
        generations: the ids of these states.
        journal: the files of the journal.
        lists: the lengths of the lists of its upload transactions, by transaction.
        uploads: the ids of the uploads that tasks read, or may read when they are retried.
        roots: its source roots.
    """

    record: BackupDataset
    versions: dict[str, set[int]]
    generations: frozenset[str]
    journal: frozenset[str]
    lists: dict[int, int]
    uploads: frozenset[str]
    roots: tuple[str, ...]

    @property
    def dataset_id(self) -> str:
        """The id of the dataset."""
        return self.record.id

    @property
    def uploaded_roots(self) -> tuple[int, ...]:
        """The numbers of the roots of uploaded media."""
        return tuple(number for number, root in enumerate(self.roots) if root == BLOBS_ROOT)


def write_copy(catalog: Catalog, path: Path, progress: ShareProgress) -> None:
    """Write a copy of a catalog, as it is at one moment, and what no other process does into it.

    In the copy no task and no export runs, nobody has a lease, and superseded generations are gone. Beside it are the
    manifests of its datasets.

    Args:
        catalog: the catalog, which others may change meanwhile.
        path: of the copy; in a folder of its own.
        progress: called with the share that is done; raises to stop.

    Raises:
        WorkspaceError: the catalog cannot be read, or the copy cannot be written.
    """
    catalog.copy_to(path, progress)
    with open_copy(path) as copy, copy.write() as connection:
        task_rows.fail_interrupted(connection, every=True)
        task_rows.forget_checkpoints(connection)
        export_rows.fail_interrupted_exports(connection, every=True)
        forget_leases(connection)
        for dataset_id in datasets.dataset_names(connection):
            prune(connection, dataset_id, RetentionLimits.ago(0))
            note_change(connection, dataset_id)


@contextmanager
def open_copy(path: Path) -> Iterator[Catalog]:
    """Yield a copy of a catalog, which no other process uses."""
    with closing(Catalog(path, read_only=False)) as copy:
        yield copy


def named_files(connection: sa.Connection) -> list[NamedFiles]:
    """Return the files that a copy of a catalog names, by dataset, oldest first."""
    return [_files_of(connection, each.id) for each in reversed(datasets.list_datasets(connection))]


def still_names(connection: sa.Connection, files: NamedFiles) -> bool:
    """Return whether a catalog names the files of an earlier copy, but for those of the journal, so that none is gone.

    Rows go before files do, so files that were copied before a look at the rows belong together.
    """
    dataset_id = files.dataset_id
    generations = snapshot_rows.generation_ids(connection, dataset_id)
    lists = {each.record.id for each in upload_rows.list_uploads(connection, dataset_id) if each.list_bytes}
    uploads = referenced_uploads(connection, dataset_id, RetentionLimits.ago(0))
    return files.generations <= generations and files.lists.keys() <= lists and files.uploads <= uploads


def _files_of(connection: sa.Connection, dataset_id: str) -> NamedFiles:
    record = datasets.find_dataset(connection, dataset_id)
    retained = read_retained(connection, dataset_id, RetentionLimits.ago(0))
    head = retained.head
    return NamedFiles(
        BackupDataset(
            id=dataset_id,
            name=record.display_name,
            namespace=datasets.namespace_of(connection, dataset_id),
            n_media=0 if head is None else head.n_images,
            n_videos=0 if head is None else head.n_videos,
            n_objects=0 if head is None else head.n_objects,
            n_snapshots=len(snapshot_rows.list_snapshots(connection, dataset_id)),
        ),
        retained.versions,
        frozenset(each.id for each in retained.generations),
        frozenset(journal_rows.journal_files(connection, dataset_id)),
        {
            each.record.id: each.list_bytes
            for each in upload_rows.list_uploads(connection, dataset_id)
            if each.list_bytes
        },
        frozenset(referenced_uploads(connection, dataset_id, RetentionLimits.ago(0))),
        tuple(datasets.get_roots(connection, dataset_id)),
    )
