"""What is wrong with the media, and what repeats."""

from typing import Any

import pyarrow as pa
import pytest

from framedex import InvalidInput, Workspace
from framedex.records import DUPLICATE_LEVELS, IssueType
from tests.gallery import BROKEN, COPIES, NEAR, Gallery, embedded

ISSUE_NAMES = [
    "blur", "bright", "corrupted", "dark", "duplicates", "grayscale", "low_information", "odd_aspect_ratio",
    "odd_size", "outliers",
]  # fmt: skip


def test_issues__columns(gallery: Gallery) -> None:
    """The table has a row an issue, of these columns."""
    table = gallery.dataset.issues()
    assert table.schema == pa.schema(
        {
            "media_id": pa.string(),
            "file_name": pa.string(),
            "path": pa.string(),
            "issue_type": pa.string(),
            "value": pa.float32(),
            "threshold": pa.float32(),
            "confidence": pa.float32(),
            "reason": pa.string(),
        }
    )
    assert set(table["issue_type"].to_pylist()) <= set(ISSUE_NAMES) == set(IssueType)


def test_issues__what_was_planted(gallery: Gallery) -> None:
    """The pictures that were made bad are found, with what is wrong with them."""
    found = {(gallery.names([r["media_id"]])[0], r["issue_type"]) for r in gallery.dataset.issues().to_pylist()}
    assert found >= {
        ("bad/dark.png", "dark"),
        ("bad/bright.png", "bright"),
        ("bad/bright.png", "low_information"),
        ("bad/grey.png", "grayscale"),
        ("bad/wide.png", "odd_aspect_ratio"),
        *((name, "corrupted") for name in BROKEN),
        *((name, "duplicates") for name in [*COPIES, *NEAR[0], *NEAR[1]]),
    }


def test_issues__confidence_and_order(gallery: Gallery) -> None:
    """Confidences lie in 0 to 1; the rows are ordered by issue, and the worst comes first."""
    rows = gallery.dataset.issues().to_pylist()
    assert all(0 <= row["confidence"] <= 1 for row in rows)
    assert [(row["issue_type"], -row["confidence"]) for row in rows] == sorted(
        (row["issue_type"], -row["confidence"]) for row in rows
    )


def test_issues__values(gallery: Gallery) -> None:
    """A measured issue has a value beyond its threshold; a broken file has a reason instead."""
    for row in gallery.dataset.issues().to_pylist():
        if row["issue_type"] == "corrupted":
            assert (row["value"], row["threshold"], row["confidence"]) == (None, None, 1)
            assert row["reason"]
        else:
            assert row["reason"] is None
            assert row["value"] is not None
            assert row["threshold"] is not None
    reasons = {row["file_name"]: row["reason"] for row in gallery.dataset.issues("corrupted").to_pylist()}
    assert reasons["empty.jpg"] == "the file is empty"
    assert "not an image" in reasons["text.png"]
    assert "truncated" in reasons["truncated.jpg"]


def test_issues__of_one_kind(gallery: Gallery) -> None:
    """One kind of issue can be asked for, and so many of the worst."""
    whole = gallery.dataset.issues("duplicates")
    assert set(whole["issue_type"].to_pylist()) == {"duplicates"}
    assert gallery.dataset.issues("duplicates", limit=2).equals(whole.slice(0, 2))
    assert gallery.dataset.issues("duplicates", limit=0).num_rows == 0
    limited = gallery.dataset.issues(limit=1)["issue_type"].to_pylist()
    assert limited == sorted(set(gallery.dataset.issues()["issue_type"].to_pylist()))


def test_issues__unknown(gallery: Gallery) -> None:
    """An issue that does not exist is refused with the names of those that do."""
    with pytest.raises(InvalidInput, match=rf"'blurry'; there are: {', '.join(ISSUE_NAMES)}"):
        gallery.dataset.issues("blurry")


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
def test_issues__unusable_limit(gallery: Gallery, limit: Any) -> None:
    """A limit is a count."""
    with pytest.raises(InvalidInput, match="limit must be a whole number"):
        gallery.dataset.issues(limit=limit)
    with pytest.raises(InvalidInput, match="limit must be a whole number"):
        gallery.dataset.duplicates(limit=limit)


def test_issues__of_a_view(gallery: Gallery) -> None:
    """A view has the issues of its media."""
    view = gallery.dataset.where([{"issues": {"op": "issue", "value": "bright"}}])
    assert set(view.issues()["file_name"].to_pylist()) == {"bright.png"}
    assert {s.issue_type: s.count for s in view.issue_summaries() if s.count}[IssueType.BRIGHT] == 1


def test_issue_summaries__agree_with_the_table(gallery: Gallery) -> None:
    """Each issue is counted, also those that were not found."""
    table = gallery.dataset.issues()["issue_type"].to_pylist()
    summaries = gallery.dataset.where([]).issue_summaries()
    assert [summary.issue_type.value for summary in summaries] == ISSUE_NAMES
    assert {summary.issue_type: summary.count for summary in summaries} == {
        name: table.count(name) for name in ISSUE_NAMES
    }
    assert all(summary.meaning for summary in summaries)


def test_duplicates__groups(gallery: Gallery) -> None:
    """Copies and edits of one picture are a group; groups are ordered by size and name their members."""
    groups = gallery.dataset.duplicates()
    assert [sorted(gallery.names(group.media_ids)) for group in groups] == [sorted(COPIES), *map(sorted, NEAR)]
    assert [len(group.file_names) for group in groups] == [3, 2, 2]
    assert groups[0].similarity == 1
    assert all(0.96 <= group.similarity <= 1 and group.threshold == 0.96 for group in groups)
    assert len({group.group_id for group in groups}) == 3
    assert gallery.dataset.duplicates(limit=1) == groups[:1]


@pytest.mark.parametrize("level", DUPLICATE_LEVELS)
def test_duplicates__nested_levels(gallery: Gallery, level: float) -> None:
    """A group at a stricter level lies within one of each looser level."""
    looser = [set(group.media_ids) for group in gallery.dataset.duplicates(0.96)]
    for group in gallery.dataset.duplicates(level):
        assert group.threshold == level
        assert sum(set(group.media_ids) <= members for members in looser) == 1


@pytest.mark.parametrize(("asked", "used"), [(0, 0.96), (0.5, 0.96), (0.961, 0.97), (0.98, 0.98), (0.9999, 1), (1, 1)])
def test_duplicates__between_levels(gallery: Gallery, asked: float, used: float) -> None:
    """Between two levels the stricter one is used, and the groups say which."""
    groups = gallery.dataset.duplicates(asked)
    assert groups == gallery.dataset.duplicates(used)
    assert {group.threshold for group in groups} == {used}


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "0.96", None, True])
def test_duplicates__unusable_threshold(gallery: Gallery, threshold: Any) -> None:
    """A similarity lies in 0 to 1."""
    with pytest.raises(InvalidInput, match="similarity from 0 to 1"):
        gallery.dataset.duplicates(threshold)


def test_duplicates__of_a_view(gallery: Gallery) -> None:
    """A group of which a filter leaves one member is none."""
    view = gallery.dataset.where([{"labels": {"op": "is", "value": "animal"}}])
    assert view.duplicates() == []


def test_duplicates__of_given_embeddings(workspace: Workspace) -> None:
    """Groups are joined by pairs that are similar enough, whatever the encoder."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [0.98, 0.199], [0, 1], [0.0, 2.0]]))
    assert [group.file_names for group in dataset.duplicates(0.97)] == [["0.jpg", "1.jpg"], ["2.jpg", "3.jpg"]]
    assert [group.file_names for group in dataset.duplicates(0.99)] == [["2.jpg", "3.jpg"]]
