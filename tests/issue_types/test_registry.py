"""Registry of issue types."""

from typing import Any

import pytest

from framedex import InvalidInput
from framedex.issue_types import Derived, IssueType, find_issue_type, issue_types, measure_columns
from framedex.storage.media_rows import index_schema, judged_columns, media_schema


@pytest.mark.parametrize("name", ["", "Blur", "low contrast", "1st", "a-b", "a" * 64, 3, None])
def test_issue_type__invalid_names(name: Any) -> None:
    """A name becomes part of column names, so it has lower-case letters, digits and underscores only."""
    with pytest.raises(InvalidInput, match="cannot name an issue type"):
        IssueType(name, "nothing")


def test_issue_type__one_value() -> None:
    """A value is measured or derived, not both; its column is named after the type by default."""
    derived = Derived(("width",), lambda width: width)
    with pytest.raises(InvalidInput, match="measured or derived, not both"):
        IssueType("both", "nothing", measure=lambda _image: 0.0, derived=derived)
    assert IssueType("narrow", "width", 9, derived=derived).column == "value_narrow"
    assert IssueType("dim", "brightness", 0.2, column="highlights").column == "highlights"
    assert IssueType("none", "nothing").column is None


def test_issue_types__columns() -> None:
    """The columns of each type are in one of two schemas: measures of images, or index columns."""
    media, index = set(media_schema(3).names), set(index_schema().names)
    for issue in issue_types().values():
        assert issue.confidence_column in index
        assert set(issue.computed_columns) <= index
        assert issue.column is None or issue.column in (media if issue.measure else index)
    assert set(measure_columns()) <= media
    assert len(judged_columns()) == len(set(judged_columns()))


@pytest.mark.parametrize("name", ["blurry", "", None, 3, ["blur"]])
def test_find_issue_type__unknown(name: Any) -> None:
    """An unknown name is refused with the list of known names."""
    assert find_issue_type("blur").column == "acutance"
    with pytest.raises(InvalidInput, match=r"no issue .*; there are: blur, bright, "):
        find_issue_type(name)
