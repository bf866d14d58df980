"""The service under load and on a full disk: light requests stay quick, reading goes on."""

import socket
import threading
from contextlib import ExitStack
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from framedex import Dataset, Workspace
from framedex.errors import WorkspaceError
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.core.test_time_limits import ENDLESS
from tests.failures import failing
from tests.image_files import encode, photo
from tests.inside import context_of
from tests.service.client import LOCAL, OWN, Client, client_of
from tests.service.live import live_service
from tests.service.test_protocol import get

SEARCHES = 40


@pytest.mark.slow
def test_searches__leave_room_for_others(
    workspace: Workspace, dataset: Dataset, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While 40 searches wait for each other, health, status and log-in are answered."""
    gate, begun, explore = threading.Event(), threading.Semaphore(0), Dataset.explore

    def slow(self: Dataset, *arguments: Any, **named: Any) -> Any:
        begun.release()
        assert gate.wait(60), "the test did not open the gate"
        return explore(self, *arguments, **named)

    monkeypatch.setattr(Dataset, "explore", slow)
    with client_of(workspace, hub, ServiceSettings(disable_auth=False, heavy_requests=2)) as client:
        headers = client.bearer("ann")
        statuses: list[int] = []

        def search() -> None:
            statuses.append(client.get(f"/api/v1/explore/{dataset.id}", headers=headers).status_code)

        threads = [threading.Thread(target=search) for _ in range(SEARCHES)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                assert begun.acquire(timeout=60)
            assert client.get("/api/v1/healthcheck").status_code == 200
            assert client.get(f"/api/v1/dataset/{dataset.id}", headers=headers).status_code == 200
            client.log_in("eve")
            assert not begun.acquire(blocking=False), "no third search has begun"
        finally:
            gate.set()
            for thread in threads:
                thread.join()
        assert statuses == [200] * SEARCHES


@pytest.mark.slow
@pytest.mark.parametrize("path", ["search-image-similarity", "results"])
def test_slow_bodies__hold_no_places(workspace: Workspace, dataset: Dataset, hub: Hub, path: str) -> None:
    """Clients that send an image or a filter slowly keep no search of others waiting, and are answered in the end."""
    with live_service(workspace, hub, ServiceSettings(heavy_requests=1)) as (url, _), ExitStack() as stack:
        parts = urlsplit(url)
        target = f"/api/v1/dataset/{dataset.id}"
        body = _form_with_an_image() if path == "search-image-similarity" else b'{"where": []}'
        slow = []
        for _ in range(3):
            connection = stack.enter_context(socket.create_connection((str(parts.hostname), parts.port), timeout=30))
            kind = "multipart/form-data; boundary=x" if path == "search-image-similarity" else "application/json"
            head = f"POST {target}/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {kind}"
            connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:-5])
            slow.append(connection)
        assert get(url, f"/api/v1/explore/{dataset.id}")[0] == 200
        for connection in slow:
            connection.sendall(body[-5:])
            answer = b"".join(iter(partial(connection.recv, 2**16), b""))
            assert answer.startswith(b"HTTP/1.1 200"), answer


def _form_with_an_image() -> bytes:
    """Return a form with an image as the file ``file``; the boundary is ``x``."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    return head + encode(photo(1)) + b"\r\n--x--\r\n"


@pytest.mark.slow
def test_searches__end_after_a_time(
    workspace: Workspace, dataset: Dataset, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that takes longer than the setting is stopped with 503, and the next one is answered."""
    explore = Dataset.explore

    def endless(self: Dataset, *arguments: Any, **named: Any) -> Any:
        context_of(workspace).sql.query(ENDLESS, (), {})
        return explore(self, *arguments, **named)

    with client_of(workspace, hub, ServiceSettings(search_timeout_s=0.5)) as client:
        url = f"/api/v1/explore/{dataset.id}"
        monkeypatch.setattr(Dataset, "explore", endless)
        answer = client.get(url)
        assert (answer.status_code, answer.json()["code"]) == (503, "timeout")
        assert answer.json()["detail"] == "this took longer than 0.5 s and was stopped; ask for less, as by a filter"
        monkeypatch.undo()
    with client_of(workspace, hub, ServiceSettings(search_timeout_s=1e-9)) as client:
        assert client.get(url).status_code == 503, "all queries of a search count together"
        assert client.get(f"/api/v1/dataset/{dataset.id}").status_code == 200, "which is no search"
    with client_of(workspace, hub, LOCAL) as client:
        assert client.get(url).status_code == 200


def test_full_disk__lets_read(local: Client, dataset: Dataset) -> None:
    """On a full disk a change is a 503 with one sentence that names no path; reading goes on."""
    error = WorkspaceError(f"cannot write {dataset.id}: No space left on device")
    with failing("framedex.Dataset.snapshot", error=error):
        answer = local.post(f"/api/v1/dataset/{dataset.id}/snapshot", headers=OWN)
    assert (answer.status_code, answer.json()["code"]) == (503, "workspace")
    assert answer.json()["detail"] == "The workspace cannot be written at present"
    assert local.get(f"/api/v1/explore/{dataset.id}").status_code == 200
