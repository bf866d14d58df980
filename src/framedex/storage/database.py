"""SQLite databases of a workspace: opening, transactions and copies."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

import sqlalchemy as sa

from framedex.core import forks
from framedex.core.progress import ShareProgress
from framedex.errors import Error, FormatTooNew, InvalidInput, ReadOnly, WorkspaceError
from framedex.storage.database_schema import Schema, migrate
from framedex.storage.row_values import WrongValue, stored_json
from framedex.storage.shared_statements import COMPILED, URL
from framedex.storage.sqlite_errors import OF_THE_DISK, base_code, failure_reason
from framedex.storage.turns import Turns

_WAIT_S = 60.0
_IDLE = 16  # connections that stay open
_PAGES = 1024  # of a copy between two reports of its progress
_UNSAFE = set[Path]()  # databases that were in use while this process was forked


class Database:
    """An open database. Reads never wait; writes run one short transaction at a time.

    Threads write in the order of their requests. After a fork the child can read but not write.

    Args:
        path: the file.
        schema: its schema.
        read_only: refuse all writes.
    """

    def __init__(self, path: Path, schema: Schema, *, read_only: bool) -> None:
        self._path, self._schema, self._read_only, self._is_forked = path, schema, read_only, False
        self._engine, self._turns, self.gate = _engine(path, read_only=read_only), Turns(), forks.Gate()
        forks.close_before_forks(self)
        forks.renew_after_forks(self)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def read_only(self) -> bool:
        """True if the database refuses writes."""
        return self._read_only or self._is_forked

    def check_writable(self) -> None:
        """Check that the catalog accepts writes.

        Raises:
            ReadOnly: the workspace was opened for reading.
            WorkspaceError: it was opened before a fork, by the parent of this process.
        """
        if self._is_forked:
            raise WorkspaceError(f"{self._path} {forks.REASON}; nothing was changed")
        if self._read_only:
            raise ReadOnly(f"{self._path} was opened for reading; nothing was changed")

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a connection with a consistent view of the catalog."""
        with self._connection("read") as connection:
            connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction, which is committed at the end or rolled back if the block raises.

        Args:
            durable: whether it is on the disk after the block. Else it is lost if the power fails before a later
                durable transaction, as suits what concerns running processes alone.

        Raises:
            ReadOnly: the workspace was opened for reading.
            WorkspaceError: it was opened before a fork, or the database cannot be written.
        """
        self.check_writable()
        # Wait for the turn before opening a connection: the thread whose turn it is may need a second one to read.
        with self._turn(), self._connection("write") as connection:
            if (fault := _fault_of(connection)) is not None:
                raise WorkspaceError(f"cannot write {self._name}: {failure_reason(fault, self._path)}")
            with _unsynced(connection) if not durable else nullcontext():
                # SQLite takes the write lock at once, so that two writers queue up instead of failing half-way.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    with self._committing(connection) as commit:
                        yield connection
                        commit()
                except BaseException:
                    connection.rollback()
                    raise

    @contextmanager
    def _committing(self, connection: sa.Connection) -> Iterator[Callable[[], None]]:
        """Yield the function that commits a transaction."""
        yield connection.commit

    @property
    def _name(self) -> str:
        return f"the {self._schema.noun} {self._path}"

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            with self._turns.turn(timeout_s=_WAIT_S):
                yield
        except TimeoutError as error:
            raise WorkspaceError(f"cannot write {self._name}: {error}") from error

    @contextmanager
    def _connection(self, verb: str) -> Iterator[sa.Connection]:
        """Yield a connection; convert errors of the engine to our own."""
        with _own_errors(f"cannot {verb} {self._name}", self._path), self.gate.using():
            self._check_safe()
            with self._engine.connect() as connection:
                yield connection
                if _fault_of(connection) is not None:  # a new connection may succeed once the disk has space
                    connection.invalidate()

    def _check_safe(self) -> None:
        if self._path in _UNSAFE:
            raise WorkspaceError(f"{self._path} was in use {forks.UNSAFE}")

    def shrink(self) -> None:
        """Shrink the file and its log to the space that they need, unless other connections use them."""
        with suppress(WorkspaceError), self._connection("shrink") as connection:
            connection.exec_driver_sql("VACUUM")
        self.empty_log()

    def empty_log(self) -> None:
        """Write the log into the file, unless other connections use it; the log then takes no space."""
        with suppress(WorkspaceError), self._connection("shrink") as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def copy_to(self, path: Path, progress: ShareProgress = lambda _share: None) -> None:
        """Write a copy of the database, as it is at one moment, to a new file, while others read and write.

        Args:
            path: the file.
            progress: called with the share that is done; raises to stop.

        Raises:
            WorkspaceError: the database cannot be read, or the file cannot be written.
        """
        with self._connection("copy") as connection, _own_errors(f"cannot write {path}", path):
            # All steps of the copy read the state at which this transaction began.
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").all()
            source: Any = connection.connection.dbapi_connection
            with closing(sqlite3.connect(path)) as target:
                source.backup(
                    target, pages=_PAGES, progress=lambda _code, left, total: progress(1 - left / max(total, 1))
                )

    def seal(self) -> None:
        """Leave the file without free pages and without a log, and close it; nobody else has it open.

        Raises:
            WorkspaceError: it cannot be written.
        """
        with self._connection("shrink") as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        self.close()

    def log_state(self) -> tuple[int, int]:
        """Return a value that differs after a transaction; seldom, after two in a few milliseconds, it does not."""
        with suppress(FileNotFoundError):
            status = self._path.with_name(f"{self._path.name}-wal").stat()
            return status.st_mtime_ns, status.st_size
        return 0, 0

    def check_revision(self) -> None:
        """Check that this version supports the schema, and migrate it if it is older.

        Raises:
            WorkspaceError: the file is no such database, or cannot be opened.
            FormatTooNew: a newer version of Framedex changed the schema.
            ReadOnly: an older version wrote it, and it was opened for reading only.
        """
        with _own_errors(f"cannot open {self._path}", self._path), self.gate.using():
            self._check_safe()
            self._check_revision()

    def close_idle(self) -> None:
        """Close unused connections; further ones are opened on demand."""
        self._engine.dispose()

    def renew(self) -> None:
        """Refuse writes in the child of a fork: threads and turns belong to the parent."""
        self._is_forked, self._turns = True, Turns()
        if not self.gate.is_safe:
            _UNSAFE.add(self._path)

    def close(self) -> None:
        """Close all connections."""
        with self.gate.using():
            self._engine.dispose()

    def __reduce__(self) -> NoReturn:
        """Refuse pickling, for the database and for all objects that hold it.

        Raises:
            InvalidInput: always.
        """
        raise InvalidInput(
            f"{str(self._path.parent)!r} is open and cannot be pickled; open the workspace in the worker"
        )

    def _check_revision(self) -> None:
        try:
            with self._engine.connect() as connection:
                revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
                if _fault_of(connection) is not None:
                    connection.invalidate()
        except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
            cause = error.orig if isinstance(error, sa.exc.DatabaseError) else error
            if base_code(cause) not in {*_DAMAGED, sqlite3.SQLITE_ERROR}:  # SQLITE_ERROR means a missing table
                raise
            raise WorkspaceError(f"{self._path} is not a Framedex {self._schema.noun}: {cause}") from error
        if revision == self._schema.newest:
            return
        if revision not in self._schema.revisions:
            raise FormatTooNew(
                f"{self._path} has schema revision {revision!r}; this Framedex knows up to {self._schema.newest!r}: "
                "install a newer Framedex"
            )
        if self.read_only:
            raise ReadOnly(
                f"{self._path} has the older schema revision {revision!r}; open it once for writing to update it"
            )
        migrate(self._engine, self._schema)


@contextmanager
def _unsynced(connection: sa.Connection) -> Iterator[None]:
    """Commit without syncing the log to disk in the block; the log stays consistent."""
    connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
    try:
        yield
    finally:
        connection.exec_driver_sql("PRAGMA synchronous=FULL")


class _Connection(sqlite3.Connection):
    """A connection to a database.

    Attributes:
        fault: the reason if the connection is limited to the file's content at opening; None if it reads and writes
            normally.
    """

    fault: sqlite3.OperationalError | None = None


def _fault_of(connection: sa.Connection) -> sqlite3.OperationalError | None:
    opened = connection.connection.dbapi_connection
    return opened.fault if isinstance(opened, _Connection) else None


def _engine(path: Path, *, read_only: bool) -> sa.Engine:
    # No limit: a writing thread opens a second connection for reads and must never wait for it.
    return sa.create_engine(
        URL,
        creator=lambda: _connect(path, read_only=read_only),
        poolclass=sa.pool.QueuePool,
        pool_size=_IDLE,
        max_overflow=-1,
        json_deserializer=stored_json,
        execution_options={"compiled_cache": COMPILED},
    )


def _connect(path: Path, *, read_only: bool) -> _Connection:
    query = _query(path, read_only=read_only)
    try:
        return _prepared(path, query, read_only=read_only)
    except sqlite3.OperationalError as error:
        # SQLite creates a log and its index even for reads. If neither exists, the file is complete.
        if base_code(error) not in OF_THE_DISK or _has_log(path):
            raise
        connection = _prepared(path, "mode=ro&immutable=1", read_only=True)
        connection.fault = error
        return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the journal mode of a database to WAL; wait while other processes set it at the same time.

    SQLite waits for no lock here: two connections that both change the mode would wait for each other.
    """
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if base_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _prepared(path: Path, query: str, *, read_only: bool) -> _Connection:
    connection = sqlite3.connect(
        f"file:{_quoted(path)}?{query}",
        uri=True,
        timeout=_WAIT_S,
        check_same_thread=False,
        isolation_level=None,  # Database.write controls transactions
        factory=_Connection,
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        if not read_only:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens all files needed for reading
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    """Return whether a database has changes in its log that are not yet in the file itself."""
    with suppress(FileNotFoundError):
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    return False


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _query(path: Path, *, read_only: bool) -> str:
    if not read_only:
        return "mode=rw"
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if os.access(path.parent, os.W_OK) or shared.exists():
        return "mode=ro"
    if log.exists():
        raise WorkspaceError(f"{path} has a log without its index, which cannot be made here; open it for writing once")
    # SQLite cannot create its shared-memory file in a read-only folder, so no process writes there at present.
    return "mode=ro&immutable=1"


_DAMAGED = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})


@contextmanager
def _own_errors(operation: str, path: Path) -> Iterator[None]:
    """Raise the engine's errors as WorkspaceError; constraint violations reach the caller unchanged.

    Args:
        operation: the beginning of the message.
        path: the database.
    """
    try:
        yield
    except (Error, sa.exc.IntegrityError, sa.exc.ProgrammingError):
        raise
    except WrongValue as error:
        raise WorkspaceError(
            f"{operation}: {error}; `framedex check` lists such values, and `framedex check --repair` rebuilds the rows"
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!r} is no text: {error.reason} at character {error.start}") from None
    except sa.exc.TimeoutError as error:
        raise WorkspaceError(f"{operation}: {error}") from error
    except sa.exc.DatabaseError as error:
        raise WorkspaceError(f"{operation}: {failure_reason(error.orig, path)}") from error
    except sqlite3.DatabaseError as error:
        raise WorkspaceError(f"{operation}: {failure_reason(error, path)}") from error
