"""Requests to the identity provider: bounded in time and size, without redirects, repeated where that is safe."""

import json
import ssl
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import anyio
import httpx2

from framedex.core.counts import counted
from framedex.errors import Unavailable

MAX_BYTES = 2**20
"""The maximum size of an answer."""
_PAUSES_S = (0.2, 0.5)  # before the second and the third attempt
_BUSY = 500


class Fetcher:
    """A client of an identity provider. Safe to share between threads.

    The time limit holds for a request as a whole, from the connection to the last byte, so that a provider that sends a
    byte now and then holds no thread. Compressed answers are refused, because their size is known too late.

    Args:
        timeout_s: the number of seconds for a request.
        max_bytes: the maximum size of an answer.
    """

    def __init__(self, *, timeout_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._timeout_s, self._max_bytes = timeout_s, max_bytes

    def get(self, url: str, *, token: str | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL.

        While the provider cannot be reached or is busy, up to three attempts begin within the time of a request.

        Args:
            url: the URL.
            token: an access token for the request.

        Raises:
            Unavailable: there is no such answer; the message says why.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        end = time.monotonic() + self._timeout_s
        pauses = list(_PAUSES_S)
        while True:
            is_last = not pauses or time.monotonic() > end
            try:
                status, body = self._send("GET", url, headers, None)
                if status < _BUSY or is_last:
                    break
            except _Unreachable:
                if is_last or time.monotonic() > end:
                    raise
            time.sleep(pauses.pop(0))
        if status != httpx2.codes.OK:
            raise Unavailable(f"the identity provider answered {status} to {url}")
        return _object(url, body)

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Send a form once, and return the status and the JSON object of the answer.

        Raises:
            Unavailable: there is no such answer; the message says why.
        """
        status, body = self._send("POST", url, headers, form)
        if status >= _BUSY:
            raise Unavailable(f"the identity provider answered {status} to {url}")
        return status, _object(url, body)

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        try:
            return anyio.run(self._exchange, method, url, headers, form)
        except TimeoutError:
            raise _Unreachable(f"the identity provider did not answer {url} within {self._timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            if isinstance(error, Unavailable):
                raise
            reason = str(error) or type(error).__name__
            raise _Unreachable(f"the identity provider cannot be reached at {url}: {reason}") from None

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        plain = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        with anyio.fail_after(self._timeout_s):
            async with (
                httpx2.AsyncClient(verify=_tls(), timeout=self._timeout_s, follow_redirects=False) as client,
                client.stream(method, url, data=form, headers=plain) as answer,
            ):
                if answer.headers.get("content-encoding", "identity") != "identity":
                    raise Unavailable(f"the identity provider sent a compressed answer to {url}")
                body = bytearray()
                async for block in answer.aiter_raw():
                    body += block
                    if len(body) > self._max_bytes:
                        limit = counted(self._max_bytes, "bytes")
                        raise Unavailable(f"the identity provider answered {url} with more than {limit}")
                return answer.status_code, bytes(body)


class _Unreachable(Unavailable):
    """No whole answer, so another attempt may succeed."""


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # also with the certificates of SSL_CERT_FILE; it takes some milliseconds


def _object(url: str, body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"the identity provider answered {url} with something else than a JSON object")
    return found
