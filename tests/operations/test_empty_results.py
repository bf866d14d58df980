"""Results that are empty because a name does not exist say so, with the nearest name."""

import json
import warnings
from pathlib import Path
from zipfile import ZipFile

import pytest

from framedex import Dataset, EmptyResultWarning, Workspace, vql
from framedex.vql import Expression
from tests.cli.running import runner
from tests.objects import write_table
from tests.prepared import prepared


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset with a label and a tag."""
    made = prepared(workspace, "pets", folder)
    made.set_labels(made.view.limit(2), "dog")
    made.tag(made.view.limit(1), "keep")
    return made


@pytest.mark.parametrize(
    ("filter_", "reason"),
    [
        (vql.labels("dgo"), "no label 'dgo'; did you mean 'dog'"),
        (vql.labels(["dgo", "zebra"]), "no label 'zebra'; there are: 'dog'"),
        (vql.tags("kep"), "no tag 'kep'; did you mean 'keep'"),
        (vql.labels("dog") & vql.tags("x" * 300), "no tag 'xxx"),
        (vql.objects("cat"), "no label of objects 'cat'; there are: none"),
        (vql.folder("is", "nowhere"), "no folder 'nowhere'"),
        (vql.file_name("is", "00.png"), r"no file '00.png'; did you mean '00\d.png'"),
        (vql.batch(4), "no batch '4'; there are: '0'"),
    ],
)
def test_view__of_a_name_that_does_not_exist(dataset: Dataset, filter_: Expression, reason: str) -> None:
    """The number is 0, and a warning names the value and what there is."""
    view = dataset.where(filter_)
    for use in (view.count, view.media_ids, view.to_arrow):
        with pytest.warns(EmptyResultWarning, match=reason):
            use()
    assert any(each.startswith("there is no ") for each in view.why_empty())
    with pytest.warns(EmptyResultWarning, match=reason):
        assert view.explore().notes == view.why_empty()


def test_view__of_a_label_of_the_other_kind(workspace: Workspace, folder: Path) -> None:
    """Labels of objects are no labels of their images, and the other way round; the reason says where they are."""
    write_table(folder / "object_annotations.csv", [("000.png", (1.0, 1.0, 20.0, 20.0), "ear")])
    dataset = prepared(workspace, "ears", folder)
    dataset.set_labels(dataset.view.limit(1), "dog")
    assert dataset.where(vql.labels("ear")).why_empty() == [
        "there is no label 'ear'; objects have it: filter by objects"
    ]
    assert dataset.where(vql.objects("dog")).why_empty() == [
        "there is no label of objects 'dog'; images have it: filter by labels"
    ]
    assert dataset.where(vql.objects("ear")).count() == dataset.where(vql.labels("dog")).count() == 1


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize(
    "filter_",
    [
        vql.labels("dgo", "is_not"), vql.labels("dog"), vql.labels("dog") & vql.tags("untagged") & vql.batch(0),
        vql.labels(["dog", "dgo"]), vql.tags("basket"), vql.size("ge", 100_000, of="width"), ~vql.tags("kep"),
    ],
)  # fmt: skip
def test_view__without_a_warning(dataset: Dataset, filter_: Expression) -> None:
    """Rows, names that exist, and tests without names are no reason to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.where(filter_).count()
    assert dataset.where(filter_).why_empty() == []


@pytest.mark.slow
def test_export__of_nothing(dataset: Dataset, tmp_path: Path) -> None:
    """An empty export is written, and says that it is empty and why."""
    with pytest.warns(EmptyResultWarning, match="the export is empty|no tag 'kep'"):
        result = dataset.where(vql.tags("kep")).export(tmp_path / "x.zip")
    assert result.warnings == [
        "the export is empty: nothing was selected",
        "there is no tag 'kep'; did you mean 'keep'?",
    ]
    assert "did you mean 'keep'?" in dataset.exports()[0].result_message


@pytest.mark.slow
def test_export__without_labels(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Training files without classes are written, and the message says so."""
    dataset = prepared(workspace, "bare", folder)
    with pytest.warns(EmptyResultWarning, match=r"no classes \(nc: 0\)"):
        dataset.export(tmp_path / "x.zip", "yolo")
    assert "nc: 0" in ZipFile(tmp_path / "x.zip").read("data.yaml").decode()
    assert "no classes" in dataset.exports()[0].result_message
    dataset.set_labels(dataset.view, "dog")
    assert dataset.export(tmp_path / "x.zip", "yolo").warnings == []


def test_report_and_evaluation__of_nothing(dataset: Dataset, tmp_path: Path) -> None:
    """A page without images, and figures without boxes, say that."""
    with pytest.warns(EmptyResultWarning, match="the report is empty"):
        dataset.where(vql.size("ge", 100_000, of="width")).report(tmp_path / "x.html")
    with pytest.warns(EmptyResultWarning, match="no true boxes|no predictions"):
        found = dataset.evaluate()
    assert len(found.notes) == 2


@pytest.mark.slow
def test_command__says_it_in_a_line(dataset: Dataset, workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 0, and standard error has one line."""
    wrong = json.dumps([{"tags": {"op": "is", "value": "kep"}}])
    code, _, error = runner(workspace.path, capsys)("explore", "pets", "--vql", wrong)
    assert (code, error) == (0, "warning: the result is empty: there is no tag 'kep'; did you mean 'keep'?\n")
