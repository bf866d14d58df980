"""The search for copies goes on after its process was killed, from what was complete."""

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Workspace
from framedex.core.stages import Stages
from framedex.jobs.index import copies, verified_copies
from framedex.tasks import Task
from tests.gallery import VERIFYING
from tests.image_files import detailed, write
from tests.programs import Program
from tests.tuning import tuned

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not name the time since they were started"
)
IMAGES, PART = 6, 2
Groups = set[tuple[tuple[str, ...], tuple[str, ...]]]


@contextmanager
def little_memory(killed_at: str = "") -> Iterator[dict[str, int]]:
    """Let copies not fit into memory, and this process be killed after a stage; yield how often steps were done."""
    put, counts = Stages.put, {"searches": 0, "parts": 0}

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        return call

    def put_and_die(stages: Stages, name: str, result: Any) -> None:
        put(stages, name, result)
        if name == killed_at:
            signal.raise_signal(signal.SIGKILL)

    with tuned() as tuning, pytest.MonkeyPatch.context() as patch:
        tuning.copies_in_memory = 0
        tuning.copy_bytes = 2**60
        tuning.verified_pairs = PART
        tuning.kept_copies_s = 0.0
        verification = verified_copies._Verification
        for place, function, name in ((copies, "find_candidates", "searches"), (verification, "copies", "parts")):
            patch.setattr(place, function, counted(name, vars(place)[function]))
        patch.setattr(Stages, "put", put_and_die)
        yield counts


def groups_of(workspace: Workspace) -> Groups:
    """Return the groups of duplicates, by the paths of their members and the reasons."""
    return {(tuple(each.paths), tuple(map(str, each.reasons))) for each in workspace.dataset("d").duplicates()}


def run_killed(folder: str, killed_at: str) -> None:
    """Create the dataset until a stage is complete."""
    with little_memory(killed_at), Workspace(Path(folder) / "ws", settings=VERIFYING) as workspace:
        workspace.create_dataset("d", Path(folder) / "images", "gist")


def retried(workspace: Workspace) -> Task:
    """Return the only task of a workspace, which is done again."""
    (record,) = workspace.tasks().tasks
    task = workspace.task(record.task_id)
    task.retry()
    task.wait()
    return task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``images``: mirrored ones beside their originals."""
    for seed in range(IMAGES):
        image = detailed(seed)
        write(tmp_path / "images" / f"{seed}.png", image)
        write(tmp_path / "images" / f"{seed}_mirrored.png", np.ascontiguousarray(image[:, ::-1]))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed_at", "done", "budget_ms"), [("verified", 1, 8.0), ("chosen", 0, 8.0), ("verified", 0, 80.0)]
)
def test_create__goes_on_after_a_kill(folder: Path, killed_at: str, done: int, budget_ms: float) -> None:
    """A retry does nothing again that was complete, and gives the same groups; another search begins at the start."""
    code = "import sys; from tests.jobs.index.test_copies_resumed import run_killed; run_killed(*sys.argv[1:])"
    assert Program(["-c", code, folder, killed_at]).wait() == -signal.SIGKILL
    spill, settings = folder / "ws" / "cache" / "spill", VERIFYING.model_copy(update={"copy_budget_ms": budget_ms})
    assert list(spill.rglob("stage-*"))
    with little_memory() as counts, Workspace(folder / "ws", settings=settings) as workspace:
        retried(workspace)
        found = groups_of(workspace)
    is_same = budget_ms == VERIFYING.copy_budget_ms
    assert any(each.is_file() for each in spill.rglob("*")) == (not is_same)
    shutil.rmtree(folder / "ws")
    with little_memory() as whole, Workspace(folder / "ws", settings=settings) as workspace:
        workspace.create_dataset("d", folder / "images", "gist")
        assert groups_of(workspace) == found
    assert len(found) == IMAGES
    assert counts["searches"] == int(not is_same)
    assert counts["parts"] == whole["parts"] - done
    assert whole["parts"] > 1
