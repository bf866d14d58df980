"""The stream of events: what users hear of, how many streams they may have, and when one ends."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.api.changes import WorkspaceChanges
from framedex.errors import TooManyAttempts
from framedex.hub import Hub
from framedex.hub.events import MOST_WAITING, Event, Listener
from framedex.service.settings import ServiceSettings
from tests.gallery import fill
from tests.hub.people import Clock
from tests.pauses import wait_until
from tests.service.live import live_service
from tests.service.template import copied, make_template
from tests.service.users import OPERATOR, PASSWORD
from tests.tuning import Tuning


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset and users, which is copied for each test."""
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the workspace."""
    with copied(template, tmp_path / "ws") as opened_copy:
        yield opened_copy


@pytest.fixture
def hub(workspace: Workspace) -> Iterator[Hub]:
    """The users of the copy."""
    with Hub(workspace) as opened_hub:
        yield opened_hub


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """The dataset."""
    return workspace.dataset("pets")


@contextmanager
def log_in(url: str, name: str) -> Iterator[httpx2.Client]:
    """Yield a client with a session."""
    with httpx2.Client(base_url=url, headers={"Origin": url}, timeout=20) as client:
        answer = client.post("/api/v1/login", json={"username": name, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        yield client


def heard(lines: Iterator[str], name: str) -> Any:
    """Return the data of the next event of a name."""
    found = None
    for line in lines:
        if line.startswith("event: "):
            found = line.removeprefix("event: ")
        if line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
            assert isinstance(data, dict)
            if found == name:
                return data
    raise AssertionError(f"the stream ended without {name}")


@pytest.mark.slow
@pytest.mark.only_soak
def test_events__tell_what_one_may_view(workspace: Workspace, hub: Hub, dataset: Dataset, tmp_path: Path) -> None:
    """A stream begins at once, tells tasks and states of datasets that the user may view, and ends at a stop."""
    with (
        live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, state),
        log_in(url, "vic") as client,
        client.stream("GET", "/api/v1/events") as stream,
    ):
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["x-accel-buffering"] == "no"
        lines = stream.iter_lines()
        began = time.monotonic()
        assert heard(lines, "ping") == {}
        assert time.monotonic() - began < 2
        dataset.tag(dataset.view.media_ids()[:1], "seen")
        assert heard(lines, "head") == {
            "dataset_id": dataset.id, "generation": dataset.generation, "status": "READY"
        }  # fmt: skip
        dataset.add_media(fill(tmp_path / "more", 2))
        task = heard(lines, "task")
        assert (task["dataset_id"], task["task_type"]) == (dataset.id, "MEDIA_ADDITION")
        assert str(tmp_path) not in json.dumps(task)
        heard(lines, "ping")
        state.stopping.set()
        began = time.monotonic()
        assert list(lines) is not None
        assert time.monotonic() - began < 1


def test_events__of_saved_views(workspace: Workspace, hub: Hub, dataset: Dataset, tmp_path: Path) -> None:
    """An alert of a saved view is a notification."""
    dataset.save_view("everything")
    changes = WorkspaceChanges(workspace)
    assert changes.look().alerts == []
    dataset.add_media(fill(tmp_path / "more", 2))
    (alert,) = changes.look().alerts
    assert (alert.view_name, alert.result_count, alert.dataset_id) == ("everything", 2, dataset.id)
    assert changes.look().alerts == []
    workspace.change_settings(delete_dataset_enabled=True)
    workspace.delete_dataset(dataset.id)
    (gone,) = changes.look().heads
    assert (gone.dataset_id, gone.generation, gone.status) == (dataset.id, None, None)


@pytest.mark.slow
def test_events__at_most_five_streams(workspace: Workspace, hub: Hub, dataset: Dataset) -> None:
    """The sixth stream of a user is refused until one ends; other users have their own."""
    with live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, _), ExitStack() as stack:
        vic, eve = (stack.enter_context(log_in(url, name)) for name in ("vic", "eve"))
        streams = [stack.enter_context(vic.stream("GET", "/api/v1/events")) for _ in range(5)]
        assert [each.status_code for each in streams] == [200] * 5
        refused = vic.get("/api/v1/events")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert "Retry-After" in refused.headers
        assert stack.enter_context(eve.stream("GET", "/api/v1/events")).status_code == 200
        streams[0].close()
        wait_until(lambda: _status(vic) == 200)
        assert httpx2.get(url + "/api/v1/events").status_code == 401


@pytest.mark.slow
def test_events__end_with_the_session(workspace: Workspace, hub: Hub, dataset: Dataset, tuning: Tuning) -> None:
    """A stream ends once its user has logged out."""
    tuning.stream_check_s = 0.5
    with (
        live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, _),
        log_in(url, "vic") as client,
        client.stream("GET", "/api/v1/events") as stream,
    ):
        lines = stream.iter_lines()
        heard(lines, "ping")
        assert client.post("/api/v1/logout").status_code == 200
        assert list(lines) is not None  # it ends


@pytest.mark.slow
def test_events__are_no_use_of_the_session(workspace: Workspace, tuning: Tuning) -> None:
    """A session of which only a stream is open ends after 8 hours, and the stream with it."""
    tuning.stream_check_s = 0.05
    tuning.stream_ping_s = 0.1
    clock = Clock()
    with (
        Hub(workspace, clock=clock) as hub,
        live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, _),
        log_in(url, "vic") as client,
        client.stream("GET", "/api/v1/events") as stream,
    ):
        lines = stream.iter_lines()
        for _ in range(2):
            clock.move(hours=3)
            for _ in range(3):
                heard(lines, "ping")
        clock.move(hours=2)
        assert len(list(islice(lines, 400))) < 400, "it ends"
        assert client.get("/api/v1/me").status_code == 401


@pytest.mark.slow
def test_listeners__of_other_tenants(hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """Who may not view a dataset hears nothing of it, one poller serves all, and it ends with the last listener."""
    tenant = hub.tenants.create(OPERATOR, "elsewhere")
    hub.users.create(OPERATOR, "out", PASSWORD, role=Role.VIEWER, tenant_id=tenant.id)
    own, ann = hub.sessions.log_in("out", PASSWORD).token, hub.sessions.log_in("ann", PASSWORD).token
    woken = threading.Event()
    listeners = [hub.events.listen(hub.sessions.actor(token), woken.set) for token in (own, ann)]
    dataset.tag(dataset.view.media_ids()[:1], "seen")
    assert woken.wait(10)
    wait_until(lambda: any(each.name == "head" for each in listeners[1].take()))
    assert listeners[0].take() == []
    assert sum(thread.name == "framedex-events" for thread in threading.enumerate()) == 1
    for each in listeners:
        hub.events.leave(each)
    wait_until(lambda: not any(thread.name == "framedex-events" for thread in threading.enumerate()))
    for _ in range(5):
        hub.events.listen(hub.sessions.actor(own))
    with pytest.raises(TooManyAttempts):
        hub.events.listen(hub.sessions.actor(own))


@pytest.mark.slow
@pytest.mark.only_soak
def test_listeners__find_the_notification(hub: Hub, dataset: Dataset, tmp_path: Path) -> None:
    """Who hears of an alert finds the notification, even where the thread that delivers them has not come to it."""
    dataset.save_view("everything")
    actor = hub.sessions.actor(hub.sessions.log_in("ann", PASSWORD).token)
    counts: list[int] = []

    def look() -> None:
        if any(each.name == "notification" for each in listener.take()):
            counts.append(hub.notifications.count_unread(actor))

    listener = hub.events.listen(actor, look)
    dataset.add_media(fill(tmp_path / "more", 2))
    wait_until(lambda: counts)
    hub.events.leave(listener)
    assert counts == [1]


def test_listeners__are_bounded(hub: Hub) -> None:
    """A listener that takes nothing keeps the newest events, and is told that it lost some."""
    listener = Listener(OPERATOR, lambda: None)
    for number in range(MOST_WAITING + 5):
        listener.put([Event(name="task", data={"number": number})])
    taken = listener.take()
    assert (taken[0].name, len(taken), taken[-1].data) == ("lost", MOST_WAITING + 1, {"number": MOST_WAITING + 4})
    assert listener.take() == []


def _status(client: httpx2.Client) -> int:
    with client.stream("GET", "/api/v1/events") as stream:
        return stream.status_code
