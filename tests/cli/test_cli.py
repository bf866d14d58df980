"""The command line."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import framedex
from framedex import NotFound, Workspace
from framedex.cli import main, printable
from tests.buckets import Service
from tests.environment import Environment
from tests.failures import failing
from tests.growth import part

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the dataset ``pets``: six images, two of them alike, and a broken one."""
    folder = tmp_path_factory.mktemp("cli")
    images = folder / "images"
    images.mkdir()
    random = np.random.default_rng(1)
    for number in range(5):
        noise = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((160, 120), Image.Resampling.BICUBIC).save(images / f"p{number}.png")
    (images / "copy [red].png").write_bytes((images / "p0.png").read_bytes())
    (images / "broken\x1b[31m.jpg").write_bytes(b"no image")
    with pytest.raises(SystemExit) as exit_:
        main(["create", "pets", str(images), "-w", str(folder / "ws")])
    assert exit_.value.code == 0
    return folder / "ws"


@pytest.fixture
def run(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the workspace and return its status, output and error output."""

    def call(*arguments: str, at: Path = workspace) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(at)])
        captured = capsys.readouterr()
        code = exit_.value.code
        return code if isinstance(code, int) else 0, captured.out, captured.err

    return call


def _json(run: Run, *arguments: str) -> Any:
    status, out, _ = run(*arguments, "--json")
    assert status == 0
    return json.loads(out)


@pytest.mark.slow
def test_ls__lists_datasets(run: Run) -> None:
    """The list names each dataset with its status and size, for people and for programs."""
    status, out, _ = run("ls")
    assert status == 0
    assert "pets" in out
    assert "READY" in out
    assert [(each["display_name"], each["n_images"]) for each in _json(run, "ls")] == [("pets", 7)]


def test_show__counts_issues(run: Run) -> None:
    """A dataset is shown with its encoder and how often each issue was found."""
    shown = _json(run, "show", "pets")
    counts = {each["issue_type"]: each["count"] for each in shown["issues"]}
    assert shown["embedding_config"]["encoder"] == "gist"
    assert counts["corrupted"] == 1
    assert counts["duplicates"] == 2
    assert "corrupted" in run("show", "pets")[1]


def test_explore__prints_the_interface_s_result(run: Run) -> None:
    """The JSON of a page is the Explore result; the table has a line a cluster."""
    page = _json(run, "explore", "pets", "--threshold", "0")
    assert page["metadata"] == {"used_duckdb": True}
    assert sum(cluster["n_images"] for cluster in page["clusters"]) == 7
    filtered = _json(run, "explore", "pets", "--vql", '[{"duplicates": {"op": "duplicates", "value": 1.0}}]')
    assert sum(cluster["n_images"] for cluster in filtered["clusters"]) == 2
    assert run("explore", "pets")[0] == 0


def test_duplicates__names_the_files(run: Run) -> None:
    """Groups are printed with the names of their files, brackets and all."""
    assert [sorted(group["file_names"]) for group in _json(run, "duplicates", "pets")] == [["copy [red].png", "p0.png"]]
    assert "copy [red].png" in run("duplicates", "pets")[1]


def test_duplicates__finds_the_copies_of_a_file_from_outside(run: Run, workspace: Path, tmp_path: Path) -> None:
    """A file that the dataset lacks may be a copy of its images; a path without a file is an error."""
    (tmp_path / "found.png").write_bytes((workspace.parent / "images" / "p2.png").read_bytes())
    (copy,) = _json(run, "duplicates", "pets", "--of", str(tmp_path / "found.png"))
    assert (copy["path"], copy["reason"]) == ("p2.png", "same file")
    status, _, errors = run("duplicates", "pets", "--of", str(tmp_path / "absent.png"))
    assert status == 1
    assert "neither a media item of 'pets' nor a file" in errors
    assert "absent.png" in errors


def test_duplicates__without_near_images_says_so(run: Run) -> None:
    """Where no images are near images, one line says it; as JSON the list is empty."""
    lines = run("duplicates", "pets", "--near")[1].splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("no near images")
    assert _json(run, "duplicates", "pets", "--near") == []


@pytest.mark.slow
def test_duplicates__says_what_to_keep(run: Run) -> None:
    """Each group has the image that is best to keep and why, near-duplicates and equal files alike."""
    for more in ((), ("--exact",)):
        (group,) = _json(run, "duplicates", "pets", *more)
        assert group["keep"] in group["media_ids"]
        assert group["keep_reason"].partition(";")[0] in run("duplicates", "pets", *more)[1]
        assert group["confidence"] == 1


def test_interrupt__says_what_was_done(run: Run) -> None:
    """Ctrl-C ends a command with one line, which says what became of its task, and the status of interrupts."""
    interrupt = KeyboardInterrupt()
    interrupt.add_note("The REINDEX of 'pets' was aborted: it has changed nothing.")
    told = "error: interrupted (The REINDEX of 'pets' was aborted: it has changed nothing.)\n"
    with failing("framedex.Dataset.reindex", error=interrupt):
        assert run("reindex", "pets") == (130, "", told)


def test_issues__prints_no_control_characters(run: Run) -> None:
    """A file name cannot steer the terminal."""
    status, out, _ = run("issues", "pets", "--type", "corrupted")
    assert status == 0
    assert "\x1b" not in out
    assert "broken\\x1b[31m.jpg" in out
    assert [each["issue_type"] for each in _json(run, "issues", "pets", "--type", "corrupted")] == ["corrupted"]


@pytest.mark.slow
def test_issues__warn_where_few_labels_agree(run: Run, tmp_path: Path) -> None:
    """Where labels are unrelated to neighbours, the issues and the dataset are shown with a warning, in one line."""
    random = np.random.default_rng(0)
    with Workspace(tmp_path / "ws") as workspace:
        labels = [f"label {row % 3}" for row in range(30)]
        workspace.create_dataset("d", part(random.standard_normal((30, 8)), label=labels))
    for command in ("issues", "show"):
        status, out, _ = run(command, "d", at=tmp_path / "ws")
        last = out.splitlines()[-1]
        assert (status, last.startswith("some mislabels may be right labels: ")) == (0, True)
    status, out, _ = run("issues", "d", "--type", "outliers", at=tmp_path / "ws")
    assert "mislabels" not in out
    shown = json.loads(run("show", "d", "--json", at=tmp_path / "ws")[1])
    assert {each["issue_type"]: each["note"] for each in shown["issues"]}["mislabels"] == last


def test_issues__have_a_percentile(run: Run) -> None:
    """Each issue says where its value stands among all images."""
    found = _json(run, "issues", "pets", "--type", "duplicates")
    assert [each["percentile"] for each in found] == [90, 90]  # two of six share the middle of the highest ranks
    assert " 90.0 " in run("issues", "pets", "--type", "duplicates")[1]


def test_issues__have_value_and_limit(run: Run) -> None:
    """Each issue is shown with its value and the limit of its type."""
    status, out, _ = run("issues", "pets", "--type", "duplicates")
    assert status == 0
    header, *rows = out.splitlines()
    assert header.split() == ["issue", "file", "value", "limit", "percentile", "confidence", "reason"]
    assert rows
    assert all(row.split()[-3] == "0.96" for row in rows)


def test_limits__are_set_and_reset(run: Run) -> None:
    """Limits are listed with their defaults; an option sets some and resets others in one edit."""
    before = {each["issue_type"]: each for each in _json(run, "limits", "pets")}
    assert not any(each["is_set"] for each in before.values())
    changed = _json(run, "limits", "pets", "--set", "blur=0.99", "--set", "duplicates=0.98")
    assert {each["issue_type"]: each["limit"] for each in changed if each["is_set"]} == {
        "blur": 0.99,
        "duplicates": 0.98,
    }
    assert len({row["path"] for row in _json(run, "issues", "pets", "--type", "blur")}) > 0
    status, out, _ = run("limits", "pets", "--set", "dark=0", "--reset", "blur", "--reset", "duplicates")
    assert status == 0
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines()}
    assert rows["issue"] == ["limit", "default", "issue"]
    assert rows["dark"] == ["0", f"{before['dark']['default']:.3g}", "below"]
    after = _json(run, "limits", "pets", "--reset", "dark")
    assert {each["issue_type"]: each for each in after} == before


def test_histogram__is_shown_as_bars(run: Run) -> None:
    """Bars stand for the values of a filter, and the bin with the limit is marked."""
    limit = next(each["limit"] for each in _json(run, "limits", "pets") if each["issue_type"] == "duplicates")
    counts = _json(run, "histogram", "pets", "duplicates", "--bins", "5")
    assert (sum(counts["counts"]), counts["missing"], counts["limit"]) == (6, 1, limit)
    status, out, _ = run("histogram", "pets", "duplicates", "--bins", "5")
    assert status == 0
    title, header, *rows, last = out.splitlines()
    assert title == "duplicates: cosine similarity to the most similar image"
    assert header.split() == ["from", "to", "images"]
    assert [int(row.split()[2]) for row in rows] == counts["counts"]
    assert [("█" in row) for row in rows] == [count > 0 for count in counts["counts"]]
    assert sum("◀ limit" in row for row in rows) == 1
    assert last == "limit 0.96, issue above · 1 without a value"
    chosen = '[{"file_name": {"op": "is", "value": "p1.png"}}]'
    assert sum(_json(run, "histogram", "pets", "blur", "--vql", chosen)["counts"]) == 1


def test_export__writes_a_zip(run: Run, tmp_path: Path) -> None:
    """An export says what it wrote."""
    written = _json(run, "export", "pets", str(tmp_path / "pets.zip"), "--include-images")
    assert written["total_media_items"] == written["images"] == 7
    assert (tmp_path / "pets.zip").is_file()
    status, out, _ = run("export", "pets", str(tmp_path / "table.zip"), "--format", "parquet")
    assert status == 0
    assert "table.zip: 7 media\n" in out
    status, out, _ = run("export", "pets", str(tmp_path / "coco.zip"), "--format", "coco", "--include-images")
    assert status == 0
    assert "coco.zip: 7 media, 7 images\n" in out
    status, out, _ = run("export", "pets", str(tmp_path / "voc.zip"), "--format", "voc", "--objects")
    assert status == 0
    assert "voc.zip: 0 objects in 0 media\n" in out


def test_export__in_parts(run: Run, tmp_path: Path) -> None:
    """An export is divided by shares; the text says how many images each part has."""
    status, out, _ = run("export", "pets", str(tmp_path / "y.zip"), "--format", "yolo", "--split", "train=0.5, val=0.5")
    assert status == 0
    assert re.search(r"y\.zip: 7 media; train [345], val [234]\n", out)
    status, out, _ = run("export", "pets", str(tmp_path / "pets.json"))
    assert json.loads((tmp_path / "pets.json").read_text())["info"]["total_media_items"] == 7


def test_report__writes_one_page(run: Run, tmp_path: Path) -> None:
    """The report is one file that needs no other."""
    assert run("report", "pets", "-o", str(tmp_path / "page.html"))[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "data:image/jpeg" in page
    assert "http" not in page


def test_card__is_markdown(run: Run, tmp_path: Path) -> None:
    """The card is printed line by line, or written to a file."""
    status, out, _ = run("card", "pets")
    assert status == 0
    assert "# pets\n" in out
    assert run("card", "pets", "-o", str(tmp_path / "README.md"))[0] == 0
    assert (tmp_path / "README.md").read_text() == out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("show", "nothing"), "no dataset 'nothing'; there are: 'pets'"),
        (("explore", "pets", "--threshold", "9"), "level must be a whole number from 0 to 4, not 9"),
        (("explore", "pets", "--vql", "{"), "--vql is not valid JSON"),
        (("explore", "pets", "--vql", "{}"), "--vql must be a JSON array"),
        (("explore", "pets", "--vql", '[{"colour": 1}]'), "invalid filter at $[0]"),
        (("issues", "pets", "--type", "ugly"), "no issue 'ugly'"),
        (("duplicates", "pets", "--threshold", "7"), "similarity must be a number from 0.96 to 1"),
        (("export", "pets", "no/such/folder/x.zip"), "no/such/folder/x.zip: No such file or directory"),
        (("export", "pets", "x.zip", "--format", "xml"), "huggingface_parquet or webdataset, not 'xml'"),
        (("export", "pets", "x.zip", "--format", "yolo", "--split", "train"), "--split must be names with shares"),
        (("export", "pets", "x.zip", "--format", "yolo", "--split", "a=0.1,a=0.2"), "--split names 'a' twice"),
        (("export", "pets", "x.zip", "--split", "train=0.5,val=0.5"), "the format 'json' has no split"),
        (("create", "new", "."), "no images in"),
        (("create", "pets", "no/such/folder"), "a dataset named 'pets' exists already"),
        (("create", "new", "no/such/folder"), "there is nothing at"),
        (("report", "pets", "-o", "no/such/folder/x.html"), "cannot write no/such/folder/x.html"),
        (("card", "pets", "-o", "no/such/folder/x.md"), "cannot write no/such/folder/x.md"),
        (("add", "pets", "no/such/folder"), "there is nothing at"),
        (("add", "nothing", "."), "no dataset 'nothing'"),
        (("reindex", "pets"), "Operation 'reindex' needs the dataset status PARTIAL INDEX; it is READY"),
        (("reindex", "pets", "--threshold", "0.5"), "thresholds must be five ascending cosine distances"),
        (("not-duplicates", "pets", "a", "b"), "no media 'a' in this dataset"),
        (("not-duplicates", "pets", "a"), "two or more different media ids"),
        (("limits", "pets", "--set", "blur"), "--set must be ISSUE=LIMIT, as blur=0.4, not 'blur'"),
        (("limits", "pets", "--set", "blur=high"), "the limit of 'blur' must be a number, not 'high'"),
        (("limits", "pets", "--set", "blur=2"), "the limit of 'blur' must be a finite number from 0 to 1, not 2.0"),
        (("limits", "pets", "--set", "blur=nan"), "the limit of 'blur' must be a finite number from 0 to 1, not nan"),
        (("limits", "pets", "--set", "ugly=1"), "no issue 'ugly'; those with a value: "),
        (("limits", "pets", "--set", "blur=0.1", "--reset", "blur"), "the limit of 'blur' is given twice"),
        (("histogram", "pets", "corrupted"), "the issue 'corrupted' has no value"),
        (("histogram", "pets", "blur", "--bins", "0"), "bins must be a whole number from 1 to 1000, not 0"),
    ],
)
@pytest.mark.usefixtures("in_tmp_path")
def test_errors__are_one_line_and_a_status(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    """What goes wrong is said in one line that names the value, without a traceback."""
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert expected in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["create", "x"], "Missing argument 'source'. (see: framedex create --help)"),
        (["explore", "pets", "--threshold", "many"], "Invalid value for '--threshold'"),
        (["explode"], "No such command 'explode'"),
        (["ls", "--color"], "No such option: --color"),
        (["add"], "Missing argument 'name'. (see: framedex add --help)"),
        (["not-duplicates", "pets"], "Missing argument 'media_id'. (see: framedex not-duplicates --help)"),
    ],
)
def test_errors__wrong_usage_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage ends with status 2 and one line that names what is wrong and where the help is."""
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    out, err = capsys.readouterr()
    assert (exit_.value.code, out, err.count("\n")) == (2, "", 1)
    assert expected in err


@pytest.mark.slow
def test_help__without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments the help is shown."""
    with pytest.raises(SystemExit) as exit_:
        main([])
    assert exit_.value.code == 0
    assert "duplicates" in capsys.readouterr().out


def test_errors__a_mistyped_workspace_is_not_made(run: Run, tmp_path: Path) -> None:
    """Looking into a workspace that does not exist does not create it."""
    status, _, err = run("ls", at=tmp_path / "typo")
    assert status == 1
    assert "no workspace at" in err
    assert not (tmp_path / "typo").exists()


@pytest.mark.slow
def test_create__and_rm(run: Run, tmp_path: Path) -> None:
    """A dataset comes and goes; its images stay."""
    Image.new("RGB", (20, 10), "red").save(tmp_path / "one.png")
    made = _json(run, "create", "short-lived", str(tmp_path))
    assert (made["n_images"], made["status_new"]) == (1, "READY")
    status, _, err = run("create", "short-lived", str(tmp_path))
    assert status == 1
    assert "'short-lived' exists already" in err
    assert run("rm", "short-lived", "--yes")[0] == 0
    assert (tmp_path / "one.png").is_file()
    assert run("show", "short-lived")[0] == 1


@pytest.mark.slow
@pytest.mark.only_soak
def test_create_and_add__say_what_is_corrupted(run: Run, tmp_path: Path) -> None:
    """Broken files are in the dataset, and the commands that brought them say how many and where to look."""
    first, more = tmp_path / "first", tmp_path / "more"
    for folder in (first, more):
        folder.mkdir()
        Image.new("RGB", (20, 10), "red").save(folder / "whole.png")
    (first / "broken.jpg").write_bytes(b"no image")
    said = "1 of them is corrupted; `framedex issues 'my pets' --type corrupted` says why"
    assert said in run("create", "my pets", str(first))[1]
    assert "corrupted" not in run("add", "my pets", str(more))[1]
    for name in ("one.jpg", "two.jpg"):
        (more / name).write_bytes(b"no image either")
    (more / "page.jpg").write_text("<html></html>")
    out = run("add", "my pets", str(more))[1]
    assert said.replace("1 of them is", "2 of them are") in out
    assert "1 of them is not supported; `framedex issues 'my pets' --type not_supported` says why" in out
    assert run("rm", "my pets", "--yes")[0] == 0


def test_rm__switched_off(run: Run, tmp_path: Path, environment: Environment) -> None:
    """Where the environment forbids it, a dataset stays, and the command says why."""
    Image.new("RGB", (20, 10), "red").save(tmp_path / "one.png")
    _json(run, "create", "kept", str(tmp_path))
    environment["DELETE_DATASET_ENABLED"] = "false"
    status, _, err = run("rm", "kept", "--yes")
    assert (status, err.strip()) == (1, "error: Delete dataset feature is not enabled")
    del environment["DELETE_DATASET_ENABLED"]
    assert run("rm", "kept", "--yes")[0] == 0


def test_version__is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The program names its version."""
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"framedex {framedex.__version__}\n"


@pytest.fixture
def growing(run: Run, tmp_path: Path) -> Path:
    """A folder with two images of one colour each; the dataset ``growing`` was made of one of them."""
    folder = tmp_path / "growing"
    folder.mkdir()
    Image.new("RGB", (20, 10), "red").save(folder / "red.png")
    assert run("create", "growing", str(folder))[0] == 0
    Image.new("RGB", (20, 10), "blue").save(folder / "blue.png")
    return folder


@pytest.fixture(autouse=True)
def _without_growing(workspace: Path) -> Iterator[None]:
    """Delete the dataset ``growing``, since the workspace is that of all tests."""
    yield
    with Workspace(workspace) as opened, suppress(NotFound):
        opened.delete_dataset("growing")


@pytest.mark.slow
def test_add__and_reindex(run: Run, growing: Path) -> None:
    """Additions say how many were new and what was left out; a reindex settles them, with other thresholds if given."""
    added = _json(run, "add", "growing", str(growing))
    assert (added["added"], added["n_images"], added["status_new"]) == (1, 2, "PARTIAL INDEX")
    assert added["problems"] == [{"reason": "media that are there already", "count": 1, "examples": []}]
    status, out, _ = run("add", "growing", str(growing))
    assert status == 0
    assert "growing: 0 images added" in out
    assert "skipped: 2 media that are there already" in out
    assert "the index is partial; run `framedex reindex`" in out
    status, out, _ = run("reindex", "growing")
    assert (status, "growing: 2 images indexed" in out) == (0, True)
    cuts = [0.1, 0.2, 0.3, 0.4, 0.5]
    indexed = _json(run, "reindex", "growing", *(word for cut in cuts for word in ("--threshold", str(cut))))
    assert (indexed["status_new"], indexed["embedding_config"]["thresholds"]) == ("READY", cuts)


@pytest.mark.slow
@pytest.mark.only_soak
def test_add__and_reindex_at_once(run: Run, growing: Path) -> None:
    """With --reindex the dataset is READY afterwards, and nobody is told to index it."""
    status, out, _ = run("add", "growing", str(growing), "--reindex")
    assert status == 0
    assert "growing: 1 image added" in out
    assert "`framedex reindex`" not in out
    assert _json(run, "show", "growing")["status_new"] == "READY"


@pytest.mark.slow
def test_add__from_elsewhere(run: Run, growing: Path, service: Service, environment: Environment) -> None:
    """Archives and folders in buckets are added by their options; exactly one source is taken."""
    environment["FRAMEDEX_S3_ENDPOINT"] = service.address
    environment["FRAMEDEX_S3_ATTEMPTS"] = "1"
    with zipfile.ZipFile(growing / "blue.zip", "w") as archive:
        archive.write(growing / "blue.png", "sky/blue.png")
    assert _json(run, "add", "growing", "--archive", str(growing / "blue.zip"))["added"] == 1
    service.put("command-line/f/red.png", (growing / "red.png").read_bytes())
    assert _json(run, "add", "growing", "--s3", "s3://command-line/f")["n_images"] == 3
    status, _, err = run("add", "growing")
    assert (status, err.strip()) == (
        1, "error: give exactly one source: SOURCE, --archive or --s3",
    )  # fmt: skip
    status, _, err = run("add", "growing", "--s3", "s3://command-line/none")
    assert (status, err.strip()) == (
        1,
        "error: Invalid object-storage URI or no media files found at the URI "
        "(no images in 's3://command-line/none'; it is empty)",
    )
    assert run("rm", "growing", "--yes")[0] == 0
    assert _json(run, "create", "growing", "s3://command-line/f")["n_images"] == 1


@pytest.mark.slow
def test_not_duplicates__keeps_images_apart(run: Run, growing: Path) -> None:
    """Images that are decided to be no duplicates are no group any more."""
    (growing / "copy.png").write_bytes((growing / "red.png").read_bytes())
    run("add", "growing", str(growing))
    (group,) = _json(run, "duplicates", "growing")
    decision = _json(run, "not-duplicates", "growing", *group["media_ids"])
    assert decision["media_ids"] == group["media_ids"]
    assert _json(run, "duplicates", "growing") == []
    status, out, _ = run("not-duplicates", "growing", *group["media_ids"])
    assert (status, "2 images are never duplicates of one another; decision" in out) == (0, True)


@pytest.mark.slow
def test_decisions__are_listed_and_withdrawn(run: Run, workspace: Path, growing: Path) -> None:
    """A decision that labels are right is listed with who and when, and withdrawn by its id."""
    run("add", "growing", str(growing))
    ids = [row["media_id"] for row in _json(run, "issues", "growing")][:1]
    with Workspace(workspace) as opened:
        opened.dataset("growing").set_labels(ids, ["cat"])
    status, out, _ = run("label-is-right", "growing", "--ids", ids[0])
    assert (status, "the labels of 1 image are right; decision" in out) == (0, True)
    (decision,) = _json(run, "decisions", "growing")["labels"]
    assert (decision["media_ids"], decision["labels"]) == (ids, [["cat"]])
    assert "labels are right" in run("decisions", "growing")[1]
    assert run("withdraw-decision", "growing", decision["decision_id"])[0] == 0
    assert _json(run, "decisions", "growing") == {"duplicates": [], "labels": []}


@pytest.mark.slow
def test_basket__is_filled_and_cleared(run: Run) -> None:
    """Images are put into the basket by a filter or by ids; the list has their names and ids."""
    broken = '[{"issues": {"op": "issue", "value": "corrupted"}}]'
    ids = [row["media_id"] for row in _json(run, "basket", "pets", "add", "--vql", broken)]
    assert len(ids) == 1
    assert ids[0] in run("basket", "pets")[1]
    assert run("basket", "pets", "remove", "--ids", ids[0])[1].strip() == "basket: 0 images"
    assert run("basket", "pets", "add", "--vql", "[]")[1].strip() == "basket: 7 images"
    assert run("basket", "pets", "clear")[1].strip() == "basket: 0 images"
    assert _json(run, "basket", "pets", "list") == []
    assert "the action must be list, add, remove or clear, not 'empty'" in run("basket", "pets", "empty")[2]
    assert "clear takes no --vql and no --ids" in run("basket", "pets", "clear", "--vql", "[]")[2]
    assert "select images by --vql or by --ids" in run("basket", "pets", "add")[2]


@pytest.mark.slow
def test_tag__puts_tags_on_and_takes_them_off(run: Run) -> None:
    """Images are named by a filter or by ids; the list says how many have which tag."""
    broken = '[{"issues": {"op": "issue", "value": "corrupted"}}]'
    first, second, *_ = (
        preview["media_id"] for cluster in _json(run, "explore", "pets")["clusters"] for preview in cluster["previews"]
    )
    assert _json(run, "tag", "pets", "look at", "--vql", broken)["count"] == 1
    assert run("tag", "pets", "keep", "--ids", f"{first},{second}")[1] == "keep: 2 images\n"
    assert run("untag", "pets", "keep", "--ids", first, "--ids", second)[1] == "keep: 0 images\n"
    assert [(tag["name"], tag["count"]) for tag in _json(run, "tags", "pets")] == [("look at", 1), ("keep", 0)]
    assert "look at" in run("tags", "pets")[1]
    untagged = '[{"tags": {"op": "is", "value": "untagged"}}]'
    assert sum(each["n_images"] for each in _json(run, "explore", "pets", "--vql", untagged)["clusters"]) == 6


@pytest.mark.parametrize("chosen", [(), ("--ids", "a", "--vql", "[]")])
def test_tag__needs_to_know_which_images(run: Run, chosen: tuple[str, ...]) -> None:
    """Leaving out which images is no way to tag all of them."""
    for command in ("tag", "untag"):
        status, out, err = run(command, "pets", "x", *chosen)
        assert (status, out) == (1, "")
        assert "select images by --vql or by --ids" in err


@pytest.mark.slow
def test_module__runs_with_the_workspace_of_the_environment(workspace: Path) -> None:
    """``python -m framedex`` works, and FRAMEDEX_WORKSPACE names the workspace."""
    done = subprocess.run(
        [sys.executable, "-m", "framedex", "ls", "--json"],
        env={"FRAMEDEX_WORKSPACE": str(workspace), "PATH": ""},
        capture_output=True,
        check=True,
    )
    assert [each["display_name"] for each in json.loads(done.stdout)] == ["pets"]


def test_printable__escapes() -> None:
    """Control characters and lone surrogates are shown as escapes; all other text stays."""
    assert printable("a\nb\x1b[0m\udcffé") == "a\\nb\\x1b[0m\\udcffé"
