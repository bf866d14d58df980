"""Services whose pages a browser shows; see :mod:`tests.browser.pages`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.browser.site import Site
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import prepared
from tests.service.live import live_service


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of the gallery, without log-ins, that the tests of a module share."""
    home = tmp_path_factory.mktemp("site")
    with _served(home) as running:
        yield running


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """A service of the gallery that the test may change."""
    with _served(tmp_path) as running:
        yield running


@contextmanager
def _served(home: Path) -> Iterator[Site]:
    """Serve the gallery of a folder."""
    make_gallery(home / "gallery")
    with (
        Workspace(home / "ws", settings=SETTINGS) as workspace,
        Hub(workspace) as hub,
    ):
        dataset = prepared(workspace, "pets", home / "gallery")
        with live_service(workspace, hub, ServiceSettings()) as (url, state):
            yield Site(url, workspace, dataset, home / "gallery", state)
