"""The table of issues: an Arrow table that a notebook displays, with notes."""

import copy
import pickle
from collections.abc import Sequence

import pyarrow as pa
import pytest

from framedex.api.issue_table import IssueTable
from framedex.browse.issues import ISSUE_COLUMNS
from framedex.errors import NotFound
from tests.gallery import Gallery

NOTE = "some mislabels may be right labels: <because>"


def issue_table(count: int, notes: tuple[str, ...] = ()) -> IssueTable:
    """Return a table with a number of issues of two types."""
    rows = [
        {
            "media_id": str(row), "file_name": f"{row}.jpg", "path": f"a/{row}.jpg",
            "issue_type": "blur" if row % 2 else "mislabels", "value": row / 8, "confidence": 0.75,
            "suggested_label": None if row % 2 else "cat",
        }
        for row in range(count)
    ]  # fmt: skip
    return IssueTable(pa.Table.from_pylist(rows, ISSUE_COLUMNS), notes)


def test_table__is_used_like_an_arrow_table() -> None:
    """Columns, rows and other libraries see the Arrow table."""
    issues = issue_table(5, (NOTE,))
    table = issues.to_arrow()
    assert (len(issues), issues.num_rows, issues.column_names) == (5, 5, ISSUE_COLUMNS.names)
    assert issues["path"].to_pylist() == [f"a/{row}.jpg" for row in range(5)]
    assert issues.select(["value"]).to_pylist()[2] == {"value": 0.25}
    assert issues.slice(1, 2).num_rows == len(issues[1:3]) == 2
    assert pa.table(issues).equals(table)
    assert issues.equals(table)
    assert issues.equals(issue_table(5))
    assert not issues.equals(issue_table(4))
    assert issues.to_pandas()["file_name"].tolist() == table["file_name"].to_pylist()
    with pytest.raises(AttributeError, match="columns_of"):
        issues.columns_of  # noqa: B018 - the attribute is missing


def test_table__is_copied() -> None:
    """Copies and pickles have the rows and the notes."""
    issues = issue_table(3, (NOTE,))
    for other in (copy.copy(issues), copy.deepcopy(issues), pickle.loads(pickle.dumps(issues))):
        assert (other.notes, other.equals(issues)) == ([NOTE], True)


def test_repr__counts_and_notes() -> None:
    """The text has the number of issues of each type and the notes."""
    assert repr(issue_table(5, (NOTE,))) == f"<IssueTable: mislabels 3, blur 2>\n{NOTE}"
    assert repr(issue_table(0)) == "<IssueTable: no issues>"


def test_html__rows_and_notes() -> None:
    """A notebook shows the notes, the first rows with their remarks, and the number of further rows."""
    shown = issue_table(23, (NOTE,))._repr_html_()
    assert "some mislabels may be right labels: &lt;because&gt;" in shown
    assert shown.count("suggested label: cat") == 10
    assert "and 3 more rows" in shown
    assert "no issues" in issue_table(0)._repr_html_()


def test_html__with_images(gallery: Gallery) -> None:
    """A notebook shows the image of each row; once the workspace is gone, the rows alone."""
    issues = gallery.dataset.issues("dark")
    shown = issues._repr_html_()
    assert shown.count("<img") == len(issues)
    assert shown.count("<tr>") == 1 + len(issues)

    def gone(_ids: Sequence[str]) -> list[bytes | None]:
        raise NotFound("the dataset was deleted")

    without = IssueTable(issues.to_arrow(), thumbnails=gone)._repr_html_()
    assert "<img" not in without
    assert without.count("<tr>") == 1 + len(issues)
    assert without.count("<th>") == shown.count("<th>") - 1
