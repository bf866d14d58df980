"""A dataset whose workspace may get the files of a hub."""

from collections.abc import Iterator

import pytest

from framedex import Dataset, Workspace
from tests.gallery import SETTINGS, make_gallery


@pytest.fixture(scope="package")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset that the tests do not change."""
    home = tmp_path_factory.mktemp("notebook")
    make_gallery(home / "gallery")
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("pets", home / "gallery")
