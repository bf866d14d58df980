"""Two tenants: what belongs to one does not exist for the other, on each route and for each kind of id."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi.routing import APIRoute

from framedex.access import Role
from framedex.core.ids import new_id
from tests.gallery import make_gallery
from tests.service.client import OWN, Client, many_tenants
from tests.service.every_id import NOT_IN_PATHS, every_id
from tests.service.test_routes import routes_of_service
from tests.service.users import OPERATOR, PASSWORD

NAME = "planted name of a dataset"
BODY = {
    "name": "x",
    "description": "y",
    "enrichment_models": {"CAPTION_IMAGES": "x"},
    "enabled": True,
    "role": "viewer",
}
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, dict[str, str], str]]:
    """A client of an admin of one tenant; ids of another tenant by the name of a parameter; a dataset of the first."""
    folder = tmp_path_factory.mktemp("tenants")
    make_gallery(folder / "gallery")
    with ExitStack() as stack:
        workspace, hub, client = stack.enter_context(many_tenants(folder / "ws"))
        homes = []
        for name in ("ada", "bob"):
            organization = hub.tenants.create_organization(OPERATOR, f"organization of {name}")
            tenant = hub.tenants.create(OPERATOR, f"tenant of {name}", organization_id=organization.id)
            user = hub.users.create(OPERATOR, name, PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
            handle = workspace.acting_as(name).in_namespace(tenant.id)
            dataset = handle.create_dataset(NAME if name == "ada" else "own", folder / "gallery")
            hub.datasets.adopt(dataset.id, tenant.id, user.id)
            homes.append(dataset)
        others, own = homes
        client.log_in("ada")
        ids = every_id(client, hub, others, NAME)
        client.cookies.clear()
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
        text = re.sub(rf"\b{values.get('transaction_id')}\b", "ID", IDS.sub("ID", answer.text))
        answers.append((method, answer.status_code, text))
    return answers


def parameters(route: APIRoute) -> set[str]:
    """Return the names of the parameters of a route's path."""
    return set(re.findall(r"{(\w+)(?::\w+)?}", route.path))


def unknown_id(name: str) -> str:
    """Return an id that no thing has."""
    return str(2**40) if name == "transaction_id" else new_id()


@pytest.mark.slow
def test_ids__are_of_each_kind(tenants: tuple[Client, dict[str, str], str]) -> None:
    """The other tenant has a thing of each kind that paths name, but users, whom admins of all tenants manage.

    Names of files and numbers of steps are no ids: they count within what the first id of their path names.
    """
    _, others, _ = tenants
    assert set().union(*map(parameters, routes_of_service())) - set(others) == {"user_id", "file_name", "step"}
    assert all(others.values())


ROOTS = (
    "dataset_id", "task_id", "image_id", "notification_id", "session_id", "workspace_id", "organization_id",
    "member_user_id",
)  # fmt: skip
"""The first id of each path."""


@pytest.mark.slow
def test_tenants__see_nothing_of_each_other(tenants: tuple[Client, dict[str, str], str]) -> None:
    """For each route an id of another tenant gets the answer of an id that does not exist."""
    client, others, _ = tenants
    asked = set()
    query = {"original_media_uri": "x", "dataset_id": others["dataset_id"]}
    for route in routes_of_service():
        for name in parameters(route) & set(ROOTS):
            found = ask(client, route, others, query)
            assert found == ask(client, route, {**others, name: unknown_id(name)}, query), route.path
            assert {status for _, status, _ in found} <= {404, 405}, (route.path, found)
            asked.add((route.path, name))
    assert len(asked) > 80
    assert {name for _, name in asked} == set(ROOTS)


@pytest.mark.slow
def test_tenants__cannot_use_ids_of_each_other_in_their_own(tenants: tuple[Client, dict[str, str], str]) -> None:
    """In an own dataset an id of another tenant's gets the answer of an id that does not exist."""
    client, others, own = tenants
    asked = set()
    for route in routes_of_service():
        children = parameters(route) & set(others) - {"dataset_id"}
        if "dataset_id" not in parameters(route) or not children:
            continue
        foreign = {**others, "dataset_id": own}
        unknown = {**foreign, **{name: unknown_id(name) for name in children}}
        assert ask(client, route, foreign, {}) == ask(client, route, unknown, {}), route.path
        asked |= children
    in_others = {"image_id", "notification_id", "session_id", "workspace_id", "organization_id", "member_user_id"}
    assert asked == set(others) - {"dataset_id"} - in_others - NOT_IN_PATHS


def test_tenants__cannot_use_ids_of_each_other_in_queries(tenants: tuple[Client, dict[str, str], str]) -> None:
    """An id of another tenant in the query of an own dataset gets the answer of an id that does not exist."""
    client, others, own = tenants
    asked = set()
    for route in routes_of_service():
        named = {each.name for each in route.dependant.query_params} & {"anchor_media_id", "export_task_id", "rid"}
        if "dataset_id" not in parameters(route) or not named:
            continue
        values = {**{name: unknown_id(name) for name in parameters(route)}, "dataset_id": own}
        for kind in ("UPLOAD", "MEDIA") if "anchor_media_id" in named else ("",):
            more = {"anchor_type": kind} if kind else {}
            foreign, unknown = ({name: of(name) for name in named} | more for of in (others.__getitem__, unknown_id))
            found = ask(client, route, values, foreign)
            assert found == ask(client, route, values, unknown), route.path
            assert all(status >= 400 for _, status, _ in found), (route.path, found)
        asked |= named
    assert asked == {"anchor_media_id", "export_task_id", "rid"}


@pytest.mark.slow
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
