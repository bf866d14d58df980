"""The stream of the user's notifications."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Header, Request

from framedex.access import Action
from framedex.hub.feed import FeedListener
from framedex.service.actions import needs, routes
from framedex.service.parameters import Service
from framedex.service.state import ServiceState
from framedex.service.streams import EVENTS, EventStream, EventStreamResponse, event

router = routes("notifications")

_MOST = 100


class _Notifications(EventStream):
    """A listener to the notifications of a user that come after one of them, or from now on."""

    def __init__(self, service: ServiceState, request: Request, dataset_id: str | None, last_id: str | None) -> None:
        super().__init__(service, request)
        self._dataset_id, self._last_id = dataset_id, last_id
        self._number = 0
        self._listener: FeedListener | None = None

    def open(self) -> None:
        hub = self.service.hub
        if self._dataset_id is not None:
            hub.datasets.open(self.actor, self._dataset_id)
        self._listener = hub.feed.listen(self.actor, self.wake)
        try:
            self._number = hub.notifications.number_of(self.actor, self._last_id)
        except BaseException:
            self.close()
            raise
        if self._last_id is not None:
            self.wake()

    def close(self) -> None:
        if self._listener is not None:
            self.service.hub.feed.leave(self._listener)

    def take(self) -> Sequence[bytes]:
        found = self.service.hub.notifications.after(self.actor, self._number, self._dataset_id, limit=_MOST)
        if found:
            self._number = found[-1][0]
        if len(found) == _MOST:  # there may be more
            self.wake()
        return [event("notification", each.model_dump(mode="json"), event_id=each.id) for _, each in found]


async def _open_stream(
    request: Request,
    service: Service,
    dataset_id: UUID | None = None,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> AsyncIterator[EventStream]:
    chosen = None if dataset_id is None else str(dataset_id)
    async with _Notifications(service, request, chosen, last_event_id) as stream:
        yield stream


@router.get("/notifications/stream", status_code=200, response_class=EventStreamResponse, responses=EVENTS)
@needs(Action.OWN_ACCOUNT)
async def notification_stream(stream: Annotated[Any, Depends(_open_stream)]) -> EventStreamResponse:
    """Send the user's notifications as events ``notification``: those that come after the connection, or an event.

    A ``ping`` comes at once, and every three seconds. The data of each event is an object on one line. A failure is an
    event ``error``, after which the stream goes on.
    """
    return EventStreamResponse(stream)
