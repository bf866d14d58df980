"""Kill test of an index by groups: the process, a worker or Ray's raylet is killed at many moments of a creation.

A process creates a dataset of vectors that do not fit into the memory that it may take. At a random moment one process
of its family is ended by SIGKILL. Then another process opens the workspace, retries the task if it was not completed,
and compares the index columns with those of a run that nobody disturbed. No temporary file, no process of the family
and no finding of ``check`` may be left.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import save, table

VICTIMS = {
    "processes": ("program", "executors.worker"),
    "ray": ("program", "ray::", "executors.ray_driver", "raylet"),
}
SCRIPT = Path(__file__).resolve()
_MEMORY = "8000000"
_END_S = 60.0
_OPEN = "opened"


@dataclass(frozen=True)
class Trial:
    """One killed run.

    Attributes:
        executor: what ran the steps.
        victim: what was killed: the program, or what is in the command of a process that it had started.
        after_s: when, counted from the opening of the workspace.
        outcome: ``completed`` if the task was completed all the same, else ``retried``.
        faults: what was wrong, in words.
    """

    executor: str
    victim: str
    after_s: float
    outcome: str
    faults: tuple[str, ...]


def main() -> int:
    """Kill, check, print and write; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", nargs="+", choices=[*VICTIMS], default=[*VICTIMS], help="what runs the steps")
    parser.add_argument("--trials", type=int, default=50, help="moments for each executor")
    parser.add_argument("--rows", type=int, default=20_000, help="vectors")
    parser.add_argument("--dimension", type=int, default=64, help="of the vectors")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        return _run(*options.run)
    chance = random.Random(options.seed)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="bench-kill-") as name:
        folder = Path(name)
        _write_vectors(folder / "vectors.parquet", options.rows, options.dimension)
        for executor in options.executors:
            undisturbed = folder / f"{executor}-undisturbed"
            started = time.perf_counter()
            _start("create", undisturbed, executor).wait()
            takes_s = time.perf_counter() - started
            expected = _columns(undisturbed)
            print(f"{executor}: {takes_s:.1f} s without a kill", flush=True)
            for number in range(options.trials):
                victim = VICTIMS[executor][number % len(VICTIMS[executor])]
                trial = _try(folder / f"{executor}-{number}", executor, victim, chance.uniform(0, takes_s), expected)
                trials.append(trial)
                print(f"{executor} {number}: {victim} after {trial.after_s:.2f} s, {trial.outcome} {trial.faults}",
                      flush=True)  # fmt: skip
    _print(trials)
    save("kill-groups", {"trials": [each.__dict__ for each in trials]})
    return int(any(each.faults for each in trials))


def _write_vectors(path: Path, rows: int, dimension: int) -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    from index_inputs import write_kind

    write_kind("clustered", str(path), rows, dimension)


def _start(task: str, workspace: Path, executor: str) -> "subprocess.Popen[str]":
    """Start a process that creates the dataset of a workspace, or retries the task that did."""
    variables = {**os.environ, "FRAMEDEX_EXECUTOR": executor, "FRAMEDEX_MEMORY_BYTES": _MEMORY}
    command = [sys.executable, str(SCRIPT), "--run", task, str(workspace), str(workspace.parent / "vectors.parquet")]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _run(task: str, workspace: str, source: str) -> int:
    """Run a task in this process; return 1 if it failed."""
    from framedex import TaskFailed, Workspace

    with Workspace(workspace) as opened:
        print(_OPEN, flush=True)
        try:
            if task == "create":
                task_of_creation = opened.create_dataset("vectors", source, wait=False).task
                assert task_of_creation is not None, "it was started"
                task_of_creation.wait()
            else:
                (record,) = opened.tasks().tasks
                again = opened.task(record.task_id)
                again.retry()
                again.wait()
        except TaskFailed as error:
            print(error)
            return 1
        return 0


def _try(workspace: Path, executor: str, victim: str, after_s: float, expected: Any) -> Trial:
    """Return what a kill led to."""
    process = _start("create", workspace, executor)
    assert process.stdout is not None, "its output is read"
    process.stdout.readline()
    time.sleep(after_s)
    family = list(_family(process.pid))
    victims = [pid for pid in family if victim in _command(pid)] if victim != "program" else [process.pid]
    for pid in victims[:1]:
        os.kill(pid, signal.SIGKILL)
    try:
        status = process.wait(_END_S * 5)
    except subprocess.TimeoutExpired:
        process.kill()
        return Trial(executor, victim, after_s, "stuck", ("it did not end",))
    faults = []
    end = time.monotonic() + _END_S
    while (left := [pid for pid in family if _is_running(pid)]) and time.monotonic() < end:
        time.sleep(0.1)
    faults += [f"process {_command(pid)[:80]} is left" for pid in left]
    outcome = "completed" if status == 0 else "retried"
    if status and _start("retry", workspace, executor).wait(_END_S * 5):
        faults.append("the retry failed")
    faults += _faults(workspace, expected)
    return Trial(executor, victim, after_s, outcome, tuple(faults))


def _faults(workspace: Path, expected: Any) -> list[str]:
    """Return what is wrong with a workspace, in words."""
    from framedex import Workspace

    with Workspace(workspace) as opened:
        found = [f"check: {each}" for each in opened.check().findings]
        states = [str(each.status) for each in opened.datasets()]
    if states != ["READY"]:
        found.append(f"the datasets are {states}")
    elif not _columns(workspace).equals(expected):
        found.append("the index is another one")
    found += [f"{each} is left" for each in (workspace / "cache" / "spill").rglob("*") if each.is_file()]
    return found


def _columns(workspace: Path) -> Any:
    """Return the index columns of the only dataset."""
    import lance

    (folder,) = (each for each in (workspace / "datasets").iterdir() if (each / "media.lance").exists())
    dataset = lance.dataset(str(folder / "media.lance"))
    groups = [name for name in dataset.schema.names if name.startswith(("cluster_", "duplicate_"))]
    return dataset.to_table(columns=["path", "uniqueness", "outlier_distance", "neighbours", *groups])


def _family(pid: int) -> Iterator[int]:
    """Yield a process and all that it has started."""
    yield pid
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _family(int(child))
    except OSError:  # it has ended
        return


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _print(trials: Sequence[Trial]) -> None:
    rows = []
    for executor, victim in dict.fromkeys((each.executor, each.victim) for each in trials):
        some = [each for each in trials if (each.executor, each.victim) == (executor, victim)]
        completed = sum(each.outcome == "completed" for each in some)
        rows.append(
            [
                executor,
                victim,
                len(some),
                completed,
                len(some) - completed,
                sum(map(bool, (each.faults for each in some))),
            ]
        )
    print(table(["executor", "killed", "trials", "completed all the same", "retried", "with a fault"], rows))


if __name__ == "__main__":
    sys.exit(main())
