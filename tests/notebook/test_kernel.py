"""The widget in a real kernel, which a client of Jupyter's protocol talks to as a browser does."""

import json
import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset
from framedex.api.workspace import workspace_of
from framedex.web import BUILD_HINT, AppPages
from tests.extras import need

need("notebook", "anywidget", "ipykernel", "fastapi")
need("dev", "nbclient", "nbformat")

import nbformat  # noqa: E402
from jupyter_core.utils import run_sync  # noqa: E402
from nbclient import NotebookClient  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not AppPages().exist, reason=BUILD_HINT)]
_LIMIT_S = 60.0


class RunningNotebook:
    """A notebook whose kernel runs.

    Args:
        client: the client, with a kernel.
    """

    def __init__(self, client: NotebookClient) -> None:
        self._client = client
        self._kernel: Any = client.kc  # the client of a kernel that waits or not, by how it was made

    def run(self, source: str) -> Any:
        """Run a cell, and return its last output."""
        cell = nbformat.v4.new_code_cell(source)  # type: ignore[no-untyped-call] # untyped in nbformat
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return cell["outputs"][-1] if cell["outputs"] else None

    def start(self, source: str) -> None:
        """Begin a cell, without its outputs."""
        self._kernel.execute(source, silent=True)

    def send(self, model_id: str, data: dict[str, Any]) -> None:
        """Send a message to the model of a widget."""
        channel = self._kernel.shell_channel
        channel.send(self._kernel.session.msg("comm_msg", {"comm_id": model_id, "data": data}))

    def request(self, model_id: str, *paths: str) -> None:
        """Send requests of a view."""
        items = [
            {"do": "request", "id": path, "method": "GET", "path": f"/api/v1{path}", "headers": {}} for path in paths
        ]
        self.send(model_id, {"method": "custom", "content": {"view": "v", "items": items}})

    def answer(self, model_id: str, item_id: str, limit_s: float = _LIMIT_S) -> tuple[dict[str, Any], bytes]:
        """Return the next item of an answer to a view, and its body."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            message = self._next()
            content = message["content"]
            if message["msg_type"] != "comm_msg" or content["comm_id"] != model_id:
                continue
            buffers = iter(message["buffers"])
            for item in content["data"].get("content", {}).get("items", ()):
                body = bytes(next(buffers)) if item["has_body"] else b""
                if item["id"] == item_id:
                    return item, body
        raise TimeoutError(item_id)

    def _next(self) -> Any:
        try:
            return run_sync(self._kernel.get_iopub_msg)(timeout=1)
        except queue.Empty:
            return {"msg_type": "", "content": {}}


@pytest.fixture
def running() -> Iterator[RunningNotebook]:
    """A notebook with a kernel."""
    notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call] # untyped in nbformat
    client = NotebookClient(notebook, timeout=300, kernel_name="python3")
    with client.setup_kernel():
        yield RunningNotebook(client)


def test_widget__in_a_kernel(dataset: Dataset, running: RunningNotebook, tmp_path: Path) -> None:
    """A cell shows a widget; its requests are answered between cells, its events also while one runs."""
    folder = workspace_of(dataset).path
    running.run(f"import framedex; ds = framedex.Workspace({str(folder)!r}).dataset('pets'); w = ds.app(); w")
    shown = running.run("w")["data"]["application/vnd.jupyter.widget-view+json"]
    model_id = shown["model_id"]
    assert running.run("print(w)")["text"] == "<framedex.AppWidget of dataset 'pets'>\n"
    running.request(model_id, "/datasets", "/events")
    item, body = running.answer(model_id, "/datasets")
    assert item["status"] == 200
    assert [each["display_name"] for each in json.loads(body)] == ["pets"]
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    running.start(f"open({str(gate)!r}).read()")  # it waits for a writer
    running.request(model_id, "/me")
    assert b"ping" in running.answer(model_id, "/events")[1]
    with gate.open("w"):
        assert b"ping" in running.answer(model_id, "/events")[1]
    assert running.answer(model_id, "/me")[0]["status"] == 200
    ids = dataset.view.media_ids()[:2]
    running.send(model_id, {"method": "update", "state": {"selected": ids}, "buffer_paths": []})
    assert running.run("print(w.selection.media_ids())")["text"].strip() == str(ids)
    running.run("w.close()")
    names = running.run("import threading; print(sorted(t.name for t in threading.enumerate()))")["text"]
    assert "framedex-notebook" not in names
