"""A process of an index by groups is killed: the program, a worker, or one of Ray.

A process creates a dataset of vectors that do not fit into the memory that it may take. At some moment one process of
its family is killed. Then the task is retried where it failed, and the index must be that of an undisturbed run. No
temporary file and no process of the family may be left.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Workspace
from tests.analysis.arrays import clustered
from tests.gallery import SETTINGS
from tests.growth import GROUPS, columns_of
from tests.kill.moments import Moment, placed
from tests.laws import trials
from tests.pauses import wait_until
from tests.processes import is_running, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the family of a process is read from /proc"),
]
_PROCESSES = ("program", "worker", "fork_server")
_RAY = ("ray_driver", "program", "ray::", "raylet")
_VICTIMS = [("processes", each) for each in _PROCESSES] + [("ray", each) for each in _RAY[: trials(0, len(_RAY))]]
"""What runs the steps, and what is killed: the program, a worker, or a process with a word in its command.

Ray takes half a minute to start; with the other profiles the tests of its executor kill its workers.
"""
_ROWS, _DIMENSION = trials(3_000, 20_000), 64
_MEMORY = str(400 * _ROWS)
_END_S = 300.0
_COLUMNS = ("path", "uniqueness", "outlier_distance", "neighbours", *GROUPS)
_RUNS = """
    import os, sys
    os.environ["FRAMEDEX_EXECUTOR"], os.environ["FRAMEDEX_MEMORY_BYTES"] = sys.argv[3:]
    from framedex import Workspace
    from framedex.jobs.index import indexed_vectors

    indexed_vectors.DENSE_ROWS = 100  # so that few vectors are many, too
    with Workspace(sys.argv[1]) as workspace:
        print("opened", flush=True)
        if tasks := workspace.tasks().tasks:
            task = workspace.task(tasks[0].task_id)
            task.retry()
        else:
            task = workspace.create_dataset("vectors", sys.argv[2], wait=False).task
        task.wait()
"""
Undisturbed = Callable[[str], "Run"]


@dataclass(frozen=True)
class Run:
    """A creation that nobody disturbed.

    Attributes:
        source: the file of the vectors.
        columns: the columns of the index.
        takes_s: the time that it took in seconds, from the opening of the workspace.
    """

    source: Path
    columns: dict[str, list[Any]]
    takes_s: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A function that creates the dataset with an executor, once."""
    source = tmp_path_factory.mktemp("vectors") / "vectors.parquet"
    vectors = clustered(_ROWS, _DIMENSION, centres=_ROWS // 40, spread=0.5)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), _DIMENSION)
    pq.write_table(pa.table({"uri": [f"{row:06}.jpg" for row in range(_ROWS)], "embedding": column}), source)

    @cache
    def run(executor: str) -> Run:
        folder = tmp_path_factory.mktemp(executor) / "workspace"
        process = running(folder, source, executor)
        began = time.monotonic()
        _, error = process.communicate(timeout=_END_S)
        assert process.returncode == 0, error
        return Run(source, columns_of_only(folder), time.monotonic() - began)

    return run


@pytest.mark.parametrize("number", range(trials(1, 12)))
@pytest.mark.parametrize(("executor", "victim"), _VICTIMS)
def test_index__killed(
    undisturbed: Undisturbed,
    tmp_path: Path,
    executor: str,
    victim: str,
    number: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Whatever process is killed, the index is completed or retried to the same one, and nothing is left behind."""
    run, folder, status = undisturbed(executor), tmp_path / "workspace", 0

    def kill(moment: Moment) -> bool:
        nonlocal status
        shutil.rmtree(folder, ignore_errors=True)
        process = running(folder, run.source, executor)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment.share * run.takes_s)
        wait_until(lambda: bool(victims_of(process, victim)) or process.poll() is not None)
        members, victims = list(family(process.pid)), victims_of(process, victim)
        for pid in victims[:1]:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=_END_S)
        wait_until(lambda: not any(map(is_running, members)))
        status = process.returncode
        return bool(victims)

    at = f"killed {placed(kill, Moment(share=random.Random(f'{executor} {victim} {number}').random()))}"
    if status:
        retry = running(folder, run.source, executor)
        _, error = retry.communicate(timeout=_END_S)
        assert retry.returncode == 0, f"{at}: the retry failed: {error}"
    record_property("kill", (f"index by {executor}: {victim}", "retried" if status else "done"))
    with Workspace(folder, settings=SETTINGS) as workspace:
        assert workspace.check().findings == [], at
    assert columns_of_only(folder) == run.columns, at
    assert [each for each in (folder / "cache" / "spill").rglob("*") if each.is_file()] == [], at


def running(folder: Path, source: Path, executor: str) -> subprocess.Popen[str]:
    """Start a process that creates the dataset of a workspace, or retries the task that did; it has opened it."""
    process = start(_RUNS, folder, source, executor, _MEMORY)
    assert process.stdout is not None
    assert process.stdout.readline() == "opened\n", process.communicate()[1]
    return process


def columns_of_only(folder: Path) -> dict[str, list[Any]]:
    """Return the columns of the index of the only dataset."""
    with Workspace(folder, settings=SETTINGS, read_only=True) as workspace:
        assert [str(each.status_new) for each in workspace.datasets()] == ["READY"]
        return columns_of(workspace.dataset("vectors"), _COLUMNS)


def family(pid: int) -> Iterator[int]:
    """Yield a process and all that it has started."""
    yield pid
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))
    except OSError:  # it has ended
        return


def victims_of(process: subprocess.Popen[str], victim: str) -> list[int]:
    """Return the processes of a family that can be the victim."""
    if victim == "program":
        return [process.pid] if process.poll() is None else []
    if victim == "worker":  # a fork of the process that forks has its command
        return victims_of(process, "fork_server")[1:]
    return [pid for pid in family(process.pid) if pid != process.pid and victim in command_of(pid)]


def command_of(pid: int) -> str:
    """Return the command of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
