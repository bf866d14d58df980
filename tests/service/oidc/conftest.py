"""A provider for each test, and a service whose users log in with it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.service.client import Client, client_of
from tests.service.oidc.provider import HostileProvider, hostile_provider

Serve = Callable[..., Client]
"""Serves the workspace with changes of the settings of log-in, and returns a client that has not logged in."""


@pytest.fixture
def provider() -> Iterator[HostileProvider]:
    """A provider that is honest until the test changes it."""
    with hostile_provider() as running:
        yield running


@pytest.fixture
def serve(workspace: Workspace, hub: Hub, provider: HostileProvider) -> Iterator[Serve]:
    """A function that serves the workspace."""
    with ExitStack() as stack:

        def start(service: ServiceSettings | None = None, **changes: Any) -> Client:
            settings = service or ServiceSettings(disable_auth=False)
            oidc = provider.settings(**changes)
            client = stack.enter_context(client_of(workspace, hub, settings, oidc=oidc))
            client.follow_redirects = False
            return client

        yield start


@pytest.fixture
def client(serve: Serve) -> Client:
    """A client of a service with the settings of most tests."""
    return serve()
