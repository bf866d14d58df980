"""Commands that edit values, keep and restore states, and wait for tasks do what Python does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Dataset, Workspace, vql
from tests.cli.running import Run, runner
from tests.environment import Environment
from tests.gallery import SETTINGS, embedded
from tests.prepared import prepared

DOGS = '[{"labels": {"op": "is", "value": "dog"}}]'


@pytest.fixture
def pets(tmp_path: Path) -> Iterator[Dataset]:
    """A dataset of four rows, two of them dogs."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]]
        yield prepared(workspace, "pets", embedded(vectors, label=["dog", "dog", "cat", None]))


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the workspace; return its status and outputs."""
    return runner(tmp_path / "w", capsys)


@pytest.mark.slow
def test_labels_and_captions(pets: Dataset, run: Run) -> None:
    """Labels and captions of selected rows are set and taken away; a whole dataset is not edited by mistake."""
    assert run("label", "pets", "wolf", "fox", "--vql", DOGS)[1] == "2 images: wolf, fox\n"
    assert pets.where(vql.labels("wolf") & vql.labels("fox")).count() == 2
    one = pets.view.media_ids()[3]
    assert run("caption", "pets", "a red car", "--ids", one)[:2] == (0, "1 image: a red car\n")
    assert pets.media_item(one).caption == "a red car"
    run("caption", "pets", "--clear", "--ids", one)
    run("label", "pets", "--clear", "--vql", "[]")
    assert pets.media_item(one).caption is None
    assert pets.labels() == []
    for wrong in (("label", "pets", "x"), ("label", "pets", "--vql", DOGS), ("caption", "pets", "x", "--clear")):
        code, _, error = run(*wrong)
        assert (code, error.count("\n")) == (1, 1), wrong


@pytest.mark.slow
def test_tags_and_media(pets: Dataset, run: Run) -> None:
    """A tag is renamed and deleted; rows are removed after a confirmation, and come back by an undo."""
    run("tag", "pets", "keep", "--vql", DOGS)
    assert run("rename-tag", "pets", "keep", "kept")[1] == "the tag keep is now kept\n"
    assert [tag.name for tag in pets.tags()] == ["kept"]
    run("delete-tag", "pets", "kept")
    assert pets.tags() == []
    code, _, error = run("delete-media", "pets", "--vql", DOGS)
    assert code == 1
    assert "--yes" in error
    assert "cannot be undone" not in error
    assert len(pets.view) == 4
    assert run("delete-media", "pets", "--vql", DOGS, "--yes")[0] == 0
    assert len(pets.view) == 2
    run("undo", "pets")
    assert len(pets.view) == 4


@pytest.mark.slow
def test_fields(pets: Dataset, run: Run, tmp_path: Path) -> None:
    """A field is added with the values of a file, set, renamed and deleted; wrong values are named."""
    ids = pets.view.media_ids()
    file = tmp_path / "prices.csv"
    file.write_text(f"media_id,value\n{ids[0]},1.5\n{ids[1]},cheap\n{ids[2]},\n", encoding="utf-8")
    code, shown, _ = run("add-field", "pets", "price", "float", "--from", str(file))
    assert code == 0
    assert shown.startswith("price: 2 values set, 1 refused\n  row 1: ")
    assert "cheap" in shown
    run("set-field", "pets", "price", "3", "--vql", DOGS)
    assert pets.to_arrow(["price"])["price"].to_pylist() == [3.0, 3.0, None, None]
    run("set-field", "pets", "price", "--clear", "--ids", ids[0])
    assert pets.to_arrow(["price"])["price"].to_pylist() == [None, 3.0, None, None]
    run("add-field", "pets", "size", "enum", "--option", "small", "--option", "large")
    assert "small, large" in run("fields", "pets")[1]
    run("rename-field", "pets", "price", "cost")
    run("delete-field", "pets", "size")
    assert [field["field_name"] for field in json.loads(run("fields", "pets", "--json")[1])] == ["cost"]
    file.write_text("media,value\nx,1\n", encoding="utf-8")
    both = "--from", str(file)
    for wrong in (("cost",), ("cost", "1", "--clear"), ("cost", *both), ("cost", *both, "--vql", DOGS), ("no", "1")):
        code, _, error = run("set-field", "pets", *wrong)
        assert (code, error.count("\n")) == (1, 1), wrong


@pytest.mark.slow
def test_states(pets: Dataset, run: Run) -> None:
    """A snapshot is taken, restored, cloned and deleted; a restore is undone; names and descriptions change."""
    run("label", "pets", "wolf", "--vql", DOGS)
    assert "snapshot wolves of 4 images" in run("snapshot", "pets", "wolves", "--description", "all wolves")[1]
    run("label", "pets", "--clear", "--vql", "[]")
    assert "undo: framedex undo pets" in run("restore", "pets", "wolves")[1]
    assert pets.where(vql.labels("wolf")).count() == 2
    run("undo", "pets")
    assert pets.labels() == []
    assert run("clone", "pets", "copy", "--snapshot", "wolves")[1] == "created copy with 4 images\n"
    run("label", "pets", "seen", "--vql", "[]")
    run("clone", "pets", "now")
    assert run("labels", "now")[1] == run("labels", "pets")[1]
    code, _, error = run("restore", "pets")
    assert (code, "needs the id or the name of a snapshot" in error, "('wolves')" in error) == (1, True, True)
    assert "the current one" in run("delete-snapshot", "pets", "wolves", "--yes")[2]
    run("snapshot", "pets", "none")
    code, _, error = run("delete-snapshot", "pets", "wolves")
    assert (code, "--yes" in error) == (1, True)
    assert run("delete-snapshot", "pets", "wolves", "--yes")[0] == 0
    assert "wolves" not in [each.snapshot_name for each in pets.snapshots()]
    assert run("rename", "pets", "animals", "--description", "of the house")[1] == "pets is now animals\n"
    assert (pets.name, pets.info.description) == ("animals", "of the house")
    assert run("rename", "animals")[0] == 1
    assert run("restore", "animals", "never")[0] == 1


def test_tasks(pets: Dataset, run: Run) -> None:
    """The last task of a dataset is waited for; one that has ended cannot be aborted."""
    assert "is COMPLETED" in run("wait", "pets")[1]
    assert json.loads(run("wait", "pets", "--json")[1])["status"] == "COMPLETED"
    code, _, error = run("abort", "pets")
    assert code == 1
    assert "it is COMPLETED" in error
    assert run("wait", "nothing")[0] == 1


def test_completion(pets: Dataset, environment: Environment, tmp_path: Path, run: Run) -> None:
    """A shell completes names of datasets; without a workspace there are none, and no error."""
    from framedex.cli.options import _dataset_names

    environment["FRAMEDEX_WORKSPACE"] = str(tmp_path / "w")
    assert _dataset_names("p") == ["pets"]
    assert _dataset_names("x") == []
    environment["FRAMEDEX_WORKSPACE"] = str(tmp_path / "elsewhere")
    assert _dataset_names("") == []


def test_tables__have_whole_ids(
    pets: Dataset, environment: Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a narrow terminal an id stays in one piece, so that it can be copied; other columns are folded."""
    from framedex.cli.output import print_table

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    environment["COLUMNS"] = "60"
    media_id = pets.view.media_ids()[0]
    print_table(("image", "remark", "id"), [("a" * 50, "b" * 50, media_id)])
    shown = capsys.readouterr().out
    assert media_id in shown
    assert "…" not in shown
    assert shown.count("a") >= 50
