"""The command line: boxes around objects."""

import json
from pathlib import Path

import pytest

from framedex.cli import main
from tests.objects import paint_scenes, write_table


def call(home: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command and return its status, output and error output."""
    with pytest.raises(SystemExit) as exit_:
        main([*arguments, "--workspace", str(home / "ws")])
    captured = capsys.readouterr()
    return int(exit_.value.code or 0), captured.out, captured.err


@pytest.mark.slow
def test_boxes__of_a_new_dataset_and_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Boxes are named when a dataset is made, or added later; what is wrong with one is said."""
    things = paint_scenes(tmp_path / "images", ["a.png", "b.png"])
    table = write_table(tmp_path / "some.csv", [*things[:3], ("a.png", (900.0, 0.0, 5.0, 5.0), "ghost")])
    status, out, _ = call(tmp_path, capsys, "create", "s", str(tmp_path / "images"), "--boxes", str(table))
    assert status == 0
    assert "2 images, 3 objects" in out
    assert "outside of the image" in out
    more = write_table(tmp_path / "more.csv", things)
    status, out, _ = call(tmp_path, capsys, "add-objects", "s", str(more), "--json")
    assert status == 0
    assert (json.loads(out)["added"], json.loads(out)["n_objects"]) == (3, 6)
    status, _, error = call(tmp_path, capsys, "add-objects", "s", str(tmp_path / "gone.csv"))
    assert status == 1
    assert "no file of boxes" in error
