"""All routes: each names its action and is short; the framework has one door."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

import framedex.service.routes as package
from framedex import Dataset
from framedex.service.actions import MAX_JSON_BYTES, ActionRoute, needs_of
from framedex.service.app import routers
from tests.service.client import Client

PUBLIC = {
    "/api/v1/healthcheck", "/api/v1/ready", "/api/v1/login", "/api/v1/oidc", "/api/v1/oidc/login",
    "/api/v1/oidc/callback", "/api/v1/oidc/backchannel_logout",
}  # fmt: skip
LONGEST = 15


def routes_of_service() -> list[APIRoute]:
    """Return the routes of the API."""
    found = [route for router in routers() for route in router.routes]
    assert all(isinstance(route, APIRoute) for route in found)
    return [route for route in found if isinstance(route, APIRoute)]


def test_routes__name_their_actions() -> None:
    """Each route names an action, but for those that nobody need be logged in for, which are listed here."""
    found = routes_of_service()
    assert found
    assert all(isinstance(route, ActionRoute) for route in found)
    assert {route.path for route in found if needs_of(route.endpoint).action is None} == PUBLIC


def test_routes__without_an_action() -> None:
    """A route without an action cannot be made."""
    router = APIRouter(route_class=ActionRoute)
    with pytest.raises(TypeError, match="the route forgotten names no action"):

        @router.get("/forgotten")
        def forgotten() -> None: ...


@pytest.mark.slow
def test_routes__ask_for_credentials(open_client: Client) -> None:
    """Without credentials each route but the public ones answers 401 before it reads anything else."""
    for route in routes_of_service():
        if route.path in PUBLIC:
            continue
        path = route.path
        for name in route.param_convertors:
            path = path.replace(f"{{{name}}}", "00000000-0000-4000-8000-000000000000")
        for method in (route.methods or set()) - {"HEAD"}:
            answer = open_client.request(method, path, content=b"{", headers={"Content-Type": "application/json"})
            assert answer.status_code == 401, (method, path, answer.text)
            assert answer.json()["code"] == "not_authenticated"


def test_routes__are_short() -> None:
    """A route translates: its body has at most 15 lines."""
    long = []
    for path in Path(package.__path__[0]).glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list:
                statements = node.body[1:] if ast.get_docstring(node) else node.body
                lines = statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0  # type: ignore[operator] # it was parsed
                long += [f"{path.name}: {node.name} has {lines} lines"] if lines > LONGEST else []
    assert long == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_routes__say_what_they_do(local: Client) -> None:
    """Each route has a docstring for the documentation, and an operation id of its own."""
    found = routes_of_service()
    assert [route.path for route in found if not inspect.getdoc(route.endpoint)] == []
    operations = local.get("/api/v1/openapi.json").json()["paths"]
    ids = [operation["operationId"] for path in operations.values() for operation in path.values()]
    assert sorted(ids) == sorted(set(ids))


def test_body__over_the_limit(local: Client) -> None:
    """A body over the limit is a 413 in the form of all errors, with and without a length in front."""
    body = b'{"username": "' + b"x" * MAX_JSON_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    for content in (body, iter([body])):
        answer = local.post("/api/v1/login", content=content, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["add_media", "views", "search-image-similarity", ""])
def test_forms__of_many_parts(local: Client, dataset: Dataset, path: str) -> None:
    """A form of more fields or files than any client sends is refused with one sentence, and nothing of it is done."""
    url = f"/api/v1/dataset/{dataset.id}/{path}" if path else "/api/v1/process"
    before = (dataset.journal(), dataset.count(), dataset.views())
    parts: list[Any] = [
        [(f"field-{number}", (None, "x")) for number in range(1001)],
        [("file" if path == "search-image-similarity" else "files", ("a.png", b"x"))] * 20_001,
    ]
    for files in parts:
        answer = local.post(url, files=files)
        assert (answer.status_code, answer.json()["code"]) in ((400, "invalid"), (413, "too_large"), (422, "invalid"))
        assert answer.json()["detail"] == answer.json()["message"]
    assert (dataset.journal(), dataset.count(), dataset.views()) == before
