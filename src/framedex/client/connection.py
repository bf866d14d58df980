"""The connection to a service: requests with fresh tokens, and its errors as ours."""

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa

from framedex.client.calls import PREFIX, Call
from framedex.core.atomic import atomic_file
from framedex.core.counts import counted
from framedex.errors import (
    CODES,
    CannotDecode,
    Error,
    InvalidFilter,
    InvalidInput,
    MissingDependency,
    TooManyAttempts,
    Unavailable,
)

try:
    import httpx2
    import jwt
except ImportError as error:
    raise MissingDependency(f"the client needs {error.name}: pip install 'framedex[client]'") from None

_ARROW = "application/vnd.apache.arrow.stream"
_TOKEN_S = 600
_RENEWED_S = 60  # a token is made again so many seconds before it expires
_BLOCK_BYTES = 2**20
_LEAST_SECRET = 32  # bytes; those of a service have 43 characters
_FILTER = re.compile(r"invalid filter at (?P<path>\S+): (?P<reason>.*)", re.DOTALL | re.IGNORECASE)
_ERRORS: Mapping[str, type[Error]] = {
    **{code: kind for kind, code in CODES},
    "invalid_filter": InvalidInput,  # if the sentence does not name the place
    "internal": Error,
    "too_large": InvalidInput,
}
"""Our errors by the ``code`` of an answer."""


class Connection:
    """A connection to a service.

    Args:
        url: the address of the service; a path in it is kept.
        key: the API key; None where the service needs no log-in.
        secret: the secret of the key.
        timeout_s: the number of seconds to wait for an answer.
        transport: what carries requests in place of the network, as for :class:`httpx2.Client`.

    Raises:
        InvalidInput: the URL, the key or the secret cannot be used, or only one of key and secret is given.
    """

    def __init__(
        self, url: str, key: str | None, secret: str | None, *, timeout_s: float, transport: Any = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"url must be the address of a service, such as http://127.0.0.1:8765, not {url!r}")
        _check_credentials(key, secret)
        self.url, self._key, self._secret = url.rstrip("/"), key, secret
        self._token, self._expires = "", 0.0
        self._lock = threading.Lock()
        self._options = {"timeout_s": timeout_s, "transport": transport}
        self._http = httpx2.Client(timeout=timeout_s, transport=transport, follow_redirects=True)

    def anew(self) -> "Connection":
        """Return another connection to the same service, which opens nothing until it is used."""
        return Connection(self.url, self._key, self._secret, **self._options)

    def __reduce__(self) -> Any:
        """Return what a connection of another process is made of."""
        return _connect, (self.url, self._key, self._secret, self._options)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def json(self, call: Call, /, *, query: Mapping[str, Any] | None = None, body: Any = None, **path: Any) -> Any:
        """Return the answer to a call as JSON; None for an empty answer.

        Args:
            call: the call.
            query: the parameters; those that are None are left out.
            body: the body, as JSON.
            path: the parameters of the path.

        Raises:
            Error: the service refuses the call, or cannot be reached.
        """
        answer = self.send(call, query=query, json=body, **path)
        return answer.json() if answer.content else None

    def table(self, call: Call, /, *, query: Mapping[str, Any] | None = None, **path: Any) -> pa.Table:
        """Return the answer to a call as an Arrow table; errors as of :meth:`json`."""
        answer = self.send(call, query=query, headers={"Accept": _ARROW}, **path)
        try:
            return pa.ipc.open_stream(answer.content).read_all()
        except pa.ArrowInvalid as error:
            raise Unavailable(f"the answer of {self.url} is not whole: {error}") from None

    def send(
        self,
        call: Call,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        json: Any = None,
        form: Mapping[str, Any] | None = None,
        files: Sequence[tuple[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        **path: Any,
    ) -> Any:
        """Send a request and return the answer; errors as of :meth:`json`.

        Args:
            call: the call.
            query: the parameters; those that are None are left out.
            json: the body, as JSON.
            form: the fields of a form, which those of *files* join.
            files: pairs of a field and a file: a pair of its name and its content.
            headers: further headers.
            path: the parameters of the path.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        names = {*(json if isinstance(json, Mapping) else ()), *(form or ()), *(name for name, _ in files or ())}
        assert given.keys() <= set(call.query.split()), (call, given)
        assert names <= set(call.fields.split()) or not call.fields, (call, names)
        url = self.url + PREFIX + call.path.format(**{name: quote(str(each), safe="") for name, each in path.items()})
        with _reaching(self.url):
            answer = self._http.request(
                call.method,
                url,
                params=_texts(given),
                json=json,
                data=form,
                files=files,
                headers={**self._credentials(), **(headers or {})},
            )
        raise_for(answer)
        return answer

    @contextmanager
    def lines(
        self, call: Call, /, *, query: Mapping[str, Any], headers: Mapping[str, str], silence_s: float
    ) -> Iterator[Iterator[str]]:
        """Yield the lines of an answer as they come; errors as of :meth:`json`.

        Args:
            call: the call.
            query: the parameters; those that are None are left out.
            headers: further headers.
            silence_s: the number of seconds without a line after which the connection counts as broken.
        """
        given = _texts({name: value for name, value in query.items() if value is not None})
        with (
            _reaching(self.url),
            self._http.stream(
                call.method,
                self.url + PREFIX + call.path,
                params=given,
                headers={**self._credentials(), **headers},
                timeout=silence_s,
            ) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise_for(answer)
            yield answer.iter_lines()

    def download(self, uri: str, target: Path) -> None:
        """Write the content of a URI of the service to a file, which appears when it is whole.

        Raises:
            Error: the service refuses it, or cannot be reached.
            InvalidInput: the file cannot be written.
        """
        url = uri if urlsplit(uri).scheme else self.url + uri
        is_own = url.startswith(self.url)
        headers = self._credentials() if is_own else {}
        try:
            with (
                atomic_file(target) as partial,
                partial.open("wb") as file,
                _reaching(self.url),
                self._http.stream("GET", url, headers=headers) as answer,
            ):
                if answer.is_error:
                    answer.read()
                    raise_for(answer)
                for block in answer.iter_bytes(_BLOCK_BYTES):
                    file.write(block)
        except OSError as error:
            if isinstance(error, Error):
                raise
            raise InvalidInput(f"cannot write {os.fspath(target)!r}: {error.strerror or error}") from None

    def _credentials(self) -> dict[str, str]:
        if self._key is None or self._secret is None:
            return {}
        with self._lock:
            now = time.time()
            if now > self._expires - _RENEWED_S:
                self._expires = now + _TOKEN_S
                claims = {"sub": self._key, "iss": "sdk", "iat": int(now), "exp": int(self._expires)}
                self._token = jwt.encode(claims, self._secret, algorithm="HS256", headers={"kid": self._key})
            return {"Authorization": f"Bearer {self._token}"}


def _check_credentials(key: Any, secret: Any) -> None:
    """Check an API key and its secret, which no message shows.

    Raises:
        InvalidInput: only one of them is given, one of them is no text, or the secret is too short.
    """
    if (key is None) != (secret is None):
        raise InvalidInput("give both the API key and its secret, or neither")
    for name, value in (("key", key), ("secret", secret)):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name} must be text, not of type {type(value).__name__}")
    if secret is not None and len(secret.encode()) < _LEAST_SECRET:
        raise InvalidInput(
            f"secret has {counted(len(secret), 'characters')}, and the secrets of a service have more than "
            f"{_LEAST_SECRET}: copy the whole of it, or rotate the key for a new one"
        )


def _connect(url: str, key: str | None, secret: str | None, options: Mapping[str, Any]) -> Connection:
    return Connection(url, key, secret, **options)


def raise_for(answer: Any) -> None:
    """Raise our error for an answer that is one.

    Raises:
        Error: of the class for its ``code``, with its sentence.
    """
    if not answer.is_error:
        return
    try:
        body = answer.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    code = str(body.get("code", "unavailable" if answer.status_code in (502, 503, 504) else "internal"))
    sentence = str(body.get("detail") or f"the service answered {answer.status_code}")
    if code == "rate_limited":
        raise TooManyAttempts(sentence, int(answer.headers.get("Retry-After", 1)))
    if code == "invalid_filter" and (found := _FILTER.search(sentence)) is not None:
        raise InvalidFilter(found["path"], found["reason"])
    if code == "cannot_decode" and (fault := body.get("fault")) is not None:
        raise CannotDecode(sentence, fault)
    if code == "internal":
        sentence = f"{sentence} (request {body.get('request_id', 'unknown')})"
    raise _ERRORS.get(code, Error if answer.status_code >= 500 else InvalidInput)(sentence)


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except httpx2.HTTPError as error:
        raise Unavailable(f"the service at {url} cannot be reached: {error}") from error


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
