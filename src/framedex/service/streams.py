"""Streams of events for browsers and programs (Server-Sent Events): their format, their waiting and their end."""

import asyncio
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Self

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from framedex.access import Actor
from framedex.errors import Error, Forbidden, NotAuthenticated
from framedex.service.errors import INTERNAL
from framedex.service.identity import identify
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")

PING_S = 3.0
"""The number of seconds between pings."""
CHECK_S = 45.0
"""The number of seconds between checks of a stream's credentials."""
_RETRY = b"retry: 3000\n"


def event(name: str, data: Any, *, event_id: str | None = None) -> bytes:
    """Return an event: its name, its data as JSON on one line, and its id."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    end = "" if event_id is None else f"\nid: {event_id}"
    return f"event: {name}\ndata: {body}{end}\n\n".encode()


_PING = event("ping", {})


_TEXT: dict[str, Any] = {"type": "string"}
_ITEM = {"type": "object", "properties": {"event": _TEXT, "data": _TEXT, "id": _TEXT, "retry": {"type": "integer"}}}
EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"itemSchema": _ITEM}}}}
"""The part of OpenAPI that describes a stream."""


class Waker:
    """A flag of the event loop, which any thread can raise. A wait costs a timer and a future, and no task."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._is_raised = False

    def wake(self) -> None:
        """Raise the flag, on any thread."""
        try:
            self._loop.call_soon_threadsafe(self._raise)
        except RuntimeError:  # the loop has ended
            return

    async def wait(self, seconds: float) -> bool:
        """Wait until the flag is raised, or for a time; lower it, and return whether it was raised."""
        if not self._is_raised:
            self._waiting = self._loop.create_future()
            timer = self._loop.call_later(max(seconds, 0.0), self._end)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        was_raised, self._is_raised = self._is_raised, False
        return was_raised

    def _raise(self) -> None:
        self._is_raised = True
        self._end()

    def _end(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class EventStream(ABC):
    """A stream of events of a user; also an asynchronous context manager.

    It begins at once with a ping, and sends one every three seconds. It ends when the service stops, or the credentials
    of the request do not hold any more. A failure is an event ``error``, and the stream goes on.

    Args:
        service: the running service.
        request: the request.

    Attributes:
        service: the running service.
        actor: the user, with the roles of the last check.
    """

    def __init__(self, service: ServiceState, request: Request) -> None:
        self.service, self._request = service, request
        self.actor: Actor = request.state.actor
        self._waker = Waker()

    @abstractmethod
    def open(self) -> None:
        """Begin to listen; called on a thread that may wait."""

    @abstractmethod
    def close(self) -> None:
        """End listening."""

    @abstractmethod
    def take(self) -> Sequence[bytes]:
        """Return the events that are new; called on a thread that may wait, after :meth:`wake`."""

    def wake(self) -> None:
        """Let the stream take what is new; called on any thread."""
        self._waker.wake()

    async def __aenter__(self) -> Self:
        self.service.stopping.call(self.wake)
        try:
            await anyio.to_thread.run_sync(self.open)
        except BaseException:
            self.service.stopping.forget(self.wake)
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.service.stopping.forget(self.wake)
        self.close()

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield events until the stream ends."""
        yield _RETRY + _PING
        pinged = checked = time.monotonic()
        has_failed = False
        while not self.service.stopping.is_set():
            is_woken = await self._waker.wait(pinged + PING_S - time.monotonic())
            if self.service.stopping.is_set():
                return
            if is_woken or has_failed:
                try:
                    blocks, has_failed = await self._taken()
                except (NotAuthenticated, Forbidden):
                    return
                for block in blocks:
                    yield block
            now = time.monotonic()
            if now - checked >= CHECK_S:
                checked = now
                if await self._is_over():
                    return
            if now - pinged >= PING_S:
                pinged = now
                yield _PING

    async def _taken(self) -> tuple[Sequence[bytes], bool]:
        """Return what is new, and False; or an event ``error`` if that fails, and True."""
        try:
            return await anyio.to_thread.run_sync(self.take), False
        except (NotAuthenticated, Forbidden):
            raise
        except Error as error:
            logger.warning("a stream cannot be read: %s", error)
        except Exception:
            logger.exception("a stream cannot be read")
        return [event("error", {"detail": INTERNAL})], True

    async def _is_over(self) -> bool:
        """Return whether the credentials do not hold any more. An open stream is no use of its session."""
        check = partial(identify, self._request, self.service, is_use=False)
        try:
            self.actor = await anyio.to_thread.run_sync(check)
        except NotAuthenticated:
            return True
        except Error as error:  # they cannot be checked at present
            logger.warning("the credentials of a stream cannot be checked: %s", error)
            return False
        return self.actor.password_is_temporary


class EventStreamResponse(Response):
    """A response that sends the events of an open stream until it ends, or the client goes away.

    Args:
        stream: the stream.
    """

    media_type = "text/event-stream"

    def __init__(self, stream: EventStream) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; a HEAD ends at once."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if not scope.get("is_head"):
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                async with aclosing(self._stream.events()) as events:
                    async for block in events:
                        await send({"type": "http.response.body", "body": block, "more_body": True})
                group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel a scope once the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()
