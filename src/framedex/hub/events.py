"""Events for users: changes of what they may view, read by one thread for all listeners."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from framedex.access import Actor
from framedex.api.changes import WorkspaceChanges
from framedex.errors import Error
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.hub.listeners import Listeners
from framedex.hub.notifications import Notifications
from framedex.records import Record

logger = logging.getLogger("framedex.hub")

MOST_WAITING = 100
"""The maximum number of events that wait for a listener; the oldest are dropped."""
_PERIOD_S = 1.0


class Event(Record):
    """An event: ``task``, ``head`` or ``notification``, with its record; ``lost`` if earlier events were dropped."""

    name: str
    data: dict[str, Any]


class Listener:
    """A listener of a user, with the events that wait for it.

    Args:
        actor: the user.
        wake: called on another thread when there are events.

    Attributes:
        visible: the ids of the datasets that the user could view at the last event.
    """

    def __init__(self, actor: Actor, wake: Callable[[], None]) -> None:
        self.actor, self._wake = actor, wake
        self._waiting: deque[Event] = deque()
        self._lost = False
        self._lock = threading.Lock()
        self.visible: Collection[str] = ()

    @property
    def user_id(self) -> str | None:
        """The id of the user."""
        return self.actor.user_id

    def put(self, events: Collection[Event]) -> None:
        """Add events."""
        if not events:
            return
        with self._lock:
            self._waiting.extend(events)
            while len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                self._lost = True
        self._wake()

    def take(self) -> list[Event]:
        """Return the events that wait, oldest first, and forget them."""
        with self._lock:
            events, lost = list(self._waiting), self._lost
            self._waiting.clear()
            self._lost = False
        return [Event(name="lost", data={}), *events] if lost else events


class Events:
    """The events of a hub. One thread reads the changes of the workspace while there are listeners.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
        notifications: what users were notified of.
    """

    def __init__(self, context: HubContext, datasets: Datasets, notifications: Notifications) -> None:
        self._context, self._datasets, self._notifications = context, datasets, notifications
        self._listeners = Listeners[Listener]("streams of events")
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def listen(self, actor: Actor, wake: Callable[[], None] = lambda: None) -> Listener:
        """Return a listener of a user to all that changes from now on; :meth:`leave` ends it.

        Args:
            actor: the user.
            wake: called on another thread when there are events.

        Raises:
            TooManyAttempts: the user has 5 listeners.
        """
        listener = Listener(actor, wake)
        listener.visible = {each.id for each in self._datasets.visible(actor)}
        self._listeners.add(listener)
        with self._lock:
            if self._thread is None:
                changes = WorkspaceChanges(self._context.workspace)
                self._thread = threading.Thread(target=self._run, args=(changes,), name="framedex-events", daemon=True)
                self._thread.start()
        return listener

    def leave(self, listener: Listener) -> None:
        """End a listener."""
        self._listeners.remove(listener)

    def close(self) -> None:
        """End the thread; a look that has begun is awaited for up to a second."""
        self._closed.set()
        if (thread := self._thread) is not None:
            thread.join(1.0)

    def _run(self, changes: WorkspaceChanges) -> None:
        while not self._closed.wait(_PERIOD_S):
            with self._lock:
                listeners = self._listeners.present()
                if not listeners:
                    self._thread = None
                    return
            try:
                self._look(changes, listeners)
            except Error as error:
                logger.warning("events cannot be read: %s", error)
            except Exception:
                logger.exception("events cannot be read")

    def _look(self, changes: WorkspaceChanges, listeners: Collection[Listener]) -> None:
        found = changes.look()
        events = [
            *((each.dataset_id, Event(name="task", data=each.model_dump(mode="json"))) for each in found.tasks),
            *((each.dataset_id, Event(name="head", data=each.model_dump(mode="json"))) for each in found.heads),
            *(
                (each.dataset_id, Event(name="notification", data=each.model_dump(mode="json")))
                for each in found.alerts
            ),
        ]
        if not events:
            return
        if found.alerts:  # who reads the notifications after the event finds them
            with suppress(Error):
                self._notifications.deliver()
        for listener in listeners:
            visible = self._visible(listener)
            listener.put([event for dataset_id, event in events if dataset_id in visible])

    def _visible(self, listener: Listener) -> Collection[str]:
        """Return the datasets that a listener's user may view, and those that it could until they were deleted."""
        present = {each.id for each in self._datasets.visible(listener.actor)}
        existing = {each.id for each in self._context.workspace.datasets(all_namespaces=True)}
        deleted = set(listener.visible) - existing
        listener.visible = present
        return present | deleted
