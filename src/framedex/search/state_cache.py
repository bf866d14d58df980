"""A cache of search indices by dataset state."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from framedex.core import forks
from framedex.core.lru_cache import LruCache
from framedex.core.progress import ShareProgress
from framedex.storage.column_keys import ColumnsKey, columns_key, extends
from framedex.storage.media import Media

"""Called with the share of the texts that is indexed, in [0, 1]; raises to stop."""
State = TypeVar("State")
_MOST_STATES, _MOST_NAMES = 3, 64  # limits of the cache


class StateCache(Generic[State]):
    """The indices of one dataset's most recently searched states. Safe to share between threads.

    Args:
        columns: the columns that a state depends on; changes of other columns keep the state valid.
        make: builds the index of a state; called by one thread at a time, while others wait. It also gets the last
            index that was built if the state has the same rows and further ones; else None.
    """

    def __init__(
        self, columns: Sequence[str], make: Callable[[Media, ShareProgress | None, State | None], State]
    ) -> None:
        self._columns, self._make = columns, make
        self._making = forks.Lock()
        self._names: LruCache[tuple[str, int], ColumnsKey] = LruCache(_MOST_NAMES)
        self._last: tuple[ColumnsKey, State] | None = None
        self._states: LruCache[Hashable, State] = LruCache(_MOST_STATES)

    def get(self, media: Media, progress: ShareProgress | None) -> State:
        """Return the index of the media's state; a cached one is returned without waiting for other threads."""
        name = self._name(media)
        if (state := self._states.get(name)) is not None:
            return state
        with self._making:
            if (state := self._states.get(name)) is not None:
                return state
            earlier = None if self._last is None or not extends(name, self._last[0]) else self._last[1]
            state = self._make(media, progress, earlier)
            self._states.put(name, state)
            self._last = name, state
            return state

    def _name(self, media: Media) -> ColumnsKey:
        generation = media.generation.id, media.table.version
        if (names := self._names.get(generation)) is not None:
            return names
        name = columns_key(media.table, self._columns)
        self._names.put(generation, name)
        return name
