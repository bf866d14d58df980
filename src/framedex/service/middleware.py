"""The outermost layer: request ids, the host, security headers, a line in the log, an answer to each fault."""

import asyncio
import logging
import re
import time
import uuid
from collections import deque
from collections.abc import Callable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from framedex.service.errors import INTERNAL
from framedex.service.settings import host_is_allowed
from framedex.service.state import ServiceState

logger = logging.getLogger("framedex.service")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'self'",
    ),
)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_STOPS = "The service stops; try again later"
_FIRST_PART = 2**14  # bytes of a body that must be there before anything is done for it
_LONGEST_PATH = 1000  # characters of a path in a line of the log
Observer = Callable[[str, str, int, float], None]
"""Takes the method, the route, the status and the seconds of a request."""


class RequestMiddleware:
    """The outermost layer of the service.

    Args:
        app: the layer within.
        state: the running service.
        observe: called after each request.
    """

    def __init__(self, app: ASGIApp, state: ServiceState, observe: Observer) -> None:
        self._app, self._state, self._observe = app, state, observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _has_body(scope):
            if (with_first_part := await _with_first_part(receive)) is None:
                return
            receive = with_first_part
        request_id, began, status = str(uuid.uuid4()), time.perf_counter(), 0
        scope.setdefault("state", {})["request_id"] = request_id
        is_head, method = scope["method"] == "HEAD", scope["method"]
        if is_head:  # a GET without its body
            scope = {**scope, "method": "GET", "is_head": True}

        async def forward(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = with_common_headers(message["headers"], request_id)
                if self._state.embedders:  # the policy of the page says which
                    headers = [each for each in headers if each[0] != b"x-frame-options"]
                message = {**message, "headers": headers}
            elif is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            if self._refuses(scope):
                await problem_response(request_id, 400, "Invalid host", "invalid")(scope, receive, forward)
            else:
                await self._app(scope, receive, forward)
        except asyncio.CancelledError:  # the service stops, and its work on the request took too long
            if status or not self._state.stopping.is_set():
                raise
            await problem_response(request_id, 503, _STOPS, "unavailable")(scope, receive, forward)
        except Exception:
            logger.exception("%s %s failed", method, scope["path"], extra={"request_id": request_id})
            if status == 0:
                await problem_response(request_id, 500, INTERNAL, "internal")(scope, receive, forward)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "")
            self._observe(method, route, status, seconds)
            _log_request(scope, method, status, seconds, request_id)

    def _refuses(self, scope: Scope) -> bool:
        state, host = self._state, _host_of(scope)
        if host is not None and host_is_allowed(state.settings, host, bound=state.bound):
            return False
        logger.info("a request to the host %.100r is refused; FRAMEDEX_ALLOWED_HOSTS names further hosts", host)
        return True


def _has_body(scope: Scope) -> bool:
    """Return whether a request has a body whose first part is to be waited for.

    A client that asks before it sends a long one is answered before.
    """
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0" if b"transfer-encoding" not in headers else b"")
    is_long = len(length) > len(str(_FIRST_PART)) or not length.isdigit() or int(length) > _FIRST_PART
    return length != b"0" and not (is_long and b"expect" in headers)


async def _with_first_part(receive: Receive) -> Receive | None:
    """Wait for the first part of a body, or the whole of a short one; return what gives it, and then the rest.

    A client that sends a few bytes and then waits costs no check, no thread and no line of the log. None for a client
    that leaves before.
    """
    messages, size = deque[Message](), 0
    while size < _FIRST_PART:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        messages.append(message)
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            break

    async def replay() -> Message:
        return messages.popleft() if messages else await receive()

    return replay


def _host_of(scope: Scope) -> str | None:
    """Return the name in the header ``Host``, without the port, in lower case; None for a header that is none."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    match = _HOST.fullmatch(values[0].decode("latin-1").lower()) if len(values) == 1 else None
    return None if match is None else match.group(1)


def problem_response(request_id: str, status: int, sentence: str, code: str) -> JSONResponse:
    """Return an error in the form of the interface, of a request that reaches no route."""
    body = {"detail": sentence, "message": sentence, "code": code, "request_id": request_id}
    return JSONResponse(body, status_code=status)


def with_common_headers(headers: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """Return headers of a response with those of all responses that it does not have."""
    present = {name.lower() for name, _ in headers}
    added = [(b"x-request-id", request_id.encode()), *_HEADERS]
    if not {b"cache-control", b"etag"} & present:
        added.append((b"cache-control", b"no-store"))
    return [*headers, *(each for each in added if each[0] not in present)]


def _log_request(scope: Scope, method: str, status: int, seconds: float, request_id: str) -> None:
    client, path = scope.get("client"), scope["path"][:_LONGEST_PATH]
    fields = {
        "request_id": request_id,
        "method": method,
        "path": path,
        "status": status,
        "ms": round(1000 * seconds, 1),
        "client": client[0] if client else None,
    }
    logger.info("%s %s %s", method, path, status, extra={"fields": fields, "is_request": True})
