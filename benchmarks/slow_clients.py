"""The service beside slow clients: whether others are answered as ever, what the log says, and how soon it stops.

A process of clients keeps many connections open that say nothing, send a byte of a head or of a body now and then, read
no answer, or wait after a request; each that ends is opened again. Meanwhile users ask for a state, a page and a
thumbnail, over connections that stay open and over new ones, and for the health of the server.
"""

import argparse
import http.client
import json
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from common import save, table, verdict
from framedex import Workspace

API = "/api/v1"
PAUSE_S = 2.5  # between two bytes of a slow client
REST_S = 30.0  # before clients that send whole requests connect again: without it they would be a flood of requests
KINDS = ("half a head", "a slow body", "no reader", "silent", "idle", "all of these")
AIM_HEALTH_S, AIM_RATIO, AIM_LINES, AIM_STOP_S = 1.0, 2.0, 1.0, 5.0
_PACE_S = 0.05
_LOGIN = (
    b"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
)


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--descriptors", type=int, default=400, help="the hard limit of the server")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each kind of client")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--attack", nargs=3, metavar=("KIND", "URL", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack is not None:
        attack(options.attack[0], options.attack[1], int(options.attack[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        dataset_id = made(Path(folder) / "ws", options.rows)
        results = [measured(Path(folder), dataset_id, kind, options) for kind in KINDS]
    headers = (
        "clients", "quiet p95, ms", "beside, ms", "ratio", "health p95", "most, ms", "lines/s of a kind", "no JSON",
        "errors", "stop, s",
    )  # fmt: skip
    print(table(headers, [list(each.values()) for each in results]))
    for name, key, aim in (
        ("health, most, ms", "health_most_ms", 1000 * AIM_HEALTH_S),
        ("p95 beside slow clients to the quiet one", "ratio", AIM_RATIO),
        ("lines of the log a second of one kind", "lines_a_second", AIM_LINES),
        ("stop after SIGTERM, s", "stop_s", AIM_STOP_S),
    ):
        print(verdict(name, max(float(each[key]) for each in results), aim, at_most=True))  # type: ignore[arg-type]
    save("slow-clients", {"options": vars(options), "results": results})


def made(folder: Path, rows: int) -> str:
    """Make a dataset of vectors, and return its id."""
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((rows, 32)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 32)
    uris = [f"/images/{number:07}.jpg" for number in range(rows)]
    with Workspace(folder) as workspace:
        return workspace.create_dataset("vectors", pa.table({"uri": uris, "embedding": values})).id


def measured(folder: Path, dataset_id: str, kind: str, options: argparse.Namespace) -> dict[str, object]:
    """Return the figures of a kind of slow clients."""
    log = folder / "log.txt"
    with serving(folder / "ws", log, options.descriptors) as (process, url):
        paths = [f"{API}/dataset/{dataset_id}", f"{API}/explore/{dataset_id}?threshold=4", f"{API}/tasks"]
        users(url, [*paths, f"{API}/openapi.json"], 3.0)  # warms up
        quiet, errors, _ = users(url, paths, options.seconds)
        log.open("r+").truncate()
        clients = subprocess.Popen(
            [sys.executable, __file__, "--attack", kind, url, str(options.connections)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert clients.stdout is not None
            clients.stdout.readline()  # they are connected
            began = time.monotonic()
            beside, more_errors, health = users(url, paths, options.seconds)
            seconds = time.monotonic() - began
            stop = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            stop_s = time.monotonic() - stop
        finally:
            clients.kill()
            clients.wait()
    lines, bad = kinds_of(log)
    quiet_ms, beside_ms = (1000 * float(np.percentile(each, 95)) for each in (quiet, beside))
    return {
        "clients": kind,
        "quiet_p95_ms": round(quiet_ms, 1),
        "beside_p95_ms": round(beside_ms, 1),
        "ratio": round(beside_ms / quiet_ms, 2),
        "health_p95_ms": round(1000 * float(np.percentile(health, 95)), 1),
        "health_most_ms": round(1000 * max(health), 1),
        "lines_a_second": round(max(lines.values(), default=0) / seconds, 2),
        "no_json": bad,
        "errors": errors + more_errors,
        "stop_s": round(stop_s, 2),
    }


@contextmanager
def serving(folder: Path, log: Path, descriptors: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a workspace in a process with a limit of descriptors; yield it and its URL."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    program = [sys.executable, "-m", "framedex", "serve", "--workspace", str(folder), "--port", "0", "--no-browser"]
    with log.open("a") as errors:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limit)  # noqa: PLW1509
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    try:
        yield process, found.group()
    finally:
        process.kill()
        process.wait()


def users(url: str, paths: list[str], seconds: float) -> tuple[list[float], int, list[float]]:
    """Return the times of requests of two users, the number of those that failed, and the times of health."""
    times, health, failed = list[float](), list[float](), Counter[str]()
    end = time.monotonic() + seconds

    def ask(paths: list[str], into: list[float], *, is_kept: bool) -> None:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        turn = 0
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                if not is_kept:
                    connection.close()
                connection.request("GET", paths[turn % len(paths)])
                answer = connection.getresponse()
                answer.read()
                failed["errors"] += answer.status >= 400
            except (OSError, http.client.HTTPException):
                failed["errors"] += 1
                connection.close()
            into.append(time.monotonic() - began)
            turn += 1
            time.sleep(_PACE_S)

    threads = [
        threading.Thread(target=ask, args=(paths, times), kwargs={"is_kept": is_kept}) for is_kept in (True, False)
    ]
    threads.append(threading.Thread(target=ask, args=([f"{API}/healthcheck"], health), kwargs={"is_kept": False}))
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return times, failed["errors"], health


def kinds_of(log: Path) -> tuple[Counter[str], int]:
    """Return the number of lines of each kind but those of requests, and of lines that are no JSON."""
    found, bad = Counter[str](), 0
    for line in log.read_text().strip("\0").splitlines():
        try:
            entry = json.loads(line.strip("\0"))
        except ValueError:
            bad += 1
            continue
        if "path" not in entry:
            found[re.sub(r"\d+", "N", entry["message"])] += 1
    return found, bad


def attack(kind: str, url: str, n: int) -> None:
    """Keep slow connections open until this process is killed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    parts = urlsplit(url)
    address = (str(parts.hostname), int(parts.port or 80))
    slow = [Slow(address, KINDS[number % (len(KINDS) - 1)] if kind == KINDS[-1] else kind) for number in range(n)]
    selector = selectors.DefaultSelector()
    for each in slow:
        each.open(selector)
    print("connected", flush=True)
    while True:
        began = time.monotonic()
        for each in slow:
            each.send_more(selector)
        while (left := began + PAUSE_S - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data.receive(selector)


class Slow:
    """A slow client.

    Args:
        address: of the server.
        kind: one of :data:`KINDS`.
    """

    def __init__(self, address: tuple[str, int], kind: str) -> None:
        self._address, self._kind = address, kind
        self._socket: socket.socket | None = None
        self._rests_until = 0.0

    def open(self, selector: selectors.BaseSelector) -> None:
        """Connect, and send the beginning of a request."""
        begin = {
            "half a head": b"GET /api/v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ",
            "a slow body": _LOGIN,
            "no reader": b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "silent": b"",
            "idle": b"GET /api/v1/healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        }[self._kind]
        made = socket.socket()
        if self._kind == "no reader":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            made.connect(self._address)
            made.sendall(begin)
        except OSError:
            made.close()
            return
        made.setblocking(False)
        self._socket = made
        if self._kind != "no reader":
            selector.register(made, selectors.EVENT_READ, self)

    def send_more(self, selector: selectors.BaseSelector) -> None:
        """Send a byte, if this kind does; connect again if the connection has ended."""
        if self._socket is None:
            if time.monotonic() >= self._rests_until:
                self.open(selector)
        elif self._kind in ("half a head", "a slow body"):
            try:
                self._socket.send(b"x")
            except BlockingIOError:
                return
            except OSError:
                self._close(selector)
        elif self._kind == "no reader":
            try:
                self._socket.send(b"")
                if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._close(selector)
            except OSError:
                self._close(selector)

    def receive(self, selector: selectors.BaseSelector) -> None:
        """Take what has come; connect again in the next turn if the connection has ended."""
        assert self._socket is not None
        try:
            if self._socket.recv(2**16):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(selector)

    def _close(self, selector: selectors.BaseSelector) -> None:
        assert self._socket is not None
        if self._kind != "no reader":
            selector.unregister(self._socket)
        self._socket.close()
        self._socket = None
        if self._kind in ("no reader", "idle"):
            self._rests_until = time.monotonic() + REST_S


if __name__ == "__main__":
    main()
