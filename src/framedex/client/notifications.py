"""Notifications of the user of a client, as pages and as a stream."""

import json
import time
from collections.abc import Iterator

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.errors import Unavailable
from framedex.records import Notification, NotificationPage

_PAUSE_S = 3.0
_SILENCE_S = 15.0


class ClientNotifications:
    """The notifications of the user, of alerts of saved views."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self, *, limit: int = 20, offset: int = 0, unread_only: bool = False, dataset_id: str | None = None
    ) -> NotificationPage:
        """Return a page of notifications, newest first.

        Args:
            limit: of the page, 1 to 100.
            offset: of the page.
            unread_only: leave out those that were read.
            dataset_id: those of one dataset; None for all.

        Raises:
            InvalidInput: the limit or the offset is out of range.
        """
        query = {"limit": limit, "offset": offset, "unread_only": unread_only, "dataset_id": dataset_id}
        return NotificationPage.model_validate(self._connection.json(calls.NOTIFICATIONS, query=query))

    def unread_count(self, dataset_id: str | None = None) -> int:
        """Return the number of notifications that were not read, of one dataset or of all."""
        return int(self._connection.json(calls.UNREAD_COUNT, query={"dataset_id": dataset_id})["count"])

    def read(self, notification_id: str) -> None:
        """Mark a notification as read.

        Raises:
            NotFound: the user has no such notification, or it was read before.
        """
        self._connection.json(calls.READ_NOTIFICATION, notification_id=notification_id)

    def read_all(self, dataset_id: str | None = None) -> int:
        """Mark notifications as read, of one dataset or of all; return their number."""
        return int(self._connection.json(calls.READ_NOTIFICATIONS, query={"dataset_id": dataset_id})["count"])

    def stream(self, dataset_id: str | None = None, *, last_id: str | None = None) -> Iterator[Notification]:
        """Yield notifications as they come, without end. A connection that breaks is made again, and nothing is lost.

        Args:
            dataset_id: those of one dataset; None for all.
            last_id: the notification after which to begin; None for those that come from now on.

        Raises:
            NotFound: there is no such dataset, or the user may not view it.
            NotAuthenticated: the key is not valid, or not any more.
            TooManyAttempts: the user has 5 streams.
            Unavailable: the service cannot be reached at first.
        """
        is_first = True
        while True:
            try:
                for name, data in self._events(dataset_id, last_id):
                    is_first = False
                    if name == "notification":
                        found = Notification.model_validate(data)
                        last_id = found.id
                        yield found
            except Unavailable:
                if is_first:
                    raise
            time.sleep(_PAUSE_S)

    def _events(self, dataset_id: str | None, last_id: str | None) -> Iterator[tuple[str, object]]:
        """Yield the names and the data of the events of one connection."""
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        query, name = {"dataset_id": dataset_id}, ""
        with self._connection.lines(
            calls.NOTIFICATION_STREAM, query=query, headers=headers, silence_s=_SILENCE_S
        ) as lines:
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))
