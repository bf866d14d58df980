"""HTTP as the server reads it: its limits, what each connection waits for, and refusals of what is no request as JSON.

The parser of the framework's server takes requests that RFC 9112 (section 6.1) lets pass as attempts of smuggling, and
its protocol has no limits of time. Both are classes of their own here, over those of the server.
"""

import asyncio
import logging
import sys
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from framedex.service.connections import Connections, Wait
from framedex.service.middleware import problem_response, with_common_headers

logger = logging.getLogger("framedex.service")

MAX_HEAD_BYTES = 2**18
"""The maximum size of a request line with its headers: a filter of 64 KiB, quoted for a URL, takes up to 192 KiB."""
MAX_HEAD_LINES = 1000
"""The maximum number of lines of a head: each costs time in the thread of all requests."""
_LINGER_S = 1.0  # what the client still sends is read for so long, so that it meets the answer and no broken connection
_BLOCK = 2**14  # bytes of a body; who takes longer for each than others is a slow client
_TOO_LONG = "The URL and the headers of the request are too long: at most 256 KiB together"
_TOO_MANY = f"The request has too many headers: at most {MAX_HEAD_LINES:,} lines"
_INVALID = "Invalid HTTP request"
_TWO_LENGTHS = "A request has Content-Length or Transfer-Encoding, not both"
_OLD_CHUNKS = "Transfer-Encoding needs HTTP/1.1"
_OVERDUE = {
    Wait.HEAD: "The head of the request was not complete in time",
    Wait.BODY: "The body of the request made no progress",
}


class _Requests(h11.Connection):
    """A parser of requests, which refuses those whose end two servers could see at two places."""

    def next_event(self) -> Any:
        """Return what comes next.

        Raises:
            RemoteProtocolError: it is no valid request.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError(_TWO_LENGTHS if b"content-length" in names else _OLD_CHUNKS)
        return event


class JsonProtocol(H11Protocol):
    """The protocol of a connection, which refuses invalid requests in the form of all errors.

    Args:
        guard: returns what bounds the connections of a server, given all of them.
        arguments: those of the framework's protocol.
    """

    def __init__(self, *, guard: Callable[[Any], Connections], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.conn = _Requests(h11.SERVER, MAX_HEAD_BYTES)
        self._guard = guard(self.connections)
        self._is_refused = False
        self._head_since: float | None = None
        self._head_lines = 0
        self._progress_at = self._block_at = self._sent_at = self.loop.time()
        self._n_bytes = self._unsent = 0
        self._is_silent = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; if there are too many connections, one of a slow client ends."""
        super().connection_made(transport)  # type: ignore[arg-type] # as the base class has it
        self._head_since = self.loop.time()
        self._guard.admit(self, self._head_since)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client; those after a refusal are dropped."""
        if self._is_refused:
            return
        now = self.loop.time()
        self._progress_at, self._is_silent = now, False
        self._n_bytes += len(data)
        if self._n_bytes >= _BLOCK:
            self._n_bytes, self._block_at = 0, now
        is_head = self.conn.their_state is h11.IDLE
        if is_head:
            self._head_since = self._head_since or now
            self._head_lines += data.partition(b"\r\n\r\n")[0].count(b"\n")
            if self._head_lines > MAX_HEAD_LINES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_MANY, "too_large")
                return
        super().data_received(data)
        if is_head and self.conn.their_state is not h11.IDLE:
            self._begin_body(now)

    def on_response_complete(self) -> None:
        """Go on to the next request, of which a part may be there."""
        super().on_response_complete()
        self._sent_at = now = self.loop.time()
        if self.conn.their_state is not h11.IDLE:
            self._begin_body(now)
        elif self.conn.trailing_data[0]:
            self._head_since, self._head_lines = now, 0

    def _begin_body(self, now: float) -> None:
        """Note that the head of a request is complete."""
        self._head_since, self._head_lines = None, 0
        self._progress_at = self._block_at = now
        self._n_bytes = 0

    def resume_writing(self) -> None:
        """Go on to send the answer, as the client has read some."""
        self._sent_at = self.loop.time()
        super().resume_writing()

    def waits(self, now: float) -> tuple[Wait, float, float] | None:
        """Return what the client is waited for, with the seconds since any and since real progress; None if it is not.

        Args:
            now: the present time of the loop.
        """
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._sent_at = unsent, now
        if unsent and (self.flow.write_paused or self.transport.is_closing()):
            return Wait.READING, now - self._sent_at, now - self._sent_at
        if self._head_since is not None:
            return Wait.HEAD, now - self._head_since, now - self._head_since
        has_answered = self.cycle is None or self.cycle.response_complete  # none of a head that cannot be read
        if self.conn.their_state is h11.SEND_BODY:
            if self.flow.read_paused or (not has_answered and self.cycle.waiting_for_100_continue):
                self._progress_at = self._block_at = now  # the client may not send
                return None
            return Wait.BODY, now - self._progress_at, now - self._block_at
        return (Wait.IDLE, now - self._sent_at, now - self._sent_at) if has_answered else None

    def end_overdue(self, state: Wait) -> None:
        """End a connection whose client was waited for too long; say why if no answer has begun."""
        has_begun = self.cycle is not None and self.cycle.response_started and self.conn.our_state is not h11.IDLE
        # Browsers connect in advance, and say nothing.
        if state not in _OVERDUE or has_begun or self._is_silent or self._is_refused or self.transport.is_closing():
            self.abort()
            return
        if (cycle := self.cycle) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, _OVERDUE[state], "timeout", is_logged=False)

    def abort(self) -> None:
        """End at once."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read."""
        if self.cycle is not None and not self.cycle.response_complete:  # the body of a request is broken
            self._is_refused = True
            self.transport.close()
            return
        # The base class calls this where it handles the error that says why the request cannot be read.
        error = sys.exception()
        if getattr(error, "error_status_hint", None) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LONG, "too_large")
        else:
            is_own = str(error) in (_TWO_LENGTHS, _OLD_CHUNKS)
            self._refuse(HTTPStatus.BAD_REQUEST, str(error) if is_own else _INVALID, "invalid")

    def _refuse(self, status: HTTPStatus, sentence: str, code: str, *, is_logged: bool = True) -> None:
        """Send an answer in place of the application, and close the connection soon."""
        self._is_refused = True
        self._unset_keepalive_if_required()
        request_id = str(uuid.uuid4())
        response = problem_response(request_id, status, sentence, code)
        headers = [*with_common_headers(response.raw_headers, request_id), (b"connection", b"close")]
        if is_logged:
            logger.info("a request was refused: %s", sentence, extra={"request_id": request_id})
        try:
            for event in (
                h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # an answer has begun
            self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)
