"""All labels are ranked, with the estimated number of wrong ones."""

import json

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.cli import main
from tests.inside import layout_of
from tests.prepared import prepared

ROWS, KINDS = 120, 4
WRONG = [8, 21, 33, 47, 58, 62, 75, 84, 97, 111, 116, 119]
LABELS = [f"kind {(row + (row in WRONG)) % KINDS}" for row in range(ROWS)]


def make(workspace: Workspace) -> Dataset:
    """Make a dataset of four kinds of vectors with a tenth of wrong labels."""
    vectors = np.eye(KINDS, 8)[np.arange(ROWS) % KINDS] + 0.15 * np.random.default_rng(5).normal(size=(ROWS, 8))
    paths = [f"{row}.jpg" for row in range(ROWS)]
    return prepared(
        workspace, "kinds", pa.table({"uri": paths, "embedding": list(vectors.astype(np.float32)), "label": LABELS})
    )


def chances(dataset: Dataset) -> pa.Table:
    """Return the probabilities of a model that is never wrong."""
    media = dataset.to_arrow(["media_id", "path"])
    kinds = [row % KINDS for row in rows_of(media)]
    columns = {f"kind {kind}": [0.97 if each == kind else 0.01 for each in kinds] for kind in range(KINDS)}
    return pa.table({"media_id": media["media_id"], **columns})


def rows_of(table: pa.Table) -> list[int]:
    """Return the numbers of the rows in a table."""
    return [int(path.removesuffix(".jpg")) for path in table["path"].to_pylist()]


def test_label_issues__ranks_all_and_estimates(workspace: Workspace) -> None:
    """Wrong labels come first with the right ones suggested, and the counts fit each other."""
    dataset = make(workspace)
    for method in ("combined", "neighbours", "head"):
        issues = dataset.label_issues(method)
        table = issues.to_arrow()
        assert sorted(rows_of(table)[: len(WRONG)]) == WRONG, method
        assert (issues.notes, len(issues)) == ([], ROWS), method
        assert issues.n_wrong == pytest.approx(len(WRONG), abs=2), method
        assert issues.interval[0] < 0.1 < issues.interval[1], method
        assert table["suggested_label"].to_pylist()[: len(WRONG)] == [
            f"kind {row % KINDS}" for row in rows_of(table)[: len(WRONG)]
        ], method
        assert table["expected_precision"][ROWS - 1].as_py() == pytest.approx(issues.rate, abs=1e-3), method
    assert list(issues.view().ids) == table["media_id"].to_pylist()[: issues.n_wrong]
    classes = issues.classes()
    assert sum(classes["n_media"].to_pylist()) == ROWS
    assert sum(classes["n_wrong"].to_pylist()) == pytest.approx(issues.rate * ROWS, abs=0.1)
    assert repr(issues).startswith(f"<framedex.LabelIssues: 120 labelled media; about {issues.n_wrong} wrong labels, ")
    first = table.slice(0, 1).to_pylist()[0]
    assert f"{first['label']} → {first['suggested_label']}" in issues._repr_html_()


def test_label_issues__decisions_leave_list_and_estimate(workspace: Workspace) -> None:
    """Labels that are right by decision are no longer listed, nor counted in the estimated rate."""
    dataset = make(workspace)
    dataset.label_is_right(dataset.label_issues("head").view(len(WRONG)))
    decided = dataset.label_issues("head")
    assert (len(decided), decided.n_wrong) == (ROWS - len(WRONG), 0)
    assert not {*rows_of(decided.to_arrow())} & {*WRONG}
    dataset.label_is_right(dataset.view)
    assert (len(dataset.label_issues("head")), dataset.label_issues("head").rate) == (0, 0.0)


def test_label_issues__by_probabilities(workspace: Workspace) -> None:
    """Probabilities rank alone or with the rest, in any order of rows, as a table of Arrow or pandas."""
    dataset = make(workspace)
    given = chances(dataset)
    shuffled = given.take(pa.array(np.random.default_rng(0).permutation(ROWS)))
    alone = dataset.label_issues("probabilities", probabilities=shuffled)
    assert sorted(rows_of(alone.to_arrow())[: len(WRONG)]) == WRONG
    assert alone.to_arrow().equals(dataset.label_issues("probabilities", probabilities=given.to_pandas()).to_arrow())
    assert sorted(rows_of(dataset.label_issues(probabilities=given).to_arrow())[: len(WRONG)]) == WRONG


def test_label_issues__by_command(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line lists the same rows, and says the estimate."""
    dataset = make(workspace)
    issues, root = dataset.label_issues("head"), str(layout_of(dataset).root)
    with pytest.raises(SystemExit):
        main(["label-issues", "kinds", "--method", "head", "-w", root, "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert [row["media_id"] for row in listed["rows"]] == issues.to_arrow()["media_id"].to_pylist()
    assert listed["rate"] == issues.rate
    with pytest.raises(SystemExit):
        main(["label-issues", "kinds", "--method", "head", "-w", root, "--limit", "3"])
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == repr(issues)
    assert out.count(".jpg") == 3


def test_label_issues__refuses(workspace: Workspace) -> None:
    """Methods that do not exist, and probabilities that do not fit, are refused."""
    dataset = make(workspace)
    given = chances(dataset)
    for arguments, message in (
        ({"method": "votes"}, "method is combined, neighbours, head, probabilities, not 'votes'"),
        ({"method": "probabilities"}, "needs probabilities"),
        ({"probabilities": 5}, "a table of Arrow or pandas, not int"),
        ({"probabilities": given.drop_columns("media_id")}, "need the column 'media_id'"),
        ({"probabilities": given.drop_columns("kind 2")}, r"have none for 'kind 2' \(1 of 4 labels\)"),
        ({"probabilities": given.set_column(1, "kind 0", pa.array([1.5] * ROWS))}, "numbers from 0 to 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dataset.label_issues(**arguments)
