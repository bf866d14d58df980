"""Databases of a process share compiled statements, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import CacheStats

from framedex.storage.catalog import Catalog, open_catalog
from framedex.storage.datasets import insert_dataset
from framedex.storage.schema import datasets


@pytest.fixture
def catalogs(tmp_path: Path) -> Iterator[list[Catalog]]:
    """Two catalogs, each with a dataset that has the name of the catalog."""
    opened = [open_catalog(tmp_path / f"{name}.db", read_only=False) for name in ("one", "two")]
    for name, catalog in zip(("one", "two"), opened, strict=True):
        with catalog.write() as connection:
            insert_dataset(connection, name, owned_by="me")
    yield opened
    for catalog in opened:
        catalog.close()


def test_statements__are_compiled_once(catalogs: list[Catalog]) -> None:
    """A statement that one database compiled is not compiled for another one, which gives its own rows."""
    label, found = f"name_{uuid4().hex}", []
    for _ in range(2):
        for catalog in catalogs:
            with catalog.read() as connection:
                result = connection.execute(sa.select(datasets.c.name.label(label)))
                found.append((result.context.cache_hit, result.scalar_one()))
    hit, miss = CacheStats.CACHE_HIT, CacheStats.CACHE_MISS
    assert found == [(miss, "one"), (hit, "two"), (hit, "one"), (hit, "two")]
