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

POINTS = ("begun", "before commit", "in commit", "after commit")
"""Where a job may end itself: when its task began, before and within the transaction of the commit, and after it."""
IMAGES, ADDED = 160, 60
_SIDE = 96


def do(job: str, workspace: Path, point: str) -> None:
    """Do a job on the dataset of a workspace; say when it begins and when it is done."""
    import framedex

    if point:
        _die_at(point)
    _seem_large(job)
    with framedex.Workspace(workspace) as opened:
        print("begun", flush=True)
        JOBS[job](opened)
        print("done", flush=True)


def _seem_large(job: str) -> None:
    """Have a deletion of few media take the way that it takes in a large dataset, in a retry, too."""
    if job == _OF_FEW:
        from framedex.jobs.edits import removal

        removal._ALL = 0


def _die_at(point: str) -> None:
    """Have this process end itself by SIGKILL at a point of the job."""
    from framedex.storage import catalog, datasets, task_rows

    def die() -> None:
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


def _folder(workspace: Any, name: str) -> Path:
    return workspace.path.parent / name


def _create(workspace: Any) -> None:
    workspace.create_dataset("new", _folder(workspace, "images"), "gist", wait=False).task.wait()


def _add(workspace: Any) -> None:
    workspace.dataset("pets").add_media(_folder(workspace, "more"))


def _add_and_index(workspace: Any) -> None:
    workspace.dataset("pets").add_media(_folder(workspace, "more"), auto_reindex=True)


def _reindex(workspace: Any) -> None:
    workspace.dataset("pets").reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.4))


def _delete(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[10:50])


def _restore(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.restore(dataset.snapshots()[-1])


def _clone(workspace: Any) -> None:
    workspace.dataset("pets").clone()


def _field(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    dataset.set_field("score", {media_id: float(place) for place, media_id in enumerate(ids)})


def _tag(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.tag(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[::2], "even")


def _label(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.set_labels(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[::3], ["third"])


def _decide(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    groups = sorted(dataset.duplicates(), key=lambda group: group.paths)
    dataset.not_duplicates(groups[0].media_ids)


def _undo(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.undo(next(each.step for each in dataset.journal() if each.operation == "set_labels"))


def _delete_few(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[50:53])


def _fold(workspace: Any) -> None:
    workspace.vacuum()


def _snapshot(workspace: Any) -> None:
    workspace.dataset("pets").snapshot("kept")


def _process(workspace: Any) -> None:
    dataset = workspace.dataset("sent")
    transaction = dataset.find_upload(dataset.uploads()[0].id)
    transaction.process(encoder="gist", wait=False).wait()


def _process_more(workspace: Any) -> None:
    dataset = workspace.dataset("pets")
    dataset.find_upload(dataset.uploads()[0].id).process()


JOBS: dict[str, Callable[[Any], None]] = {
    "create": _create,
    "add_media": _add,
    "add_media and reindex": _add_and_index,
    "reindex": _reindex,
    "delete_media": _delete,
    "restore": _restore,
    "clone": _clone,
    "set_field": _field,
    "tag": _tag,
    "set_labels": _label,
    "not_duplicates": _decide,
    "snapshot": _snapshot,
    "undo": _undo,
    "delete_media of few": _delete_few,
    "vacuum, which folds edits": _fold,
    "process a draft": _process,
    "process an addition": _process_more,
}
_OF_FEW = "delete_media of few"
_MAKES = {"create": "new", "clone": "pets (cloned)", "process a draft": "sent"}


def look(job: str, workspace: Path, expected: Path) -> None:
    """Look at a workspace after a job was killed, finish the job, and print what was found, as JSON."""
    import framedex

    wanted = json.loads(expected.read_text())
    faults: list[str] = []
    _seem_large(job)
    with framedex.Workspace(workspace) as opened:
        target = _MAKES.get(job, "pets")
        tasks = [task for task in opened.tasks(page_size=50).tasks if task.task_id not in wanted["tasks"]]
        happened = "done" if _state(opened, target) == wanted["after"] else "not done"
        faults += _check_before_retry(opened, job, target, wanted, tasks)
        if tasks and tasks[0].status == "FAILED":
            happened = "retried"
            opened.task(tasks[0].task_id).retry()
            opened.task(tasks[0].task_id).wait(120)
        elif happened == "not done":
            JOBS[job](opened)
        found = _state(opened, target)
        if found != wanted["after"]:
            faults.append(f"the end differs from that of an undisturbed run: {_difference(found, wanted['after'])}")
        if job in _MAKES and _state(opened, "pets") != wanted["before"]:
            faults.append("the other dataset is not as it was")
        if (status := opened.dataset(target).info.status_new) != wanted["status"]:
            faults.append(f"at the end the status is {status}, not {wanted['status']}")
        faults += _usable(opened.dataset(target))
    print(json.dumps({"happened": happened, "faults": faults}))


def _check_before_retry(opened: Any, job: str, target: str, wanted: dict[str, Any], tasks: list[Any]) -> list[str]:
    faults = []
    state = _state(opened, target)
    before = None if job in _MAKES else wanted["before"]
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


def _state(opened: Any, name: str) -> dict[str, Any] | None:
    """Return all that a dataset shows, by the paths of its media; None where there is nothing to see."""
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
        "journal": [[step.step, step.operation, step.undone_at is not None] for step in dataset.journal()],
        "snapshots": sorted(f"{each.reason} {each.n_images}" for each in dataset.snapshots()),
    }
    found: dict[str, Any] = json.loads(json.dumps(state))
    return found


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


def prepare(folder: Path) -> None:
    """Make images and the workspace that all jobs begin with."""
    import cv2
    import numpy as np

    import framedex

    random_numbers = np.random.default_rng(0)
    for name, count in (("images", IMAGES), ("more", ADDED)):
        (folder / name).mkdir()
        for number in range(count):
            coarse = random_numbers.integers(0, 255, (6, 6, 3)).astype(np.uint8)
            image = cv2.resize(coarse, (_SIDE, _SIDE), interpolation=cv2.INTER_CUBIC)
            cv2.imwrite(str(folder / name / f"{number:04}.png"), image)
            if number % 8 == 0:
                cv2.imwrite(str(folder / name / f"{number:04}b.jpg"), image)
    with framedex.Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset("pets", folder / "images", "gist")
        ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        dataset.set_labels(ids[:40], ["cat"])
        dataset.set_labels(ids[40:80], ["dog"])
        dataset.tag(ids[:10], "first")
        dataset.add_field("score", "float", values=dict.fromkeys(ids[:20], 1.0))
        files = [(path.name, path) for path in sorted((folder / "more").iterdir())]
        for transaction in (workspace.create_draft("sent").open_upload(), dataset.open_upload()):
            transaction.add(files[:40])
            transaction.add(files[30:])


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
    where = _copy(home, f"{job} undisturbed")
    before = json.loads(_run("state", where / "workspace", "pets"))
    started = time.monotonic()
    process = _start(job, where, "")
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    process.communicate(timeout=600)
    took = time.monotonic() - began
    assert process.returncode == 0, f"{job} failed after {time.monotonic() - started:.1f} s"
    after = json.loads(_run("state", where / "workspace", _MAKES.get(job, "pets")))
    known = {"before": before["state"], "tasks": before["tasks"], "after": after["state"], "status": after["status"]}
    (home / f"{job}.json").write_text(json.dumps(known))
    shutil.rmtree(where)
    return took


def _trial(home: Path, job: str, point: str, place: int, took: float) -> Trial:
    where = _copy(home, f"{job} {place}")
    process = _start(job, where, point)
    assert process.stdout is not None
    process.stdout.readline()
    after_s = random.uniform(0, 1.05 * took)
    if not point:
        time.sleep(after_s)
        process.kill()
    process.communicate(timeout=600)
    try:
        found = json.loads(_run("look", job, where / "workspace", home / f"{job}.json").splitlines()[-1])
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        found = {"happened": "retried", "faults": [str(error)]}
    if not found["faults"]:
        shutil.rmtree(where)
    return Trial(job, point, after_s, found["happened"], found["faults"])


def _copy(home: Path, name: str) -> Path:
    """Return a copy of the workspace; its images are where they were."""
    where = home / name
    where.mkdir()
    shutil.copytree(home / "base" / "workspace", where / "workspace")
    for folder in ("images", "more"):
        (where / folder).symlink_to(home / "base" / folder)
    return where


def _start(job: str, where: Path, point: str) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "do", job, str(where / "workspace"), point]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def print_state(workspace: Path, name: str) -> None:
    """Print what a dataset shows, as JSON."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        tasks = [task.task_id for task in opened.tasks(page_size=50).tasks]
        status = opened.dataset(name).info.status_new
        print(json.dumps({"state": _state(opened, name), "status": status, "tasks": tasks}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["do", job, workspace, point]:
            do(job, Path(workspace), point)
        case ["look", job, workspace, expected]:
            look(job, Path(workspace), Path(expected))
        case ["state", workspace, name]:
            print_state(Path(workspace), name)
        case ["prepare", folder]:
            prepare(Path(folder))
        case _:
            main()
