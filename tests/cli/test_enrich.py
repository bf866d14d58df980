"""The command line: models, and enriching by them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.enrichments import Hues, paint, register_models
from tests.gallery import SETTINGS
from tests.prepared import prepared

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Make a workspace with the dataset ``colours``; run a command there; return its status, output and errors."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        register_models(workspace, Hues())
        prepared(workspace, "colours", paint(tmp_path / "images"), "gist")

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(tmp_path / "ws")])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return call


@pytest.mark.slow
def test_models__and_enrich(run: Run) -> None:
    """Models are listed; one that was applied is shown as that in the new dataset."""
    status, out, _ = run("models", "colours")
    assert status == 0
    assert "hues" in out
    assert "Active" in out
    status, out, _ = run("enrich", "colours", "MULTIMODEL_IMAGE_ENCODING=hues", "IMAGE_TAGGING=names", "--json")
    assert status == 0
    made = json.loads(out)
    assert (made["display_name"], made["status_new"], made["dataset_id"]) == ("colours (enriched)", "READY", made["id"])
    found = json.loads(run("models", "colours (enriched)", "--json")[1])
    assert found["status"] == "ENRICHED"
    assert [model["id"] for model in found["models"]] == ["hues", "names", "faces"]
    assert "applied" in run("models", "colours (enriched)")[1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [(["names"], "TYPE=MODEL"), (["IMAGE_TAGGING=a", "IMAGE_TAGGING=b"], "twice"), (["X=a"], "no type of enrichment")],
)
def test_enrich__says_what_is_wrong(run: Run, wanted: list[str], message: str) -> None:
    """Wrong requests are one line and a status that is not zero."""
    status, _, err = run("enrich", "colours", *wanted)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1
