"""Kills at random moments of additions, evaluations, alerts and changes of saved views: no alert is lost or doubled.

For each moment a process adds media to a dataset with saved views, saves and deletes views, turns alerts off and on,
and reads notifications, while the threads of its hub deliver alerts and pass them to a command. It is killed in the
middle. Then the workspace is checked, what is due is evaluated and delivered, and all must add up: each view has a
point for each batch since it was saved, with the number of its media; each alert has one notification for each user,
and no other one exists; and the command got each alert, under one id.
"""

import argparse
import itertools
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from common import save
from framedex import Workspace, vql
from framedex.access import local_actor, operator_actor
from framedex.core.ids import batch_id
from framedex.hub import Hub
from framedex.storage import alert_queue
from framedex.storage.view_rows import list_points

LABELS = "abc"
LOCAL = local_actor("me")


class Receiver:
    """A receiver of alerts that writes their ids to a file."""

    name = "command"

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, body: bytes, call_id: str) -> None:
        """Write an id."""
        with self._path.open("a") as file:
            file.write(f"{call_id}\n")


def rows(first: int, labels: Sequence[str]) -> pa.Table:
    """Return media with random embeddings, a label each."""
    vectors = np.random.default_rng(first).normal(size=(len(labels), 8)).astype(np.float32)
    return pa.table(
        {
            "uri": [f"/images/{first + number:06}.jpg" for number in range(len(labels))],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
            "labels": pa.array([[label] for label in labels], pa.list_(pa.string())),
        }
    )


def make(folder: Path) -> None:
    """Make a workspace with two users, a dataset and three saved views."""
    with Workspace(folder) as workspace, Hub(workspace) as hub:
        operator = operator_actor("operator")
        hub.users.create(operator, "ann", "correct horse", role="admin")  # type: ignore[arg-type] # its text
        dataset = workspace.create_dataset("pets", rows(0, list("abcabcabcabc")))
        for label in LABELS:
            dataset.save_view(label, dataset.where(vql.labels(label)))


def work(folder: Path) -> None:
    """Change a workspace until the process is killed."""
    draw = random.Random(time.time_ns())
    with Workspace(folder) as workspace, Hub(workspace, on_alert=[Receiver(folder / "received")]) as hub:
        hub.feed.start()
        hub.calls.start()
        dataset = workspace.dataset("pets")
        print("ready", flush=True)
        for number in itertools.count():
            print("addition", flush=True)
            dataset.add_media(rows(1000 + 10 * number, [draw.choice(LABELS) for _ in range(draw.randint(1, 4))]))
            print("view", flush=True)
            label = draw.choice(LABELS)
            hub.views.create(LOCAL, dataset.id, f"view {number}", vql=vql.labels(label))
            views = hub.views.of_dataset(LOCAL, dataset.id)
            hub.views.set_alerting(LOCAL, dataset.id, draw.choice(views).id, enabled=draw.random() < 0.8)
            if len(views) > 6:
                hub.views.delete(LOCAL, dataset.id, draw.choice(views).id)
            print("reading", flush=True)
            hub.notifications.read_all(LOCAL)


def faults_of(folder: Path) -> tuple[list[str], Counter[str]]:
    """Return what does not add up in a workspace, and how many alerts, notifications and calls there were."""
    faults, counts = [], Counter[str]()
    received = folder / "received"
    with (
        Workspace(folder) as workspace,
        Hub(workspace, on_alert=[Receiver(received)], clock=lambda: datetime.now(UTC) + timedelta(hours=2)) as hub,
    ):
        faults += [f"check: {finding}" for finding in workspace.check().findings]
        workspace.evaluate_views()
        hub.sweep()
        hub.calls.run_due()
        dataset = workspace.dataset("pets")
        table = dataset.to_arrow(["media_id", "labels"])
        assert table.num_rows
        with workspace._context.catalog.read() as connection:
            if alert_queue.has_queued_alerts(connection):
                faults.append("alerts wait")
            first: dict[str, int] = dict(connection.exec_driver_sql("SELECT id, first_batch FROM saved_views").all())
            head = workspace._context.heads.read(connection, dataset.id)
            assert head is not None
            batches = {int(each) for each in head.generation.summary.added_at}
            alerts = {
                (row[0], batch_id(dataset.id, row[1]))
                for row in connection.exec_driver_sql("SELECT view_id, batch FROM trend_points WHERE is_alert = 1")
            }
            views = hub.views.of_dataset(LOCAL, dataset.id)
            points = {view.id: list_points(connection, view) for view in views}
        for view in views:
            due = {batch for batch in batches if batch >= first[view.id]}
            found = Counter(point.batch for point in points[view.id])
            if set(found) != due or set(found.values()) - {1}:
                faults.append(f"points of {view.name}: {sorted(found.elements())}, not {sorted(due)}")
            for point in points[view.id]:
                if (count := dataset.where([*view.filters.vql, *vql.batch(point.batch)]).count()) != point.count:
                    faults.append(f"{view.name} has {point.count} of {count} in batch {point.batch}")
        with hub._database.read() as connection:
            stored = connection.exec_driver_sql("SELECT user_id, entity_id, batch_id FROM notifications").all()
            calls = set(connection.exec_driver_sql("SELECT id FROM alert_calls").scalars())
        told = Counter((view_id, batch) for _, view_id, batch in stored)
        faults += [f"an alert with {told[each]} notifications" for each in alerts if told[each] != 2]
        present = {view.id for view in views}
        faults += ["a notification without alert" for each in told if each[0] in present and each not in alerts]
        got = Counter(received.read_text().split()) if received.exists() else Counter[str]()
        if set(got) != calls or len(calls) != len(told):
            faults.append(f"{len(got)} alerts passed on, of {len(calls)} for {len(told)}")
        counts.update(alerts=len(told), notifications=len(stored), passed_twice=sum(each > 1 for each in got.values()))
    return faults, counts


def kill_once(template: Path, folder: Path, seconds: float) -> tuple[str, list[str], Counter[str]]:
    """Kill a process after some seconds of its work; return the step it was in, what is wrong, and counts."""
    shutil.copytree(template, folder)
    output = folder / "steps"
    with output.open("w") as steps:
        process = subprocess.Popen([sys.executable, __file__, "--work", str(folder)], stdout=steps)
        while "ready" not in output.read_text():
            assert process.poll() is None, "the process ended by itself"
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    faults, counts = faults_of(folder)
    return output.read_text().split()[-1], faults, counts


def main() -> None:
    """Kill at many moments and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3.0, help="the latest moment")
    parser.add_argument("--work", type=Path, help="used by the benchmark itself")
    options = parser.parse_args()
    if options.work is not None:
        work(options.work)
        return
    draw, steps, totals, wrong = random.Random(options.seed), Counter[str](), Counter[str](), list[Any]()
    with tempfile.TemporaryDirectory() as scratch:
        template = Path(scratch) / "template"
        make(template)
        for moment in range(options.moments):
            seconds = draw.uniform(0.0, options.seconds)
            folder = Path(scratch) / f"ws{moment}"
            step, faults, counts = kill_once(template, folder, seconds)
            steps[step] += 1
            totals += counts
            wrong += [f"moment {moment}, {seconds:.2f} s, {step}: {each}" for each in faults]
            print(f"{moment}: {seconds:.2f} s, {step}: {'; '.join(faults) or 'good'}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"kills by step: {dict(steps)}; {dict(totals)}; {len(wrong)} faults")
    save("kill_watching", {"kills": steps, **totals, "faults": wrong})
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
