"""Jobs of each kind are killed: nothing that was there is lost, and nothing is half done.

A process does the job on a copy of a workspace. It ends itself before, within or after one of the transactions of the
catalog, or is killed from outside. Then the workspace is opened here and checked. The task is retried where it failed,
or the job is done again where it was not done.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.storage.catalog import Catalog
from tests.gallery import SETTINGS
from tests.kill.jobs import FAMILIES, KINDS, WAYS, Kind, begin, change, nothing, prepare
from tests.kill.moments import Moment, moment_of, placed, watch_writes
from tests.kill.state import Expected, check_outcome, state_of, task_ids, views_of
from tests.laws import trials
from tests.second_process import SecondProcess
from tests.tuning import tuned

pytestmark = [pytest.mark.slow, pytest.mark.soak]
_WRITES = 5
"""The number of transactions of a job, from the first on, around which it ends itself."""
_WAITS_S = 0.3
_NAMES = [name for family in FAMILIES.values() for name in list(family)[: trials(1, len(family))]]
Undisturbed = Callable[[str], "Run"]


@dataclass(frozen=True)
class Run:
    """A job that nobody disturbed.

    Attributes:
        base: the folder of the workspace before it.
        expected: the states that it begins with and leads to.
        takes_s: the time that it took in seconds.
        writes: its transactions, at most those around which it is killed.
    """

    base: Path
    expected: Expected
    takes_s: float
    writes: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A function that does a job on a copy of the workspace of all jobs, once."""
    home = tmp_path_factory.mktemp("jobs")
    prepare(home)
    return cache(lambda name: _run(home, KINDS[name], tmp_path_factory.mktemp("job")))


@pytest.mark.parametrize("number", range(trials(1, 50)))
@pytest.mark.parametrize("name", _NAMES)
def test_job__killed(
    undisturbed: Undisturbed, tmp_path: Path, name: str, number: int, record_property: Callable[[str, object], None]
) -> None:
    """A killed job is done as a whole or not at all, and once it is finished nobody sees that it was killed."""
    kind, run = KINDS[name], undisturbed(name)
    moment = replace(moment_of(name, number, run.writes), waits_s=_WAITS_S if kind.waiting else 0.0)

    def kill(moment: Moment) -> bool:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        return killed(name, copied(run.base, tmp_path / "copy"), moment, run.takes_s)

    moment = placed(kill, moment)
    with seeming(kind), Workspace(tmp_path / "copy" / "workspace", settings=SETTINGS) as workspace:
        outcome = check_outcome(workspace, kind, run.expected)
    record_property("kill", (name, outcome.happened))
    assert outcome.faults == [], f"{name} was killed {moment}"


def killed(name: str, home: Path, moment: Moment, takes_s: float) -> bool:
    """Do a job in a process that is killed, beside one that waits for it; return whether it had not ended."""
    process = SecondProcess(home / "workspace", SETTINGS, nothing)
    process.run(begin, name, moment)
    if KINDS[name].waiting is None:
        return process.die_within(moment.after_s(takes_s), change)
    waiting = SecondProcess(home / "workspace", SETTINGS, nothing)
    waiting.run(begin, name, None, waits=True)
    waiting.begin(change)
    has_died = process.die_within(moment.after_s(takes_s), change)
    waiting.result()
    waiting.close()
    return has_died


def _run(home: Path, kind: Kind, folder: Path) -> Run:
    """Do what comes before a job, then the job on a copy."""
    if kind.before is not None:
        home = copied(home, folder / "base")
        with seeming(kind), Workspace(home / "workspace", settings=SETTINGS) as workspace:
            kind.before(workspace)()
    copy, target = copied(home, folder / "undisturbed"), kind.makes or "pets"
    with seeming(kind), Workspace(copy / "workspace", settings=SETTINGS) as workspace:
        if kind.waiting is not None:
            kind.waiting(workspace)()
        before, made, tasks = state_of(workspace, "pets", kind), state_of(workspace, target, kind), task_ids(workspace)
        job, began = kind.job(workspace), time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Catalog, "write", Catalog.write)
            writes = watch_writes(Catalog)
            job()
        takes_s = time.monotonic() - began
        after = state_of(workspace, target, kind)
        workspace.evaluate_views()
        dataset = workspace.dataset(target)
        views, status = views_of(dataset), str(dataset.info.status_new)
    assert not kind.folds or (before or {}).get("has layers"), "there is something to fold"
    assert after not in (before, made), "the job changes something"
    expected = Expected(before, made if kind.makes else None, after, status, views, tasks)
    return Run(home, expected, takes_s, min(len(writes), _WRITES))


@contextmanager
def seeming(kind: Kind) -> Iterator[None]:
    """Have jobs of this process take the ways of a kind, until the end of the block."""
    with tuned() as tuning:
        for name, value in WAYS[kind.seems].items():
            setattr(tuning, name, value)
        yield


def copied(base: Path, where: Path) -> Path:
    """Return a copy of a folder with a workspace; its images are where they were."""
    where.mkdir()
    shutil.copytree(base / "workspace", where / "workspace")
    for folder in ("images", "more"):
        (where / folder).symlink_to((base / folder).resolve())
    return where
