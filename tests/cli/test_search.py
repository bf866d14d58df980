"""The command line: searching, exploring by a search, and measuring searches."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.cli import main
from tests.gallery import SETTINGS, fill

Run = Callable[..., tuple[int, str, str]]
BOX = "0,0,20,20"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the dataset ``pets``: five images and a copy of the first, some with captions and a tag."""
    home = tmp_path_factory.mktemp("cli-search")
    folder = fill(home / "images", 5)
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder, "gist")
        ids = {row["image_filename"]: row["media_id"] for row in dataset.to_arrow().to_pylist()}
        dataset.set_captions({ids["002.png"]: "a red\x1b[31m hat", ids["003.png"]: "a red red house"})
        dataset.tag([ids["002.png"]], "seen")
        dataset.set_labels({ids["003.png"]: ["house"]})
    return home


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the workspace and return its status, output and error output."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(home / "ws")])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return call


def names(run: Run, *arguments: str) -> list[str]:
    """Return the file names that a search prints as JSON."""
    status, out, _ = run(*arguments, "--json")
    assert status == 0
    return [row["image_filename"] for row in json.loads(out)]


@pytest.mark.slow
def test_search__by_words(run: Run) -> None:
    """What fits comes best first, cut and filtered as asked."""
    assert sorted(names(run, "search", "pets", "red")) == ["002.png", "003.png"]
    assert names(run, "search", "pets", "red house", "--by", "words", "--limit", "1") == ["003.png"]
    assert names(run, "search", "pets", "red", "--vql", '[{"tags": {"op": "is", "value": ["seen"]}}]') == ["002.png"]
    assert names(run, "search", "pets", "house", "--relevance", "0.9") == ["003.png"]
    status, out, _ = run("search", "pets", "red")
    assert (status, "002.png" in out, "bm25" in out) == (0, True, True)
    assert run("search", "pets", "zebra") == (0, "no matches\n", "")


@pytest.mark.slow
def test_similar(run: Run, home: Path) -> None:
    """A path or an id is looked for, whole or a part of it; copies come first."""
    first = str(home / "images" / "000.png")
    assert sorted(names(run, "similar", "pets", first, "--limit", "2")) == ["000.png", "copy.png"]
    rows: list[dict[str, Any]] = json.loads(run("similar", "pets", first, "--threshold", "0.001", "--json")[1])
    assert len(rows) == 2
    assert sorted(names(run, "similar", "pets", rows[0]["media_id"], "--relevance", "0.5", "--limit", "2")) == [
        "000.png", "copy.png",
    ]  # fmt: skip
    assert len(names(run, "similar", "pets", first, "--box", BOX, "--diversity", "0.5", "--limit", "3")) == 3
    assert "cosine distance" in run("similar", "pets", first)[1]


def test_similar__says_which_rows_are_copies(run: Run, home: Path) -> None:
    """Copies have a column of their own, which searches without copies do not have."""
    lines = run("similar", "pets", str(home / "images" / "000.png"))[1].splitlines()
    assert lines[0].split()[:2] == ["file", "copy"]
    assert all("same file" in line for line in lines[1:3])
    assert not any("same file" in line for line in lines[3:])
    assert "copy" not in run("search", "pets", "red")[1].splitlines()[0].split()


@pytest.mark.slow
def test_explore__by_a_search(run: Run, home: Path) -> None:
    """Clusters can be looked for by a caption or an anchor, and narrowed by labels and tags."""
    anchor = json.loads(run("similar", "pets", str(home / "images" / "000.png"), "--json")[1])[0]["media_id"]
    explored = {
        option: json.loads(run("explore", "pets", *option, "--json")[1])["clusters"]
        for option in (("--caption", "hat"), ("--anchor", anchor), ("--labels", "house"), ("--tags", "seen"))
    }
    counts = [sum(each["n_images"] for each in clusters) for clusters in explored.values()]
    assert counts == [1, 6, 1, 1]
    assert anchor in {each["media_id"] for each in explored["--anchor", anchor][0]["previews"]}


@pytest.mark.slow
def test_bench_search(run: Run, tmp_path: Path) -> None:
    """It prints a table and advice, or all as JSON, and writes what is asked for."""
    page = tmp_path / "b.html"
    status, out, _ = run("bench", "search", "pets", "--queries", "5", "--k", "2", "--output", str(page))
    assert status == 0
    assert "recall" in out
    assert "to find 0.95 of the true nearest 2, keep the default" in " ".join(out.split())
    assert "<svg" in page.read_text()
    options = ("--queries", "5", "--k", "2", "--recall", "0.5", "--selectivity", "0.5", "--json")
    found = json.loads(run("bench", "search", "pets", *options)[1])
    assert (found["k"], found["best"], found["recall"]) == (2, 6, 0.5)
    assert {row["selectivity"] for row in found["rows"]} == {1.0, 0.5}


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("search", "pets", " "), 1, "at least one word"),
        (("search", "pets", "red", "--by", "luck"), 1, "by must be one of auto, words, meaning, both, not 'luck'"),
        (("search", "pets", "red", "--by", "meaning"), 1, "needs an encoder of images and texts"),
        (("search", "pets", "red", "--relevance", "2"), 1, "relevance must be a number from 0 to 1"),
        (("similar", "pets", "no-such-id"), 1, "no media 'no-such-id'"),
        (("similar", "pets", "no/such.png"), 1, "cannot be read: No such file"),
        (("similar", "pets", "x", "--box", "1,2"), 1, "--box must be X,Y,W,H, not '1,2'"),
        (("similar", "pets", "x", "--box", "1,2,3,y"), 1, "--box must be a number, not 'y'"),
        (("explore", "pets", "--caption", "a", "--anchor", "b"), 1, "either caption or anchor_media_id"),
        (("bench", "search", "pets", "--recall", "2"), 1, "recall must be a number from 0 to 1, not 2.0"),
        (("bench", "search", "pets", "--k", "0"), 1, "k must be a whole number from 1, not 0"),
        (("bench", "search", "pets", "--output", "b.txt"), 1, "a benchmark must be saved as .json, .html, .svg"),
        (("bench", "search"), 2, "(see: framedex bench search --help)"),
    ],
)
def test_errors__are_one_line(run: Run, arguments: tuple[str, ...], status: int, expected: str) -> None:
    """What cannot be searched for is said in a line that names it."""
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (status, "", 1)
    assert expected in err
