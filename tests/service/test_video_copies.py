"""Parts of videos over HTTP, in a client, and at the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Client, Dataset, Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.cli.running import runner
from tests.clips import make_films
from tests.inside import layout_of
from tests.prepared import prepared
from tests.service.client import BASE, client_of
from tests.service.client import Client as HttpClient


@pytest.fixture
def served(workspace: Workspace, tmp_path: Path) -> Iterator[tuple[Dataset, HttpClient]]:
    """A dataset of four videos, and a client of the service."""
    dataset = prepared(workspace, "films", make_films(tmp_path / "films"), "gist")
    with Hub(workspace) as hub, client_of(workspace, hub, ServiceSettings()) as client:
        yield dataset, client


@pytest.mark.slow
def test_parts__over_http_and_in_a_client(served: tuple[Dataset, HttpClient]) -> None:
    """Pages and the client have the records of the library, of all videos or of those in a view."""
    dataset, client = served
    expected, url = dataset.video_copies(), f"/api/v1/dataset/{dataset.id}/duplicates/videos"
    page = client.get(url).json()
    compared = {"has_more": False, "n_unread": 0, "n_left": 0}
    assert page == {"parts": [each.model_dump(mode="json") for each in expected], **compared}
    assert client.get(url, params={"offset": 1}).json() == {"parts": [], **compared}
    assert client.get(url, params={"min_seconds": 6}).json()["parts"] == []
    assert client.get(url, params={"min_seconds": 0}).status_code == 422
    with Client(BASE, transport=client._transport) as opened:
        films = opened.dataset("films")
        assert (films.video_copies(), films.video_copies().n_unread) == (expected, 0)
        assert films.video_copies(limit=0) == []
        frames = films.where([{"media": {"op": "is", "value": "video_frame"}}])
        assert frames.video_copies() == expected
        assert frames.limit(1).video_copies() == []


@pytest.mark.slow
def test_parts__at_the_command_line(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a line for each part, or JSON, and says what it needs."""
    expected = prepared(workspace, "films", make_films(tmp_path / "films"), "gist").video_copies()
    run = runner(layout_of(workspace).root, capsys)
    status, out, _ = run("duplicates", "films", "--entity-type", "VIDEOS", "--parts")
    assert (status, "film.mp4" in out, "reel.avi" in out) == (0, True, True)
    _, out, _ = run("duplicates", "films", "--entity-type", "VIDEOS", "--parts", "--json")
    assert json.loads(out) == [each.model_dump(mode="json") for each in expected]
    status, _, error = run("duplicates", "films", "--parts")
    assert (status, "give --entity-type VIDEOS" in error) == (1, True)
