"""The service under load: latencies of single requests beside those of the library, uploads, and many clients at once.

A server in a process of its own serves a dataset of vectors and one of photographs. Each kind of request is first made
by one client over a connection that stays open, and by the library in this process; the difference is what HTTP costs.
Then many clients mix all kinds.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from common import save, table, verdict
from framedex import Dataset, Workspace

API = "/api/v1"
DIMENSION = 64
QUICK = ("status", "similar", "thumbnail, cached")
AIM_MS, AIM_EXPLORE_MS = 3.0, 20.0
AIM_GROWTH = 1.05
_IDLE_S = 60  # less than the server keeps an idle connection
_FIRST = 3  # calls before those that are measured


class Connection:
    """A connection to the server that stays open.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        assert self._parts.hostname is not None
        self._connection = http.client.HTTPConnection(self._parts.hostname, self._parts.port, timeout=120)
        self._used_at = time.monotonic()

    def send(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """Return the body of the answer, which must be a good one."""
        headers = {} if body is None else {"Content-Type": kind}
        if time.monotonic() - self._used_at > _IDLE_S:
            self._connection.close()  # the next request opens another one
        self._connection.request(method, path, body=body, headers=headers)
        answer = self._connection.getresponse()
        data = answer.read()
        self._used_at = time.monotonic()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]!r}")
        return data

    def get(self, path: str) -> bytes:
        """Return the body of a GET."""
        return self.send("GET", path)


@dataclass(frozen=True)
class Server:
    """A server in a process of its own, and its address."""

    process: subprocess.Popen[str]
    url: str


def server_of(folder: Path, python: Path | None = None, **environment: str) -> Server:
    """Serve a workspace in a process of its own, by this Python or another one, with variables of the environment."""
    program = [
        str(python or sys.executable),
        "-m",
        "framedex",
        "serve",
        "--workspace",
        str(folder),
        "--port",
        "0",
    ]
    variables = {**os.environ, "LOG_LEVEL": "WARNING", **environment}
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=variables)
    assert process.stdout is not None
    url = re.search(r"http://\S+", process.stdout.readline())
    assert url is not None
    return Server(process, url.group())


@dataclass
class Timed:
    """The times of a call.

    Attributes:
        seconds: of each turn.
        cpu_ms: the processor time of a turn in milliseconds, their mean.
    """

    seconds: list[float] = field(default_factory=list)
    cpu_ms: float = 0.0


@contextmanager
def served(folder: Path, python: Path | None = None, **environment: str) -> Iterator[tuple[str, int]]:
    """Serve a workspace in a process of its own; yield its URL and the id of the process."""
    server = server_of(folder, python, **environment)
    try:
        yield server.url, server.process.pid
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)


def made(workspace: Workspace, rows: int) -> Dataset:
    """Return a dataset of random vectors around centres, with labels."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((100, DIMENSION)).astype(np.float32)
    vectors = centres[draw.integers(0, 100, rows)] + 0.5 * draw.standard_normal((rows, DIMENSION), np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel().astype(np.float32)), DIMENSION)
    uris = [f"/images/{number:07}.jpg" for number in range(rows)]
    labels = [f"label {number % 50}" for number in range(rows)]
    return workspace.create_dataset("vectors", pa.table({"uri": uris, "embedding": values, "label": labels}))


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 95th and 99th percentile in milliseconds."""
    values = 1000 * np.percentile(seconds, [50, 95, 99])
    return dict(zip(("p50", "p95", "p99"), (round(float(value), 2) for value in values), strict=True))


def timed(calls: Sequence[Callable[[int], object]], times: int, cpu_ms: Sequence[Callable[[], float]]) -> list[Timed]:
    """Return the times of each of some calls, which take turns, after a few more.

    Machines are shared, and become slower and faster: calls that follow each other at once can be compared.

    Args:
        calls: what is measured; each gets the number of the turn.
        times: the number of turns.
        cpu_ms: for each call the processor time in milliseconds of the process in which it works.
    """
    found = [Timed() for _ in calls]
    for number in range(-_FIRST, times):
        for call, clock, row in zip(calls, cpu_ms, found, strict=True):
            began, cpu = time.perf_counter(), clock()
            call(number)
            seconds, used_ms = time.perf_counter() - began, clock() - cpu
            if number >= 0:
                row.seconds.append(seconds)
                row.cpu_ms += used_ms / times
    return found


def thumbnails_of(connection: Connection, dataset_id: str) -> list[str]:
    """Return paths of thumbnails."""
    body = json.loads(connection.get(f"{API}/explore/{dataset_id}?threshold=4"))
    previews = [preview for cluster in body["clusters"] for preview in cluster["previews"]]
    return [preview["media_thumb_uri"].split("/", 3)[3].join(("/", "")) for preview in previews]


def compare(url: str, pid: int, vectors: Dataset, photos: Dataset, times: int) -> list[dict[str, Any]]:
    """Measure each kind of request, and the same call of the library in this process.

    The processor time of the server, and of the call, says more than the time where other work shares the machine. That
    of a process is counted in steps of 10 ms, so that it is a mean of many calls.
    """
    connection, draw = Connection(url), random.Random(0)
    ids = vectors.view.limit(1000).media_ids()
    thumbnails = thumbnails_of(connection, photos.id)
    photo_ids = photos.view.media_ids()
    anchors = [draw.choice(ids) for _ in range(times + 3)]
    explore, path = f"{API}/explore/{vectors.id}", f"{API}/dataset/{vectors.id}"
    kinds: dict[str, tuple[Callable[[int], object], Callable[[int], object] | None]] = {
        "status": (lambda _: connection.get(path), lambda _: vectors.info),
        "similar": (
            lambda n: connection.get(f"{explore}?anchor_media_id={anchors[n]}&anchor_type=MEDIA"),
            lambda n: vectors.explore(anchor_media_id=anchors[n], anchor_type="MEDIA"),
        ),
        "explore": (lambda _: connection.get(explore), lambda _: vectors.explore()),
        "thumbnail, fresh": (lambda n: connection.get(thumbnails[n % len(thumbnails)] + "&size=512"), None),
        "thumbnail, cached": (
            lambda _: connection.get(thumbnails[0]),
            lambda _: photos.thumbnail(photo_ids[0]),
        ),
    }
    rows = []
    for name, (over_http, in_library) in kinds.items():
        count = min(times, len(thumbnails) - 3) if name == "thumbnail, fresh" else times
        calls, clocks = [over_http], [lambda: processor_ms(pid)]
        if in_library is not None:
            calls.append(in_library)
            clocks.append(lambda: 1000 * time.process_time())
        http, *library = timed(calls, count, clocks)
        row = {"request": name, **percentiles(http.seconds), "library p50": None, "overhead": None}
        row |= {"server cpu": round(http.cpu_ms, 2), "library cpu": None, "cpu overhead": None}
        for each in library:
            row["library p50"] = percentiles(each.seconds)["p50"]
            row["library cpu"] = round(each.cpu_ms, 2)
            row["overhead"] = round(row["p50"] - row["library p50"], 2)
            row["cpu overhead"] = round(row["server cpu"] - row["library cpu"], 2)
        rows.append(row)
    return rows


def processor_ms(pid: int) -> float:
    """Return the processor time of a process in milliseconds, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def upload(url: str, megabytes: int) -> float:
    """Return the megabytes a second of an upload in requests of 50 files of 1 MB each."""
    connection = Connection(url)
    dataset_id = json.loads(connection.get(f"{API}/ingestion/new_dataset?dataset_name=uploaded"))["dataset_id"]
    number = json.loads(connection.get(f"{API}/ingestion/{dataset_id}/data_files"))["trans_id"]
    content, began = os.urandom(2**20), time.perf_counter()
    for first in range(0, megabytes, 50):
        parts = [
            b'--b\r\nContent-Disposition: form-data; name="files"; filename="%d.jpg"\r\n\r\n%b\r\n' % (each, content)
            for each in range(first, min(first + 50, megabytes))
        ]
        body = b"".join(parts) + b"--b--\r\n"
        connection.send(
            "POST", f"{API}/ingestion/{dataset_id}/data_files/{number}", body, "multipart/form-data; boundary=b"
        )
    seconds = time.perf_counter() - began
    connection.send("DELETE", f"{API}/dataset/{dataset_id}")
    return megabytes / seconds


def mixed(url: str, vectors: Dataset, photos: Dataset, clients: int, seconds: float) -> dict[str, Any]:
    """Let clients mix all kinds of requests; return percentiles, requests a second and errors."""
    thumbnails, ids = thumbnails_of(Connection(url), photos.id), vectors.view.limit(1000).media_ids()
    times, errors, lock = defaultdict[str, list[float]](list), list[str](), threading.Lock()
    end = time.monotonic() + seconds

    def work(seed: int) -> None:
        connection, draw = Connection(url), random.Random(seed)
        explore = f"{API}/explore/{vectors.id}"
        while time.monotonic() < end:
            name, path = draw.choice(
                [
                    ("status", f"{API}/dataset/{vectors.id}"),
                    ("health", f"{API}/healthcheck"),
                    ("similar", f"{explore}?anchor_media_id={draw.choice(ids)}&anchor_type=MEDIA"),
                    ("explore", f"{explore}?page_number={draw.randrange(3)}"),
                    ("thumbnail", draw.choice(thumbnails)),
                ]
            )
            began = time.perf_counter()
            try:
                connection.get(path)
            except Exception as error:  # every one counts
                with lock:
                    errors.append(f"{name}: {error}")
                connection = Connection(url)
            with lock:
                times[name].append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [{"request": name, "count": len(values), **percentiles(values)} for name, values in sorted(times.items())]
    return {"rows": rows, "per second": sum(map(len, times.values())) / seconds, "errors": errors}


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    print(table(list(rows[0]), [["-" if value is None else value for value in row.values()] for row in rows]))


def memory_mib(pid: int) -> int:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found.group(1)) // 1024 if found else 0


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=200, help="requests of each kind")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=2, help="rounds of mixed load; memory is read after each")
    parser.add_argument("--megabytes", type=int, default=500, help="size of the upload")
    parser.add_argument("--photos", required=True, help="a folder of photographs")
    parser.add_argument("--folder", type=Path, help="where the workspace is kept for further runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (arguments.folder or Path(scratch)) / f"{arguments.rows}"
        with Workspace(folder) as workspace:
            if not workspace.datasets():
                made(workspace, arguments.rows)
                workspace.create_dataset("photos", arguments.photos)
        with served(folder) as (url, pid), Workspace(folder) as workspace:
            vectors, photos = workspace.dataset("vectors"), workspace.dataset("photos")
            single = compare(url, pid, vectors, photos, arguments.times)
            show(single)
            rate = upload(url, arguments.megabytes)
            print(f"upload: {rate:.0f} MB/s")
            rounds, memory = [], []
            for _ in range(arguments.rounds):
                rounds.append(mixed(url, vectors, photos, arguments.clients, arguments.seconds))
                memory.append(memory_mib(pid))
                show(rounds[-1]["rows"])
                found = rounds[-1]
                print(f"{found['per second']:.0f} requests/s, {len(found['errors'])} errors, {memory[-1]} MiB")
    if len(memory) > 1:
        growth = memory[-1] / memory[0]
        print(f"memory in MiB after each round: {memory}")
        print(verdict("memory after the last round, times that after the first", growth, AIM_GROWTH, at_most=True))
    overheads = {row["request"]: row["overhead"] for row in single}
    for name in (*QUICK, "explore"):
        print(
            verdict(
                f"{name}, ms that HTTP adds", overheads[name], AIM_MS if name in QUICK else AIM_EXPLORE_MS, at_most=True
            )
        )
    save("service", {"rows": arguments.rows, "single": single, "upload": rate, "mixed": rounds, "memory": memory})


if __name__ == "__main__":
    main()
