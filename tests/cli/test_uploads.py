"""Uploads on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.environment import Environment
from tests.gallery import fill
from tests.uploading import paths_of

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on a workspace and return its status, output and error output."""

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


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Six images."""
    return sorted(fill(tmp_path / "images", 6).iterdir())


@pytest.mark.slow
@pytest.mark.only_soak
def test_upload__makes_a_dataset_and_adds_to_it(run: Run, files: list[Path], tmp_path: Path) -> None:
    """A new name creates a dataset, a known one gets the files as an addition."""
    status, out, _ = run("upload", "pets", *files[:4], "--encoder", "gist")
    assert status == 0
    assert out.startswith("pets: 4 files of ")
    assert "4 images in all" in out
    info = result(run, "upload", "pets", *files[3:], "--reindex")
    assert (info["status_new"], info["n_images"], info["upload"]["state"]) == ("READY", 6, "done")
    with Workspace(tmp_path / "w", read_only=True) as workspace:
        assert paths_of(workspace.dataset("pets")) == [path.name for path in files]


@pytest.mark.slow
def test_upload__in_several_commands(run: Run, files: list[Path]) -> None:
    """A transaction that is kept open is listed, shown, extended and processed by later commands."""
    record = result(run, "upload", "pets", *files[:2], "--keep-open")
    assert (record["state"], record["n_files"]) == ("open", 2)
    status, out, _ = run("upload", "pets", files[2], "--to", record["id"], "--keep-open")
    assert status == 0
    assert f"transaction {record['id']} holds 3 files" in out
    assert f"`framedex upload pets --to {record['id']}`" in out
    assert "open" in run("uploads", "pets")[1]
    assert [each["n_files"] for each in result(run, "uploads", "pets")] == [3]
    assert "pets: DRAFT" in run("show", "pets")[1]
    assert result(run, "show", "pets")["uploads"][0]["id"] == record["id"]
    assert "DRAFT" in run("ls")[1]
    assert result(run, "upload", "pets", "--to", record["id"], "--encoder", "gist")["n_images"] == 3
    status, _, error = run("upload", "pets", "--to", record["id"])
    assert (status, "is already processed" in error) == (1, True)


def test_upload__discard(run: Run, files: list[Path]) -> None:
    """A transaction is removed on request, which is confirmed; the draft stays."""
    record = result(run, "upload", "pets", files[0], "--keep-open")
    assert run("upload", "pets", "--to", record["id"], "--discard")[0] == 1
    status, out, _ = run("upload", "pets", "--to", record["id"], "--discard", "--yes")
    assert (status, out) == (0, f"removed transaction {record['id']}\n")
    assert result(run, "uploads", "pets") == []
    assert result(run, "ls")[0]["status_new"] == "DRAFT"


@pytest.mark.slow
def test_upload__more_files_than_a_call_takes(run: Run, tmp_path: Path, environment: Environment) -> None:
    """Many files are sent in several calls; if one fails, the message says how to go on."""
    environment["FRAMEDEX_MAX_UPLOAD_FILES"] = "2"
    environment["FRAMEDEX_MAX_TRANSACTION_FILES"] = "5"
    files = sorted(fill(tmp_path / "images", 7).iterdir())
    status, _, error = run("upload", "pets", *files)
    assert status == 1
    assert "up to 5 files" in error
    assert "the open transaction 1 of 'pets' has 4 of 7 files" in error
    assert result(run, "upload", "pets", files[4], "--to", 1, "--encoder", "gist")["n_images"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pets"], "give files to upload"),
        (["pets", "FILE", "--discard"], "--discard removes the transaction of --to"),
        (["pets", "FILE", "--to", "1", "--discard"], "it takes no files"),
        (["pets", "notes.txt"], "Unsupported file format: 'notes.txt'"),
        (["pets", "missing.png"], "is not a file"),
        (["pets", "FILE", "OTHER"], "have one name"),
        (["pets", "FILE", "--to", "99"], "no workspace at"),
    ],
)
def test_upload__wrong_requests(
    run: Run, files: list[Path], tmp_path: Path, arguments: list[str], message: str
) -> None:
    """What cannot be done is refused before a dataset is created."""
    other = tmp_path / "other" / files[0].name
    other.parent.mkdir()
    other.write_bytes(files[0].read_bytes())
    places = {"FILE": files[0], "OTHER": other}
    status, _, error = run("upload", *(places.get(each, each) for each in arguments))
    assert status == 1
    assert message in error
    assert not (tmp_path / "w").exists()


def test_upload__unknown_transactions(run: Run, files: list[Path]) -> None:
    """A number that the dataset does not have is an error in one line."""
    run("upload", "pets", files[0], "--keep-open")
    status, _, error = run("upload", "pets", files[1], "--to", "99")
    assert (status, error.count("\n")) == (1, 1)
    assert "Transaction 99 not found" in error
    assert run("upload", "none", "--to", "1")[0] == 1
