"""Counts of rows that meet conditions are exact after any changes, and after an addition read the new rows alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, Workspace, vql
from framedex.operations import row_counts
from framedex.operations.row_counts import count_rows
from framedex.search.conditions import condition_of
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.vql import parse
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.inside import context_of, stored_media
from tests.laws import examples

ROWS = families(120)
FILTERS = [
    vql.labels("a"),
    ~vql.labels("a") & vql.file_name("contains", "1"),
    vql.issues("outliers", confidence_min=0.1),
    vql.uniqueness(0.2),
    vql.tags("seen"),
]
CHANGES = st.lists(st.sampled_from(["add", "add", "add", "label", "tag", "delete", "reindex", "restore"]), max_size=6)


def block(start: int, rows: int) -> object:
    labels = [["a"] if row % 3 else ["b"] for row in range(start, start + rows)]
    return part(ROWS[start : start + rows], start, labels=labels)


def conditions(media: Media) -> list[Condition]:
    known = [each for each in FILTERS if "tags" in media.table.schema.names or each is not FILTERS[-1]]
    return [condition_of(media, parse([each])) for each in known]


def agrees(dataset: Dataset) -> None:
    """Check that the counts are those of a count of all rows."""
    media = stored_media(dataset)
    asked = conditions(media)
    assert count_rows(context_of(dataset), media, asked) == media.counts(asked) == [media.count(each) for each in asked]


@pytest.mark.slow
@examples(10)
@given(CHANGES)
def test_count_rows__after_any_changes(tmp_path_factory: pytest.TempPathFactory, changes: list[str]) -> None:
    """Whatever changed since the last count, a count is that of all rows."""
    with Workspace(tmp_path_factory.mktemp("counts") / "ws", settings=SETTINGS) as workspace:
        dataset, used = workspace.create_dataset("d", block(0, 40)), 40
        kept = dataset.snapshot()
        for change in changes:
            agrees(dataset)
            ids = dataset.view.ids
            match change:
                case "add":
                    dataset.add_media(block(used, 4))
                    used += 4
                case "label":
                    dataset.set_labels(ids[used % len(ids)], ["a", "c"])
                case "tag":
                    dataset.tag(ids[3:9], "seen")
                case "delete":
                    dataset.delete_media(ids[-1])
                case "reindex":
                    dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
                case "restore":
                    dataset.restore(kept)
        agrees(dataset)


def test_count_rows__of_appended_rows(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an addition the columns of the index are read in full, and of the others only the new rows."""
    dataset = workspace.create_dataset("d", block(0, 80))
    agrees(dataset)
    dataset.add_media(block(80, 5))
    media, counted = stored_media(dataset), list[int]()
    counts, appended = Media.counts, row_counts.count_block

    def all_rows(media: Media, asked: Sequence[Condition]) -> list[int]:
        counted.append(len(asked))
        return counts(media, asked)

    def new_rows(*arguments: object) -> list[int]:
        assert len(arguments[3]) == 5  # type: ignore[arg-type] # the ids of the rows
        counted.append(-len(arguments[2]))  # type: ignore[arg-type] # the conditions
        return appended(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Media, "counts", all_rows)
    monkeypatch.setattr(row_counts, "count_block", new_rows)
    asked = conditions(media)
    first = count_rows(context_of(dataset), media, asked)
    assert counted == [-2, 2]
    assert count_rows(context_of(dataset), media, asked) == first
    assert counted == [-2, 2]  # nothing is counted twice
    monkeypatch.undo()
    agrees(dataset)
