"""The only access to DuckDB: queries over Arrow relations, without access to files or the network."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from framedex.core import forks
from framedex.core.time_limits import interrupted
from framedex.errors import WorkspaceError

_QUERIES = forks.Gate(1)  # a fork waits for the end of queries, which may have locked what all engines share


class _Engine:
    """The engine of this process. It starts with the first query, which takes as long as many queries."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._started: Any = None
        forks.renew_after_forks(self)

    def connect(self) -> Any:
        """Return a new connection, with relations of its own."""
        with self._lock:
            self._started = self._started or _start()
            return self._started.cursor()

    def renew(self) -> None:
        """Discard the engine in the child of a fork, where its threads do not exist."""
        forks.abandon(self._started)
        self._started = None


_ENGINE = _Engine()


class Sql:
    """Queries over Arrow data. Safe to share between threads: each uses its own connection."""

    def __init__(self) -> None:
        self._local = threading.local()
        forks.renew_after_forks(self)

    def query(self, text: str, params: Sequence[Any], relations: Mapping[str, Any]) -> pa.Table:
        """Return the result of a statement.

        Args:
            text: one statement, with ``$1``, ``$2``… for parameters.
            params: the values of the parameters.
            relations: Arrow tables or readers, by their names in the statement. A reader is consumed.

        Raises:
            WorkspaceError: a query ran when this process was forked.
            TimedOut: the time limit of the call has ended.
        """
        if not _QUERIES.is_safe:
            raise WorkspaceError(f"tables were queried {forks.UNSAFE}")
        connection = self._connection()
        for name, relation in relations.items():
            connection.register(name, relation)
        try:
            with _QUERIES.using(), interrupted(connection.interrupt):
                # A statement without parameters needs None instead of an empty list.
                return connection.sql(text, params=list(params) or None).to_arrow_table()
        finally:
            for name in relations:
                connection.unregister(name)

    def _connection(self) -> Any:
        if not hasattr(self._local, "connection"):
            self._local.connection = _ENGINE.connect()
        return self._local.connection

    def renew(self) -> None:
        """Discard the connections in the child of a fork; the next statement makes another one."""
        forks.abandon(self._local)
        self._local = threading.local()


def _start() -> Any:
    import duckdb

    return duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "preserve_insertion_order": "true",
        },
    )
