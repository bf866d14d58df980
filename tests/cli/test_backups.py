"""The command line: backups and restores."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.gallery import SETTINGS, fill

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace ``ws`` with the dataset ``pets``."""
    folder = tmp_path_factory.mktemp("home")
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        workspace.create_dataset("pets", fill(folder / "images", 3), "gist").snapshot("kept")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command and return its status, output and error output."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([str(each) for each in arguments])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return call


def test_backup_and_restore(home: Path, run: Run, tmp_path: Path) -> None:
    """Both commands say what they did; the backup says what is not in it."""
    status, out, err = run("backup", tmp_path / "backup", "--workspace", home / "ws")
    assert (status, err) == (0, "")
    assert f"backed up 1 dataset to {tmp_path / 'backup'}: " in out
    assert f"not in the backup: the images and videos in {home / 'images'}: they stay where they are\n" in out
    assert "not in the backup: thumbnails" in out
    status, out, err = run("restore-backup", tmp_path / "backup", tmp_path / "new")
    assert (status, err) == (0, "")
    assert "pets: 3 images, 2 snapshots\n" in out
    assert f"restored 1 dataset to {tmp_path / 'new'}: " in out
    assert " verified, " in out
    assert out.endswith(", 0 findings\n")
    assert run("check", "--workspace", tmp_path / "new")[0] == 0


def test_backup_and_restore__json(home: Path, run: Run, tmp_path: Path) -> None:
    """As JSON there are the records."""
    options = ("--hard-links", "--json", "--workspace", home / "ws")
    made = json.loads(run("backup", tmp_path / "backup", *options)[1])
    assert made["linked_files"] > 0
    assert [each["n_media"] for each in made["datasets"]] == [3]
    status, out, _ = run("restore-backup", tmp_path / "backup", tmp_path / "new", "--json")
    found = json.loads(out)
    assert (status, found["findings"], found["files"], found["datasets"]) == (0, [], made["files"], made["datasets"])


@pytest.mark.slow
def test_backup__refuses(home: Path, run: Run, tmp_path: Path) -> None:
    """What cannot be done is one line on the error output, with status 1."""
    run("backup", tmp_path / "backup", "--workspace", home / "ws")
    for arguments, message in (
        (("backup", tmp_path / "backup", "--workspace", home / "ws"), "holds a backup already"),
        (("backup", tmp_path / "new", "--with-users", "--workspace", home / "ws"), "no users: there is no service.db"),
        (("backup", tmp_path / "new", "--workspace", tmp_path / "none"), "no workspace at"),
        (("restore-backup", tmp_path / "backup", home / "images"), "is not empty"),
        (("restore-backup", home / "images", tmp_path / "new"), "is no backup: it holds no backup.json"),
    ):
        status, out, err = run(*arguments)
        assert (status, out, err.count("\n")) == (1, "", 1), err
        assert message in err
    assert not (tmp_path / "new").exists()


def test_restore_backup__damaged(home: Path, run: Run, tmp_path: Path) -> None:
    """A damaged file is named on the error output, and nothing is restored."""
    run("backup", tmp_path / "backup", "--workspace", home / "ws")
    data = next(iter((tmp_path / "backup" / "workspace").glob("datasets/*/media.lance/data/*")))
    content = bytearray(data.read_bytes())
    content[100] ^= 1
    data.write_bytes(content)
    status, out, err = run("restore-backup", tmp_path / "backup", tmp_path / "new")
    assert (status, out) == (1, "")
    assert f"{data.name} is not what was backed up: its content does not fit its hash" in err
    assert not list((tmp_path / "new").iterdir())
