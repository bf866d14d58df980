"""An open catalog in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex.storage.catalog import Catalog, open_catalog


@pytest.fixture
def catalog_path(tmp_path: Path) -> Path:
    """The path of a catalog, with characters that have a meaning in URIs."""
    folder = tmp_path / "a b#c?d%41é"
    folder.mkdir()
    return folder / "catalog.db"


@pytest.fixture
def catalog(catalog_path: Path) -> Iterator[Catalog]:
    """A new catalog, open for writing."""
    opened = open_catalog(catalog_path, read_only=False)
    yield opened
    opened.close()
