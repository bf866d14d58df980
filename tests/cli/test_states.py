"""Commands that compare states print what Python returns."""

import json
from pathlib import Path

import pytest

from framedex import Workspace
from tests.cli.running import Run, runner
from tests.gallery import SETTINGS, make_gallery
from tests.prepared import prepared


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on a dataset that was changed since its snapshot ``before``; return its status and outputs."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset = prepared(workspace, "pets", tmp_path / "gallery")
        dataset.snapshot("before")
        dataset.tag(dataset.view.media_ids()[:2], "keep")

    return runner(tmp_path / "w", capsys)


def test_compare__prints_changes(run: Run) -> None:
    """Changes are a table and a line of counts, or JSON; what is no state or change is one line."""
    code, shown, _ = run("compare", "pets", "before")
    assert code == 0
    assert "2 retagged" in shown
    assert shown.count("keep") == 2
    as_json = json.loads(run("compare", "pets", "before", "--json")[1])
    assert as_json["counts"]["retagged"] == 2
    assert len(as_json["rows"]) == 2
    assert "nothing differs" in run("compare", "pets", "head")[1]
    for wrong in (("never",), ("before", "never"), ("before", "--change", "moved")):
        code, _, error = run("compare", "pets", *wrong)
        assert code == 1
        assert wrong[-1] in error


def test_snapshots__lists_states(run: Run) -> None:
    """Each snapshot and the present state is a row."""
    code, shown, _ = run("snapshots", "pets")
    assert code == 0
    assert "before" in shown
    assert "head" in shown
    points = json.loads(run("snapshots", "pets", "--json")[1])
    assert [each["name"] for each in points][1:] == ["before", "head"]
