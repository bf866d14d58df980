"""Watching databases for commits of any process, at the cost of a few microseconds a look."""

import sqlite3
from contextlib import suppress

from framedex.core import forks
from framedex.storage.database import Database


class DataVersion:
    """The version of a database, which changes with each commit of another connection, in this process or another one.

    It is SQLite's ``PRAGMA data_version``, of a connection that does nothing else.

    Args:
        database: the database to watch.
    """

    def __init__(self, database: Database) -> None:
        self._path, self._version = database.path, -1
        self._connection: sqlite3.Connection | None = None
        self.gate = forks.Gate()
        forks.close_before_forks(self)

    def has_changed(self) -> bool:
        """Return whether the database may have changed since the last call; True at first, and if that is not known."""
        with self.gate.using():
            try:
                if self._connection is None:
                    self._connection, self._version = self._open(), -1
                (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                self.close_idle()
                return True
            before, self._version = self._version, version
            return bool(version != before)

    def close_idle(self) -> None:
        """Close the connection; the next look opens it again."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection for good."""
        with self.gate.using():
            self.close_idle()

    def _open(self) -> sqlite3.Connection:
        uri = self._path.absolute().as_uri() + "?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=5.0, check_same_thread=False, isolation_level=None)
