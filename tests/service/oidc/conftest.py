"""A provider for each test."""

from collections.abc import Iterator

import pytest

from tests.service.oidc.provider import HostileProvider, hostile_provider


@pytest.fixture
def provider() -> Iterator[HostileProvider]:
    """A provider that is honest until the test changes it."""
    with hostile_provider() as running:
        yield running
