"""Kill test: each kind of job is killed at many moments, also in its commit; nothing that was there may be lost.

A process does the job on a copy of a workspace and is ended by SIGKILL at a random moment, or by its own hand at one
of the points around the commit. A second process then opens the workspace and looks: is the head readable, are all
rows there that were committed before, is the dataset in the state before the job or in the one after it, and nothing
between; do the task and the statuses say what happened? It retries the task where that failed, or does the job where
it never began, and compares the end with that of a run that nobody disturbed.

The same file is the driver, the job (``do``) and the look (``look``). Processes of the driver are its own.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import save, table
from kill_jobs import AGAIN, BEFORE, JOBS, MAKES, OF_FEW, OF_MANY, WAITING, prepare

POINTS = ("begun", "before commit", "in commit", "after commit")
"""Where a job may end itself: when its task began or it got the lease of the dataset, before and within the transaction
of the commit, and after it."""
_WAITS_S = 0.3


def do(job: str, workspace: Path, point: str) -> None:
    """Do a job on the dataset of a workspace; say when it begins and when it is done."""
    import framedex

    if point:
        _die_at(point, after_s=_WAITS_S if job in WAITING else 0.0)
    _seem_large(job)
    with framedex.Workspace(workspace) as opened:
        print("begun", flush=True)
        JOBS[job](opened)
        print("done", flush=True)


def wait(job: str, workspace: Path) -> None:
    """Open a workspace, wait for a line, and do what waits for the lease that a job holds."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        print("begun", flush=True)
        sys.stdin.readline()
        WAITING[job](opened)


def before(job: str, workspace: Path) -> None:
    """Do what comes before a job."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        BEFORE[job](opened)


def _seem_large(job: str) -> None:
    """Have jobs take the ways that they take in a large dataset, in a retry, too."""
    from framedex.jobs.edits import removal, rows

    if job == OF_FEW:
        removal._ALL = 0
    if job == OF_MANY:
        rows._FEW, rows._FEW_SHARE = 0, 10**9


def _die_at(point: str, *, after_s: float) -> None:
    """Have this process end itself by SIGKILL at a point of the job, where it stays for a while."""
    from framedex.operations import short_edits
    from framedex.storage import catalog, datasets, task_rows

    def die() -> None:
        time.sleep(after_s)
        os.kill(os.getpid(), signal.SIGKILL)

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def patched(*args: Any, **options: Any) -> Any:
            die()
            return function(*args, **options)

        return patched

    def after(function: Callable[..., Any]) -> Callable[..., Any]:
        def patched(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            die()
            return result

        return patched

    match point:
        case "begun":
            task_rows.insert_task = _at_end_of(catalog, task_rows.insert_task, die)
            short_edits.load_job_context = before(short_edits.load_job_context)
        case "before commit":
            datasets.commit_generation = before(datasets.commit_generation)
        case "in commit":
            datasets.commit_generation = after(datasets.commit_generation)
        case "after commit":
            datasets.commit_generation = _at_end_of(catalog, datasets.commit_generation, die)


def _at_end_of(catalog: Any, function: Callable[..., Any], die: Callable[[], None]) -> Callable[..., Any]:
    """Return a function after whose transaction the process ends."""
    write = catalog.Catalog.write
    called = []

    @contextmanager
    def patched_write(self: Any) -> Iterator[Any]:
        with write(self) as connection:
            yield connection
        if called:
            die()

    def patched(*args: Any, **options: Any) -> Any:
        called.append(True)
        return function(*args, **options)

    catalog.Catalog.write = patched_write
    return patched


def look(job: str, workspace: Path, expected: Path) -> None:
    """Look at a workspace after a job was killed, finish the job, and print what was found, as JSON."""
    import framedex

    wanted = json.loads(expected.read_text())
    faults: list[str] = []
    _seem_large(job)
    with framedex.Workspace(workspace) as opened:
        target = MAKES.get(job, "pets")
        tasks = [task for task in opened.tasks(page_size=50).tasks if task.task_id not in wanted["tasks"]]
        is_done = _state(opened, target, job) == wanted["after"] and job != AGAIN
        happened = "done" if is_done else "not done"
        faults += _check_before_retry(opened, job, target, wanted, tasks)
        if tasks and tasks[0].status == "FAILED":
            happened = "retried"
            opened.task(tasks[0].task_id).retry()
            opened.task(tasks[0].task_id).wait(120)
        elif happened == "not done":
            JOBS[job](opened)
        found = _state(opened, target, job)
        if found != wanted["after"]:
            faults.append(f"the end differs from that of an undisturbed run: {_difference(found, wanted['after'])}")
        if job in MAKES and _state(opened, "pets") != wanted["before"]:
            faults.append("the other dataset is not as it was")
        if (status := opened.dataset(target).info.status_new) != wanted["status"]:
            faults.append(f"at the end the status is {status}, not {wanted['status']}")
        if (views := _views(opened.dataset(target))) != wanted["views"]:
            faults.append(f"the saved views show {views}, not {wanted['views']}")
        faults += _usable(opened.dataset(target))
    print(json.dumps({"happened": happened, "faults": faults}))


def _check_before_retry(opened: Any, job: str, target: str, wanted: dict[str, Any], tasks: list[Any]) -> list[str]:
    faults = []
    state = _state(opened, target, job)
    before = None if job in MAKES else wanted["before"]
    if state not in (before, wanted["after"]):
        faults.append(f"a state between before and after: {_difference(state, before)}")
    if len(tasks) > 1:
        faults.append(f"{len(tasks)} tasks")
    for task in tasks:
        done = state == wanted["after"] and task.status == "COMPLETED"
        failed = task.status == "FAILED" and task.error_message == "interrupted" and state == before
        if not (done or failed):
            faults.append(f"the task is {task.status} ({task.error_message!r}), the state is not that")
    for record in opened.datasets():
        allowed = ("READY", "PARTIAL INDEX") if record.display_name == "pets" else ("READY", "ERROR", "DRAFT")
        if record.status_new not in allowed:
            faults.append(f"{record.display_name} is {record.status_new}")
    return faults


def _state(opened: Any, name: str, job: str = "") -> dict[str, Any] | None:
    """Return all that a dataset shows, by the paths of its media; None where there is nothing to see.

    Where two processes edit at once, either may be first: then steps of the journal have no number.
    """
    import framedex
    from framedex.operations.context import open_media

    try:
        dataset = opened.dataset(name)
        media = open_media(dataset._context, dataset.id)
    except (framedex.NotFound, framedex.Conflict):
        return None
    hidden = {"media_id", "batch", "modified_at"}
    columns = [column for column in media.table.schema.names if column not in hidden]
    rows = media.table.scan(columns).read_all().to_pydict()
    paths = dict(zip(*_ids(media), strict=True))
    rows = {column: [_plain(value) for value in values] for column, values in rows.items()}
    state = {
        "rows": rows,
        "count": dataset.info.n_images,
        "tags": sorted((tag.name, tag.count) for tag in dataset.tags()),
        "fields": sorted(field.field_name for field in dataset.fields()),
        "decisions": [sorted(paths[each] for each in made.media_ids) for made in dataset.duplicate_decisions()],
        "labels that are right": [
            [paths.get(each, each), labels]
            for made in dataset.label_decisions()
            for each, labels in zip(made.media_ids, made.labels, strict=True)
        ],
        "basket": sorted(paths[each] for each in dataset.basket.media_ids()),
        "journal": [[step.step, step.operation, step.undone_at is not None] for step in dataset.journal()],
        "snapshots": sorted(f"{each.reason} {each.n_images}" for each in dataset.snapshots()),
    }
    if job in WAITING:
        state["journal"] = sorted(step[1:] for step in state["journal"])
    found: dict[str, Any] = json.loads(json.dumps(state))
    return found


def _views(dataset: Any) -> list[Any]:
    """Return what the saved views of a dataset show, and their alerts."""
    shown = [
        [each.name, each.record.total_results, [[point.batch, point.count] for point in each.trend().points]]
        for each in dataset.views()
    ]
    return [*sorted(shown), *sorted([alert.view_name, alert.result_count] for alert in dataset.alerts())]


def _ids(media: Any) -> tuple[list[str], list[str]]:
    held = media.table.scan(["media_id", "path"]).read_all()
    return held["media_id"].to_pylist(), held["path"].to_pylist()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4) if value == value else "NaN"
    if isinstance(value, list):
        return [_plain(each) for each in value if not hasattr(each, "year")]  # when a tag was put on is not compared
    return value.hex() if isinstance(value, bytes) else value


def _difference(found: Any, wanted: Any) -> str:
    if found is None or wanted is None:
        return f"{'nothing' if found is None else 'something'} is there"
    parts = [key for key in wanted if found.get(key) != wanted[key]]
    if "rows" in parts:
        columns = {*found["rows"], *wanted["rows"]}
        parts += [name for name in sorted(columns) if found["rows"].get(name) != wanted["rows"].get(name)]
    more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
    return f"{', '.join(parts[:8])}{more} (media: {found['count']}, not {wanted['count']})"


def _usable(dataset: Any) -> list[str]:
    """Try what people do with a dataset; return what does not work or does not add up."""
    faults = []
    sizes = [sum(cluster.n_images for cluster in dataset.explore(level=level).clusters) for level in range(5)]
    if set(sizes) != {dataset.count()} and dataset.count() <= 100:
        faults.append(f"clusters of {sizes} media, of {dataset.count()}")
    if dataset.to_arrow().num_rows != dataset.info.n_images:
        faults.append(f"{dataset.to_arrow().num_rows} rows, of {dataset.info.n_images}")
    dataset.issues()
    dataset.duplicates()
    dataset.read(dataset.to_arrow(["media_id"])["media_id"][0].as_py())
    return faults


@dataclass(frozen=True)
class Trial:
    """One killed run.

    Attributes:
        job: which.
        point: where it ended itself; empty if it was killed from outside.
        after_s: when it was killed, counted from its beginning.
        happened: ``done``, ``not done``, or ``retried``.
        faults: what was wrong.
    """

    job: str
    point: str
    after_s: float
    happened: str
    faults: list[str]


def main() -> None:
    """Run all trials and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moments", type=int, default=50, help="kills of each job")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(prefix="bench-kill-") as home:
        base = Path(home) / "base"
        base.mkdir()
        _run("prepare", base)
        rows: list[list[Any]] = []
        trials: list[Trial] = []
        for job in options.jobs:
            took = _undisturbed(Path(home), job)
            done = _trials(Path(home), job, options.moments, took)
            shutil.rmtree(Path(home) / "base of one")
            trials += done
            counts = [sum(trial.happened == each for trial in done) for each in ("not done", "retried", "done")]
            rows.append([job, took, len(done), *counts, sum(bool(trial.faults) for trial in done)])
            print(f"{job}: {len(done)} kills, {rows[-1][-1]} with faults", flush=True)
            for trial in done:
                for fault in trial.faults:
                    print(f"  {trial.point or f'{trial.after_s:.3f} s'}: {fault}", flush=True)
    print()
    headers = ["job", "undisturbed s", "kills", "had not begun", "failed, retried", "was done", "with faults"]
    print(table(headers, rows))
    save("kill", {"seed": options.seed, "rows": rows, "faults": [vars(trial) for trial in trials if trial.faults]})


def _trials(home: Path, job: str, moments: int, took: float) -> list[Trial]:
    """Kill a job at the points around its commit and at random moments, two at a time."""
    points = [*POINTS, *[""] * max(moments - len(POINTS), 0)]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(_trial, home, job, point, place, took) for place, point in enumerate(points)]
        return [each.result() for each in waiting]


def _run(*arguments: object) -> str:
    command = [sys.executable, __file__, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if ended.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {ended.returncode}: {ended.stderr[-3000:]}")
    return ended.stdout


def _undisturbed(home: Path, job: str) -> float:
    """Do a job once to its end; keep what it led to, and return how long it took."""
    (home / "base of one").mkdir()
    shutil.copytree(home / "base" / "workspace", home / "base of one" / "workspace")
    for folder in ("images", "more"):
        (home / "base of one" / folder).symlink_to(home / "base" / folder)
    if job in BEFORE:
        _run("before", job, home / "base of one" / "workspace")
    where = _copy(home, f"{job} undisturbed")
    waiting = _start_waiting(job, where)
    if waiting is not None:
        waiting.communicate("now\n", timeout=600)
    before = json.loads(_run("state", where / "workspace", "pets", job))
    started = time.monotonic()
    process = _start(job, where, "")
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    process.communicate(timeout=600)
    took = time.monotonic() - began
    assert process.returncode == 0, f"{job} failed after {time.monotonic() - started:.1f} s"
    after = json.loads(_run("state", where / "workspace", MAKES.get(job, "pets"), job))
    known = {"before": before["state"], "tasks": before["tasks"], "after": after["state"], "status": after["status"]}
    known["views"] = after["views"]
    (home / f"{job}.json").write_text(json.dumps(known))
    shutil.rmtree(where)
    return took


def _trial(home: Path, job: str, point: str, place: int, took: float) -> Trial:
    where = _copy(home, f"{job} {place}")
    waiting = _start_waiting(job, where)
    process = _start(job, where, point)
    assert process.stdout is not None
    process.stdout.readline()
    if waiting is not None and waiting.stdin is not None:
        waiting.stdin.write("now\n")
        waiting.stdin.flush()
    after_s = random.uniform(0, 1.05 * took)
    if not point:
        time.sleep(after_s)
        process.kill()
    process.communicate(timeout=600)
    faults = []
    if waiting is not None and (problem := waiting.communicate(timeout=600)[1]) is not None and waiting.returncode:
        faults.append(f"the process that waited ended with {waiting.returncode}: {problem[-1000:]}")
    try:
        found = json.loads(_run("look", job, where / "workspace", home / f"{job}.json").splitlines()[-1])
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        found = {"happened": "retried", "faults": [str(error)]}
    found["faults"] += faults
    if not found["faults"]:
        shutil.rmtree(where)
    return Trial(job, point, after_s, found["happened"], found["faults"])


def _copy(home: Path, name: str) -> Path:
    """Return a copy of the workspace; its images are where they were."""
    where = home / name
    where.mkdir()
    shutil.copytree(home / "base of one" / "workspace", where / "workspace")
    for folder in ("images", "more"):
        (where / folder).symlink_to(home / "base" / folder)
    return where


def _start_waiting(job: str, where: Path) -> "subprocess.Popen[str] | None":
    """Start a process that will wait for the lease of a job; return it once it is ready, None for other jobs."""
    if job not in WAITING:
        return None
    command = [sys.executable, __file__, "wait", job, str(where / "workspace")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _start(job: str, where: Path, point: str) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "do", job, str(where / "workspace"), point]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def print_state(workspace: Path, name: str, job: str) -> None:
    """Print what a dataset shows, as JSON."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        tasks = [task.task_id for task in opened.tasks(page_size=50).tasks]
        dataset = opened.dataset(name)
        state, status = _state(opened, name, job), dataset.info.status_new
        print(json.dumps({"state": state, "status": status, "tasks": tasks, "views": _views(dataset)}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["do", job, workspace, point]:
            do(job, Path(workspace), point)
        case ["look", job, workspace, expected]:
            look(job, Path(workspace), Path(expected))
        case ["wait", job, workspace]:
            wait(job, Path(workspace))
        case ["before", job, workspace]:
            before(job, Path(workspace))
        case ["state", workspace, name, job]:
            print_state(Path(workspace), name, job)
        case ["prepare", folder]:
            prepare(Path(folder))
        case _:
            main()
