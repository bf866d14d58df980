"""A service with a dataset of captioned and labelled images, and what clients send with each request."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.hub import Hub
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.service.client import CLOSED, Client, client_of


@pytest.fixture
def server(workspace: Workspace, hub: Hub, tmp_path: Path) -> Iterator[Client]:
    """A client of a service with log-ins; its dataset has captions, labels and an exact copy of an image."""
    make_gallery(tmp_path / "gallery")
    dataset = prepared(workspace, "pets", tmp_path / "gallery")
    ids = dataset.select(dataset.where([]).media_ids())
    dataset.set_captions({each: f"a small animal number {number}" for number, each in enumerate(ids.media_ids()[:4])})
    dataset.set_labels(ids.media_ids()[:3], ["cat", "animal"])
    with client_of(workspace, hub, CLOSED) as client:
        yield client


@pytest.fixture
def dataset_id(workspace: Workspace, server: Client) -> str:
    """The id of the dataset."""
    return workspace.dataset("pets").id


@pytest.fixture
def bearer(server: Client) -> dict[str, str]:
    """The headers of a program's requests: a token, and the type of JSON, also without a body."""
    return {**server.bearer("eve"), "Accept": "application/json", "Content-Type": "application/json"}
