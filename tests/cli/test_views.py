"""Saved views on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.api.test_dataset__saved_views import labelled
from tests.gallery import SETTINGS
from tests.inside import runner_of
from tests.prepared import prepared

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on a workspace with a dataset; return its status, output and error output."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        prepared(workspace, "pets", labelled(0, "ababa"))

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*map(str, arguments), "--workspace", str(tmp_path / "w")])
        captured = capsys.readouterr()
        return exit_.value.code if isinstance(exit_.value.code, int) else 0, captured.out, captured.err

    return call


def result(run: Run, *arguments: object) -> Any:
    """Return the JSON that a command prints."""
    status, out, error = run(*arguments, "--json")
    assert status == 0, error
    return json.loads(out)


A = '[{"labels": {"op": "is", "value": "a"}}]'


def test_views__saved_listed_and_deleted(run: Run) -> None:
    """A view is saved with its filter and order, listed, silenced, and deleted after a confirmation."""
    (record,) = result(run, "views", "pets", "--save", "good", "--vql", A, "--sort-by", "file_name", "--descending")
    assert (record["name"], record["filters"]["sort_by"], record["filters"]["descending"]) == (
        "good",
        "file_name",
        True,
    )
    assert record["filters"]["vql"] == json.loads(A)
    (record,) = result(run, "views", "pets", "--alerts", "off", "--of", "GOOD")
    assert record["alerting_enabled"] is False
    records = result(run, "views", "pets", "--save", "words", "--caption", "bbb", "--alerts", "off")
    assert [(each["name"], each["alerting_enabled"]) for each in records] == [("words", False), ("good", False)]
    status, out, _ = run("views", "pets")
    assert status == 0
    assert "IMAGES" in out
    assert "tester" in out or "good" in out
    status, _, error = run("views", "pets", "--delete", "words")
    assert status == 1
    assert "--yes" in error
    assert [each["name"] for each in result(run, "views", "pets", "--delete", "words", "--yes")] == ["good"]


@pytest.mark.slow
def test_trend__plot(run: Run, tmp_path: Path) -> None:
    """A trend has a line for each addition, also of one that was committed without an evaluation."""
    run("views", "pets", "--save", "good", "--vql", A)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        workspace.dataset("pets").add_media(labelled(10, "aaab"))
        runner_of(workspace).after_commit = None
        workspace.dataset("pets").add_media(labelled(20, "bab"))
    status, out, _ = run("trend", "pets", "GOOD")
    assert status == 0
    lines = [line for line in out.splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [40, 13]
    assert "good: 4 new results in 2 batches, alerts on" in out
    trend = result(run, "trend", "pets", "good")
    assert [(point["count"], point["cumulative"]) for point in trend["points"]] == [(3, 3), (1, 4)]
    assert trend["total_results"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alerts", "maybe", "--of", "x"], "--alerts is on or off"),
        (["--alerts", "on"], "--alerts needs --of"),
        (["--of", "x"], "--of needs --alerts"),
        (["--delete", "x", "--save", "y"], "--delete goes with neither"),
        (["--delete", "x", "--yes"], "no saved view 'x'"),
        (["--save", " "], "the name of a saved view"),
        (["--save", "x", "--vql", "{}"], "must be a JSON array"),
        (["--save", "x", "--threshold", "0.5"], "give a caption"),
        (["--caption", "x"], "--save"),
        (["--save", "x", "--descending"], "--sort-by"),
    ],
)
@pytest.mark.slow
def test_views__bad_options(run: Run, arguments: list[str], message: str) -> None:
    """Options that contradict each other are one line that says so, and nothing is saved."""
    status, _, error = run("views", "pets", *arguments)
    assert status == 1
    assert message in error
    assert result(run, "views", "pets") == []
    status, _, error = run("trend", "pets", "x")
    assert (status, "no saved view 'x'" in error) == (1, True)
