"""Evaluations by several processes at once, and by processes that are killed in the middle."""

import json
from collections import Counter
from pathlib import Path

import pytest

from framedex import Workspace, vql
from tests.api.test_dataset__saved_views import counts_of, labelled
from tests.gallery import SETTINGS
from tests.processes import finish, start

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
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        workspace.dataset("pets").add_media(labelled(10, "aab"))
"""
EVALUATES = """
    import json, sys, framedex
    from tests.gallery import SETTINGS

    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        workspace.dataset("pets").saved_view("a").view().count()
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps([[alert.view_name, alert.batch] for alert in workspace.evaluate_views()]))
"""


def made(folder: Path) -> Path:
    """Make a workspace with a dataset and two saved views, and close it."""
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"))
        for name in "ab":
            dataset.save_view(name, dataset.where(vql.labels(name)))
    return folder / "ws"


@pytest.mark.parametrize("moment", ["before", "counting", "storing", "stored"])
def test_evaluation__killed(tmp_path: Path, moment: str) -> None:
    """Whenever a process is killed, the next evaluation counts the batch and raises its alerts, once in all."""
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


def test_evaluation__two_processes_at_once(tmp_path: Path) -> None:
    """Of processes that evaluate the same batches at the same time, one raises each alert."""
    home = made(tmp_path)
    with Workspace(home, settings=SETTINGS) as workspace:
        workspace._context.runner.after_commit = None
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
