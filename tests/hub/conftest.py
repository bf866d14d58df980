"""Hubs in workspaces of their own, with a clock that the test moves."""

from collections.abc import Iterator

import pytest

from framedex import Workspace
from framedex.hub import Hub
from tests.hub.people import Clock, Provider


@pytest.fixture
def clock() -> Clock:
    """The clock of the hub."""
    return Clock()


@pytest.fixture
def hub(workspace: Workspace, clock: Clock) -> Iterator[Hub]:
    """A new hub in single-workspace mode."""
    with Hub(workspace, clock=clock) as opened:
        yield opened


@pytest.fixture
def multi(workspace: Workspace, clock: Clock) -> Iterator[Hub]:
    """A new hub with many tenants."""
    with Hub(workspace, is_multi=True, clock=clock) as opened:
        yield opened


@pytest.fixture
def provider() -> Provider:
    """An identity provider without accounts."""
    return Provider()


@pytest.fixture
def hub_with_provider(workspace: Workspace, clock: Clock, provider: Provider) -> Iterator[Hub]:
    """A new hub in single-workspace mode, whose accounts live at the provider."""
    with Hub(workspace, provider=provider, clock=clock) as opened:
        yield opened
