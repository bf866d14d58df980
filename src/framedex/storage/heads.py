"""A cache of the heads of datasets."""

from dataclasses import dataclass

import sqlalchemy as sa

from framedex.core.lru_cache import LruCache
from framedex.storage.datasets import early, get_roots, head
from framedex.storage.generation import Generation
from framedex.storage.row_values import WrongValue

_KEPT = 64
_HEAD = "SELECT head FROM datasets WHERE id = ?"


@dataclass(frozen=True)
class Head:
    """The state of a dataset that readers see.

    Attributes:
        generation: the versions of its tables.
        roots: its source roots, by number.
    """

    generation: Generation
    roots: tuple[str, ...]


class Heads:
    """The most recently read heads. Safe to share between threads.

    A committed generation never changes. So each read queries only the id of the head and the source roots, which a
    relocation changes without a commit, and takes the rest from the cache.
    """

    def __init__(self) -> None:
        self._cached: LruCache[str, Generation] = LruCache(_KEPT)

    def read(self, connection: sa.Connection, dataset_id: str) -> Head | None:
        """Return a dataset's head in the transaction of a connection; None before the first commit."""
        name = connection.exec_driver_sql(_HEAD, (dataset_id,)).scalar()
        if name is None:
            return None
        if (generation := self._cached.get(name)) is None:
            generation = head(connection, dataset_id)
            if generation is None:
                raise WrongValue(f"the head of dataset {dataset_id} is missing")
            self._cached.put(name, generation)
        return Head(generation, tuple(get_roots(connection, dataset_id)))

    def read_early(self, connection: sa.Connection, dataset_id: str) -> Head | None:
        """Return the rows that the creation of a dataset without a head has read so far; None before the first."""
        generation = early(connection, dataset_id)
        return None if generation is None else Head(generation, tuple(get_roots(connection, dataset_id)))
