"""A server is killed in the middle of uploads, processing, additions and exports: nothing is lost or half done.

A client sends one request after another, until the server is killed. Then the workspace is checked, and a second server
must end what the first began.
"""

import io
import random
import signal
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from framedex import Workspace
from tests.image_files import encode, photo
from tests.laws import trials
from tests.pauses import first_answer
from tests.service.test_server import Served, served

pytestmark = [pytest.mark.slow, pytest.mark.soak]
_Answer = TypeVar("_Answer")
_API = "/api/v1"
_STEPS = {"upload": 0.5, "process": 1.5, "addition": 1.0, "export": 1.0}
"""Steps of a client, each with the seconds within which it is killed; it is in a later step where that is too long."""
_ENDED = {"READY", "PARTIAL INDEX", "ERROR"}
_UPLOADED = {f"{seed:04}.jpg": encode(photo(seed), "JPEG") for seed in range(24)}
_ADDED = {f"{seed:04}.jpg": encode(photo(seed), "JPEG") for seed in range(1000, 1008)}


class Story:
    """The requests of a client until its server is killed.

    Args:
        server: the server.
        killed_in: the step in which the server is killed.
        after_s: the seconds from its beginning.

    Attributes:
        step: the present step.
        dataset_id: the dataset; empty before it was made.
        path: of the upload.
        accepted: the names of the files that were answered 202.
        doubtful: the names of the files of the request without an answer.
        is_processed: whether the upload was handed over; None if that is not known.
        is_added: whether the addition was accepted; None if that is not known.
        exports: ids of started exports.
    """

    def __init__(self, server: Served, killed_in: str, after_s: float) -> None:
        self._client, self._timer = Client(server.url), threading.Timer(after_s, server.process.kill)
        self._killed_in, self.step, self.dataset_id, self.path = killed_in, "", "", ""
        self.accepted, self.doubtful = set[str](), set[str]()
        self.is_processed: bool | None = False
        self.is_added: bool | None = False
        self.exports = list[str]()

    def tell(self) -> None:
        """Send requests until one has no answer."""
        with suppress(httpx2.TransportError):
            self._upload()
            self._process()
            self._add()
            self._export()
        self._timer.join()
        self._client.http.close()

    def _begin(self, step: str) -> None:
        self.step = step
        if step == self._killed_in:
            self._timer.start()

    def _upload(self) -> None:
        self._begin("upload")
        self.dataset_id = self._client.ask("ingestion/new_dataset", dataset_name="pets")["dataset_id"]
        number = self._client.ask(f"ingestion/{self.dataset_id}/data_files")["trans_id"]
        self.path = f"ingestion/{self.dataset_id}/{{}}/{number}"
        names = list(_UPLOADED)
        for first in range(0, len(names), 5):
            self.doubtful = set(names[first : first + 5])
            self._client.send(self.path.format("data_files"), {name: _UPLOADED[name] for name in self.doubtful})
            self.accepted |= self.doubtful
            self.doubtful = set()

    def _process(self) -> None:
        self._begin("process")
        self.is_processed = None
        self._client.send(self.path.format("process_files"))
        self.is_processed = True
        self._client.settle(self.dataset_id)

    def _add(self) -> None:
        self._begin("addition")
        self.is_added = None
        self._client.send(f"dataset/{self.dataset_id}/add_media", _ADDED)
        self.is_added = True
        self._client.settle(self.dataset_id)

    def _export(self) -> None:
        self._begin("export")
        self._client.send(f"dataset/{self.dataset_id}/reindex")
        self._client.settle(self.dataset_id, {"READY"})
        for number in count():
            self.exports.append(self._client.export(self.dataset_id, f"all {number}", images=True))
            self._client.exported(self.dataset_id, self.exports[-1])


class Client:
    """A client of a service by its paths.

    Args:
        url: of the service.
    """

    def __init__(self, url: str) -> None:
        self.http = httpx2.Client(base_url=url, timeout=120)

    def ask(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET."""
        return self.http.get(f"{_API}/{path}", params=query).raise_for_status().json()

    def send(self, path: str, files: dict[str, bytes] | None = None) -> None:
        """Send a POST, with files if there are any."""
        parts = [("files", file) for file in (files or {}).items()]
        self.http.post(f"{_API}/{path}", files=parts or None).raise_for_status()

    def status(self, dataset_id: str) -> str:
        """Return the status of a dataset."""
        return str(self.ask(f"dataset/{dataset_id}")["status_new"])

    def settle(self, dataset_id: str, ends: set[str] = _ENDED) -> str:
        """Return the status of a dataset once nothing runs."""
        return first_answer(lambda: self.status(dataset_id), ends.__contains__)

    def export(self, dataset_id: str, name: str, *, images: bool) -> str:
        """Start an export and return its id."""
        query = {"file_name": name, "export_format": "json", "include_images": images}
        return str(self.ask(f"dataset/{dataset_id}/export_context_async", **query)["id"])

    def exported(self, dataset_id: str, export_id: str) -> dict[str, Any]:
        """Return an export once it has ended."""
        path, query = f"dataset/{dataset_id}/export_status", {"export_task_id": export_id}
        ended = {"COMPLETED", "FAILED", "REJECTED"}
        return first_answer(lambda: self.ask(path, **query), lambda record: record["status"] in ended)


@pytest.mark.parametrize("number", range(trials(1, 14)))
@pytest.mark.parametrize("step", _STEPS)
def test_server__killed(tmp_path: Path, step: str, number: int, record_property: Callable[[str, object], None]) -> None:
    """Each file that was accepted is an image at the end and no other one, and the next requests are accepted."""
    folder, after_s = tmp_path / "ws", random.Random(f"{step} {number}").uniform(0, _STEPS[step])
    Workspace(folder).close()
    with served(folder, FRAMEDEX_COPY_BUDGET_MS="0") as server:
        story = Story(server, step, after_s)
        story.tell()
        assert server.process.wait(60) == -signal.SIGKILL
    at = f"killed {after_s:.3f} s after the beginning of {step!r}, in {story.step!r}"
    record_property("kill", ("server", story.step))
    with Workspace(folder) as workspace:
        assert workspace.check().findings == [], at
    with served(folder, FRAMEDEX_COPY_BUDGET_MS="0") as server:
        client = Client(server.url)
        assert faults_of(client, folder, story) == [], at
        client.http.close()
        server.stop()


def faults_of(client: Client, folder: Path, story: Story) -> list[str]:
    """Return what is wrong once the second server has ended what the first began."""
    if not story.path:
        return []
    if client.status(story.dataset_id) == "DRAFT":
        if story.is_processed:
            return ["an upload that was handed over is a draft again"]
        if not story.accepted:  # the files of the request without an answer may be there or not
            return []
        client.send(story.path.format("process_files"))
    if client.settle(story.dataset_id) == "ERROR":
        return ["the dataset is in ERROR"]
    with Workspace(folder, read_only=True) as workspace:
        names = {Path(name).name for name in workspace.dataset(story.dataset_id).to_arrow(["path"])["path"].to_pylist()}
    uploaded, added = names - set(_ADDED), names & set(_ADDED)
    faults = [f"lost: {name}" for name in story.accepted - uploaded]
    faults += [f"never accepted: {name}" for name in uploaded - story.accepted - story.doubtful]
    if added not in (set(), set(_ADDED)) or (story.is_added and not added):
        faults.append(f"{len(added)} of {len(_ADDED)} files of an addition")
    for export_id in story.exports:
        record = client.exported(story.dataset_id, export_id)
        if record["status"] == "COMPLETED":
            content = client.http.get(record["download_uri"]).raise_for_status().content
            if zipfile.ZipFile(io.BytesIO(content)).testzip() is not None:
                faults.append("a completed export is damaged")
    if client.status(story.dataset_id) != "READY":
        client.send(f"dataset/{story.dataset_id}/reindex")
    client.settle(story.dataset_id, {"READY"})
    last = client.exported(story.dataset_id, client.export(story.dataset_id, "last", images=False))
    return [*faults, *(["no export afterwards"] if last["status"] != "COMPLETED" else [])]
