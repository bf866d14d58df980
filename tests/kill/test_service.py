"""Kills of the server at random moments of uploads, processing, additions and exports: nothing is lost or half done.

For each moment a server of a fresh workspace is asked for a sequence of requests and killed in the middle of one of its
steps, at a random time: each step gets as many kills, however short it is. Then the workspace is checked, and a second
server must end what the first began: each file that was answered 202 is a media item at the end, and no other one; each
export that was started has failed or can be downloaded; the next calls are accepted.
"""

import argparse
import http.client
import io
import itertools
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from common import save
from framedex import Workspace
from service import API, Connection, server_of

FILES, BATCH, ADDED = 60, 10, 12
STEPS = ("upload", "process", "addition", "export")


def images(count: int, first: int = 0) -> dict[str, bytes]:
    """Return small JPEG images of noise by name."""
    found = {}
    for number in range(first, first + count):
        draw = np.random.default_rng(number)
        out = io.BytesIO()
        Image.fromarray(draw.integers(0, 256, (96, 128, 3), dtype=np.uint8)).save(out, "JPEG")
        found[f"{number:04}.jpg"] = out.getvalue()
    return found


def form(files: dict[str, bytes], **fields: str) -> tuple[bytes, str]:
    """Return a multipart form of files and fields, and its type."""
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n"
        for name, data in files.items()
    ]
    parts += [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    return b"".join(parts) + b"--b--\r\n", "multipart/form-data; boundary=b"


class Story:
    """What a client did until the server was killed.

    Attributes:
        step: the present step.
        dataset_id: the dataset; None before it was made.
        accepted: the names of the files that were answered 202.
        doubtful: the names of the files of the request without an answer.
        processing: whether the upload was handed over; None if that is not known.
        added: whether the addition was accepted; None if that is not known.
        exports: ids of started exports.
        began_s: when each step began.
    """

    def __init__(self) -> None:
        self._step = ""
        self.began_s = dict[str, float]()
        self._changed = threading.Condition()
        self.dataset_id: str | None = None
        self.number: int | None = None
        self.accepted, self.doubtful = set[str](), set[str]()
        self.processing: bool | None = False
        self.added: bool | None = False
        self.exports: list[str] = []

    @property
    def step(self) -> str:
        """The present step."""
        return self._step

    @step.setter
    def step(self, step: str) -> None:
        with self._changed:
            self._step, self.began_s[step] = step, time.monotonic()
            self._changed.notify_all()

    def wait_for(self, step: str) -> None:
        """Wait until a step has begun."""
        with self._changed:
            if not self._changed.wait_for(lambda: step in self.began_s, 120):
                raise RuntimeError(f"the step {step!r} does not begin")

    def run(self, url: str, exports: int | None = None) -> None:
        """Send one request after another, until one has no answer, or after so many exports."""
        connection = Connection(url)
        self.step = "upload"
        self.dataset_id = json.loads(connection.get(f"{API}/ingestion/new_dataset?dataset_name=pets"))["dataset_id"]
        path = f"{API}/ingestion/{self.dataset_id}"
        self.number = json.loads(connection.get(f"{path}/data_files"))["trans_id"]
        files = list(images(FILES).items())
        for first in range(0, FILES, BATCH):
            batch = dict(files[first : first + BATCH])
            self.doubtful = set(batch)
            connection.send("POST", f"{path}/data_files/{self.number}", *form(batch))
            self.accepted |= self.doubtful
            self.doubtful = set()
        self.step, self.processing = "process", None
        connection.send("POST", f"{path}/process_files/{self.number}")
        self.processing = True
        wait_ready(connection, self.dataset_id)
        self.step, self.added = "addition", None
        connection.send("POST", f"{API}/dataset/{self.dataset_id}/add_media", *form(images(ADDED, 1000)))
        self.added = True
        wait_ready(connection, self.dataset_id)
        self.step = "export"
        connection.send("POST", f"{API}/dataset/{self.dataset_id}/reindex")
        wait_ready(connection, self.dataset_id, {"READY"})
        for number in itertools.count() if exports is None else range(exports):
            query = f"file_name=all{number}&export_format=json&include_images=true"
            answer = connection.get(f"{API}/dataset/{self.dataset_id}/export_context_async?{query}")
            self.exports.append(json.loads(answer)["id"])
            wait_export(connection, self.dataset_id, self.exports[-1])


def wait_ready(connection: Connection, dataset_id: str, wanted: set[str] | None = None) -> str:
    """Return the status of a dataset once nothing runs."""
    for _ in range(1200):
        status: str = json.loads(connection.get(f"{API}/dataset/{dataset_id}"))["status_new"]
        if status in (wanted or {"READY", "PARTIAL INDEX", "ERROR"}):
            return status
        time.sleep(0.05)
    raise RuntimeError(f"the dataset stays {status}")


def wait_export(connection: Connection, dataset_id: str, export_id: str) -> dict[str, Any]:
    """Return an export once it has ended."""
    for _ in range(1200):
        path = f"{API}/dataset/{dataset_id}/export_status?export_task_id={export_id}"
        record: dict[str, Any] = json.loads(connection.get(path))
        if record["status"] in ("COMPLETED", "FAILED", "REJECTED"):
            return record
        time.sleep(0.05)
    raise RuntimeError("the export does not end")


def undisturbed(template: Path, folder: Path) -> dict[str, float]:
    """Return how long each step lasts, in seconds; the last one with two exports."""
    shutil.copytree(template, folder)
    story, server = Story(), server_of(folder)
    try:
        story.run(server.url, exports=2)
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    times = [story.began_s[step] for step in STEPS] + [time.monotonic()]
    return {step: after - began for step, began, after in zip(STEPS, times, times[1:], strict=False)}


def kill_once(template: Path, folder: Path, step: str, seconds: float) -> tuple[str, list[str]]:
    """Kill a server some seconds after the beginning of a step; return the step it was in, and what is wrong then."""
    shutil.copytree(template, folder)
    story, server = Story(), server_of(folder)
    url = server.url

    def tell() -> None:
        try:
            story.run(url)
        except (OSError, RuntimeError, ValueError, KeyError, http.client.HTTPException):
            return

    client = threading.Thread(target=tell, daemon=True)
    client.start()
    story.wait_for(step)
    time.sleep(seconds)
    step = story.step
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    client.join(60)
    wrong = []
    with Workspace(folder) as workspace:  # which removes what a killed creation has left
        wrong += [f"check: {finding}" for finding in workspace.check().findings]
    server = server_of(folder)
    try:
        wrong += problems(server.url, folder, story)
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    return step, wrong


def problems(url: str, folder: Path, story: Story) -> list[str]:
    """Return what is wrong once the second server has ended what the first began."""
    if story.dataset_id is None:
        return []
    connection, dataset_id, wrong = Connection(url), story.dataset_id, list[str]()
    if json.loads(connection.get(f"{API}/dataset/{dataset_id}"))["status_new"] == "DRAFT":
        if story.processing is True:
            return ["an upload that was handed over is a draft again"]
        if story.number is None:
            return []
        if not story.accepted:  # the files of the request without an answer may be there or not
            return []
        connection.send("POST", f"{API}/ingestion/{dataset_id}/process_files/{story.number}")
    status = wait_ready(connection, dataset_id)
    if status == "ERROR":
        return ["the dataset is in ERROR"]
    with Workspace(folder, read_only=True) as workspace:
        names = {Path(name).name for name in workspace.dataset(dataset_id).to_arrow(["path"])["path"].to_pylist()}
    added = set(images(ADDED, 1000))
    first = names - added
    if story.accepted - first:
        wrong.append(f"lost: {sorted(story.accepted - first)[:3]}")
    if first - story.accepted - story.doubtful:
        wrong.append(f"never accepted: {sorted(first - story.accepted - story.doubtful)[:3]}")
    if names & added and names & added != added:
        wrong.append(f"{len(names & added)} of {ADDED} files of an addition")
    if story.added is True and not names & added:
        wrong.append("an accepted addition is lost")
    for export_id in story.exports:
        record = wait_export(connection, dataset_id, export_id)
        if record["status"] == "COMPLETED":
            data = connection.get(record["download_uri"].replace(url, ""))
            if zipfile.ZipFile(io.BytesIO(data)).testzip() is not None:
                wrong.append("a completed export is damaged")
    started = json.loads(
        connection.get(f"{API}/dataset/{dataset_id}/export_context_async?file_name=last&export_format=json")
        if status == "READY"
        else connection.send("POST", f"{API}/dataset/{dataset_id}/reindex") or "{}"
    )
    if "id" in started and wait_export(connection, dataset_id, started["id"])["status"] != "COMPLETED":
        wrong.append("no export afterwards")
    return wrong


def main() -> None:
    """Kill at many moments and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw, counts, wrong = random.Random(arguments.seed), dict.fromkeys(STEPS, 0), list[str]()
    with tempfile.TemporaryDirectory() as scratch:
        template = Path(scratch) / "template"
        Workspace(template).close()
        lasts_s = undisturbed(template, Path(scratch) / "undisturbed")
        print({step: round(seconds, 2) for step, seconds in lasts_s.items()}, flush=True)
        for moment in range(arguments.moments):
            wanted = STEPS[moment % len(STEPS)]
            seconds = draw.uniform(0.0, lasts_s[wanted])
            step, found = kill_once(template, Path(scratch) / f"ws{moment}", wanted, seconds)
            counts[step] += 1
            wrong += [f"moment {moment}, {seconds:.2f} s, {step}: {each}" for each in found]
            print(f"{moment}: {seconds:.2f} s, {step}: {'; '.join(found) or 'good'}", flush=True)
            shutil.rmtree(Path(scratch) / f"ws{moment}", ignore_errors=True)
    print(f"kills by step: {counts}; {len(wrong)} faults")
    save("kill_service", {"kills": counts, "faults": wrong})
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
