"""Compiled SQL statements that all databases of a process share, so that each statement is compiled once.

SQLAlchemy keeps compiled statements for each engine. The key of a statement contains the engine's dialect, which is
compared by identity (2.0, ``sqlalchemy/sql/elements.py``, ``_compile_w_cache``). Compiling the statements of a
workspace takes longer than running them.
"""

from collections.abc import MutableMapping
from typing import Any

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_MOST = 1000  # statements
URL = "sqlite+framedex://"
"""The URL of an engine whose dialect is :class:`SharedDialect`."""


class SharedDialect(SQLiteDialect_pysqlite):
    """The dialect of SQLite; two of them are equal, so their engines must have the same options."""

    driver = "framedex"
    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


COMPILED: MutableMapping[Any, Any] = LRUCache(_MOST)
"""The compiled statements, as the option ``compiled_cache`` of an engine."""
registry.register("sqlite.framedex", __name__, SharedDialect.__name__)
