"""The stream of notifications: its beginning, its events, where it continues, and when it ends."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from framedex import Dataset, Workspace
from framedex.errors import WorkspaceError
from framedex.hub import Hub, feed
from framedex.hub.notifications import Notifications
from framedex.service import streams
from framedex.service.settings import ServiceSettings
from framedex.service.state import ServiceState, StopSignal
from tests.api.test_dataset__saved_views import labelled
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS
from tests.hub.people import OPERATOR
from tests.pauses import wait_until
from tests.processes import run
from tests.service.live import live_service
from tests.service.users import PASSWORD
from tests.tuning import Tuning

URL = "/api/v1/notifications/stream"


@dataclass
class Live:
    """A running service with users and a dataset with a saved view.

    Attributes:
        workspace: its workspace.
        hub: its users.
        dataset: the dataset, which belongs to vic.
        url: its address.
        state: its open parts.
    """

    workspace: Workspace
    hub: Hub
    dataset: Dataset
    url: str
    state: ServiceState

    def add(self, labels: str) -> None:
        """Add media with these labels."""
        self.dataset.add_media(labelled(self.dataset.count(), labels))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service on a port of this machine, which the tests share."""
    folder = tmp_path_factory.mktemp("stream") / "ws"
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        users = {name: hub.users.create(OPERATOR, name, PASSWORD) for name in ("vic", "eve")}
        dataset = workspace.create_dataset("pets", labelled(0, "abababab"), thresholds=THRESHOLDS)
        hub.datasets.adopt(dataset.id, hub.tenants.visible(OPERATOR)[0].id, users["vic"].id)
        dataset.save_view("all")
        with live_service(workspace, hub, ServiceSettings(disable_auth=False)) as (url, state):
            yield Live(workspace, hub, dataset, url, state)


@contextmanager
def log_in(live: Live, name: str) -> Iterator[httpx2.Client]:
    """Yield a client with a session."""
    with httpx2.Client(base_url=live.url, headers={"Origin": live.url}, timeout=20) as client:
        assert client.post("/api/v1/login", json={"username": name, "password": PASSWORD}).status_code == 200
        yield client


@dataclass(frozen=True)
class Received:
    """An event as it was received."""

    name: str
    data: Any
    event_id: str | None


def received(lines: Iterator[str]) -> Iterator[Received]:
    """Yield the events of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Received(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}


@contextmanager
def opened(client: httpx2.Client, query: str = "", **headers: str) -> Iterator[Iterator[Received]]:
    """Yield the events of a new stream, which has begun."""
    with client.stream("GET", URL + query, headers=headers) as answer:
        assert answer.status_code == 200
        events = received(answer.iter_lines())
        assert next(events) == Received("ping", {}, None)
        yield events


def notified(events: Iterator[Received]) -> Received:
    """Return the next notification of a stream."""
    return next(each for each in events if each.name == "notification")


@pytest.mark.slow
def test_stream__begins_at_once_and_tells_each_alert(live: Live) -> None:
    """The first byte comes at once, as a time for retries and a ping; then each alert comes as a notification."""
    with log_in(live, "vic") as client, client.stream("GET", URL) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(4)] == ["retry: 3000", "event: ping", "data: {}", ""]
        live.add("ab")
        found = notified(received(lines))
        listed = client.get("/api/v1/notifications", params={"limit": 1}).json()["notifications"][0]
        assert (found.data, found.event_id) == (listed, listed["id"])
        assert found.data["metadata"]["result_count"] == 2
        assert "metadata" in found.data


def test_stream__needs_no_ping_for_a_notification(live: Live, tuning: Tuning) -> None:
    """A notification comes when the feed sees it, which looks more often than pings come, not with the next ping."""
    assert feed._PERIOD_S < streams.PING_S == 3
    tuning.stream_ping_s = 3600.0
    with log_in(live, "vic") as client, opened(client) as events:
        live.add("abc")
        found = next(events)
        assert (found.name, found.data["metadata"]["result_count"]) == ("notification", 3)


@pytest.mark.slow
def test_stream__has_nothing_of_reading(live: Live, tuning: Tuning) -> None:
    """Requests that read lead to no event: the next one is of the addition that follows them."""
    tuning.stream_ping_s = 0.05
    dataset = f"/api/v1/dataset/{live.dataset.id}"
    view = live.dataset.saved_view("all")
    paths = [
        dataset, "/api/v1/datasets", f"/api/v1/explore/{live.dataset.id}", f"{dataset}/views",
        f"{dataset}/views/{view.id}/trend", "/api/v1/notifications", "/api/v1/notifications/unread-count",
        "/api/v1/tasks", f"{dataset}/snapshot",
    ]  # fmt: skip
    with log_in(live, "vic") as client, log_in(live, "vic") as other, opened(client) as events:
        assert {other.get(path).status_code for path in paths} == {200}
        assert [next(events).name for _ in range(3)] == ["ping"] * 3
        live.add("abab")
        found = notified(events).data
        assert found["metadata"]["result_count"] == 4


def test_stream__pings(live: Live, tuning: Tuning) -> None:
    """A ping with an empty object comes every three seconds."""
    assert streams.PING_S == 3.0
    tuning.stream_ping_s = 0.05
    with log_in(live, "vic") as client, opened(client) as events:
        assert [next(events) for _ in range(3)] == [Received("ping", {}, None)] * 3


@pytest.mark.slow
def test_stream__continues_after_an_event(live: Live) -> None:
    """With the id of the last event, what came since is sent; without it, only what comes from now on."""
    with log_in(live, "vic") as client:
        with opened(client) as events:
            live.add("a")
            last = notified(events)
        live.add("ab")
        live.add("abc")
        live.hub.notifications.deliver()
        with opened(client, **{"Last-Event-ID": str(last.event_id).upper()}) as events:
            assert [notified(events).data["metadata"]["result_count"] for _ in range(2)] == [2, 3]
        with opened(client) as events, opened(client, **{"Last-Event-ID": "unknown"}) as others:
            live.add("abcd")
            assert [notified(each).data["metadata"]["result_count"] for each in (events, others)] == [4, 4]


@pytest.mark.slow
def test_stream__has_no_end_of_pages(live: Live, tuning: Tuning) -> None:
    """What came since is sent in full, however much it is."""
    tuning.open_streams = 2
    with log_in(live, "vic") as client:
        live.add("ab")
        live.hub.notifications.deliver()
        last = client.get("/api/v1/notifications", params={"limit": 1}).json()["notifications"][0]["id"]
        for number in range(5):
            live.add("a" * (number + 1))
        live.hub.notifications.deliver()
        with opened(client, **{"Last-Event-ID": last}) as events:
            assert [notified(events).data["metadata"]["result_count"] for _ in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_stream__of_another_process(live: Live, tmp_path: Path) -> None:
    """An alert of another process is sent, too."""
    code = """
        import sys, framedex
        from tests.api.test_dataset__saved_views import labelled
        from tests.gallery import SETTINGS

        with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
            dataset = workspace.dataset("pets")
            dataset.add_media(labelled(dataset.count(), "abc"))
    """
    with log_in(live, "vic") as client, opened(client) as events:
        run(code, live.workspace.path)
        assert notified(events).data["metadata"]["result_count"] == 3


@pytest.mark.slow
def test_stream__of_one_dataset(live: Live) -> None:
    """With a dataset only its notifications are sent; one that is hidden, or never was, is not found."""
    other = live.workspace.create_dataset("other", labelled(40, "abab"), thresholds=THRESHOLDS)
    live.hub.datasets.adopt(other.id, live.hub.tenants.visible(OPERATOR)[0].id, live.hub.users.find(OPERATOR, "vic").id)
    other.save_view("of other")
    with log_in(live, "vic") as client:
        with opened(client, f"?dataset_id={live.dataset.id.upper()}") as events:
            other.add_media(labelled(50, "a"))
            live.add("ab")
            assert notified(events).data["dataset_id"] == live.dataset.id
        for dataset_id, status in (("x", 422), ("00000000-0000-0000-0000-0000000000aa", 404)):
            assert client.get(f"{URL}?dataset_id={dataset_id}").status_code == status
        tenant = live.hub.tenants.create_organization(OPERATOR, "hiding")
        hidden = live.hub.tenants.create(OPERATOR, "hiding", organization_id=tenant.id)
        with opened(client) as events:
            live.hub.datasets.adopt(other.id, hidden.id, None)
            answer = client.get(f"{URL}?dataset_id={other.id}")
            assert (answer.status_code, answer.json()["detail"]) == (404, "Dataset not found")
            other.add_media(labelled(51, "a"))
            live.add("abc")
            assert notified(events).data["metadata"]["result_count"] == 3


def test_stream__at_most_five(live: Live) -> None:
    """The sixth stream of a user is refused; other users have their own; one that ends makes room."""
    with log_in(live, "vic") as client, log_in(live, "eve") as other:
        with ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(opened(client))
            refused = client.get(URL)
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
            assert refused.headers["Retry-After"] == "5"
            stack.enter_context(opened(other))
        wait_until(lambda: not live.hub.feed._listeners.present())
        with opened(client):
            pass
    assert httpx2.get(live.url + URL).status_code == 401


def test_stream__ends_with_the_session(live: Live, tuning: Tuning) -> None:
    """A stream ends within a minute once its user has logged out."""
    assert streams.CHECK_S + streams.PING_S < 60
    tuning.stream_check_s = 0.1
    tuning.stream_ping_s = 0.05
    with log_in(live, "vic") as client, opened(client) as events:
        assert client.post("/api/v1/logout").status_code == 200
        assert {each.name for each in events} <= {"ping"}


@pytest.mark.slow
def test_stream__survives_failures(live: Live, tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is an event ``error`` with a sentence that tells nothing of the server; the stream goes on."""
    tuning.stream_ping_s = 0.05
    after, failures = Notifications.after, iter([WorkspaceError("/srv/secret: full"), ValueError("secret")])

    def fail(*given: Any, **options: Any) -> Any:
        if (error := next(failures, None)) is not None:
            raise error
        return after(*given, **options)

    monkeypatch.setattr(Notifications, "after", fail)
    with log_in(live, "vic") as client, opened(client) as events:
        live.add("abcde")
        found = [next(each for each in events if each.name != "ping") for _ in range(3)]
        assert [each.name for each in found] == ["error", "error", "notification"]
        assert found[0].data == found[1].data == {"detail": "Internal server error"}
        assert found[2].data["metadata"]["result_count"] == 5


@pytest.mark.parametrize("path", [URL, "/api/v1/events"])
def test_head__ends_at_once(live: Live, path: str) -> None:
    """A HEAD has the headers of the stream, and ends."""
    with log_in(live, "vic") as client:
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"].startswith("text/event-stream")
    wait_until(lambda: not live.hub.feed._listeners.present())


def test_stop__calls_functions() -> None:
    """Functions that wait for a stop are called when it comes, or at once afterwards."""
    signal, called = StopSignal(), list[int]()
    signal.call(lambda: called.append(1))
    forgotten = lambda: called.append(2)  # noqa: E731
    signal.call(forgotten)
    signal.forget(forgotten)
    signal.set()
    signal.call(lambda: called.append(3))
    assert called == [1, 3]


def test_stop__ends_streams_at_once(live: Live) -> None:
    """A service that stops ends its streams at once, without the next ping."""
    with log_in(live, "vic") as client, opened(client) as events:
        threading.Timer(0.1, live.state.stopping.set).start()
        began = time.monotonic()
        assert [each.name for each in events] in ([], ["ping"])
        assert time.monotonic() - began < 2.5
