"""The demo: what was planted is found."""

from pathlib import Path

import pytest

from framedex import Conflict, Workspace, demo
from framedex.cli import main
from tests.image_files import photo, write
from tests.prepared import prepared


@pytest.mark.slow
def test_demo__finds_what_was_planted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole job runs from the command line, and its report is one page; it can be made again in its workspace.

    The comparison sees what is missing and what is found besides.
    """
    with pytest.raises(SystemExit) as exit_:
        main(["demo", "--workspace", str(tmp_path / "ws"), "--output", str(tmp_path / "report.html")])
    assert exit_.value.code == 0
    assert "also found" in capsys.readouterr().out
    assert "Planted and found" in (tmp_path / "report.html").read_text()
    with Workspace(tmp_path / "ws") as workspace:
        dataset, truth = demo.build_demo(workspace)
        assert [record.id for record in workspace.datasets()] == [dataset.id]
        truth.issues["dark"] = {"china-darkened.jpg", "china.jpg"}
        outcomes = {outcome.what: outcome for outcome in demo.compare(dataset, truth)}
    assert (outcomes["dark"].planted, outcomes["dark"].found) == (2, 1)
    assert "flower-darkened.jpg" in outcomes["dark"].others
    assert outcomes["near-duplicate pairs"].found == outcomes["near-duplicate pairs"].planted > 90


@pytest.mark.slow
def test_demo__leaves_a_dataset_of_that_name_alone(tmp_path: Path) -> None:
    """A dataset that the user named like the demo's is not replaced."""
    with Workspace(tmp_path / "ws") as workspace:
        write(tmp_path / "own" / "a.png", photo(1))
        own = prepared(workspace, "demo", tmp_path / "own")
        with pytest.raises(Conflict, match="is not a demo"):
            demo.build_demo(workspace)
        assert workspace.dataset("demo").id == own.id
