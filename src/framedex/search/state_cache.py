"""What searches of text made of the states of a dataset that were searched last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

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
        self._making, self._lock = threading.Lock(), threading.Lock()
        self._names: OrderedDict[tuple[str, int], Hashable] = OrderedDict()
        self._states: OrderedDict[Hashable, State] = OrderedDict()

    def at(self, media: Media, progress: ShareProgress | None) -> State:
        """Return a state; who asks for one that is known does not wait for others."""
        name = self._name(media)
        if (state := self._known(name)) is not None:
            return state
        with self._making:
            if (state := self._known(name)) is not None:
                return state
            state = self._make(media, progress)
            with self._lock:
                self._states[name] = state
                while len(self._states) > _MOST_STATES:
                    self._states.popitem(last=False)
            return state

    def _name(self, media: Media) -> Hashable:
        generation = media.generation.id, media.table.version
        with self._lock:
            if generation in self._names:
                return self._names[generation]
        name = columns_key(media.table, self._columns)
        with self._lock:
            self._names[generation] = name
            while len(self._names) > _MOST_NAMES:
                self._names.popitem(last=False)
        return name

    def _known(self, name: Hashable) -> State | None:
        with self._lock:
            if name in self._states:
                self._states.move_to_end(name)
            return self._states.get(name)
