"""HTTP as the server reads it: the limit of request lines and headers, and refusals of what is no request as JSON."""

import logging
import sys
import uuid
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from framedex.service.middleware import problem_response, with_common_headers

logger = logging.getLogger("framedex.service")

MAX_HEAD_BYTES = 2**18
"""The maximum size of a request line with its headers: a filter of 64 KiB, quoted for a URL, takes up to 192 KiB."""
_LINGER_S = 1.0  # what the client still sends is read for so long, so that it meets the answer and no broken connection
_TOO_LONG = "The URL and the headers of the request are too long: at most 256 KiB together"
_INVALID = "Invalid HTTP request"


class JsonProtocol(H11Protocol):
    """The protocol of a connection, which refuses invalid requests in the form of all errors."""

    _is_refused = False

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client; those after a refusal are dropped."""
        if not self._is_refused:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read."""
        self._is_refused = True
        if self.cycle is not None and not self.cycle.response_complete:  # the body of a request is broken
            self.transport.close()
            return
        # The base class calls this where it handles the error that says why the request cannot be read.
        is_too_long = getattr(sys.exception(), "error_status_hint", None) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_too_long else HTTPStatus.BAD_REQUEST
        request_id = str(uuid.uuid4())
        sentence, code = (_TOO_LONG, "too_large") if is_too_long else (_INVALID, "invalid")
        response = problem_response(request_id, status, sentence, code)
        headers = [*with_common_headers(response.raw_headers, request_id), (b"connection", b"close")]
        logger.info("a request was refused: %s", sentence, extra={"request_id": request_id})
        for event in (
            h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)
