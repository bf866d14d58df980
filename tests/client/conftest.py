"""A workspace with a dataset and users, its service, and clients of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Client, Dataset, Workspace
from framedex.hub import Hub
from tests.service.client import BASE, CLOSED, LOCAL, OWN, client_of
from tests.service.template import copied, make_template


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset and users, which is copied for each test."""
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the workspace."""
    with copied(template, tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """The dataset of the copy."""
    return workspace.dataset("pets")


@pytest.fixture
def hub(workspace: Workspace) -> Iterator[Hub]:
    """The users of the copy."""
    with Hub(workspace) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace, hub: Hub) -> Iterator[Client]:
    """A client of a service without log-ins."""
    with client_of(workspace, hub, LOCAL) as served, Client(BASE, transport=served._transport) as opened:
        yield opened


@pytest.fixture
def keys(workspace: Workspace, hub: Hub) -> Iterator[tuple[object, dict[str, tuple[str, str]]]]:
    """The transport of a service with log-ins, and the API keys of its users."""
    with client_of(workspace, hub, CLOSED) as served:
        found = {}
        for name in ("ann", "eve", "vic"):
            served.log_in(name)
            made = served.post("/api/v1/api_credentials/rotate", headers=OWN).json()
            found[name] = made["api_key"], made["api_secret"]
            served.cookies.clear()
        yield served._transport, found
