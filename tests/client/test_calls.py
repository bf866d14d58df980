"""The calls of the client, against the document of the service."""

import re
from typing import Any

import pytest

from framedex import Workspace
from framedex.client.calls import CALLS, PREFIX, Call
from framedex.hub import Hub
from framedex.service.app import create_app
from framedex.service.settings import ServiceSettings


@pytest.fixture
def document(workspace: Workspace, hub: Hub) -> dict[str, Any]:
    """The OpenAPI document of the service."""
    return create_app(workspace, hub, ServiceSettings()).openapi()


def unnamed(path: str) -> str:
    """Return a path without the names of its parameters."""
    return re.sub(r"{[^}]*}", "{}", path)


def operation_of(document: dict[str, Any], call: Call) -> dict[str, Any] | None:
    """Return the operation of a call; None if there is none."""
    for path, operations in document["paths"].items():
        if unnamed(path) == unnamed(PREFIX + call.path):
            found: dict[str, Any] | None = operations.get(call.method.lower())
            return found
    return None


def fields_of(document: dict[str, Any], operation: dict[str, Any]) -> set[str]:
    """Return the names of the fields of the body of an operation."""
    names: set[str] = set()
    waiting = [each["schema"] for each in operation.get("requestBody", {}).get("content", {}).values()]
    while waiting:
        schema = waiting.pop()
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
        names |= set(schema.get("properties", {}))
        waiting += [*schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())]
    return names


@pytest.mark.slow
@pytest.mark.only_soak
def test_calls__are_served(document: dict[str, Any]) -> None:
    """The service has each call that the client makes, with each parameter and field that it sends."""
    missing, wrong = [], []
    for call in CALLS:
        operation = operation_of(document, call)
        if operation is None:
            missing.append(f"{call.method} {call.path}")
            continue
        parameters = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        if unknown := set(call.query.split()) - parameters:
            wrong.append(f"{call.method} {call.path} has no parameters {sorted(unknown)}")
        if unknown := set(call.fields.split()) - fields_of(document, operation):
            wrong.append(f"{call.method} {call.path} has no fields {sorted(unknown)}")
    assert wrong == []
    if missing:
        pytest.skip(f"not served yet: {', '.join(missing)}")


def test_calls__are_many_and_each_once() -> None:
    """The table has all calls, each once, and parts of paths are parameters of their own."""
    assert len(CALLS) > 60
    assert len({(call.method, unnamed(call.path)) for call in CALLS}) == len(CALLS)
