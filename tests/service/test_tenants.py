"""Two tenants: what belongs to one does not exist for the other, on each route and for each kind of id."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from framedex import Workspace
from framedex.access import Role
from framedex.core.ids import new_id
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import make_gallery
from tests.service.client import OWN, PASSWORD, Client, client_of
from tests.service.conftest import OPERATOR
from tests.service.test_routes import routes_of_service

NAME = "planted name of a dataset"
BODY = {"name": "x", "description": "y", "enrichment_models": {"CAPTION_IMAGES": "x"}, "enabled": True}
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture
def tenants(workspace: Workspace, tmp_path: Path) -> Iterator[tuple[Client, dict[str, str], str]]:
    """A client of an admin of one tenant; ids of another tenant by the name of a parameter; a dataset of the first."""
    make_gallery(tmp_path / "gallery")
    settings = ServiceSettings(disable_auth=False)
    with Hub(workspace, is_multi=True) as hub, client_of(workspace, hub, settings) as client:
        homes = []
        for name in ("ada", "bob"):
            tenant = hub.tenants.create(OPERATOR, f"tenant of {name}")
            user = hub.users.create(OPERATOR, name, PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
            handle = workspace.acting_as(name).in_namespace(tenant.id)
            dataset = handle.create_dataset(NAME if name == "ada" else "own", tmp_path / "gallery")
            hub.datasets.adopt(dataset.id, tenant.id, user.id)
            homes.append(dataset)
        others, own = homes
        client.log_in("ada")
        query = {"file_name": "x", "export_format": "json"}
        export = client.get(f"/api/v1/dataset/{others.id}/export_context_async", params=query, headers=OWN).json()
        client.cookies.clear()
        others.add_field("weight", "float")
        media = others.where([]).media_ids()[0]
        ids = {
            "dataset_id": others.id,
            "media_id": media,
            "image_id": media,
            "task_id": others.last_task.task_id,  # type: ignore[union-attr] # it was created by one
            "snapshot_id": others.snapshots()[0].snapshot_id,
            "export_id": export["id"],
            "view_id": others.save_view(NAME).id,
            "tag": others.tag(media and [media], NAME).tag_id,
            "field": others.fields()[0].field_id,
        }
        ids |= {"tag_id": ids["tag"], "field_id": ids["field"], "field_name": "weight"}
        client.log_in("bob")
        yield client, ids, own.id


def ask(client: Client, route: APIRoute, values: dict[str, str], query: dict[str, str]) -> list[tuple[str, int, str]]:
    """Return method, status and body of a route's answers; ids of requests and of things are taken out."""
    path = route.path
    for name in re.findall(r"{(\w+)(?::\w+)?}", route.path):
        path = re.sub(rf"{{{name}(:\w+)?}}", values.get(name) or "00000000", path)
    answers = []
    for method in sorted((route.methods or set()) - {"HEAD"}):
        arguments: dict[str, Any] = {} if method in ("GET", "DELETE") else {"json": BODY}
        answer = client.request(method, path, params=query, headers=OWN, **arguments)
        assert answer.status_code < 500, (method, path, answer.text)
        assert NAME not in answer.text, (method, path)
        answers.append((method, answer.status_code, IDS.sub("ID", answer.text)))
    return answers


def test_tenants__see_nothing_of_each_other(tenants: tuple[Client, dict[str, str], str]) -> None:
    """For each route an id of another tenant gets the answer of an id that does not exist."""
    client, others, _ = tenants
    asked = 0
    for route in routes_of_service():
        names = set(re.findall(r"{(\w+)(?::\w+)?}", route.path))
        if not names & set(others):
            continue
        unknown = {**others, **{name: new_id() for name in others if name in names}}
        for name in ("dataset_id", "task_id"):
            if name in names:
                found = ask(client, route, others, {"original_media_uri": "x"})
                assert found == ask(client, route, unknown, {"original_media_uri": "x"}), route.path
                assert {status for _, status, _ in found} <= {404, 405}, (route.path, found)
                asked += 1
    assert asked >= 40


def test_tenants__cannot_use_ids_of_each_other_in_their_own(tenants: tuple[Client, dict[str, str], str]) -> None:
    """In an own dataset an id of another tenant's gets the answer of an id that does not exist."""
    client, others, own = tenants
    for route in routes_of_service():
        names = set(re.findall(r"{(\w+)(?::\w+)?}", route.path))
        children = names & set(others) - {"dataset_id"}
        if "dataset_id" not in names or not children or "task_id" in children:
            continue
        foreign = {**others, "dataset_id": own}
        unknown = {**foreign, **{name: new_id() for name in children}}
        assert ask(client, route, foreign, {}) == ask(client, route, unknown, {}), route.path


def test_tenants__in_queries(tenants: tuple[Client, dict[str, str], str]) -> None:
    """A dataset of another tenant in the query is one that does not exist; lists do not have it."""
    client, others, own = tenants
    for route in routes_of_service():
        if "{" in route.path or route.path.endswith(
            ("/logout", "/password", "/events", "/stream", "/metrics", "/api_credentials", "/rotate")
        ):
            continue
        if "GET" not in (route.methods or set()):
            continue
        query = {"dataset_id": others["dataset_id"], "path": "/x", "name": "x"}
        unknown = {**query, "dataset_id": new_id()}
        assert ask(client, route, {}, query) == ask(client, route, {}, unknown), route.path
    listed = client.get("/api/v1/datasets").json()
    assert [each["id"] for each in listed] == [own]
    tasks = client.get("/api/v1/tasks", params={"page_size": 50}).json()
    assert {task["dataset_id"] for task in tasks["tasks"]} == {own}
    assert tasks["total"] == len(tasks["tasks"])
    assert client.get("/api/v1/tasks/filters").json()["dataset_ids"] == [own]
