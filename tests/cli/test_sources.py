"""The command line: folders that moved, and files that are new, moved or gone."""

import json
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.cli.running import Run, runner
from tests.gallery import SETTINGS, fill
from tests.image_files import photo, write
from tests.prepared import prepared


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three images."""
    return fill(tmp_path / "photos", 3)


@pytest.fixture
def run(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs commands on a workspace with the dataset ``pets`` of that folder."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        prepared(workspace, "pets", folder)
    return runner(tmp_path / "ws", capsys)


def test_relocate__checks_first(run: Run, folder: Path, tmp_path: Path) -> None:
    """A check says what it found by its status; without one the folder is relocated, or that is refused."""
    away = folder.rename(tmp_path / "away")
    wrong = fill(tmp_path / "wrong", 3, first_seed=700)
    status, out, _ = run("relocate", str(folder), str(wrong), "--check")
    assert (status, "3 different" in out, "it would be refused" in out) == (1, True, True)
    status, _, err = run("relocate", str(folder), str(wrong))
    assert (status, "000.png" in err, "--force" in err) == (1, True, True)
    assert run("relocate", str(folder), str(away), "--check")[0] == 0
    status, out, _ = run("relocate", str(folder), str(away))
    assert (status, out.splitlines()[-1]) == (0, f"{folder} is {away} now, for 1 dataset")
    status, out, _ = run("relocate", str(away), str(wrong), "--check", "--json")
    assert (status, json.loads(out)["roots"][0]["different"]) == (1, 3)


def test_sync__shows_and_applies(run: Run, folder: Path) -> None:
    """What differs is shown; --yes applies it; `show`, `add` and `check --files` count what is missing."""
    (folder / "000.png").rename(folder / "moved.png")
    (folder / "001.png").unlink()
    write(folder / "new.png", photo(900))
    status, out, _ = run("sync", "pets")
    assert status == 0
    assert out.splitlines()[-2] == "pets: 1 new, 0 changed, 1 moved, 1 missing, 0 back"
    assert out.splitlines()[-1] == "nothing was changed; `framedex sync pets --yes` applies it"
    assert f"moved: {folder / '000.png'} → {folder / 'moved.png'}" in out
    assert run("sync", "pets", "--yes")[0] == 0
    assert "1 image is marked as missing" in run("show", "pets")[1]
    assert json.loads(run("show", "pets", "--json")[1])["n_missing"] == 1
    assert "1 file of it is gone; `framedex sync pets`" in run("add", "pets", str(folder))[1]
    status, out, _ = run("check", "--files")
    assert (status, f"{folder / '001.png'}: is missing" in out) == (1, True)
    assert "1 image removed" in run("sync", "pets", "--yes", "--remove")[1]
    assert run("check", "--files", "--content")[0] == 0
    status, _, err = run("sync", "pets", "--remove")
    assert (status, "apply=True" in err) == (1, True)
    folder.rename(folder.with_name("away"))
    write(folder / "other.png", photo(901))
    assert "cannot be found: the folder is there, and none of its files" in run("sync", "pets")[1].splitlines()[0]


def test_preview__shows_columns_and_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list is shown with its layout, the use of each column and its first rows; also as JSON."""
    (folder / "list.csv").write_text("path;label\n000.png;dog\ngone.png;cat\n")
    with pytest.raises(SystemExit, match="0"):
        main(["preview", str(folder / "list.csv")])
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert "list, UTF-8, cells between semicolons, a header" in out
    assert ["label", "string", "labels"] in lines
    assert ["000.png", "dog"] in lines
    assert f"1 of the first 2 files exist\n  there is nothing at {folder / 'gone.png'}" in out
    with pytest.raises(SystemExit, match="0"):
        main(["preview", str(folder / "list.csv"), "--json"])
    assert json.loads(capsys.readouterr().out)["delimiter"] == "semicolons"
