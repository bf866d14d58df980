"""Alerts on their way to the stream of notifications, and the cost of streams on which nothing happens.

Latency: the time from the commit of an alert to its event on an open stream. Alerts are stored as an evaluation stores
them, by the process of the service, and by another one beside it. Cost: the processor time of a server with 200 streams
of 40 users, which send a ping every three seconds, and of the same server without streams. The evaluation of views
itself is measured by ``saved_views.py``.
"""

import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import uvicorn

from common import arguments, save, table, verdict
from framedex import Workspace
from framedex.access import operator_actor
from framedex.hub import Hub
from framedex.hub.listeners import MOST_LISTENERS
from framedex.service.app import create_app
from framedex.service.settings import ServiceSettings
from framedex.storage import alert_queue, view_rows
from framedex.storage.datasets import now
from framedex.storage.view_rows import ViewEvaluation
from service import percentiles, served

STREAM = "/api/v1/notifications/stream"
AIM_MS, AIM_PERCENT = 300.0, 5.0
_PAUSE_S = 0.37  # between two alerts: no multiple of the time between two looks
_TICKS = 100.0  # of the processor time in /proc, a second


def made(folder: Path) -> None:
    """Make a workspace with a small dataset and a saved view."""
    vectors = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    rows = pa.table({"uri": [f"/images/{number}.jpg" for number in range(20)], "embedding": values})
    with Workspace(folder) as workspace:
        workspace.create_dataset("pets", rows).save_view("all")


def raise_alert(workspace: Workspace, batch: int) -> float:
    """Store a point with an alert, as an evaluation does; return the time after the commit."""
    dataset = workspace.dataset("pets")
    evaluation = ViewEvaluation(dataset.saved_view("all").id, {batch: 1}, None)
    with workspace._context.catalog.write() as connection:
        alerts = view_rows.store_evaluations(connection, dataset.id, [evaluation], {batch: now()})
        alert_queue.queue_alerts(connection, [(each.view_id, each.batch) for each in alerts])
    assert len(alerts) == 1
    return time.time()


class Listener:
    """A stream that is read by a thread.

    Attributes:
        times: the times at which notifications came, by the number of the batch.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._socket = socket.create_connection((parts.hostname, parts.port or 80))
        self._socket.sendall(f"GET {STREAM} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        self.times: list[float] = []
        self._begun = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        assert self._begun.wait(30)

    def _run(self) -> None:
        with self._socket.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"event: notification"):
                    self.times.append(time.time())
                elif line.startswith(b"event: ping"):
                    self._begun.set()

    def waited(self, count: int) -> float:
        """Return the time of a notification by its place."""
        end = time.monotonic() + 60
        while len(self.times) <= count:
            assert time.monotonic() < end, "a notification is lost"
            time.sleep(0.001)
        return self.times[count]


def latencies(folder: Path, alerts: int) -> dict[str, list[float]]:
    """Return the seconds from commits to events, of alerts of the process of the service and of another one."""
    with Workspace(folder) as workspace, Hub(workspace) as hub:
        config = uvicorn.Config(
            create_app(workspace, hub, ServiceSettings()), host="127.0.0.1", port=0, log_config=None, access_log=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        listener = Listener(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
        found = {
            "the same process": _timed(listener, alerts, 0, lambda number: raise_alert(workspace, 1000 + number)),
            "another process": _of_another(listener, folder, alerts),
        }
        config.app.state.service.stopping.set()
        server.should_exit = True
        thread.join(10)
    return found


def _timed(listener: Listener, alerts: int, first: int, raises: Callable[[int], float]) -> list[float]:
    seconds = []
    for number in range(alerts):
        committed = raises(number)
        seconds.append(max(listener.waited(first + number) - committed, 0.0))
        time.sleep(_PAUSE_S)
    return seconds


def _of_another(listener: Listener, folder: Path, alerts: int) -> list[float]:
    command = [sys.executable, __file__, "--raise-alerts", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None

    def raises(number: int) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{100_000 + number}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    assert process.stdout.readline() == "ready\n"
    try:
        return _timed(listener, alerts, alerts, raises)
    finally:
        process.stdin.close()
        process.wait(60)


def raise_alerts(folder: Path) -> None:
    """Raise an alert for each line of the input, and print the time of its commit."""
    with Workspace(folder) as workspace:
        print("ready", flush=True)
        for line in sys.stdin:
            print(repr(raise_alert(workspace, int(line))), flush=True)


def cost(folder: Path, streams: int, seconds: float) -> dict[str, float]:
    """Return the share of a processor that a server takes without streams and with them, and the pings a second."""
    operator = operator_actor("operator")
    tokens = []
    with Workspace(folder) as workspace, Hub(workspace) as hub:
        for number in range(-(-streams // MOST_LISTENERS)):
            hub.users.create(operator, f"user-{number}", "correct horse")
            tokens.append(hub.sessions.log_in(f"user-{number}", "correct horse").token)
    with served(folder, DISABLE_AUTH="false") as (url, process_id):
        idle = _share(process_id, seconds / 2)
        sockets = [_opened(url, tokens[number // MOST_LISTENERS]) for number in range(streams)]
        with selectors.DefaultSelector() as selector:
            for each in sockets:
                selector.register(each, selectors.EVENT_READ)
            _read(selector, 4.0)
            began, used, pings = time.monotonic(), _used(process_id), 0
            pings = _read(selector, seconds)
            share = (_used(process_id) - used) / (time.monotonic() - began)
        for each in sockets:
            each.close()
    return {"idle_percent": 100 * idle, "percent": 100 * share, "pings_a_second": pings / seconds}


def _opened(url: str, token: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    opened = socket.create_connection((parts.hostname, parts.port or 80))
    opened.sendall(f"GET {STREAM} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: SESSION={token}\r\n\r\n".encode())
    assert b" 200 OK" in opened.recv(4096)
    return opened


def _read(selector: selectors.BaseSelector, seconds: float) -> int:
    """Read from all streams for a time; return the number of pings."""
    end, pings = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(65_536)
            assert data, "a stream ended"
            pings += data.count(b"event: ping")
    return pings


def _share(process_id: int, seconds: float) -> float:
    used = _used(process_id)
    time.sleep(seconds)
    return (_used(process_id) - used) / seconds


def _used(process_id: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--alerts", type=int, default=100, help="alerts of each process")
    parser.add_argument("--streams", type=int, default=200, help="idle streams")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for which idle streams are measured")
    parser.add_argument("--raise-alerts", type=Path, help="used by the benchmark itself")
    options = parser.parse_args()
    if options.raise_alerts is not None:
        raise_alerts(options.raise_alerts)
        return
    with tempfile.TemporaryDirectory(prefix="bench-watching-") as folder:
        made(Path(folder) / "latency")
        made(Path(folder) / "cost")
        found: dict[str, Any] = {
            name: percentiles(each) for name, each in latencies(Path(folder) / "latency", options.alerts).items()
        }
        costs = cost(Path(folder) / "cost", options.streams, options.seconds)
    print(table(["commit to event, ms", "p50", "p95", "p99"], [[name, *each.values()] for name, each in found.items()]))
    print(table([f"{options.streams} idle streams", ""], [[name, value] for name, value in costs.items()]))
    for name, each in found.items():
        print(verdict(f"p95 of {name}, ms", each["p95"], AIM_MS, at_most=True))
    print(verdict("share of a processor, %", costs["percent"], AIM_PERCENT, at_most=True))
    save("watching", {"alerts": options.alerts, "streams": options.streams, "latency_ms": found, **costs})


if __name__ == "__main__":
    main()
