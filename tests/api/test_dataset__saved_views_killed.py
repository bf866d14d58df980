"""Evaluations by several processes at once, and by processes that are killed in the middle."""

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace, vql
from framedex.operations import monitoring
from tests.api.test_dataset__saved_views import counts_of, labelled
from tests.gallery import SETTINGS
from tests.inside import runner_of
from tests.pauses import wait_until
from tests.processes import finish, start
from tests.tuning import Tuning

ADDS = """
    import os, signal, sys, framedex
    from framedex.operations import monitoring, vacuum
    from framedex.storage import view_rows
    from tests.api.test_dataset__saved_views import labelled
    from tests.gallery import SETTINGS

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    store = view_rows.store_evaluations
    match sys.argv[2]:
        case "before":
            monitoring.Monitor.__call__ = die
        case "counting":
            monitoring._Evaluation._counts = die
        case "storing":
            view_rows.store_evaluations = lambda *arguments: (store(*arguments), die())
        case "stored":
            evaluate = monitoring.evaluate_dataset
            monitoring.evaluate_dataset = lambda *arguments: (evaluate(*arguments), die())
        case "kept":
            monitoring.Monitor.__call__ = lambda *arguments: None
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        workspace.dataset("pets").add_media(labelled(10, "aab"))
"""
EVALUATES = """
    import json, sys, framedex
    from tests.gallery import SETTINGS
    from tests.tuning import Tuning

    Tuning().catch_up_delay_s = 3600.0
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        workspace.dataset("pets").saved_view("a").view().count()
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps([[alert.view_name, alert.batch] for alert in workspace.evaluate_views()]))
"""
OPENS = """
    import os, sys, framedex
    from framedex.operations import monitoring
    from tests.gallery import SETTINGS
    from tests.pauses import wait_until
    from tests.tuning import Tuning

    how = sys.argv[2]
    Tuning().catch_up_delay_s = 0.0 if how != "brief" else 60.0
    if how == "exits":
        run = monitoring._Evaluation.run

        def pausing(self):
            print("evaluating", flush=True)
            wait_until(self._check)  # it raises once it is to end

        monitoring._Evaluation.run = pausing
    print("ready", flush=True)
    sys.stdin.readline()
    workspace = framedex.Workspace(sys.argv[1], settings=SETTINGS, read_only=how == "read-only")
    if how == "waits":
        wait_until(lambda: len(workspace.dataset("pets").alerts()) >= 2)
        workspace.close()
    elif how in ("read-only", "brief"):
        assert workspace._catch_up._thread is None or how == "brief"
    elif how == "exits":
        sys.stdin.readline()
"""


def trends(dataset: Dataset) -> dict[str, dict[int, int]]:
    """Return the counts of all trends by the view's name."""
    return {view.name: counts_of(view) for view in dataset.views()}


def made(folder: Path) -> Path:
    """Make a workspace with a dataset and two saved views, and close it."""
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"))
        for name in "ab":
            dataset.save_view(name, dataset.where(vql.labels(name)))
    return folder / "ws"


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "counting", "storing", "stored"])
def test_evaluation__killed(tmp_path: Path, moment: str, tuning: Tuning) -> None:
    """Whenever a process is killed, the next evaluation counts the batch and raises its alerts, once in all."""
    tuning.catch_up_delay_s = 3600.0
    home = made(tmp_path)
    process = start(ADDS, home, moment)
    process.communicate(timeout=120)
    assert process.returncode < 0
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        assert dataset.count() == 7
        assert len(dataset.alerts()) == (2 if moment == "stored" else 0)
        assert len(workspace.evaluate_views()) == (0 if moment == "stored" else 2)
        assert {view.name: counts_of(view) for view in dataset.views()} == {"a": {1: 2}, "b": {1: 1}}
        assert [(each.view_name, each.batch) for each in dataset.alerts()] == [("a", 1), ("b", 1)]
        assert workspace.check().findings == []


@pytest.mark.slow
def test_evaluation__two_processes_at_once(tmp_path: Path, tuning: Tuning) -> None:
    """Of processes that evaluate the same batches at the same time, one raises each alert."""
    tuning.catch_up_delay_s = 3600.0
    home = made(tmp_path)
    with Workspace(home, settings=SETTINGS) as workspace:
        runner_of(workspace).after_commit = None
        dataset = workspace.dataset("pets")
        for turn in range(5):
            dataset.add_media(labelled(10 + 2 * turn, "ab"))
        processes = [start(EVALUATES, home) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        raised = [tuple(each) for process in processes for each in json.loads(finish(process))]
        expected = {(name, batch) for name in "ab" for batch in range(1, 6)}
        assert Counter(raised) == Counter(expected)
        assert {(each.view_name, each.batch) for each in dataset.alerts()} == expected
        assert all(counts_of(view) == dict.fromkeys(range(1, 6), 1) for view in dataset.views())


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "counting", "storing", "stored"])
def test_opening__evaluates_what_a_killed_process_left(tmp_path: Path, moment: str, tuning: Tuning) -> None:
    """A workspace that is opened after a kill evaluates the batch in the background, once in all."""
    tuning.catch_up_delay_s = 0.0
    home = made(tmp_path)
    process = start(ADDS, home, moment)
    process.communicate(timeout=120)
    assert process.returncode < 0
    for _ in range(2):
        with Workspace(home, settings=SETTINGS) as workspace:
            dataset = workspace.dataset("pets")
            thread = workspace._catch_up._thread
            assert thread is not None
            thread.join(60)
            assert not thread.is_alive()
            assert trends(dataset) == {"a": {1: 2}, "b": {1: 1}}
            assert [(each.view_name, each.batch) for each in dataset.alerts()] == [("a", 1), ("b", 1)]
            assert workspace.evaluate_views() == []


@pytest.mark.slow
def test_opening__by_two_processes_at_once(tmp_path: Path) -> None:
    """Of processes that are opened at the same time after a kill, one stores each point and raises each alert."""
    home = made(tmp_path)
    finish(start(ADDS, home, "kept"))
    processes = [start(OPENS, home, "waits") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        finish(process)
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        assert trends(dataset) == {"a": {1: 2}, "b": {1: 1}}
        assert [(each.view_name, each.batch) for each in dataset.alerts()] == [("a", 1), ("b", 1)]
        assert {view.record.stats.n_images for view in dataset.views()} == {4, 3}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["brief", "exits", "read-only"])
def test_opening__a_process_that_ends_does_not_wait(tmp_path: Path, how: str) -> None:
    """A short process, and one that exits in the middle of an evaluation, end at once; the batch stays due."""
    home = made(tmp_path)
    finish(start(ADDS, home, "kept"))
    process = start(OPENS, home, how)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    if how == "exits":
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == ["ready\n", "evaluating\n"]
    finish(process)
    with Workspace(home, settings=SETTINGS, read_only=True) as workspace:
        assert trends(workspace.dataset("pets")) == {"a": {}, "b": {}}
        assert {view.record.evaluation_error for view in workspace.dataset("pets").views()} == {None}


@pytest.mark.slow
def test_opening__is_closed_during_the_evaluation(
    tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace that is closed in the middle of an evaluation stores nothing of it; the next one does."""
    home = made(tmp_path)
    finish(start(ADDS, home, "kept"))
    tuning.catch_up_delay_s = 0.0
    reached, count = threading.Event(), monitoring._Evaluation._counts

    def counts(evaluation: Any, *arguments: Any) -> Any:
        reached.set()
        wait_until(workspace._catch_up._stopped.is_set)
        return count(evaluation, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(monitoring._Evaluation, "_counts", counts)
        with Workspace(home, settings=SETTINGS) as workspace:
            assert reached.wait(60)
            assert trends(workspace.dataset("pets")) == {"a": {}, "b": {}}
    with Workspace(home, settings=SETTINGS) as workspace:
        wait_until(lambda: trends(workspace.dataset("pets")) == {"a": {1: 2}, "b": {1: 1}})
    with Workspace(home, settings=SETTINGS, read_only=True) as workspace:
        assert workspace._catch_up._thread is None


@pytest.mark.slow
def test_opening__beside_an_addition(tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation that another one overtook changes neither its points nor the totals of the later state."""
    tuning.catch_up_delay_s = 0.0
    home = made(tmp_path)
    finish(start(ADDS, home, "kept"))
    reached, added, run = threading.Event(), threading.Event(), monitoring._Evaluation.run

    def running(evaluation: Any) -> Any:
        result = run(evaluation)
        if threading.current_thread().name == "framedex-catch-up":
            reached.set()
            assert added.wait(60)
        return result

    monkeypatch.setattr(monitoring._Evaluation, "run", running)
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        assert reached.wait(60)
        dataset.add_media(labelled(20, "ab"))
        added.set()
        thread = workspace._catch_up._thread
        assert thread is not None
        thread.join(60)
        assert trends(dataset) == {"a": {1: 2, 2: 1}, "b": {1: 1, 2: 1}}
        assert {view.name: view.record.stats.n_images for view in dataset.views()} == {"a": 5, "b": 4}
