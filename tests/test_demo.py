"""The demo: what was planted is found."""

from pathlib import Path

import pytest

from framedex import Conflict, Workspace, demo
from framedex.cli import main


@pytest.mark.slow
def test_demo__finds_what_was_planted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole job runs from the command line, twice in one workspace, and its report is one page."""
    for _ in range(2):
        with pytest.raises(SystemExit) as exit_:
            main(["demo", "--workspace", str(tmp_path / "ws"), "--output", str(tmp_path / "report.html")])
        assert exit_.value.code == 0
    assert "also found" in capsys.readouterr().out
    assert "Planted and found" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_compare__can_fail(tmp_path: Path) -> None:
    """The comparison sees what is missing and what is found besides."""
    with Workspace(tmp_path / "ws") as workspace:
        dataset, truth = demo.build_demo(workspace)
        truth.issues["dark"] = {"china-darkened.jpg", "china.jpg"}
        outcomes = {outcome.what: outcome for outcome in demo.compare(dataset, truth)}
    assert (outcomes["dark"].planted, outcomes["dark"].found) == (2, 1)
    assert "flower-darkened.jpg" in outcomes["dark"].others
    assert outcomes["near-duplicate pairs"].found == outcomes["near-duplicate pairs"].planted > 90


@pytest.mark.slow
def test_demo__leaves_a_dataset_of_that_name_alone(tmp_path: Path) -> None:
    """A dataset that the user named like the demo's is not replaced."""
    with Workspace(tmp_path / "ws") as workspace:
        demo.make_images(tmp_path / "own")
        own = workspace.create_dataset("demo", tmp_path / "own")
        with pytest.raises(Conflict, match="is not a demo"):
            demo.build_demo(workspace)
        assert workspace.dataset("demo").id == own.id
