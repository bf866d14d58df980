"""Requests to a provider that is slow, huge, broken or gone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from framedex.errors import Unavailable
from framedex.service.oidc.fetching import Fetcher
from tests.service.oidc.provider import Answer, HostileProvider

PATH = "/x"


@pytest.fixture
def fetcher() -> Fetcher:
    """A client with small limits."""
    return Fetcher(timeout_s=2.0, max_bytes=1000)


def get(fetcher: Fetcher, provider: HostileProvider, answer: Answer | None) -> object:
    """Return the JSON object of an answer."""
    provider.answers[PATH] = lambda _handler: answer
    return fetcher.get(provider.issuer + PATH)


def test_get__of_json(provider: HostileProvider, fetcher: Fetcher) -> None:
    """An object is returned, whatever the type of the content."""
    assert get(fetcher, provider, (200, {"Content-Type": "text/plain"}, b'{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, {}, b'"' + b"x" * 1000 + b'"'), "more than 1,000 bytes"),
        ((200, {}, b"<html>"), "something else than a JSON object"),
        ((200, {}, b"[]"), "something else than a JSON object"),
        ((200, {}, b"\xff"), "something else than a JSON object"),
        ((200, {}, b"[" * 999), "something else than a JSON object"),
        ((200, {"Content-Encoding": "gzip"}, b"{}"), "compressed"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "answered 302"),
        ((404, {}, b"{}"), "answered 404"),
    ],
)
def test_get__of_something_else(provider: HostileProvider, fetcher: Fetcher, answer: Answer, reason: str) -> None:
    """Other answers are refused after one request: no redirect is followed, and nothing is unpacked."""
    with pytest.raises(Unavailable, match=reason):
        get(fetcher, provider, answer)
    assert provider.requests[PATH] == 1


@pytest.mark.slow
def test_get__is_repeated(provider: HostileProvider, fetcher: Fetcher) -> None:
    """A busy or broken provider is asked three times in all; a form is sent once."""
    answers: Iterator[Answer | None] = iter([(503, {}, b""), None, (200, {}, b"{}")])
    provider.answers[PATH] = lambda _handler: next(answers)
    assert fetcher.get(provider.issuer + PATH) == {}
    with pytest.raises(Unavailable, match="answered 503"):
        get(fetcher, provider, (503, {}, b""))
    assert provider.requests[PATH] == 6
    with pytest.raises(Unavailable, match="answered 503"):
        fetcher.post(provider.issuer + PATH, {"a": "b"}, {})
    provider.answers[PATH] = lambda _handler: None
    with pytest.raises(Unavailable, match="cannot be reached"):
        fetcher.post(provider.issuer + PATH, {"a": "b"}, {})
    assert provider.requests[PATH] == 8


@pytest.mark.slow
def test_get__of_nobody(provider: HostileProvider, fetcher: Fetcher) -> None:
    """A provider that is down is an error with its address."""
    with pytest.raises(Unavailable, match=r"cannot be reached at http://127\.0\.0\.1:1/"):
        fetcher.get("http://127.0.0.1:1/")
    with pytest.raises(Unavailable, match="cannot be reached"):
        fetcher.get("http://127.0.0.1:1é/")


@contextmanager
def waiting() -> Iterator[threading.Event]:
    """Yield an event that is set at the end, however the test ends."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


@pytest.mark.slow
def test_get__of_a_slow_provider(provider: HostileProvider) -> None:
    """The time limit holds for a request as a whole: a provider that sends a byte now and then gains nothing."""
    fetcher = Fetcher(timeout_s=0.5)
    with waiting() as over:

        def drip(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.1):
                try:
                    handler.wfile.write(b"x")
                except OSError:
                    return

        def silent(_handler: BaseHTTPRequestHandler) -> None:
            over.wait(30)

        for answer in (drip, silent):
            provider.answers[PATH] = answer  # it answers by itself
            with pytest.raises(Unavailable, match=r"did not answer .* within 0\.5 s"):
                fetcher.post(provider.issuer + PATH, {}, {})
