"""The command line: clean-up plans, what uses the disk, and freeing it."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.gallery import SETTINGS, fill
from tests.prepared import prepared

NEVER = SETTINGS.model_copy(update={"clean_every_s": float("inf")})

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with the dataset ``pets``: three images, a copy of the first, and a broken file."""
    folder = fill(tmp_path / "images", 3)
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    (folder / "broken.jpg").write_bytes(b"no image")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        prepared(workspace, "pets", folder, "gist")
    return tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the workspace and return its status, output and error output."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(home / "ws")])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return call


def count(home: Path) -> int:
    """Return how many media there are."""
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        return workspace.dataset("pets").count()


def test_cleanup__only_shows(run: Run, home: Path) -> None:
    """Without --apply there is a table of what would go, and a page if asked for; nothing goes."""
    page = home / "plan.html"
    status, out, _ = run("cleanup", "pets", "--duplicates", "0.99", "--issue", "corrupted=0.5", "--page", str(page))
    assert status == 0
    for part in ("remove", "keep", "copy.png", "corrupted 1.00", "2 media to remove: 1 corrupted, 1 duplicates"):
        assert part in out
    assert page.read_text().startswith("<!doctype html>")
    assert count(home) == 5


@pytest.mark.slow
def test_cleanup__apply(run: Run, home: Path) -> None:
    """With --apply it goes, after a snapshot; with --delete-files the files, too, as far as they are the same."""
    (home / "images" / "broken.jpg").write_bytes(b"no image, but another one")
    arguments = ("cleanup", "pets", "--duplicates", "exact", "--issue", "corrupted", "--keep", "first")
    status, out, _ = run(*arguments, "--apply", "--delete-files", "--yes")
    assert status == 0
    assert "removed 2 images, deleted 1 file" in out
    assert "snapshot of the dataset before: 'before clean-up " in out
    assert "undo: framedex undo pets, without 1 file" in out
    assert f"not deleted: 1 file; the first is {home / 'images' / 'broken.jpg'}" in out
    assert not (home / "images" / "copy.png").exists()
    assert count(home) == 3
    assert "cleanup of 2 images by " in (undone := run("undo", "pets")[1])
    assert "; gone for good: the files of 1 image" in undone
    assert count(home) == 5


@pytest.mark.slow
def test_cleanup__of_the_basket(run: Run, home: Path) -> None:
    """The basket is part of the plan on request; what is kept and what is taken out of the plan stays."""
    rows: Any = json.loads(run("cleanup", "pets", "--duplicates", "exact", "--json")[1])["rows"]
    ids = [row["media_id"] for row in rows]
    run("basket", "pets", "add", "--ids", ids[0])
    status, out, _ = run("keep", "pets", "--ids", ids[1])
    assert (status, out.splitlines()) == (0, ["kept: 1 image", ids[1]])
    arguments = ("cleanup", "pets", "--duplicates", "exact", "--issue", "corrupted", "--basket")
    found: Any = json.loads(run(*arguments, "--json")[1])
    removed = [row["media_id"] for row in found["rows"] if row["action"] == "remove"]
    assert (found["summary"]["removed"], ids[0] in removed, ids[1] in removed) == (2, True, False)
    status, out, _ = run(*arguments, "--without", ids[0], "--apply")
    assert (status, "removed 1 image" in out, count(home)) == (0, True, 4)
    assert run("unkeep", "pets", "--ids", ids[1])[1] == "kept: 0 images\n"
    assert json.loads(run("keep", "pets", "--json")[1]) == []
    status, _, err = run("cleanup", "pets", "--basket", "--without", "x")
    assert (status, "the plan does not remove media 'x'" in err) == (1, True)


@pytest.mark.slow
def test_cleanup__json(run: Run, home: Path) -> None:
    """As JSON there are all rows, the summary, and what was done."""
    found: Any = json.loads(run("cleanup", "pets", "--duplicates", "exact", "--json")[1])
    assert [row["action"] for row in found["rows"]] == ["keep", "remove"]
    assert (found["summary"]["counts"], found["result"], found["page"]) == ({"duplicates": 1}, None, None)
    done: Any = json.loads(run("cleanup", "pets", "--duplicates", "exact", "--apply", "--json")[1])
    assert (done["result"]["removed"], done["result"]["files_deleted"]) == (1, 0)
    assert count(home) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name what to remove"),
        (("--duplicates", "much"), "must be a number, not 'much'"),
        (("--issue", "blur=x"), "--issue blur must be a number, not 'x'"),
        (("--issue", "blurred"), "no issue 'blurred'"),
        (("--duplicates", "0.99", "--delete-files"), "--delete-files needs --apply"),
        (("--duplicates", "0.99", "--keep", "worst"), "keep must be one of"),
    ],
)
def test_cleanup__refuses(run: Run, home: Path, arguments: tuple[str, ...], message: str) -> None:
    """What cannot be used is one line on the error output, and nothing goes."""
    status, _, err = run("cleanup", "pets", *arguments)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1
    assert count(home) == 5


@pytest.mark.slow
def test_du_and_vacuum(run: Run) -> None:
    """What uses the disk is shown by part, and what can be freed is freed."""
    run("tag", "pets", "x", "--vql", "[]")
    run("untag", "pets", "x", "--vql", "[]")
    status, out, _ = run("du")
    assert status == 0
    for part in ("embeddings", "index columns", "old versions", "catalog", "`framedex vacuum` can free"):
        assert part in out
    before: Any = json.loads(run("du", "--json")[1])
    status, out, _ = run("vacuum", "--older-than", "0", "--yes")
    assert (status, out.startswith("freed ")) == (0, True)
    after: Any = json.loads(run("du", "--json")[1])
    assert before["freeable_bytes"] > after["freeable_bytes"] == 0
    assert json.loads(run("vacuum", "--json")[1])["skipped"] == {}
    assert "must be a number of seconds" in run("vacuum", "--older-than=-1")[2]


DESTRUCTIVE = [
    (("rm", "pets"), "Delete 'pets' with 5 images, its tags, fields and snapshots?"),
    (
        ("cleanup", "pets", "--duplicates", "exact", "--keep", "first", "--apply", "--delete-files"),
        "Delete the files of 1 image, ",
    ),
    (("vacuum", "--older-than", "0"), "Delete versions of the last 600 s, which other processes may still read"),
]


def state(home: Path) -> tuple[list[str], list[str], int]:
    """Return what could be lost: datasets, files, and versions of tables."""
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        names = [record.display_name for record in workspace.datasets()]
    files = sorted(path.name for path in (home / "images").iterdir())
    return names, files, len(list((home / "ws").rglob("*.manifest")))


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(("arguments", "question"), DESTRUCTIVE)
def test_destructive__needs_yes_without_a_terminal(
    run: Run, home: Path, arguments: tuple[str, ...], question: str
) -> None:
    """What cannot be undone is refused where nobody can be asked, with a status that scripts see; --yes does it."""
    with Workspace(home / "ws", settings=NEVER) as workspace:
        workspace.dataset("pets").create_tag("x")
    before = state(home)
    status, _, err = run(*arguments)
    assert status == 1
    assert question in err
    assert "give --yes" in err
    assert state(home) == before
    assert run(*arguments, "--yes")[0] == 0
    assert state(home) != before


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("answer", "status"), [("n", 130), ("y", 0)])
def test_destructive__asks_on_a_terminal(home: Path, answer: str, status: int) -> None:
    """On a terminal the command asks, and does nothing unless the answer is yes."""
    ours, theirs = os.openpty()
    try:
        command = [sys.executable, "-m", "framedex", "rm", "pets", "--workspace", str(home / "ws")]
        process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.write(ours, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=120)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == status
    assert "Delete 'pets' with 5 images" in out
    assert state(home)[0] == ([] if answer == "y" else ["pets"])


def fail_last_task(home: Path) -> str:
    """Reindex the dataset, mark the task as interrupted, and return its id."""
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        dataset.reindex(thresholds=[0.1, 0.2, 0.3, 0.4, 0.5])
        last = dataset.last_task
    assert last is not None
    with closing(sqlite3.connect(home / "ws" / "catalog.db", isolation_level=None)) as connection:
        failed = "UPDATE tasks SET status = 'FAILED', error_message = 'interrupted' WHERE id = ?"
        connection.execute(failed, (last.task_id,))
    return last.task_id


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [False, True])
def test_retry__runs_a_failed_task_again(home: Path, run: Run, by_name: bool) -> None:
    """A failed task is run to its end, by its id or by the name of its dataset; afterwards it cannot be retried."""
    task_id = fail_last_task(home)
    status, out, _ = run("retry", "pets" if by_name else task_id, "--json")
    assert status == 0
    record = json.loads(out)
    assert (record["task_id"], record["status"]) == (task_id, "COMPLETED")
    status, _, err = run("retry", task_id)
    assert status == 1
    assert "only FAILED and ABORTED tasks can be retried" in err


@pytest.mark.slow
@pytest.mark.only_soak
def test_retry__says_what_it_did_or_lacks(home: Path, run: Run) -> None:
    """The command says how the task ended; a name of neither a task nor a dataset is an error."""
    task_id = fail_last_task(home)
    status, out, _ = run("retry", task_id)
    assert (status, task_id in out, "COMPLETED" in out) == (0, True, True)
    status, _, err = run("retry", "nobody")
    assert status == 1
    assert "no task 'nobody'" in err


def test_show__failed_creation_names_the_retry(home: Path, run: Run) -> None:
    """A dataset whose creation failed is shown with the command that continues it."""
    task_id = fail_last_task(home)
    with closing(sqlite3.connect(home / "ws" / "catalog.db", isolation_level=None)) as connection:
        connection.execute("UPDATE datasets SET status = 'ERROR'")
    status, _, err = run("show", "pets")
    assert status == 1
    assert f"framedex retry {task_id}" in err
