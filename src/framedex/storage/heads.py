"""The heads of datasets, as often as they are asked for."""

from dataclasses import dataclass

import sqlalchemy as sa

from framedex.lru_cache import LruCache
from framedex.records import Generation
from framedex.storage.datasets import get_roots, head

_KEPT = 64
_HEAD = "SELECT head FROM datasets WHERE id = ?"


@dataclass(frozen=True)
class Head:
    """What readers see of a dataset.

    Attributes:
        generation: the versions of its tables.
        roots: its source roots, by number.
    """

    generation: Generation
    roots: tuple[str, ...]


class Heads:
    """The heads that were read last. Safe to share between threads.

    A generation never changes once it is committed, and source roots change only with one. So each reading asks for
    the head's name alone, and takes the rest from memory where it is known.
    """

    def __init__(self) -> None:
        self._known: LruCache[str, Head] = LruCache(_KEPT)

    def read(self, connection: sa.Connection, dataset_id: str) -> Head | None:
        """Return a dataset's head as a connection sees it; None before the first commit."""
        name = connection.exec_driver_sql(_HEAD, (dataset_id,)).scalar()
        if name is None:
            return None
        if (known := self._known.get(name)) is not None:
            return known
        generation = head(connection, dataset_id)
        assert generation is not None, "the connection sees one state"
        found = Head(generation, tuple(get_roots(connection, dataset_id)))
        self._known.put(name, found)
        return found
