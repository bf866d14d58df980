"""A process with saved views and receivers of alerts is killed: no alert is lost or doubled.

The process adds media, saves and deletes views, turns alerts off and on, and reads notifications, while the threads of
its hub deliver alerts and pass them on. After the kill the workspace is checked, and all that is due is evaluated and
delivered.
"""

import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from framedex import Dataset, Workspace, vql
from framedex.access import local_actor
from framedex.core.ids import batch_id
from framedex.hub import Hub
from framedex.storage import alert_queue
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.hub.people import add_user
from tests.inside import catalog_of, context_of
from tests.laws import trials
from tests.processes import start

pytestmark = [pytest.mark.slow, pytest.mark.soak]
_LABELS = "abc"
_LOCAL = local_actor("me")
_LONGEST_S = 2.0
_WORKS = """
    import sys
    from tests.kill.test_watching import work
    work(*sys.argv[1:])
"""


class Receiver:
    """A receiver of alerts that writes their ids to a file."""

    name = "command"

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, _body: bytes, call_id: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{call_id}\n")


def labelled(first: int, labels: list[str]) -> pa.Table:
    """Return a table of media with a label each."""
    return part(families(len(labels), seed=first), first, labels=[[label] for label in labels])


@contextmanager
def opened(folder: Path, *, later: timedelta = timedelta()) -> Iterator[tuple[Workspace, Hub]]:
    """Open a workspace and its hub, at a later time."""
    receiver = Receiver(folder.parent / "received")
    with (
        Workspace(folder, settings=SETTINGS) as workspace,
        Hub(workspace, on_alert=[receiver], clock=lambda: datetime.now(UTC) + later) as hub,
    ):
        yield workspace, hub


def work(folder: str, seed: str) -> None:
    """Change a workspace until the process is killed; print what is done next."""
    draw = random.Random(seed)
    with opened(Path(folder)) as (workspace, hub):
        hub.feed.start()
        hub.calls.start()
        dataset = workspace.dataset("pets")
        for number in count():
            print("addition", flush=True)  # noqa: T201 - for the test
            dataset.add_media(labelled(10 * number + 100, draw.choices(_LABELS, k=draw.randint(1, 4))))
            print("view", flush=True)  # noqa: T201
            hub.views.create(_LOCAL, dataset.id, f"view {number}", vql=vql.labels(draw.choice(_LABELS)))
            views = hub.views.of_dataset(_LOCAL, dataset.id)
            hub.views.set_alerting(_LOCAL, dataset.id, draw.choice(views).id, enabled=draw.random() < 0.8)
            if len(views) > 6:
                hub.views.delete(_LOCAL, dataset.id, draw.choice(views).id)
            print("reading", flush=True)  # noqa: T201
            hub.notifications.read_all(_LOCAL)


@pytest.mark.parametrize("number", range(trials(3, 50)))
def test_alerts__killed(tmp_path: Path, number: int, record_property: Callable[[str, object], None]) -> None:
    """Each view has each batch once, each alert one notification for each user, and the receiver has each alert."""
    folder = tmp_path / "ws"
    with opened(folder) as (workspace, hub):
        add_user(hub, "ann", "admin")
        dataset = workspace.create_dataset("pets", labelled(0, list(4 * _LABELS)))
        for label in _LABELS:
            dataset.save_view(label, dataset.where(vql.labels(label)))
    process, seconds = start(_WORKS, folder, number), random.Random(number).uniform(0, _LONGEST_S)
    assert process.stdout is not None
    steps = process.stdout.readline()
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.send_signal(signal.SIGKILL)
    steps += process.communicate()[0]
    assert process.returncode == -signal.SIGKILL
    record_property("kill", ("alerts", step := steps.split()[-1]))
    with opened(folder, later=timedelta(hours=2)) as (workspace, hub):
        assert workspace.check().findings == []
        workspace.evaluate_views()
        hub.sweep()
        hub.calls.run_due()
        faults = [
            *faults_of_points(workspace.dataset("pets")),
            *faults_of_alerts(workspace, hub, tmp_path / "received"),
        ]
    assert faults == [], f"killed {seconds:.2f} s after the first step, in {step}"


def faults_of_points(dataset: Dataset) -> Iterator[str]:
    """Yield what is wrong with the trends: each view has a point with the count for each batch since it was saved."""
    with catalog_of(dataset).read() as connection:
        first: dict[str, int] = dict(connection.exec_driver_sql("SELECT id, first_batch FROM saved_views").all())
        head = context_of(dataset).heads.read(connection, dataset.id)
    assert head is not None
    for view in dataset.views():
        batches = [int(each) for each in head.generation.summary.added_at if int(each) >= first[view.id]]
        due = {batch: view.view().where(vql.batch(batch)).count() for batch in batches}
        points = [(point.batch, point.count) for point in view.trend().points]
        if points != sorted(due.items()):
            yield f"the points of {view.name} are {points}, not {due}"


def faults_of_alerts(workspace: Workspace, hub: Hub, received: Path) -> Iterator[str]:
    """Yield what is wrong with the alerts: each is told to both users and was passed on, and no other is."""
    dataset = workspace.dataset("pets")
    with catalog_of(workspace).read() as connection:
        if alert_queue.has_queued_alerts(connection):
            yield "alerts wait"
        query = "SELECT view_id, batch FROM trend_points WHERE is_alert = 1"
        alerts = {(view_id, batch_id(dataset.id, batch)) for view_id, batch in connection.exec_driver_sql(query)}
    with hub._database.read() as connection:
        query = "SELECT entity_id, batch_id FROM notifications"
        told = Counter((view_id, batch) for view_id, batch in connection.exec_driver_sql(query))
        calls = set(connection.exec_driver_sql("SELECT id FROM alert_calls").scalars())
    yield from (f"an alert with {told[each]} notifications" for each in alerts if told[each] != 2)
    present = {view.id for view in dataset.views()}
    yield from (f"no alert for the notification {each}" for each in told if each[0] in present and each not in alerts)
    got = set(received.read_text().split()) if received.exists() else set()
    if got != calls or len(calls) != len(told):
        yield f"{len(got)} alerts passed on, of {len(calls)} for {len(told)}"
