"""A stream of events: tasks, heads of datasets, alerts."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio
from fastapi import Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from framedex.access import Action
from framedex.errors import NotAuthenticated
from framedex.hub.events import Event, Listener
from framedex.service.actions import needs, routes
from framedex.service.identity import identify
from framedex.service.parameters import CurrentActor, Service
from framedex.service.server_paths import without_folders
from framedex.service.state import ServiceState

router = routes("events")

PING_S = 3.0
"""The number of seconds between pings."""
_RETRY_MS = 3000
_LOOK_S = 0.25
_CHECK_S = 30.0
_MESSAGES = ("error_message", "status_message")


class _Stream:
    """A listener of the hub whose waiting is that of the event loop."""

    def __init__(self, service: ServiceState, request: Request) -> None:
        self._service, self._request = service, request
        self._woken, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._listener: Listener | None = None

    async def __aenter__(self) -> "_Stream":
        actor = self._request.state.actor
        self._listener = await anyio.to_thread.run_sync(self._service.hub.events.listen, actor, self._wake)
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._listener is not None:
            self._service.hub.events.leave(self._listener)

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:  # the loop has ended
            return

    async def take(self) -> list[Event]:
        """Return the events that wait, after at most a quarter of a second."""
        assert self._listener is not None, "the stream is open"
        with anyio.move_on_after(_LOOK_S):
            await self._woken.wait()
        self._woken.clear()
        return self._listener.take()

    async def is_over(self) -> bool:
        """Return whether the user's credentials do not hold any more."""
        assert self._listener is not None, "the stream is open"
        try:
            self._listener.actor = await anyio.to_thread.run_sync(identify, self._request, self._service)
        except NotAuthenticated:
            return True
        return False


async def _open_stream(request: Request, service: Service) -> AsyncIterator[_Stream]:
    async with _Stream(service, request) as stream:
        yield stream


@router.get("/events", response_class=EventSourceResponse)
@needs(Action.OWN_ACCOUNT)
async def event_stream(
    service: Service, actor: CurrentActor, stream: Annotated[Any, Depends(_open_stream)]
) -> AsyncIterator[ServerSentEvent]:
    """Send events of what the user may view: ``task``, ``head``, ``notification``; ``lost`` where some were dropped.

    A ``ping`` comes at once, and every three seconds. The data of each event is an object on one line.
    """
    yield ServerSentEvent(event="ping", data={}, retry=_RETRY_MS)
    pinged = checked = time.monotonic()
    while not service.stopping.is_set():
        for event in await stream.take():
            yield ServerSentEvent(event=event.name, data=_shown(event, is_local=actor.is_local))
        now = time.monotonic()
        if now - checked >= _CHECK_S:
            checked = now
            if await stream.is_over():
                return
        if now - pinged >= PING_S:
            pinged = now
            yield ServerSentEvent(event="ping", data={})


def _shown(event: Event, *, is_local: bool) -> dict[str, Any]:
    """Return the data of an event; to users of other machines messages do not tell where files of the server are."""
    if is_local:
        return event.data
    messages = {name: without_folders(event.data[name]) for name in _MESSAGES if event.data.get(name)}
    return {**event.data, **messages}
