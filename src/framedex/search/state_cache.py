"""What searches of text made of the states of a dataset that were searched last."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from framedex import forks
from framedex.lru_cache import LruCache
from framedex.progress import ShareProgress
from framedex.storage.column_keys import columns_key
from framedex.storage.media import Media

"""Called with the share of the texts that is indexed, in [0, 1]; raises to stop."""
State = TypeVar("State")
_MOST_STATES, _MOST_NAMES = 3, 64  # that are held in memory


class StateCache(Generic[State]):
    """States of one dataset. Safe to share between threads.

    Args:
        columns: what a state depends on: most changes of a dataset leave it as it is.
        make: makes one; called by one thread at a time, which others wait for.
    """

    def __init__(self, columns: Sequence[str], make: Callable[[Media, ShareProgress | None], State]) -> None:
        self._columns, self._make = columns, make
        self._making = forks.Lock()
        self._names: LruCache[tuple[str, int], Hashable] = LruCache(_MOST_NAMES)
        self._states: LruCache[Hashable, State] = LruCache(_MOST_STATES)

    def at(self, media: Media, progress: ShareProgress | None) -> State:
        """Return a state; who asks for one that is known does not wait for others."""
        name = self._name(media)
        if (state := self._states.get(name)) is not None:
            return state
        with self._making:
            if (state := self._states.get(name)) is not None:
                return state
            state = self._make(media, progress)
            self._states.put(name, state)
            return state

    def _name(self, media: Media) -> Hashable:
        generation = media.generation.id, media.table.version
        if (known := self._names.get(generation)) is not None:
            return known
        name = columns_key(media.table, self._columns)
        self._names.put(generation, name)
        return name
