"""The service under load and on a full disk: light requests stay quick, reading goes on."""

import threading
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.errors import WorkspaceError
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.core.test_time_limits import ENDLESS
from tests.service.client import OWN, Client, client_of

SEARCHES = 40


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


def test_searches__end_after_a_time(
    workspace: Workspace, dataset: Dataset, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that takes longer than the setting is stopped with 503, and the next one is answered."""
    explore = Dataset.explore

    def endless(self: Dataset, *arguments: Any, **named: Any) -> Any:
        workspace._context.sql.query(ENDLESS, (), {})
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
    with client_of(workspace, hub, ServiceSettings()) as client:
        assert client.get(url).status_code == 200


def test_full_disk__lets_read(local: Client, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a change is a 503 with one sentence that names no path; reading goes on."""

    def full(*_: object, **__: object) -> None:
        raise WorkspaceError(f"cannot write {dataset.id}: No space left on device")

    monkeypatch.setattr(Dataset, "snapshot", full)
    answer = local.post(f"/api/v1/dataset/{dataset.id}/snapshot", headers=OWN)
    assert (answer.status_code, answer.json()["code"]) == (503, "workspace")
    assert answer.json()["detail"] == "The workspace cannot be written at present"
    assert local.get(f"/api/v1/explore/{dataset.id}").status_code == 200
