"""The catalog: opening it, bringing its schema up to date, and its transactions."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from framedex.atomic import atomic_file
from framedex.errors import FormatTooNew, ReadOnly, WorkspaceError
from framedex.storage.schema import metadata

HEAD_REVISION = "0002"
# The table in which Alembic keeps a database's revision.
_ALEMBIC_VERSION = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True, nullable=False)
)
_KNOWN_REVISIONS = frozenset({"0001", "0002"})
_MIGRATING = threading.Lock()  # Alembic keeps the migration that runs in a variable of the process


class Catalog:
    """An open catalog. Reading needs no lock; writing takes one short transaction at a time.

    Attributes:
        read_only: whether writing is refused.
    """

    def __init__(self, engine: sa.Engine, path: Path, *, read_only: bool) -> None:
        self._engine, self._path = engine, path
        self.read_only = read_only

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a connection that sees one consistent state of the catalog."""
        with self._own_errors("read"), self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Yield a connection whose changes are all kept, or none if the block raises.

        Raises:
            ReadOnly: the workspace was opened for reading.
        """
        if self.read_only:
            raise ReadOnly(f"{self._path} was opened for reading; nothing was changed")
        with self._own_errors("write"), self._engine.connect() as connection:
            # SQLite takes the write lock at once, so that two writers queue up instead of failing half-way.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def shrink(self) -> None:
        """Give back what the file and its log have more than they hold, unless others are using them."""
        with suppress(sa.exc.OperationalError), self._engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _own_errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            raise WorkspaceError(f"cannot {verb} the catalog {self._path}: {error.orig}") from error

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def open_catalog(path: Path, *, read_only: bool) -> Catalog:
    """Open the catalog at *path*, creating it or bringing its schema up to date where that is needed.

    Raises:
        WorkspaceError: the file is no catalog, or it is missing and must not be created.
        FormatTooNew: a newer version of Framedex changed its schema.
    """
    if not path.exists():
        if read_only:
            raise WorkspaceError(f"{path} is missing")
        if any((path.parent / "datasets").glob("*")):
            raise WorkspaceError(f"{path} is missing, but there are datasets beside it; restore it from a copy")
        _create(path)
    if not path.stat().st_size:  # SQLite would take it for a new one
        raise WorkspaceError(f"{path} is not a Framedex catalog: it is empty; restore it from a copy")
    engine = _engine(path, read_only=read_only)
    try:
        _check_revision(engine, path, read_only=read_only)
    except BaseException:
        engine.dispose()
        raise
    return Catalog(engine, path, read_only=read_only)


def _engine(path: Path, *, read_only: bool) -> sa.Engine:
    url = sa.URL.create("sqlite", database=f"file:{_quoted(path)}", query=_query(path, read_only=read_only))
    engine = sa.create_engine(url, connect_args={"timeout": 60, "check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are ours: see Catalog.write
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        if not read_only:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    return engine


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _query(path: Path, *, read_only: bool) -> dict[str, str]:
    if not read_only:
        return {"uri": "true", "mode": "rw"}
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if os.access(path.parent, os.W_OK) or shared.exists():
        return {"uri": "true", "mode": "ro"}
    if log.exists():
        raise WorkspaceError(f"{path} has a log without its index, which cannot be made here; open it for writing once")
    # In a folder that cannot be written SQLite cannot make its shared-memory file; nobody writes there at present.
    return {"uri": "true", "mode": "ro", "immutable": "1"}


def _create(path: Path) -> None:
    """Build the catalog beside its place and put it there whole; the first of two processes or threads wins."""
    with atomic_file(path, put=_put) as partial:
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(partial)))
        try:
            with engine.begin() as connection:
                metadata.create_all(connection)
                _ALEMBIC_VERSION.create(connection)
                connection.execute(_ALEMBIC_VERSION.insert().values(version_num=HEAD_REVISION))
        except sa.exc.DatabaseError as error:
            raise WorkspaceError(f"cannot create the catalog {path}: {error.orig}") from error
        finally:
            engine.dispose()


def _put(partial: Path, path: Path) -> None:
    """Give a file its name, unless one of that name is there already."""
    try:
        os.link(partial, path)
    except FileExistsError:
        return
    except OSError:  # the file system has no links
        if not path.exists():
            partial.replace(path)


def migrate(engine: sa.Engine) -> None:
    """Bring a catalog's schema to the newest revision, or build it in an empty database.

    New catalogs are made from the tables in code instead, which takes a tenth of the time; a test holds that both
    ways lead to the same schema.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "framedex.storage:migrations")
    with _MIGRATING, engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _check_revision(engine: sa.Engine, path: Path, *, read_only: bool) -> None:
    try:
        with engine.connect() as connection:
            revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    except sa.exc.DatabaseError as error:
        raise WorkspaceError(f"{path} is not a Framedex catalog: {error.orig}") from error
    if revision == HEAD_REVISION:
        return
    if revision not in _KNOWN_REVISIONS:
        raise FormatTooNew(
            f"{path} has schema revision {revision!r}; this Framedex knows up to {HEAD_REVISION!r}: "
            "install a newer Framedex"
        )
    if read_only:
        raise ReadOnly(f"{path} has the older schema revision {revision!r}; open it once for writing to update it")
    migrate(engine)
