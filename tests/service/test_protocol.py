"""Requests as they come over a connection: the limits of URLs and headers, and what is no request."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.service.protocol import MAX_HEAD_BYTES
from framedex.service.settings import ServiceSettings
from tests.service.live import live_service

_LONGEST_VQL = 2**16


@pytest.fixture
def url(workspace: Workspace, hub: Hub) -> Iterator[str]:
    """The address of a service that listens on a port."""
    with live_service(workspace, hub, ServiceSettings()) as (address, _):
        yield address


def exchange(url: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes over a new connection and return the status, the headers and the body of the answer."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(2**16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers, body


def get(url: str, target: str, *headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a GET over a new connection."""
    lines = [f"GET {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers, "", ""]
    return exchange(url, "\r\n".join(lines).encode("latin-1"))


def filter_of(length: int) -> str:
    """Return a filter of so many characters, of which most have to be quoted in a URL."""
    start, end = '[{"id": "f", "labels": {"op": "one_of", "value": ["', '"]}}]'
    names, rest = divmod(length - len(start) - len(end), 8)
    return start + '[[[[[","' * names + "x" * rest + end


@pytest.mark.slow
@pytest.mark.only_soak
def test_url__with_the_longest_filter(url: str, dataset: Dataset) -> None:
    """A filter of 64 KiB in a URL is read; one character more is an error of the parameter."""
    vql = filter_of(_LONGEST_VQL)
    assert len(vql) == _LONGEST_VQL
    assert len(quote(vql)) > 1.5 * _LONGEST_VQL
    target = f"/api/v1/explore/{dataset.id}?vql="
    status, _, body = get(url, target + quote(vql))
    assert status == 200, body[:500]
    status, _, body = get(url, target + quote(filter_of(_LONGEST_VQL + 1)))
    assert (status, json.loads(body)["code"]) == (422, "invalid")


@pytest.mark.parametrize("beyond", [2**18, 2**21])
def test_url__beyond_the_limit(url: str, beyond: int) -> None:
    """A longer URL, or a longer header, is refused in the form of all errors, also if much more of it follows."""
    for target, header in (
        ("/" + "x" * (MAX_HEAD_BYTES + beyond), "A: b"),
        ("/", "A: " + "x" * (MAX_HEAD_BYTES + beyond)),
    ):
        status, headers, body = get(url, target, header)
        answer = json.loads(body)
        assert (status, answer["code"], answer["detail"] == answer["message"]) == (431, "too_large", True)
        assert headers["content-type"] == "application/json"
        assert headers["x-request-id"] == answer["request_id"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /api/v1/me\r\n\r\n",
        b"GET /api/v1/me HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /api/v1/me HTTP/1.1\r\nHost : a\r\n\r\n",
    ],
)
def test_request__that_is_none(url: str, request_bytes: bytes) -> None:
    """Bytes that are no request are refused in the form of all errors, and the service goes on."""
    status, _, body = exchange(url, request_bytes)
    assert (status, json.loads(body)["code"]) == (400, "invalid")
    assert get(url, "/api/v1/healthcheck")[0] == 200


def test_body__with_a_broken_chunk(url: str) -> None:
    """A body whose next chunk has no size ends the connection; the service goes on."""
    head = "POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    data = f"{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\nno size\r\n".encode()
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port), timeout=30) as connection:
        connection.sendall(data)
        while connection.recv(2**16):
            pass
    assert get(url, "/api/v1/healthcheck")[0] == 200


@pytest.mark.slow
def test_request__that_outlasts_the_stop(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose work takes longer than the time to stop is answered by a sentence, not as a fault."""
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        begun.set()
        goes_on.wait(30)

    with ThreadPoolExecutor() as pool, Hub(workspace) as hub:
        with live_service(workspace, hub, ServiceSettings()) as (url, _):
            monkeypatch.setattr("framedex.hub.datasets.Datasets.visible", slow)
            answer = pool.submit(get, url, "/api/v1/datasets")
            assert begun.wait(30)
        goes_on.set()
        status, _, body = answer.result(30)
    assert (status, json.loads(body)["detail"]) == (503, "The service stops; try again later")
