"""Clients that are slow, or say nothing: their connections end, and those of others do not."""

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Workspace
from framedex.hub import Hub
from framedex.service import connections
from framedex.service.connections import ClientConnection, Connections, Wait
from framedex.service.protocol import MAX_HEAD_LINES
from framedex.service.settings import ServiceSettings
from tests.laws import examples
from tests.pauses import wait_until
from tests.processes import start
from tests.service.live import live_service
from tests.service.test_protocol import exchange, get

IMPATIENT = ServiceSettings(head_timeout_s=0.2, body_timeout_s=0.2)
HALF = b"GET /api/v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
LOGIN = "POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"


@pytest.fixture
def impatient(workspace: Workspace, hub: Hub) -> Iterator[str]:
    """The address of a service that waits for nobody for long."""
    with live_service(workspace, hub, IMPATIENT) as (address, _):
        yield address


def connect(url: str) -> socket.socket:
    """Return a new connection to a service."""
    parts = urlsplit(url)
    return socket.create_connection((str(parts.hostname), parts.port), timeout=30)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (HALF, "The head of the request was not complete in time"),
        (f"{LOGIN}\r\n{{".encode(), "The body of the request made no progress"),
        (f"{LOGIN}Expect: 100-continue\r\n\r\n".encode(), "The body of the request made no progress"),
    ],
    ids=["half a head", "a part of the body", "no body after 100 Continue"],
)
def test_request__that_does_not_go_on(impatient: str, sent: bytes, sentence: str) -> None:
    """A request that is not complete in time is answered by 408, and its connection ends."""
    status, headers, body = _final(exchange_raw(impatient, sent))
    assert (status, json.loads(body)["detail"], headers["connection"]) == (408, sentence, "close")
    assert get(impatient, "/api/v1/healthcheck")[0] == 200


def exchange_raw(url: str, sent: bytes) -> bytes:
    """Send bytes over a new connection, and return all that comes until it ends."""
    with connect(url) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(2**16), b""))


def _final(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of an answer, without one that tells to go on."""
    answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), body


def test_connection__without_a_request(impatient: str) -> None:
    """A connection over which nothing comes, as browsers open some in advance, ends without a word."""
    assert exchange_raw(impatient, b"") == b""


def test_connection__with_a_part_of_the_next_request(impatient: str) -> None:
    """A byte after an answer does not keep a connection for ever."""
    whole = b"GET /api/v1/healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = exchange_raw(impatient, whole + b"G")
    first, second = answer[: answer.index(b"HTTP/1.1 408")], answer[answer.index(b"HTTP/1.1 408") :]
    assert _final(first)[0] == 200
    assert _final(second)[0] == 408


@pytest.mark.slow
def test_stream__outlives_the_limits(impatient: str) -> None:
    """A stream of events stays open, though its client says nothing more."""
    with connect(impatient) as connection:
        connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        received = b""
        while received.count(b"event: ping") < 2:  # one every three seconds
            part = connection.recv(2**16)
            assert part, received
            received += part


@pytest.mark.slow
@pytest.mark.only_soak
def test_pipelined_requests__are_answered_in_turn(impatient: str) -> None:
    """Requests that come before the answers of those before them are answered, however many."""
    one = b"GET /api/v1/healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert exchange_raw(impatient, one * 200 + last).count(b"HTTP/1.1 200 OK") == 201


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["Content-Length: 2", "Transfer-Encoding: chunked"], "A request has Content-Length or Transfer-Encoding"),
        (["Transfer-Encoding: chunked", "Content-Length: 2"], "A request has Content-Length or Transfer-Encoding"),
    ],
)
def test_request__with_two_lengths(impatient: str, lines: list[str], sentence: str) -> None:
    """A request whose end two servers could see at two places is refused, and nothing after it is read."""
    head = ["POST /api/v1/login HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *lines]
    smuggled = b"0\r\n\r\nGET /api/v1/healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = exchange_raw(impatient, "\r\n".join([*head, "", ""]).encode() + smuggled)
    status, headers, body = _final(answer)
    assert (status, headers["connection"], answer.count(b"HTTP/1.1 ")) == (400, "close", 1)
    assert json.loads(body)["detail"].startswith(sentence)


def test_request__of_an_old_version_in_chunks(impatient: str) -> None:
    """HTTP/1.0 has no chunks: who sends them means another end of the request than a proxy of that version."""
    head = b"POST /api/v1/login HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert _final(exchange_raw(impatient, head))[0] == 400


def test_request__with_many_headers(impatient: str) -> None:
    """A head of thousands of lines is refused before it is parsed."""
    lines = "".join(f"a{n}: b\r\n" for n in range(MAX_HEAD_LINES + 1))
    status, _, body = exchange(impatient, f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode())
    assert (status, json.loads(body)["code"]) == (431, "too_large")


def test_connections__beyond_the_most(workspace: Workspace, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room, connections of slow clients end: others are answered, however many wait."""
    monkeypatch.setattr(connections, "_MOST", 20)
    with live_service(workspace, hub, ServiceSettings()) as (url, _), ExitStack() as stack:
        slow = [stack.enter_context(connect(url)) for _ in range(60)]
        for each in slow:
            each.sendall(HALF)
        assert get(url, "/api/v1/healthcheck")[0] == 200
        wait_until(lambda: sum(_is_open(each) for each in slow) <= 20)


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@dataclass(eq=False)
class Client:
    """A connection in a state, which is ended or not."""

    state: Wait | None
    since_s: float = 0.0
    slow_s: float = 0.0
    ended: list[str] = field(default_factory=list)

    def waits(self, _now: float) -> tuple[Wait, float, float] | None:
        """Return the state."""
        return None if self.state is None else (self.state, self.since_s, self.slow_s)

    def end_overdue(self, _state: Wait) -> None:
        """Note the end."""
        self.ended.append("overdue")

    def abort(self) -> None:
        """Note the end."""
        self.ended.append("aborted")


CLIENTS = st.builds(Client, st.sampled_from([None, *Wait]), since_s=st.floats(0, 100), slow_s=st.floats(0, 100))


@examples(100)
@given(st.lists(CLIENTS, max_size=40), st.integers(1, 30))
def test_connections__of_any_clients(clients: list[Client], most: int) -> None:
    """Overdue ones end, no other; a new one finds room unless all are busy, and then no busy one ends for it."""
    everyone: set[ClientConnection] = set(clients)
    guard = Connections(everyone, head_timeout_s=10, body_timeout_s=30, most=most)
    limits = {Wait.HEAD: 10, Wait.BODY: 30, Wait.READING: 300}
    guard.end_overdue(0.0)
    assert all(bool(each.ended) is (each.state in limits and each.since_s > limits[each.state]) for each in clients)
    for each in clients:
        each.ended.clear()
    new = Client(Wait.HEAD)
    everyone.add(new)
    guard.admit(new, 0.0)
    ended = [each for each in clients if each.ended]
    waiting = [each for each in clients if each.state is not None]
    assert bool(new.ended) is (len(clients) + 1 > most and not waiting)
    assert bool(ended) is (len(clients) + 1 > most and bool(waiting))
    assert all(each.state is not None for each in ended)
    slow = [each for each in waiting if each.slow_s >= 1]
    if ended and slow:
        last = max(each.state or 0 for each in slow)
        assert ended[0].slow_s < 1 or any(each.state == last for each in ended)


CROWDED = """
    import resource, sys
    from pathlib import Path
    from framedex.service.server import serve
    from framedex.service.settings import ServiceSettings

    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))
    announce = lambda url: print(url, flush=True)
    serve(Path(sys.argv[1]), ServiceSettings(), host="127.0.0.1", port=0, announce=announce, warn=print)
"""


@pytest.mark.slow
def test_server__in_a_crowd(tmp_path: Path) -> None:
    """With 400 descriptors and 1,000 half-open connections health is answered, logs are JSON, and a signal ends it."""
    Workspace(tmp_path / "ws").close()
    process = start(CROWDED, tmp_path / "ws")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    with ExitStack() as stack:
        for _ in range(1000):
            each = stack.enter_context(connect(url))
            each.sendall(HALF)
        assert [get(url, "/api/v1/healthcheck")[0] for _ in range(20)] == [200] * 20
        assert get(url, "/api/v1/datasets")[0] == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    lines = [json.loads(line) for line in errors.splitlines()]
    assert process.returncode == 0
    assert any("connections" in line for line in lines), errors[-2000:]
    assert {line["level"] for line in lines} == {"INFO"}, errors[-2000:]


HANGS = """
    import sys, threading
    from framedex.cli import main
    from framedex.service import server

    server._close = lambda *_: threading.Event().wait()
    sys.argv = ["framedex", "serve", "--workspace", sys.argv[1], "--port", "0"]
    main()
"""


@pytest.mark.slow
def test_server__that_cannot_stop(tmp_path: Path) -> None:
    """A server whose end waits for something for ever is ended."""
    process = start(HANGS, tmp_path / "ws")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "did not stop within" in json.loads(errors.splitlines()[-1])["message"]


def test_descriptors__are_raised_to_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soft limit becomes the hard one, and connections take a third of it; without limits there is still one."""
    resource: Any = pytest.importorskip("resource")
    limits = [(256, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, pair: limits.append(pair))
    connections.raise_descriptor_limit()
    assert limits[-1] == (4096, 4096)
    assert connections.most_connections() == 1365
    connections.raise_descriptor_limit()
    assert len(limits) == 2, "it is as high as it may be"
    limits.append((resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    connections.raise_descriptor_limit()
    assert connections.most_connections() == 2000
