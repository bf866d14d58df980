"""Kill test: each kind of job is killed at many moments, also in its commits; nothing that was there may be lost.

A process does the job on a copy of a workspace. It is ended by SIGKILL at a random moment of the job, or by its own
hand before, within or after one of the transactions of the catalog. A second process then opens the workspace and
checks it: is the head readable, is the dataset in the state before the job or in the one after it, and nothing between;
do the task and the statuses say what happened; does ``check`` find nothing? It retries the task where that failed, or
does the job again where it was not done, and compares the end with that of a run that nobody disturbed.

All processes are children of the driver, which has imported what they need, but not Lance. So a trial takes about a
second.
"""

import argparse
import importlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from common import save, table
from kill_jobs import KINDS, Job, Kind, prepare
from kill_state import Expected, Outcome, check_outcome, state_of, task_ids, views_of

_FORK = multiprocessing.get_context("fork")
_PLACES = ("before", "in", "after")
_WRITES = 5
"""The number of transactions of a job, from the first on, around which it ends itself."""
_WAITS_S = 0.3
_PROCESS_S = 300.0


@dataclass(frozen=True)
class Point:
    """A point at which a job ends itself.

    Attributes:
        write: the number of the transaction of the catalog, counted from 0 at the beginning of the job.
        place: ``before``, ``in`` or ``after``.
        waits_s: how long the process stays there.
    """

    write: int
    place: str
    waits_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.place} write {self.write}"


@dataclass(frozen=True)
class Trial:
    """One killed run.

    Attributes:
        point: where it ended itself; None if it was killed from outside.
        after_s: when it was killed, counted from its beginning.
        is_inside: whether it had begun the job and not ended it.
        outcome: what it led to.
    """

    point: Point | None
    after_s: float
    is_inside: bool
    outcome: Outcome


class Child:
    """A process that runs a function of this module, with a connection to it.

    Args:
        function: called with the connection and *arguments*; an error ends the process.
        arguments: for the function.
    """

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._connection, theirs = _FORK.Pipe()
        self.process: ForkProcess = _FORK.Process(target=_run, args=(function, theirs, *arguments))
        self.process.start()
        theirs.close()

    def wait(self, timeout_s: float = _PROCESS_S) -> Any:
        """Return the next message of the process; None if it has ended without one.

        Raises:
            RuntimeError: the process failed, or sent nothing for *timeout_s*.
        """
        try:
            if not self._connection.poll(timeout_s):
                raise RuntimeError(f"no message in {timeout_s} s")
            message = self._connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        if isinstance(message, BaseException):
            raise RuntimeError(str(message)) from message
        return message

    def send(self, message: str) -> None:
        """Send a message to the process."""
        self._connection.send(message)

    def end(self) -> None:
        """Wait for the end of the process; kill it if it does not end."""
        self.process.join(_PROCESS_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._connection.close()


def _run(function: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    try:
        function(connection, *arguments)
    except BaseException:
        connection.send(RuntimeError(traceback.format_exc()[-3000:]))
        raise


def do(connection: Connection, kind: Kind, home: Path, point: Point | None) -> None:
    """Do a job on the dataset of a workspace; send when it begins, and at its end the number of its transactions."""
    from framedex.storage.catalog import Catalog

    _seem(kind)
    with _opened(home) as workspace:
        change = kind.job(workspace)
        writes = watch_writes(point, Catalog)
        connection.send("begun")
        change()
        connection.send(len(writes))


def do_before(_connection: Connection, kind: Kind, home: Path) -> None:
    """Do what comes before a job."""
    assert kind.before is not None, "only called for kinds with a job before"
    _seem(kind)
    with _opened(home) as workspace:
        kind.before(workspace)()


def do_waiting(connection: Connection, job: Job, home: Path) -> None:
    """Open a workspace, wait for a message, and do what waits for the lease that another process holds."""
    with _opened(home) as workspace:
        change = job(workspace)
        connection.send("begun")
        connection.recv()
        change()
    connection.send("done")


def send_state(connection: Connection, kind: Kind, home: Path, is_done: bool) -> None:
    """Send what a workspace shows before a job, or after it, when saved views are evaluated."""
    with _opened(home) as workspace:
        target = kind.makes or "pets"
        made = state_of(workspace, target, kind)
        views, status = [], ""
        if made is not None and is_done:
            workspace.evaluate_views()
            views, status = views_of(workspace.dataset(target)), str(workspace.dataset(target).info.status_new)
        pets = state_of(workspace, "pets", kind)
        connection.send(Expected(pets, made, made, status, views, task_ids(workspace)))


def send_outcome(connection: Connection, kind: Kind, home: Path, expected: Expected) -> None:
    """Check a workspace after a job was killed, and send the outcome."""
    _seem(kind)
    with _opened(home) as workspace:
        outcome = check_outcome(workspace, kind, expected)
    connection.send(outcome)


def send_prepared(connection: Connection, folder: Path) -> None:
    """Make the workspace that all jobs begin with."""
    prepare(folder)
    connection.send("done")


def send_modules(connection: Connection, home: Path) -> None:
    """Send the names of the modules that reading a workspace imports."""
    with _opened(home) as workspace:
        state_of(workspace, "pets", KINDS["tag"])
        workspace.check()
        workspace.dataset("pets").duplicates()
    connection.send(sorted(sys.modules))


def _opened(home: Path) -> Any:
    import framedex

    return framedex.Workspace(home / "workspace")


def _seem(kind: Kind) -> None:
    """Have jobs take the ways that they take in a large dataset, or in one whose creation takes long."""
    from framedex.jobs.edits import removal, rows
    from framedex.jobs.ingest import ingest

    if kind.seems == "large":
        removal._ALL, rows._FEW, rows._FEW_SHARE = 0, 0, 10**9
    elif kind.seems == "slow":
        ingest._COMMITTED = 8


def watch_writes(point: Point | None, database: Any) -> list[bool]:
    """Return a list that grows by each write of a class of databases; at a point the process kills itself."""
    write, writes = database.write, list[bool]()

    def reach(number: int, place: str) -> None:
        if point is not None and (point.write, point.place) == (number, place):
            time.sleep(point.waits_s)
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def watched(opened: Any, **options: Any) -> Iterator[Any]:
        number = len(writes)
        writes.append(True)
        reach(number, "before")
        with write(opened, **options) as connection:
            yield connection
            reach(number, "in")
        reach(number, "after")

    database.write = watched
    return writes


def main() -> None:
    """Run all trials and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moments", type=int, default=50, help="kills of each job")
    parser.add_argument("--jobs", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    rows: list[list[Any]] = []
    faults: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-kill-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "base").mkdir()
        assert result_of(send_prepared, home / "base") == "done"
        _import_all(home / "base")
        for name in options.jobs:
            row, of_kind = _trials(home, name, options.moments)
            rows.append(row)
            faults += [{"job": name, "point": str(each.point), **vars(each.outcome)} for each in of_kind]
    print()
    headers = ["job", "undisturbed, ms", "kills", "within", "not done", "retried", "done", "with faults"]
    print(table(headers, rows))
    print(
        f"{sum(row[2] for row in rows):,} kills, {sum(row[3] for row in rows):,} within the job, {len(faults)} faults"
    )
    save("kill", {"seed": options.seed, "rows": rows, "faults": faults})


def _import_all(home: Path) -> None:
    """Import what children have imported in the end, but for Lance, whose threads do not survive a fork."""
    for name in result_of(send_modules, home):
        if not name.partition(".")[0].startswith(("lance", "__")):
            with suppress(Exception):
                importlib.import_module(name)
    assert "lance" not in sys.modules, "Lance does not survive a fork"


def _trials(home: Path, name: str, moments: int) -> tuple[list[Any], list[Trial]]:
    """Kill a job around its transactions and at random moments; return a row of the table, and trials with faults."""
    kind, began = KINDS[name], time.monotonic()
    base = _copy(home / "base", home / "base of one")
    if kind.before is not None:
        result_of(do_before, kind, base)
    expected, took_s, writes = _undisturbed(home, base, kind)
    waits_s = _WAITS_S if kind.waiting is not None else 0.0
    points: list[Point | None] = [
        Point(write, place, waits_s) for write in range(min(writes, _WRITES)) for place in _PLACES
    ]
    points += [None] * (moments - len(points))
    trials = [_trial(home, base, kind, expected, point, random.uniform(0, took_s)) for point in points]
    shutil.rmtree(base)
    faulty = [trial for trial in trials if trial.outcome.faults]
    counts = [sum(trial.outcome.happened == each for trial in trials) for each in ("not done", "retried", "done")]
    inside = sum(trial.is_inside for trial in trials)
    row = [name, round(1000 * took_s), len(trials), inside, *counts, len(faulty)]
    print(f"{' | '.join(map(str, row))} ({time.monotonic() - began:.0f} s)", flush=True)
    for trial in faulty:
        for fault in trial.outcome.faults:
            print(f"  {trial.point or f'{trial.after_s:.3f} s'}: {fault}", flush=True)
    return row, faulty


def _undisturbed(home: Path, base: Path, kind: Kind) -> tuple[Expected, float, int]:
    """Do a job three times to its end.

    Returns:
        What it led to, the shortest time that it took, in seconds, and the number of its transactions.
    """
    times_s = []
    for _ in range(3):
        where = _copy(base, home / "undisturbed")
        waiting = None if kind.waiting is None else Child(do_waiting, kind.waiting, where)
        if waiting is not None:
            waiting.wait()
            waiting.send("now")
            waiting.wait()
            waiting.end()
        before = result_of(send_state, kind, where, False)
        child = Child(do, kind, where, None)
        child.wait()
        began = time.monotonic()
        writes = child.wait()
        times_s.append(time.monotonic() - began)
        child.end()
        after = result_of(send_state, kind, where, True)
        shutil.rmtree(where)
    expected = Expected(
        before.before, before.made_before if kind.makes else None, after.after, after.status, after.views, before.tasks
    )
    assert not kind.folds or (expected.before or {}).get("has layers"), "there is something to fold"
    assert not kind.shows or expected.after not in (expected.before, expected.made_before), "the job changes something"
    return expected, min(times_s), writes


def _trial(home: Path, base: Path, kind: Kind, expected: Expected, point: Point | None, after_s: float) -> Trial:
    where = _copy(base, home / "killed")
    waiting = None if kind.waiting is None else Child(do_waiting, kind.waiting, where)
    if waiting is not None:
        waiting.wait()
    child = Child(do, kind, where, point)
    child.wait()
    if waiting is not None:
        waiting.send("now")
    faults = []
    if point is None:
        time.sleep(after_s)
        child.process.kill()
    is_inside = child.wait() is None
    child.end()
    if waiting is not None:
        try:
            assert waiting.wait() == "done"
        except (RuntimeError, AssertionError) as error:
            faults.append(f"the process that waited failed: {error}")
        waiting.end()
    try:
        outcome = result_of(send_outcome, kind, where, expected)
    except RuntimeError as error:
        outcome = Outcome("not done", [str(error)])
    outcome.faults += faults
    shutil.rmtree(where)
    return Trial(point, after_s, is_inside, outcome)


def result_of(function: Callable[..., None], *arguments: Any) -> Any:
    """Return the message of a function that runs in a child."""
    child = Child(function, *arguments)
    try:
        return child.wait()
    finally:
        child.end()


def _copy(base: Path, where: Path) -> Path:
    """Return a copy of a folder with a workspace; its images are where they were."""
    where.mkdir()
    shutil.copytree(base / "workspace", where / "workspace")
    for folder in ("images", "more"):
        (where / folder).symlink_to((base / folder).resolve())
    return where


if __name__ == "__main__":
    main()
