"""The service in the process of a kernel."""

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.api.workspace import workspace_of
from tests.environment import Environment
from tests.extras import need
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import prepared

need("http", "fastapi", "uvicorn", "argon2")

from framedex.notebook.kernel_service import KernelRequest, KernelService, SharedService  # noqa: E402


def answered(service: KernelService, path: str, *, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    messages: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        messages.append(message)

    content = b"" if body is None else json.dumps(body).encode()
    request = KernelRequest(method, path, {"Content-Type": "application/json"}, content)
    service.run(service.answer(request, send)).result(30)
    return messages[0]["status"], json.loads(b"".join(each["body"] for each in messages[1:] if each.get("body")))


def threads() -> set[threading.Thread]:
    """Return the threads of services that run."""
    return {each for each in threading.enumerate() if each.name == "framedex-notebook"}


@pytest.mark.slow
@pytest.mark.only_soak
def test_requests__of_many_threads(dataset: Dataset) -> None:
    """Requests of any thread are answered, as the local user, whatever the environment says about log-ins."""
    shared = SharedService(dataset)
    try:
        path = f"/api/v1/dataset/{dataset.id}/results"
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: answered(shared.service, path, method="POST", body={}), range(24)))
        assert [(status, body["count"]) for status, body in found] == [(200, dataset.view.count())] * 24
        status, profile = answered(shared.service, "/api/v1/me")
        assert (status, profile["auth"]) == (200, "disabled")
        assert answered(shared.service, "/api/v1/no%20such%20page")[0] == 404
    finally:
        shared.close()


def test_settings__of_the_environment(dataset: Dataset, environment: Environment) -> None:
    """Log-ins and public addresses of the environment are of servers; an invalid setting is an error."""
    before = threads()
    environment["FRAMEDEX_DISABLE_AUTH"] = "false"
    environment["FRAMEDEX_PUBLIC_URL"] = "https://images.example.com/framedex"
    shared = SharedService(dataset)
    try:
        assert answered(shared.service, "/api/v1/me")[0] == 200
    finally:
        shared.close()
    environment["FRAMEDEX_PUBLIC_URL"] = "nothing"
    with pytest.raises(InvalidInput):
        SharedService(dataset)
    assert threads() == before


def test_services__of_a_workspace_are_one(dataset: Dataset) -> None:
    """Widgets of a workspace and a user share a thread, which stops with the last of them."""
    before = threads()
    first, second = SharedService(dataset), SharedService(workspace_of(dataset).dataset("pets"))
    other = SharedService(workspace_of(dataset).acting_as("ann@example.org").dataset("pets"))
    assert first.service is second.service is not other.service
    for each in (first, first, other):
        each.close()
    assert len(threads() - before) == 1
    assert answered(second.service, "/api/v1/me")[0] == 200
    second.close()
    assert threads() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_workspace__closed_before(tmp_path: Path, *, read_only: bool) -> None:
    """A service whose workspace was closed before it can still be closed."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        prepared(workspace, "pets", tmp_path / "gallery")
    before = threads()
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS, read_only=read_only)
    shared = SharedService(workspace.dataset("pets"))
    assert answered(shared.service, "/api/v1/datasets")[0] == 200
    workspace.close()
    shared.close()
    assert threads() == before


def test_close__ends_streams(dataset: Dataset) -> None:
    """A stream of events ends with the service."""
    shared = SharedService(dataset)
    parts: list[bytes] = []
    has_begun = threading.Event()

    async def send(message: Mapping[str, Any]) -> None:
        parts.append(message.get("body", b""))
        if message["type"] == "http.response.body":
            has_begun.set()

    stream = shared.service.run(shared.service.answer(KernelRequest("GET", "/api/v1/events", {}, b""), send))
    assert has_begun.wait(10)
    shared.close()
    assert wait([stream], 10).done
    assert b"event: ping" in b"".join(parts)
