"""The feed of notifications: one thread that delivers alerts, and wakes those who listen for new notifications."""

import logging
import threading
from collections.abc import Callable

from framedex.access import Actor
from framedex.errors import Error
from framedex.hub.context import HubContext
from framedex.hub.listeners import Listeners
from framedex.hub.notifications import Notifications
from framedex.storage.data_versions import DataVersion
from framedex.storage.service_db import notifications as rows

logger = logging.getLogger("framedex.hub")

_PERIOD_S = 0.1
_AFTER_FAILURE_S = 1.0


class FeedListener:
    """A listener for new notifications of a user.

    Args:
        user_id: the user.
        wake: called on another thread when the user has new notifications.
    """

    def __init__(self, user_id: str, wake: Callable[[], None]) -> None:
        self.user_id, self.wake = user_id, wake


class Feed:
    """The feed of a hub.

    Its thread looks ten times a second whether a process has changed the catalog or the database of the service, which
    takes a few microseconds. Only after a change it reads: alerts that wait, and users who have new notifications. So
    the cost does not depend on the number of listeners.

    Args:
        context: the open parts of the hub.
        notifications: what users were notified of.
    """

    def __init__(self, context: HubContext, notifications: Notifications) -> None:
        self._context, self._notifications = context, notifications
        self._listeners = Listeners[FeedListener]("streams of notifications")
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="framedex-feed", daemon=True)
                self._thread.start()

    def listen(self, actor: Actor, wake: Callable[[], None] = lambda: None) -> FeedListener:
        """Return a listener to the notifications of an actor; :meth:`leave` ends it.

        Args:
            actor: the user.
            wake: called on another thread when there may be new notifications.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
            TooManyAttempts: the user has 5 listeners.
        """
        self._context.require_log_in(actor)
        assert actor.user_id is not None, "the actor is logged in"
        listener = FeedListener(actor.user_id, wake)
        self._listeners.add(listener)
        self.start()
        return listener

    def leave(self, listener: FeedListener) -> None:
        """End a listener."""
        self._listeners.remove(listener)

    def close(self) -> None:
        """End the thread; a delivery that has begun is awaited for up to a second."""
        self._closed.set()
        if (thread := self._thread) is not None:
            thread.join(1.0)

    def _run(self) -> None:
        catalog = DataVersion(self._context.workspace._context.catalog)
        database = DataVersion(self._context.database)
        last, pause_s = -1, 0.0
        has_alerts, has_news = False, False  # to be looked at, until that succeeds
        try:
            while not self._closed.wait(pause_s):
                pause_s = _PERIOD_S
                has_alerts = catalog.has_changed() or has_alerts
                has_news = database.has_changed() or has_news
                try:
                    if has_alerts:
                        has_news = self._notifications.deliver() > 0 or has_news
                        has_alerts = False
                    if has_news:
                        last = self._wake(last)
                        has_news = False
                except Exception as error:
                    _log(error)
                    pause_s = _AFTER_FAILURE_S
        finally:
            catalog.close()
            database.close()

    def _wake(self, last: int) -> int:
        """Call those whose users have notifications after a number, at first all; return the greatest number."""
        is_first = last < 0
        with self._context.database.read() as connection:
            users, last = rows.users_after(connection, last)
        for each in self._listeners.present():
            if is_first or each.user_id in users:
                each.wake()
        return last


def _log(error: Exception) -> None:
    if isinstance(error, Error):
        logger.warning("notifications cannot be delivered: %s", error)
    else:
        logger.error("notifications cannot be delivered", exc_info=error)
