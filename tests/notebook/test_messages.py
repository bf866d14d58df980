"""Messages between views and the service of a kernel."""

import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset
from tests.extras import need
from tests.pauses import wait_until
from tests.tuning import Tuning

need("http", "fastapi", "uvicorn", "argon2")

from framedex.notebook.kernel_service import SharedService  # noqa: E402
from framedex.notebook.messages import Messages  # noqa: E402

ASSETS = ({"x-styles": "3"}, b"abcdef")


class Front:
    """The other side: what a view sends and gets."""

    def __init__(self, shared: SharedService) -> None:
        self.inbox: queue.Queue[tuple[dict[str, Any], list[bytes]]] = queue.Queue()
        self.messages = Messages(shared.service, lambda *message: self.inbox.put(message), lambda: ASSETS)

    def send(self, *items: dict[str, Any], view: str = "a", buffers: tuple[bytes, ...] = ()) -> None:
        """Send a message."""
        self.messages.receive({"view": view, "items": list(items)}, buffers)

    def answers(self, *item_ids: str) -> dict[str, tuple[int, bytes]]:
        """Return the status and the body of requests, once all have ended."""
        found: dict[str, tuple[int, bytes]] = {}
        open_ids = set(item_ids)
        while open_ids:
            content, buffers = self.inbox.get(timeout=20)
            bodies = iter(buffers)
            for item in content["items"]:
                body = next(bodies) if item["has_body"] else b""
                if item.get("taken"):  # an answer that takes longer is announced
                    continue
                status, before = found.get(item["id"], (item.get("status", 0), b""))
                found[item["id"]] = (status, before + body)
                if item.get("end"):
                    open_ids.discard(item["id"])
        return found


@pytest.fixture
def front(dataset: Dataset) -> Iterator[Front]:
    """A view of a widget."""
    shared = SharedService(dataset)
    found = Front(shared)
    yield found
    found.messages.close()
    shared.close()


def request(item_id: str, path: str, **others: Any) -> dict[str, Any]:
    """Return an item that asks for a path."""
    return {"do": "request", "id": item_id, "method": "GET", "path": path, "headers": {}, **others}


@pytest.mark.slow
@pytest.mark.only_soak
def test_answers__go_together(front: Front, dataset: Dataset) -> None:
    """Many images are asked for in one message; answers that are there at the same time come in few."""
    ids = dataset.view.media_ids()
    names = [f"a-{number}" for number in range(len(ids))]
    paths = [f"/api/v1/dataset/{dataset.id}/media/{media_id}/thumbnail?size=128" for media_id in ids]
    asked = [request(name, path) for name, path in zip(names, paths, strict=True)]
    front.send(*asked)
    found = front.answers(*names)
    jpegs = [body for status, body in found.values() if status == 200]
    assert len(jpegs) >= len(ids) - 3  # the broken files
    assert all(body.startswith(b"\xff\xd8") for body in jpegs)
    front.send(*asked)
    ended, messages = 0, 0
    while ended < len(asked):  # the machine decides which answers are there at the same time
        content, buffers = front.inbox.get(timeout=20)
        assert len(buffers) == sum(item["has_body"] for item in content["items"])
        ended, messages = ended + sum(bool(item.get("end")) for item in content["items"]), messages + 1
    assert messages < len(asked)


def test_body__in_parts(front: Front, dataset: Dataset) -> None:
    """The body of a request comes in several messages, as servers of notebooks refuse large ones."""
    body = json.dumps({"vql": [{"labels": {"op": "is", "value": "animal"}}]}).encode()
    path = f"/api/v1/dataset/{dataset.id}/results"
    head = request("a-1", path, method="POST", headers={"Content-Type": "application/json"}, has_body=True, more=True)
    front.send(head, buffers=(body[:5],))
    front.send({"do": "part", "id": "a-1", "has_body": True, "more": True}, buffers=(body[5:9],))
    front.send({"do": "part", "id": "a-1", "has_body": True, "more": False}, buffers=(body[9:],))
    ((status, answer),) = front.answers("a-1").values()
    assert (status, json.loads(answer)["count"]) == (200, 12)


def test_file__in_parts(front: Front, dataset: Dataset, tuning: Tuning) -> None:
    """A large answer comes in parts, which together are the file; one that is too large comes without a body."""
    tuning.message_bytes = 2000
    row = dataset.to_arrow(["media_id", "file_path"]).to_pylist()[0]
    path = f"/api/v1/dataset/{dataset.id}/media/{row['media_id']}/file"
    front.send(request("a-1", path), request("a-2", path, most_bytes=100))
    found = front.answers("a-1", "a-2")
    assert found["a-1"] == (200, Path(row["file_path"]).read_bytes())
    assert found["a-2"] == (200, b"")


def test_events__until_the_view_closes(front: Front) -> None:
    """A stream sends its events at once; it ends with its view, or when that has been silent for too long."""
    front.send(request("a-1", "/api/v1/events"), request("a-2", "/api/v1/me"))
    assert front.answers("a-2")["a-2"][0] == 200
    front.send(request("b-1", "/api/v1/events"), view="b")
    while set(front.messages._views) != {"a", "b"}:
        front.inbox.get(timeout=10)
    front.send({"do": "close", "id": ""}, {"do": "alive", "id": "x"}, view="b")
    front.send({"do": "abort", "id": "a-1"}, {"do": "alive", "id": "a-3"})
    front.answers("a-3")
    wait_until(lambda: not front.messages._views["a"].tasks)


def test_views__that_are_gone(tuning: Tuning, dataset: Dataset) -> None:
    """A view whose page was loaded again says nothing any more, and its streams end."""
    tuning.view_sweep_s = 0.02
    shared = SharedService(dataset)
    other = Front(shared)
    other.send(request("a-1", "/api/v1/events"))
    content, _ = other.inbox.get(timeout=10)
    assert content["items"][0]["status"] == 200
    tuning.silent_view_s = 0.0
    wait_until(lambda: not other.messages._views)
    other.messages.close()
    shared.close()


def test_assets__are_the_app(front: Front) -> None:
    """The built app is an answer like others."""
    front.send({"do": "assets", "id": "a-1"})
    content, buffers = front.inbox.get(timeout=10)
    assert content["view"] == "a"
    assert content["items"][0]["headers"] == [("x-styles", "3")]
    assert buffers == [b"abcdef"]


@pytest.mark.parametrize(
    "content",
    [None, 5, "text", [], {}, {"view": 3}, {"view": "a", "items": 3}, {"view": "a", "items": [1, {"do": "x"}, {}]},
     {"view": "a", "items": [{"do": "request", "id": "1"}, {"do": "request", "id": "2", "method": 1, "path": None}]}],
)  # fmt: skip
def test_content__that_is_none(front: Front, content: Any) -> None:
    """Messages that no view sends change nothing."""
    front.messages.receive(content, [])
    front.send(request("a-9", "/api/v1/me"))
    assert front.answers("a-9")["a-9"][0] == 200
