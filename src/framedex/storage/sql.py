"""The one door to DuckDB: queries over Arrow relations, without access to files or the network."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


class Sql:
    """Runs statements. Safe to share between threads: each has a connection of its own."""

    def __init__(self) -> None:
        self._local = threading.local()

    def query(self, text: str, params: Sequence[Any], relations: Mapping[str, Any]) -> pa.Table:
        """Return the result of a statement.

        Args:
            text: one statement, with ``$1``, ``$2``… where values go.
            params: the values.
            relations: Arrow tables or readers, by the names that the statement uses. A reader is used up.
        """
        connection = self._connection()
        for name, relation in relations.items():
            connection.register(name, relation)
        try:
            # A statement of no parameters takes none, not an empty list.
            return connection.sql(text, params=list(params) or None).to_arrow_table()
        finally:
            for name in relations:
                connection.unregister(name)

    def _connection(self) -> Any:
        if not hasattr(self._local, "connection"):
            import duckdb

            self._local.connection = duckdb.connect(
                ":memory:",
                config={
                    "enable_external_access": "false",
                    "autoload_known_extensions": "false",
                    "autoinstall_known_extensions": "false",
                    "preserve_insertion_order": "true",
                },
            )
        return self._local.connection
