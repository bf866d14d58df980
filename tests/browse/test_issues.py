"""Quality issues of media."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framedex import InvalidInput
from framedex.browse.issues import issue_summaries, issues
from framedex.issue_types import find_issue_type, issue_types
from framedex.storage import tables
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.table_versions import Table
from tests.gallery import BROKEN, COPIES, NAMES, NEAR, Gallery
from tests.inside import stored_media

ISSUE_NAMES = sorted(issue_types())


def rewritten(gallery: Gallery, folder: Path, change: Callable[[pa.Table], pa.Table]) -> Media:
    """Return the gallery's media from a changed copy of its table."""
    media = stored_media(gallery.dataset)
    rows = change(media.table.scan(media.table.schema.names).read_all())
    version = tables.append(folder / "media.lance", rows.to_batches(), rows.schema)
    return replace(media, table=Table(folder / "media.lance", version))


def test_issues__columns(gallery: Gallery) -> None:
    """The table has one row per issue, with these columns."""
    table = gallery.dataset.issues()
    assert table.schema == pa.schema(
        {
            "media_id": pa.string(),
            "file_name": pa.string(),
            "path": pa.string(),
            "issue_type": pa.string(),
            "value": pa.float32(),
            "threshold": pa.float32(),
            "percentile": pa.float32(),
            "confidence": pa.float32(),
            "reason": pa.string(),
            "suggested_label": pa.string(),
        }
    )
    assert set(table["issue_type"].to_pylist()) <= set(ISSUE_NAMES)


def test_issues__paths_are_columns_of_media(gallery: Gallery) -> None:
    """Issues and media have the same columns for file names and paths."""
    columns = ["media_id", "file_name", "path"]
    paths = {row["media_id"]: row for row in gallery.dataset.to_arrow(columns).to_pylist()}
    rows = gallery.dataset.issues().select(columns).to_pylist()
    assert [paths[row["media_id"]] for row in rows] == rows
    assert "bad/dark.png" in {row["path"] for row in rows}


def test_issues__what_was_planted(gallery: Gallery) -> None:
    """The planted defects are found in their images."""
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


@pytest.mark.slow
def test_issues__values(gallery: Gallery) -> None:
    """A measured issue has a value beyond its threshold; a broken file has a reason instead."""
    for row in gallery.dataset.issues().to_pylist():
        if row["issue_type"] == "corrupted":
            assert (row["value"], row["threshold"], row["percentile"], row["confidence"]) == (None, None, None, 1)
            assert row["reason"]
        else:
            assert row["reason"] is None
            assert row["value"] is not None
            assert row["threshold"] is not None
    reasons = {row["file_name"]: row["reason"] for row in gallery.dataset.issues("corrupted").to_pylist()}
    assert reasons["empty.jpg"] == "the file is empty"
    assert "not an image" in reasons["text.png"]
    assert "% of the image is there" in reasons["truncated.jpg"]


def test_issues__percentile(gallery: Gallery) -> None:
    """A percentile is the rank among all measured media, in the issue's direction, also with a filter."""
    found = gallery.dataset.issues("dark")
    assert found.to_pylist()[0]["percentile"] == 100
    assert gallery.dataset.where([{"issues": {"op": "issue", "value": "dark"}}]).issues("dark").equals(found)
    percentiles = gallery.dataset.issues("grayscale")["percentile"].to_pylist()
    assert percentiles == sorted(percentiles, reverse=True)
    assert percentiles[0] == 100
    measured = len(NAMES) - len(BROKEN)
    copies = len(COPIES) / 2 - 0.5  # they share the middle of the highest ranks
    assert gallery.dataset.issues("duplicates")["percentile"][0].as_py() == pytest.approx(
        100 * (measured - 1 - copies) / (measured - 1)
    )


def test_issues__of_an_older_index(gallery: Gallery, tmp_path: Path) -> None:
    """An issue whose column the dataset lacks, because its index is older, has no rows."""
    older = rewritten(gallery, tmp_path, lambda rows: rows.drop_columns(["issue_dark"]))
    assert issues(older, EVERYTHING, kinds=["dark"]).num_rows == 0
    counts = {summary.issue_type: summary.count for summary in issue_summaries(older, EVERYTHING)}
    assert counts["dark"] == 0
    assert counts["corrupted"] == len(BROKEN)


def with_columns(rows: pa.Table, **columns: pa.Array) -> pa.Table:
    """Return rows with further columns, which replace those of the same names."""
    kept = rows.drop_columns([name for name in columns if name in rows.column_names])
    for name, values in columns.items():
        kept = kept.append_column(name, values)
    return kept


@pytest.mark.slow
def test_issues__suggested_label(gallery: Gallery, tmp_path: Path) -> None:
    """Only mislabelled media have a suggested label, if the dataset has suggestions at all."""
    labels = pa.array(["cat"] * len(NAMES))
    media = rewritten(gallery, tmp_path, lambda rows: with_columns(rows, suggested_label=labels))
    others = issues(media, EVERYTHING, kinds=[name for name in ISSUE_NAMES if name != "mislabels"])
    assert others.num_rows > 0
    assert others["suggested_label"].null_count == others.num_rows


@pytest.mark.parametrize("issue", ["mislabels"])
def test_issues__mislabels(gallery: Gallery, tmp_path: Path, issue: str) -> None:
    """A mislabelled image has its value, its percentile and the suggested label."""
    first = [None] * (len(NAMES) - 1)
    values = {str(find_issue_type(issue).column): pa.array([0.5, *first], pa.float32())}
    values |= {f"issue_{issue}": pa.array([0.75, *first], pa.float32()), "suggested_label": pa.array(["cat", *first])}
    media = rewritten(gallery, tmp_path, lambda rows: with_columns(rows, **values))
    (row,) = issues(media, EVERYTHING, kinds=[issue]).to_pylist()
    assert (row["suggested_label"], row["value"], row["percentile"], row["confidence"]) == ("cat", 0.5, 100, 0.75)


@pytest.mark.slow
def test_issues__of_one_kind(gallery: Gallery) -> None:
    """Issues can be limited to one kind and to a number of the worst."""
    whole = gallery.dataset.issues("duplicates")
    assert set(whole["issue_type"].to_pylist()) == {"duplicates"}
    assert gallery.dataset.issues("duplicates", limit=2).equals(whole.slice(0, 2))
    assert gallery.dataset.issues("duplicates", limit=0).num_rows == 0
    limited = gallery.dataset.issues(limit=1)["issue_type"].to_pylist()
    assert limited == sorted(set(gallery.dataset.issues()["issue_type"].to_pylist()))


def test_issues__unknown(gallery: Gallery) -> None:
    """The error for an unknown issue lists the valid ones."""
    with pytest.raises(InvalidInput, match=rf"'blurry'; there are: {', '.join(ISSUE_NAMES)}"):
        gallery.dataset.issues("blurry")


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
def test_issues__unusable_limit(gallery: Gallery, limit: Any) -> None:
    """A limit is a count."""
    with pytest.raises(InvalidInput, match="limit must be a whole number"):
        gallery.dataset.issues(limit=limit)


@pytest.mark.slow
def test_issues__of_a_view(gallery: Gallery) -> None:
    """A view has the issues of its media."""
    view = gallery.dataset.where([{"issues": {"op": "issue", "value": "bright"}}])
    assert set(view.issues()["file_name"].to_pylist()) == {"bright.png"}
    assert {s.issue_type: s.count for s in view.issue_summaries() if s.count}["bright"] == 1


@pytest.mark.slow
def test_issue_summaries__agree_with_the_table(gallery: Gallery) -> None:
    """Each issue is counted, also those without rows."""
    table = gallery.dataset.issues()["issue_type"].to_pylist()
    summaries = gallery.dataset.where([]).issue_summaries()
    assert [summary.issue_type for summary in summaries] == ISSUE_NAMES
    assert {summary.issue_type: summary.count for summary in summaries} == {
        name: table.count(name) for name in ISSUE_NAMES
    }
    assert all(summary.meaning for summary in summaries)
