"""A dataset whose workspace may get the files of a hub."""

from collections.abc import Iterator

import pytest

from framedex import Dataset
from tests.gallery import opened_gallery


@pytest.fixture(scope="package")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset that the tests do not change."""
    with opened_gallery(tmp_path_factory.mktemp("notebook")) as found:
        yield found
