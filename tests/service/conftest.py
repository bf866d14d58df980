"""A service of a workspace with a small dataset, with and without log-ins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import new_workspace, prepared
from tests.service.client import CLOSED, LOCAL, Client, client_of
from tests.service.users import hub_with_users


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace without datasets."""
    with new_workspace(tmp_path / "ws", SETTINGS) as opened:
        yield opened


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of a few pictures."""
    make_gallery(tmp_path / "gallery")
    return prepared(workspace, "pets", tmp_path / "gallery")


@pytest.fixture
def hub(workspace: Workspace) -> Iterator[Hub]:
    """The users of the workspace: an admin, an editor and a viewer of the default tenant."""
    with hub_with_users(workspace) as opened:
        yield opened


@pytest.fixture
def local(workspace: Workspace, hub: Hub) -> Iterator[Client]:
    """A client of the service without log-ins."""
    with client_of(workspace, hub, LOCAL) as client:
        yield client


@pytest.fixture
def open_client(workspace: Workspace, hub: Hub) -> Iterator[Client]:
    """A client of the service with log-ins, that has not logged in."""
    with client_of(workspace, hub, CLOSED) as client:
        yield client
