"""Deletions of few media: they lead to the same values as deletions that compute the columns of all rows."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, Workspace
from framedex.jobs import remove as remove_jobs
from framedex.jobs.edits import removal
from framedex.jobs.index.columns import read_indexed_rows
from framedex.operations.starting import delete_dataset
from framedex.operations.vacuum import vacuum
from framedex.storage.overlay import REMOVED
from framedex.storage.row_numbers import RowNumbers
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS
from tests.growth import part
from tests.inside import context_of, stored_media
from tests.laws import examples
from tests.prepared import prepared
from tests.stored import JUDGED, assert_judged
from tests.tuning import Tuning, tuned

ROWS = 400
LEFT_OUT = {"media_id", "embedding", "neighbours", "neighbour_similarity", "original", "cell", "tagged_at", *JUDGED}


def vectors() -> Any:
    """Return rows of loose groups, some of them copies and some nearly so."""
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(ROWS // 8, 12))
    rows = unit(centres[rng.integers(len(centres), size=ROWS)] + 0.25 * rng.normal(size=(ROWS, 12)))
    some = rng.choice(ROWS, ROWS // 5, replace=False)
    rows[some[: ROWS // 10]] = rows[some[ROWS // 10 :]]
    near = rng.choice(ROWS, ROWS // 20, replace=False)
    rows[near] = unit(rows[(near + 1) % ROWS] + 0.02 * rng.normal(size=(len(near), 12)))
    return rows


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset whose clones are edited."""
    rows = vectors()
    labels = [f"label {int(np.argmax(np.abs(row[:5])))}" for row in rows]
    with Workspace(tmp_path_factory.mktemp("removal") / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("source", part(rows, label=labels))


def state(dataset: Dataset) -> dict[str, Any]:
    """Return all that is stored of a dataset's media, with the neighbours as rows."""
    media = stored_media(dataset)
    table = media.table
    names = [each for each in table.schema.names if each not in LEFT_OUT]
    columns: dict[str, Any] = table.scan(names).read_all().to_pydict()
    indexed = read_indexed_rows(table, None, 0.0)
    columns["graph"] = indexed.graph.rows.tolist(), indexed.graph.similarity.round(5).tolist()
    columns["inverse"], columns["first"] = indexed.inverse.tolist(), indexed.first.tolist()
    columns["summary"] = media.generation.summary.settled, media.generation.summary.first_free
    return columns


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Check that two states are the same but for rounding."""
    assert left.keys() == right.keys()
    for name, value in left.items():
        if value != right[name]:
            mine, theirs = (np.array(each, dtype=np.float64) for each in (value, right[name]))
            np.testing.assert_allclose(mine, theirs, atol=1e-5, err_msg=name)


def delete(dataset: Dataset, places: list[int]) -> None:
    ids = dataset.where([]).media_ids()
    dataset.delete_media([ids[place] for place in sorted({place % len(ids) for place in places})])


KINDS = ["delete", "delete", "delete", "decide", "right", "tag", "label", "neighbours", "undo", "fold", "forget"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.lists(st.integers(0, ROWS - 1), min_size=2, max_size=12, unique=True),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@examples(10)
@given(STEPS)
@example([("delete", [8, 130, 392]), ("right", [318]), ("undo", [0, 1])])  # the statistics of labels go on to decide
def test_remove_few__does_what_a_deletion_of_many_does(source: Dataset, steps: list[tuple[str, list[int]]]) -> None:
    """Whatever is deleted and edited in between, the values, groups, neighbours and numbers are the same."""
    kept = source.snapshot("kept")
    few, all_ = source.clone(kept), source.clone(kept)
    for dataset, limit in ((few, 0), (all_, 10**9)):
        with tuned() as tuning:
            tuning.written_rows = limit
            tuning.rebuilt_rows = 0  # below which the graph is computed anew
            for kind, places in steps:
                apply(dataset, kind, places)
    assert_same(state(few), state(all_))
    assert_judged(few, right_ids(few))
    for dataset in (few, all_):
        delete_dataset(context_of(dataset), dataset.id)


def copied(dataset: Dataset) -> list[int]:
    """Return some rows of which others are copies."""
    indexed = read_indexed_rows(stored_media(dataset).table, None, 0.0)
    repeated = np.flatnonzero(np.bincount(indexed.inverse) > 1)
    rows: list[int] = indexed.positions[indexed.first[repeated]][:5].tolist()
    return rows


@pytest.mark.slow
@pytest.mark.only_soak
def test_remove_few__outlives_the_folding_of_edits(source: Dataset, tuning: Tuning) -> None:
    """Vacuum writes edited columns into their files; the neighbours name the same media as before, also later."""
    tuning.written_rows = 0
    few, other = source.clone(source.snapshot("kept")), source.clone()
    for dataset in (few, other):
        delete(dataset, copied(dataset))
    assert "original" in stored_media(few).table.overlay.columns
    vacuum(context_of(few), older_than_s=None)
    assert not stored_media(few).table.overlay.columns
    assert_same(state(few), state(other))
    for dataset in (few, other):
        delete(dataset, [1, 40, 200])
    assert_same(state(few), state(other))


@pytest.mark.slow
def test_remove_few__of_an_empty_dataset(workspace: Workspace) -> None:
    """Where all media are gone, deleting none is no error, and decisions about them can be withdrawn."""
    dataset = workspace.create_dataset("empty", part(np.eye(8)))
    ids = list(dataset.where([]).ids)
    decision = dataset.not_duplicates(ids[:2])
    dataset.delete_media(ids)
    dataset.delete_media([])
    dataset.withdraw_decision(decision.decision_id)
    assert (dataset.count(), dataset.duplicate_decisions()) == (0, [])
    with pytest.raises(Conflict, match="media of the decision"):
        dataset.undo()
    assert dataset.check().findings == []


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_remove_few__of_media_that_kept_others_apart(workspace: Workspace, tuning: Tuning, victim: int) -> None:
    """Where one of two media that are no duplicates is deleted, the other one joins the group of their copies again."""
    tuning.written_rows = 0
    tuning.rebuilt_rows = 0
    dataset = prepared(workspace, "copies", part(np.eye(8)[np.arange(24) % 6]))
    copies = list(dataset.where([]).ids)[::6]
    dataset.not_duplicates(copies[:2])
    dataset.delete_media(copies[victim])
    (group,) = [set(each.media_ids) for each in dataset.duplicates() if set(each.media_ids) & set(copies)]
    left = {each for each in copies if each != copies[victim]}
    assert group <= left
    assert len(group) == (3 if victim < 2 else 2)
    assert len(group & set(copies[:2])) == 1
    before = state(dataset)
    dataset.reindex(thresholds=(0.01, 0.03, 0.1, 0.3, 0.6))
    assert_same({"groups": before["duplicate_0"]}, {"groups": state(dataset)["duplicate_0"]})


@pytest.mark.slow
def test_remove_few__after_a_restore(source: Dataset, tuning: Tuning) -> None:
    """A restore brings back a row that was gone when the columns were read; its list changes with its neighbours."""
    tuning.written_rows = 0
    restored, other = source.clone(source.snapshot("kept")), source.clone()
    before = restored.snapshot("before")
    indexed = read_indexed_rows(stored_media(other).table, None, 0.0)
    row = 10
    near = indexed.positions[indexed.first[indexed.graph.rows[indexed.inverse[row]][0]]].tolist()
    delete(restored, [row])
    forget(restored)
    delete(restored, [350])
    restored.restore(before)
    for dataset in (restored, other):
        delete(dataset, [near])
    assert_same(state(restored), state(other))


def right_ids(dataset: Dataset) -> set[str]:
    """Return the ids of the media whose labels are those of a decision."""
    labels = {row["media_id"]: row["labels"] for row in dataset.to_arrow(["media_id", "labels"]).to_pylist()}
    return {
        media_id
        for decision in dataset.label_decisions()
        for media_id, each in zip(decision.media_ids, decision.labels, strict=True)
        if labels.get(media_id) == each
    }


def forget(dataset: Dataset) -> None:
    """Clear the cache of columns."""
    context_of(dataset).columns._columns.clear()


def apply(dataset: Dataset, kind: str, places: list[int]) -> None:
    ids = dataset.where([]).media_ids()
    chosen = [ids[place % len(ids)] for place in places]
    if kind == "delete":
        delete(dataset, places)
    elif kind == "decide":
        dataset.not_duplicates(list(dict.fromkeys(chosen))[:2])
    elif kind == "right":
        dataset.label_is_right(list(dict.fromkeys(chosen)))
    elif kind == "tag":
        dataset.tag(chosen, "seen")
    elif kind == "label":
        dataset.set_labels(chosen, "label 1")
    elif kind == "undo":
        with suppress(Conflict):
            dataset.undo()
    elif kind == "fold":
        vacuum(context_of(dataset), older_than_s=None)
    elif kind == "forget":  # as in a new process
        forget(dataset)
    else:  # an image with all that is near to it
        table = stored_media(dataset).table
        near = read_indexed_rows(table, None, 0.0)
        row = near.inverse[places[0] % len(near.inverse)]
        delete(dataset, near.positions[near.first[near.graph.rows[row][:4]]].tolist())


@pytest.mark.slow
@pytest.mark.only_soak
def test_remove_few__is_used(source: Dataset, tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion of few media of a large dataset takes the short way, and what others rely on goes on to work."""
    results: list[bool] = []
    original = removal.remove_few

    def watched(*args: Any) -> Any:
        result = original(*args)
        results.append(result is not None)
        return result

    monkeypatch.setattr(remove_jobs, "remove_few", watched)
    tuning.written_rows = 0
    clone = source.clone(source.snapshot("kept"))
    delete(clone, [3, 99, 300])
    delete(clone, [0])
    assert results == [True, True]
    assert clone.count() == ROWS - 4
    table = stored_media(clone).table
    assert RowNumbers.of(table.overlay).removed.tolist() == [0, 3, 99, 300]
    before = state(clone)
    tuning.few_deleted_rows = 0  # the long way goes on from there
    clone.tag(clone.where([]).media_ids()[:3], "seen")
    delete(clone, [7])
    assert not len(RowNumbers.of(stored_media(clone).table.overlay).removed)
    assert len(state(clone)["inverse"]) == len(before["inverse"]) - 1
    assert clone.similar(clone.where([]).media_ids()[5]).count() > 0
    clone.add_media(part(vectors()[:3] + 0.5, ROWS))
    assert clone.count() == ROWS - 2


@pytest.mark.slow
def test_remove_few__respects_decisions_about_labels(source: Dataset, tuning: Tuning) -> None:
    """Neighbours of deleted media are judged again, but not those whose labels are right by decision."""
    tuning.written_rows = 0
    dataset = source.clone()
    listed = (
        dataset.issues("label_outlier")["media_id"].to_pylist() + dataset.issues("mislabels")["media_id"].to_pylist()
    )
    dataset.label_is_right(listed)
    table = stored_media(dataset).table
    indexed, ids = read_indexed_rows(table, None, 0.0), dataset.where([]).media_ids()
    place = ids.index(listed[0])
    near = indexed.positions[indexed.first[indexed.graph.rows[indexed.inverse[place]][:3]]].tolist()
    dataset.delete_media(sorted({ids[row] for row in near} - {listed[0]}))
    assert listed[0] not in dataset.issues("label_outlier")["media_id"].to_pylist()
    assert_judged(dataset, right_ids(dataset))


@pytest.mark.slow
@pytest.mark.only_soak
def test_remove_few__then_folding(source: Dataset, tuning: Tuning) -> None:
    """Folding the edits of deletions, also of rows whose copies stay, leaves neighbours and copies as they were."""
    tuning.written_rows = 0
    clone = source.clone()
    delete(clone, [*copied(clone)[:3], 9])
    edited = stored_media(clone).table.overlay
    assert {"original", "neighbours", REMOVED} <= edited.columns
    before = state(clone)
    vacuum(context_of(clone), older_than_s=None)
    assert not stored_media(clone).table.overlay.layers
    assert_same(state(clone), before)
    delete(clone, [20, 30])
    vacuum(context_of(clone), older_than_s=None)
    assert clone.check().findings == []


def test_remove_few__keeps_snapshots(source: Dataset, tuning: Tuning) -> None:
    """A snapshot from before has all media, with their values."""
    tuning.written_rows = 0
    clone = source.clone(source.snapshot("kept"))
    kept, before = clone.snapshot("before"), state(clone)
    delete(clone, list(range(0, 100, 7)))
    assert clone.count() == ROWS - 15
    clone.restore(kept)
    after = state(clone)
    before.pop("summary")
    after.pop("summary")
    assert_same(after, before)


@pytest.mark.parametrize("removed", [[], [0], [5, 6, 9], [0, 1, 2], [9]])
def test_row_numbers__there_and_back(removed: list[int]) -> None:
    """Rows have the numbers that were not removed, in order, and numbers lead back to rows."""
    numbers = RowNumbers(np.array(removed, dtype=np.int64))
    left = np.array([each for each in range(10) if each not in removed], dtype=np.int32)
    rows = np.arange(len(left), dtype=np.int32)
    assert numbers.numbers(rows).tolist() == left.tolist()
    assert numbers.rows(left).tolist() == rows.tolist()
    assert numbers.rows(np.array([-1, *removed])).tolist() == [-1] * (1 + len(removed))
    assert numbers.rows(left).dtype == left.dtype
    many = np.tile(np.arange(-1, 12, dtype=np.int32), 400)
    assert numbers.rows(many).tolist() == 400 * numbers.rows(many[:13]).tolist()
    assert numbers.rows(many).dtype == many.dtype
