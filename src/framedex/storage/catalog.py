"""The catalog of a workspace: the database with all small transactional data about datasets."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from framedex.core import forks
from framedex.errors import WorkspaceError
from framedex.records import DatasetStatus
from framedex.storage.database import Database
from framedex.storage.database_schema import Schema, create_database
from framedex.storage.manifest import TransactionManifests, note_change, unsettled
from framedex.storage.schema import datasets, metadata
from framedex.storage.sqlite_errors import LITTLE_BYTES, free_bytes
from framedex.storage.turns import Turns

CATALOG = Schema(
    "catalog",
    metadata,
    "framedex.storage:migrations",
    ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011"),
)
_LOG = logging.getLogger(__name__)
_RESERVE_BYTES = LITTLE_BYTES


class Catalog(Database):
    """An open catalog, whose transactions also write the manifests of the datasets that they change.

    Args:
        path: the catalog file.
        read_only: refuse all writes.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        super().__init__(path, CATALOG, read_only=read_only)
        self._dataset_turns: defaultdict[str, Turns] = defaultdict(Turns)
        self._dataset_lock = forks.Lock()

    def turns_of(self, dataset_id: str) -> Turns:
        """Return the order in which threads of this process write the tables of a dataset."""
        with self._dataset_lock:
            return self._dataset_turns[dataset_id]

    @contextmanager
    def _committing(self, connection: sa.Connection) -> Iterator[Callable[[], None]]:
        manifests = TransactionManifests(connection, self._path.parent / "datasets")

        def commit() -> None:
            manifests.write()
            connection.commit()

        try:
            yield commit
        except BaseException:
            manifests.discard()
            raise
        manifests.confirm()

    def settle_manifests(self) -> None:
        """Write missing manifests, and those of datasets whose last commit was interrupted before its confirmation.

        A manifest that cannot be written now, for example on a full disk, is written the next time.
        """
        folder = self._path.parent / "datasets"
        with self.read() as connection:
            described = sa.or_(datasets.c.head.is_not(None), datasets.c.status == DatasetStatus.DRAFT)
            dataset_ids = list(connection.execute(sa.select(datasets.c.id).where(described)).scalars())
        for dataset_id in unsettled(folder, dataset_ids):
            _LOG.info("the manifest of dataset %s is written again, as it lacks the last commit", dataset_id)
            with suppress(WorkspaceError), self.write() as connection:
                note_change(connection, dataset_id)

    @contextmanager
    def reserve_freed(self) -> Iterator[None]:
        """Release the reserved bytes on a full disk for the duration of a block, because deletions need space, too.

        The log of earlier transactions gives up its space, too.
        """
        if free_bytes(self._path) < _RESERVE_BYTES:
            with suppress(OSError):
                _reserve(self._path).unlink()
            self.empty_log()
        try:
            yield
        finally:
            self.keep_reserve()

    def keep_reserve(self) -> bool:
        """Reserve some bytes of the disk for :meth:`reserve_freed`, if enough are free; return whether it has them."""
        path = _reserve(self._path)
        if not self.read_only and not path.exists() and free_bytes(self._path) >= 4 * _RESERVE_BYTES:
            with suppress(OSError):
                path.write_bytes(bytes(_RESERVE_BYTES))
        return path.exists()

    def renew(self) -> None:
        """Refuse writes in the child of a fork: tasks, threads and turns belong to the parent."""
        super().renew()
        self._dataset_turns = defaultdict(Turns)


def open_catalog(path: Path, *, read_only: bool) -> Catalog:
    """Open the catalog at *path*; create it or migrate its schema if necessary.

    Raises:
        WorkspaceError: the file is not a catalog, or it is missing and must not be created.
        FormatTooNew: a newer version of Framedex changed its schema.
    """
    if not path.exists():
        if read_only:
            raise WorkspaceError(f"{path} is missing")
        if any((path.parent / "datasets").glob("*")):
            raise WorkspaceError(
                f"{path} is missing, but there are datasets beside it; `framedex recover {path.parent}` makes it again"
            )
        create_catalog(path)
    if not path.stat().st_size:  # SQLite would treat it as a new database
        raise WorkspaceError(f"{path} is not a Framedex catalog: it is empty; restore it from a copy")
    catalog = Catalog(path, read_only=read_only)
    try:
        catalog.check_revision()
    except BaseException:
        catalog.close()
        raise
    catalog.keep_reserve()
    return catalog


def _reserve(path: Path) -> Path:
    return path.with_name(f"{path.name}-reserve")


def create_catalog(path: Path, fill: Callable[[sa.Connection], None] = lambda _connection: None) -> None:
    """Build a complete catalog, as :func:`create_database` does."""
    create_database(path, CATALOG, fill)
