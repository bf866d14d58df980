"""Decisions that labels are right: these media have no issue about labels as long as they keep their labels."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.operations.starting import delete_dataset
from framedex.records import LabelDecision
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS
from tests.growth import columns_of, part
from tests.inside import context_of, stored_media
from tests.laws import examples
from tests.prepared import prepared
from tests.stored import assert_judged
from tests.tuning import Tuning, tuned

ROWS = 90
WRONG = (4, 25, 26, 40)  # rows whose labels do not fit


def crowds(rows: int = ROWS) -> Any:
    """Return rows of three tight crowds in turn."""
    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(3, 8)))
    return unit(centres[np.arange(rows) % 3] + 0.05 * rng.normal(size=(rows, 8)))


def label_of(row: int) -> str:
    return f"crowd {(row + (row in WRONG)) % 3}"


def crowd_part(start: int, stop: int) -> Any:
    return part(crowds()[start:stop], start, label=[label_of(row) for row in range(start, stop)])


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of three crowds, each with its label but for some rows."""
    return prepared(workspace, "d", crowd_part(0, 60))


def listed(dataset: Dataset, issue: str = "mislabels") -> set[str]:
    return set(dataset.issues(issue)["media_id"].to_pylist())


def wrong_ids(dataset: Dataset) -> list[str]:
    ids = dataset.where([]).media_ids()
    return [ids[row] for row in WRONG]


@pytest.mark.slow
def test_label_is_right__leaves_the_issue_at_once(dataset: Dataset) -> None:
    """Decided media are no issue and have no suggestion; others stay, and the values are kept."""
    wrong = wrong_ids(dataset)
    assert listed(dataset) == set(wrong)
    before = columns_of(dataset, ["label_support", "label_distance"])
    decision = dataset.label_is_right(wrong[:2])
    assert listed(dataset) == set(wrong[2:])
    assert not set(wrong[:2]) & listed(dataset, "label_outlier")
    assert dataset.where([vql.issues("mislabels")]).media_ids() == dataset.issues("mislabels")["media_id"].to_pylist()
    assert columns_of(dataset, ["label_support", "label_distance"]) == before
    suggested = dict(zip(*columns_of(dataset, ["media_id", "suggested_label"]).values(), strict=True))
    assert [suggested[each] for each in wrong[:2]] == [None, None]
    assert suggested[wrong[2]] is not None
    assert decision.labels == [[label_of(row)] for row in WRONG[:2]]
    assert (decision.media_ids, decision.decided_by) == (wrong[:2], SETTINGS.user)
    assert dataset.label_decisions() == [decision]


def test_label_is_right__of_a_view(dataset: Dataset) -> None:
    """All that is listed can be decided by a filter; then nothing is listed."""
    dataset.label_is_right(dataset.where([vql.issues("mislabels")]))
    assert listed(dataset) == set()


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5)),
        lambda dataset: dataset.add_media(crowd_part(60, 90)),
        lambda dataset: dataset.delete_media(dataset.where([]).media_ids()[:2]),
        lambda dataset: dataset.set_labels(dataset.where([]).media_ids()[7], "crowd 0"),
        lambda dataset: dataset.set_limits(mislabels=0.25),
        lambda dataset: dataset.tag(dataset.where([]), "seen"),
    ],
)
@pytest.mark.slow
@pytest.mark.only_soak
def test_label_is_right__holds_after_changes(dataset: Dataset, change: Callable[[Dataset], object]) -> None:
    """What changes the issues of others does not bring decided media back; a withdrawal does."""
    wrong = wrong_ids(dataset)
    decision = dataset.label_is_right(wrong[1])
    change(dataset)
    assert listed(dataset) >= {wrong[2], wrong[3]}
    assert wrong[1] not in listed(dataset)
    dataset.withdraw_decision(decision.decision_id)
    assert wrong[1] in listed(dataset)
    assert dataset.label_decisions() == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_label_is_right__is_part_of_the_generation(workspace: Workspace, dataset: Dataset) -> None:
    """Snapshots, restores and clones carry the decisions and their effect."""
    wrong = wrong_ids(dataset)
    before = dataset.snapshot("before")
    decision = dataset.label_is_right(wrong[0])
    after = dataset.snapshot("after")
    clone = dataset.clone()
    assert clone.label_decisions() == [decision]
    clone.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
    assert listed(clone) == set(wrong[1:])
    dataset.restore(before)
    assert (dataset.label_decisions(), listed(dataset)) == ([], set(wrong))
    dataset.restore(after)
    assert (dataset.label_decisions(), listed(dataset)) == ([decision], set(wrong[1:]))


@pytest.mark.slow
def test_label_is_right__is_about_the_labels_of_that_time(dataset: Dataset) -> None:
    """Other labels are judged; the same labels, in any order, are right."""
    wrong = wrong_ids(dataset)[0]
    dataset.set_labels(wrong, ["crowd 2", "crowd 0"])
    dataset.label_is_right(wrong)
    assert wrong not in listed(dataset)
    dataset.set_labels(wrong, ["crowd 2"])
    assert wrong in listed(dataset)
    dataset.set_labels(wrong, ["crowd 0", "crowd 2"])
    assert wrong not in listed(dataset)


@pytest.mark.slow
def test_label_is_right__decided_media_vote(dataset: Dataset) -> None:
    """A decision changes nothing for the neighbours of the media."""
    names = ["media_id", "label_support", "label_distance", "issue_mislabels", "issue_label_outlier"]
    decided = wrong_ids(dataset)[0]
    before = columns_of(dataset, names)
    dataset.label_is_right(decided)
    dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
    after = columns_of(dataset, names)
    row = before["media_id"].index(decided)
    for name in names[1:]:
        mine, theirs = (np.delete(np.array(each[name], dtype=float), row) for each in (before, after))
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


@pytest.mark.slow
def test_label_is_right__what_cannot_be(workspace: Workspace, dataset: Dataset) -> None:
    """Media without labels, unknown media and empty selections are refused, and nothing changes."""
    ids = dataset.where([]).media_ids()
    dataset.set_labels(ids[0], [])
    head = stored_media(dataset).generation.id
    with pytest.raises(InvalidInput, match=f"media '{ids[0]}' has no labels"):
        dataset.label_is_right(ids[:2])
    with pytest.raises(InvalidInput, match="the selection has no media"):
        dataset.label_is_right(dataset.where([vql.labels("nothing")]))
    with pytest.raises(NotFound, match="no media 'x'"):
        dataset.label_is_right("x")
    with pytest.raises(NotFound, match="no decision 'x'"):
        dataset.withdraw_decision("x")
    with pytest.raises(InvalidInput, match="objects"):
        dataset.label_is_right(dataset.objects)
    assert stored_media(dataset).generation.id == head


def test_label_is_right__writes_few_values(dataset: Dataset, tuning: Tuning) -> None:
    """A decision about one image of many writes the values of this image alone, and so does its withdrawal."""
    tuning.judged_rows = 0
    decision = dataset.label_is_right(wrong_ids(dataset)[0])
    for withdrawn in (False, True):
        if withdrawn:
            dataset.withdraw_decision(decision.decision_id)
        overlay = stored_media(dataset).table.overlay
        assert len(overlay.values("issue_mislabels")[0]) == 1
    assert listed(dataset) == set(wrong_ids(dataset))


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("limit", [0, 20_000])
def test_label_is_right__undone_and_redone(dataset: Dataset, tuning: Tuning, limit: int) -> None:
    """A decision goes with its effect, and the same one returns, in its place among the others."""
    tuning.judged_rows = limit
    names = ["issue_mislabels", "issue_label_outlier", "suggested_label"]
    wrong = wrong_ids(dataset)
    states = [(dataset.label_decisions(), columns_of(dataset, names))]
    first = dataset.label_is_right(wrong[:2])
    states.append((dataset.label_decisions(), columns_of(dataset, names)))
    second = dataset.label_is_right(wrong[1:3])
    states.append((dataset.label_decisions(), columns_of(dataset, names)))
    dataset.withdraw_decision(first.decision_id)
    states.append((dataset.label_decisions(), columns_of(dataset, names)))
    assert [each[0] for each in states] == [[], [first], [first, second], [second]]
    for _ in range(2):
        for number in (2, 1, 0):
            dataset.undo()
            assert (dataset.label_decisions(), columns_of(dataset, names)) == states[number]
        for number in (1, 2, 3):
            dataset.redo()
            assert (dataset.label_decisions(), columns_of(dataset, names)) == states[number]
    assert [(each.operation, each.n_media) for each in dataset.journal()] == [
        ("withdraw_decision", 2), ("label_is_right", 2), ("label_is_right", 2),
    ]  # fmt: skip


@pytest.mark.slow
def test_label_is_right__undone_after_later_edits(dataset: Dataset) -> None:
    """A decision that was withdrawn meanwhile, or whose media are gone, is refused; other labels are judged."""
    wrong = wrong_ids(dataset)
    decision = dataset.label_is_right(wrong[:3])
    dataset.withdraw_decision(decision.decision_id)
    with pytest.raises(
        Conflict, match=r"step 1 \(label_is_right\) cannot be undone: the decision was withdrawn meanwhile"
    ):
        dataset.undo(1)
    dataset.set_labels(wrong[0], ["crowd 0", "crowd 2"])
    before = listed(dataset)
    dataset.undo(2)
    assert dataset.label_decisions() == [decision]
    assert listed(dataset) == before - set(wrong[1:3])
    dataset.redo(2)
    dataset.delete_media(wrong[1])
    with pytest.raises(Conflict, match=r"step 2 .* cannot be undone: the dataset has 1 of its 3 media no longer"):
        dataset.undo(2)
    assert dataset.label_decisions() == []
    assert dataset.check().findings == []


def test_label_is_right__withdrawn_after_a_deletion(dataset: Dataset) -> None:
    """A decision returns with media that were deleted before it was withdrawn."""
    wrong = wrong_ids(dataset)
    decision = dataset.label_is_right(wrong[:2])
    dataset.delete_media(wrong[0])
    dataset.withdraw_decision(decision.decision_id)
    assert wrong[1] in listed(dataset)
    dataset.undo()
    assert wrong[1] not in listed(dataset)
    assert [each.decision_id for each in dataset.label_decisions()] == [decision.decision_id]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset whose clones are edited."""
    with Workspace(tmp_path_factory.mktemp("decisions") / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("source", crowd_part(0, 75))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("right", "right", "right", "withdraw", "label", "label", "delete", "reindex")),
        st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=8, unique=True),
        st.sampled_from((["crowd 0"], ["crowd 1"], ["crowd 0", "crowd 1"])),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 20_000])
@examples(8)
@given(steps=STEPS)
def test_label_is_right__any_sequence(source: Dataset, limit: int, steps: list[tuple[str, list[int], Any]]) -> None:
    """After any edits, issues are those of a recomputation, without the media that a list of decisions names."""
    dataset = source.clone()
    decisions: list[LabelDecision] = []
    with tuned() as tuning:
        tuning.judged_rows = limit
        tuning.written_rows = limit
        for kind, places, labels in steps:
            ids = dataset.where([]).media_ids()
            chosen = [ids[place % len(ids)] for place in places]
            if kind == "right":
                decisions.append(dataset.label_is_right(list(dict.fromkeys(chosen))))
            elif kind == "withdraw" and decisions:
                dataset.withdraw_decision(decisions.pop(places[0] % len(decisions)).decision_id)
            elif kind == "label":
                dataset.set_labels(chosen, labels)
            elif kind == "delete":
                dataset.delete_media(list(dict.fromkeys(chosen))[:3])
            elif kind == "reindex":
                dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
            rows = dataset.to_arrow(["media_id", "labels"]).to_pylist()
            present = {row["media_id"]: set(row["labels"]) for row in rows}
            right = {
                media_id
                for decision in decisions
                for media_id, each in zip(decision.media_ids, decision.labels, strict=True)
                if present.get(media_id) == set(each)
            }
            assert_judged(dataset, right)
            assert dataset.label_decisions() == decisions
    delete_dataset(context_of(dataset), dataset.id)
