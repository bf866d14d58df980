"""A stream of events: tasks, heads of datasets, alerts."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request

from framedex.access import Action
from framedex.hub.events import Event, Listener
from framedex.service.actions import needs, routes
from framedex.service.parameters import Service
from framedex.service.server_paths import without_folders
from framedex.service.streams import EVENTS, EventStream, EventStreamResponse, event

router = routes("events")

_MESSAGES = ("error_message", "status_message")


class _Changes(EventStream):
    """A listener of the hub to all that changes."""

    _listener: Listener | None = None

    def open(self) -> None:
        self._listener = self.service.hub.events.listen(self.actor, self.wake)

    def close(self) -> None:
        if self._listener is not None:
            self.service.hub.events.leave(self._listener)

    def take(self) -> Sequence[bytes]:
        assert self._listener is not None, "the stream is open"
        self._listener.actor = self.actor
        return [event(each.name, _shown(each)) for each in self._listener.take()]


async def _open_stream(request: Request, service: Service) -> AsyncIterator[EventStream]:
    async with _Changes(service, request) as stream:
        yield stream


@router.get("/events", status_code=200, response_class=EventStreamResponse, responses=EVENTS)
@needs(Action.OWN_ACCOUNT)
async def event_stream(stream: Annotated[Any, Depends(_open_stream)]) -> EventStreamResponse:
    """Send events of what the user may view: ``task``, ``head``, ``notification``; ``lost`` where some were dropped.

    A ``ping`` comes at once, and every three seconds. The data of each event is an object on one line.
    """
    return EventStreamResponse(stream)


def _shown(found: Event) -> dict[str, Any]:
    """Return the data of an event; its messages do not tell where files of the server are."""
    messages = {name: without_folders(found.data[name]) for name in _MESSAGES if found.data.get(name)}
    return {**found.data, **messages}
