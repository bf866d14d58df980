"""Comparisons of states equal set differences of their tables, whatever happened between; trends count each state."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, InvalidInput, NotFound, Workspace
from framedex.api.comparison import CHANGES, StateComparison
from framedex.export.table_columns import flag_name
from framedex.issue_types import issue_types
from framedex.records import Snapshot
from tests.gallery import ANIMALS, SETTINGS, TOWNS, make_gallery
from tests.growth import THRESHOLDS, families, part
from tests.image_files import photo, write
from tests.laws import examples
from tests.prepared import prepared

TYPES = list(issue_types())
COLUMNS = ["media_id", "image_filename", "labels", "tags", "caption", *map(flag_name, TYPES)]


def rows_of(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by id, with what a comparison looks at."""
    return {
        row["media_id"]: {
            "image_filename": row["image_filename"],
            "labels": row["labels"] or [],
            "tags": row["tags"] or [],
            "caption": [] if row["caption"] is None else [row["caption"]],
            "issues": [each for each in TYPES if row[flag_name(each)]],
        }
        for row in table.to_pylist()
    }


def expected(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows of a comparison in plain Python; replaced files are left out."""
    found: list[tuple[Any, ...]] = []
    found += [(each, "added", None, None) for each in after if each not in before]
    found += [(each, "removed", None, None) for each in before if each not in after]
    both = [each for each in after if each in before]
    for change, column in (("relabelled", "labels"), ("retagged", "tags"), ("recaptioned", "caption")):
        pairs = [(each, before[each][column], after[each][column]) for each in both]
        found += [(each, change, old, new) for each, old, new in pairs if old != new]
    for each in both:
        old, new = before[each]["issues"], after[each]["issues"]
        if gained := [issue for issue in new if issue not in old]:
            found.append((each, "newly_flagged", None, gained))
        if lost := [issue for issue in old if issue not in new]:
            found.append((each, "resolved", lost, None))
    return found


def shown(comparison: StateComparison) -> list[tuple[Any, ...]]:
    """Return the rows of a comparison but for replaced files."""
    rows = comparison.to_arrow().to_pylist()
    return [
        (row["media_id"], row["change"], row["before"], row["after"]) for row in rows if row["change"] != "replaced"
    ]


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows sorted by id and change."""
    return sorted(rows, key=lambda row: row[:2])


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of the gallery."""
    make_gallery(tmp_path / "gallery")
    return prepared(workspace, "pets", tmp_path / "gallery")


@pytest.mark.slow
@pytest.mark.only_soak
def test_compare__names_each_change(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """Each kind of change is found, with what was before and after."""
    ids = {row["path"]: row["media_id"] for row in dataset.view.rows(["path", "media_id"])}
    one, two, three, gone = (ids[each] for each in (ANIMALS[0], TOWNS[0], TOWNS[1], TOWNS[2]))
    before = dataset.snapshot("before")
    dataset.set_labels([one], ["cat", "indoor"])
    dataset.tag([two, three], "keep")
    dataset.set_captions({two: "A town"})
    dataset.delete_media(gone)
    (tmp_path / "gallery" / TOWNS[2]).unlink()
    write(tmp_path / "gallery" / TOWNS[3], photo(999))
    write(tmp_path / "gallery" / "new.jpg", photo(998))
    dataset.add_media(tmp_path / "gallery")
    found = dataset.compare(before)
    rows = {(row["change"], row["media_id"]): row for row in found.to_arrow().to_pylist()}
    assert rows["relabelled", one]["after"] == ["cat", "indoor"]
    assert rows["retagged", two]["before"] == []
    assert rows["retagged", two]["after"] == ["keep"]
    assert rows["recaptioned", two]["after"] == ["A town"]
    assert ("removed", gone) in rows
    assert ("replaced", ids[TOWNS[3]]) in rows
    assert (
        found.counts["replaced"] == found.counts["added"] == found.counts["removed"] == found.counts["relabelled"] == 1
    )
    assert found.counts["retagged"] == 2
    assert [row["image_filename"] for row in found.to_arrow("added").to_pylist()] == ["new.jpg"]
    assert found.to_arrow("retagged").num_rows == 2
    assert found.view("retagged").media_ids() == [two, three]
    assert found.view("removed").media_ids() == [gone]
    assert found.view("removed").to_arrow(["image_filename"])[0].to_pylist() == [TOWNS[2]]
    assert repr(found).startswith("<framedex.StateComparison: 1 added, 1 removed")
    back = dataset.compare("head", before)
    assert back.counts["added"] == back.counts["removed"] == 1
    assert back.counts["newly_flagged"] == found.counts["resolved"]


def test_compare__states_by_name(dataset: Dataset) -> None:
    """A state is a snapshot by its record, id or name, the current one, a kept generation, or the present state."""
    first = dataset.snapshot("first")
    generation = dataset.generation
    dataset.tag(dataset.view.media_ids()[:3], "keep")
    states: list[Snapshot | str] = [first, first.snapshot_id, "first", "current", generation]
    for state in states:
        assert dataset.compare(state).counts["retagged"] == 3
        assert not dataset.compare(state, first).to_arrow().num_rows
    assert repr(dataset.compare("head")) == "<framedex.StateComparison: nothing differs>"
    assert dataset.compare("head", "head").view("added").count() == 0
    for wrong in ("third", "00000000-0000-4000-8000-000000000000", ""):
        with pytest.raises(NotFound, match=r"no snapshot|freed"):
            dataset.compare(wrong)
    dataset.snapshot("first")
    with pytest.raises(NotFound, match="2 snapshots are named 'first'"):
        dataset.compare("first")
    with pytest.raises(InvalidInput, match="a change is one of added, removed"):
        dataset.compare("current").to_arrow("changed")  # type: ignore[arg-type] # what users could write


@pytest.mark.slow
@pytest.mark.only_soak
def test_compare__stays_as_it_is(dataset: Dataset) -> None:
    """A comparison does not follow later edits; its views leave out what is gone, and can be edited."""
    first = dataset.snapshot("first")
    ids = dataset.view.media_ids()[:4]
    dataset.tag(ids, "keep")
    found = dataset.compare(first)
    dataset.untag(ids[:2], "keep")
    dataset.delete_media(ids[0])
    assert found.counts["retagged"] == 4
    assert found.view("retagged").media_ids() == ids[1:]
    dataset.tag(found.view("retagged"), "seen")
    assert dataset.compare(first).counts["retagged"] == 3


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["label", "tag", "untag", "caption", "delete", "add", "limit", "restore"]),
        st.integers(0, 40),
        st.integers(1, 6),
    ),
    max_size=6,
)


@pytest.mark.slow
@examples(12)
@given(EDITS, EDITS)
def test_compare__law(tmp_path_factory: pytest.TempPathFactory, first: Any, second: Any) -> None:
    """Between any two states, a comparison is the set difference of their tables in plain Python."""
    rows = families(60)
    labels = [["a"] if number % 3 else ["b", "c"] for number in range(40)]
    with Workspace(tmp_path_factory.mktemp("law") / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", part(rows[:40], labels=labels), thresholds=THRESHOLDS)
        start = dataset.snapshot("start")
        added = 40
        states = []
        for edits in (first, second):
            for kind, at, count in edits:
                ids = dataset.view.media_ids()[at : at + count]
                match kind:
                    case "label" if ids:
                        dataset.set_labels(ids, [f"l{count}"] if count % 2 else [])
                    case "tag" if ids:
                        dataset.tag(ids, f"t{count}")
                    case "untag" if ids and dataset.tags():
                        dataset.untag(ids, dataset.tags()[0].name)
                    case "caption" if ids:
                        dataset.set_captions(dict.fromkeys(ids, f"caption {at}"))
                    case "delete" if ids and dataset.view.count() > 10:
                        dataset.delete_media(ids)
                    case "add" if added < 60:
                        dataset.add_media(part(rows[added : added + count], added))
                        added += count
                    case "limit":
                        dataset.set_limits(outliers=0.1 * count)
                    case "restore":
                        dataset.restore(start)
            states.append((dataset.generation, rows_of(dataset.to_arrow(COLUMNS))))
        (before, of_before), (after, of_after) = states
        assert in_order(shown(dataset.compare(before, after))) == in_order(expected(of_before, of_after))
        assert in_order(shown(dataset.compare(after, before))) == in_order(expected(of_after, of_before))


def test_compare__counts_all_changes(dataset: Dataset) -> None:
    """Counts have each change, also those that did not happen."""
    assert set(dataset.compare("current").counts) == set(CHANGES)


@pytest.mark.slow
def test_trends__count_each_state(dataset: Dataset) -> None:
    """There is a point for each snapshot, oldest first, and one for the present state, with its issues and labels."""
    dataset.snapshot("second")
    ids = dataset.view.media_ids()
    dataset.delete_media(ids[:2])
    dataset.set_labels(ids[2:4], ["new"])
    points = dataset.trends()
    assert [each.name for each in points][1:] == ["second", "head"]
    assert points[-1].state == "head"
    assert [each.n_images for each in points] == [len(ids), len(ids), len(ids) - 2]
    assert points[-1].issues == {each.issue_type: each.count for each in dataset.view.issue_summaries()}
    assert points[-1].labels["new"] == 2
    assert "new" not in points[0].labels
    assert dataset.trends() == points
