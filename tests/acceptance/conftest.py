"""A place for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.acceptance.place import Place


@pytest.fixture
def place(tmp_path: Path, open_page: Callable[..., Page]) -> Iterator[Place]:
    """A workspace of its own, its server, commands and pages."""
    with Place(tmp_path, open_page) as made:
        yield made
