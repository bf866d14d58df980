"""A service of a workspace with a small dataset, with and without log-ins."""

from collections.abc import Iterator
from pathlib import Path

import argon2
import pytest

from framedex import Dataset, Workspace
from framedex.access import Role, operator_actor
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS, make_gallery
from tests.service.client import PASSWORD, Client, client_of

OPERATOR = operator_actor("operator")


@pytest.fixture(autouse=True)
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of passwords that take no time; tests of the hub use the real ones."""
    monkeypatch.setattr(argon2.profiles, "RFC_9106_LOW_MEMORY", argon2.profiles.CHEAPEST)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace without datasets."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of a few pictures."""
    make_gallery(tmp_path / "gallery")
    return workspace.create_dataset("pets", tmp_path / "gallery")


@pytest.fixture
def hub(workspace: Workspace) -> Iterator[Hub]:
    """The users of the workspace: an admin, an editor and a viewer of the default tenant."""
    with Hub(workspace) as opened:
        for name, role in (("ann", Role.ADMIN), ("eve", Role.EDITOR), ("vic", Role.VIEWER)):
            opened.users.create(OPERATOR, name, PASSWORD, role=role, email=f"{name}@example.org")
        yield opened


@pytest.fixture
def local(workspace: Workspace, hub: Hub) -> Iterator[Client]:
    """A client of the service without log-ins."""
    with client_of(workspace, hub, ServiceSettings()) as client:
        yield client


@pytest.fixture
def open_client(workspace: Workspace, hub: Hub) -> Iterator[Client]:
    """A client of the service with log-ins, that has not logged in."""
    with client_of(workspace, hub, ServiceSettings(disable_auth=False)) as client:
        yield client
