"""Decisions about duplicates: they hold at once and for good, until they are withdrawn."""

import threading
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace
from framedex.records import DUPLICATE_LEVELS, DatasetStatus
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.analysis.arrays import same_partition
from tests.gallery import SETTINGS
from tests.growth import GROUPS, columns_of, families, groups_of, ids_of, part, partition, summary_of
from tests.laws import examples
from tests.prepared import prepared

COPY = np.eye(8)[0].tolist()
OTHER = np.eye(8)[1].tolist()


def near(distance: float, towards: int = 5) -> list[float]:
    """Return a direction at a cosine distance from ``COPY``."""
    cosine = 1 - distance
    return list(cosine * np.eye(8)[0] + np.sqrt(1 - cosine**2) * np.eye(8)[towards])


def decide(dataset: Dataset, *numbers: int) -> str:
    """Decide that the media of some uris are no duplicates, and return the decision's id."""
    ids = ids_of(dataset)
    return dataset.not_duplicates([ids[f"{number}.jpg"] for number in numbers]).decision_id


def members(dataset: Dataset, threshold: float = 0.96) -> set[frozenset[int]]:
    """Return the near-duplicate groups as numbers of uris."""
    return {frozenset(int(uri.partition(".")[0]) for uri in group) for group in groups_of(dataset, threshold).values()}


def assert_hold(dataset: Dataset) -> None:
    """Check that no decision is broken, at any level."""
    for decision in dataset.duplicate_decisions():
        for level in DUPLICATE_LEVELS:
            for group in dataset.duplicates(level):
                assert len(set(decision.media_ids) & set(group.media_ids)) < 2


def test_decision__about_one_that_is_gone(workspace: Workspace) -> None:
    """What an added image was kept apart from is deleted: the image joins the copies of the other one."""
    rows = part([COPY, COPY, COPY, COPY, OTHER])
    dataset = workspace.create_dataset("d", rows)
    ids = ids_of(dataset)
    decide(dataset, 0, 1)
    dataset.delete_media([ids["0.jpg"]])
    dataset.add_media(rows.slice(0, 1), auto_reindex=False)
    assert members(dataset) == {frozenset({1, 2, 3})}
    dataset.delete_media([ids["1.jpg"]])
    assert members(dataset) == {frozenset({0, 2, 3})}


@pytest.mark.slow
@pytest.mark.only_soak
def test_decision__about_a_pair(workspace: Workspace) -> None:
    """Two that are decided to be no duplicates are in no group together; the others stay with the nearer one."""
    dataset = workspace.create_dataset("d", part([COPY, near(0.002), near(0.01), OTHER, OTHER]))
    (large,) = (identifier for identifier, group in groups_of(dataset).items() if len(group) == 3)
    decide(dataset, 0, 1)
    # 2 is nearer to 1, which lies on the way to it.
    assert members(dataset) == {frozenset({1, 2}), frozenset({3, 4})}
    assert_hold(dataset)
    assert large in groups_of(dataset)  # most of the members are still in it
    assert dataset.issues("duplicates")["path"].to_pylist() != []
    assert set(dataset.issues("duplicates")["path"].to_pylist()) == {"1.jpg", "2.jpg", "3.jpg", "4.jpg"}


@pytest.mark.slow
def test_decision__about_a_whole_group(workspace: Workspace) -> None:
    """A group that is decided to be none is gone, at all levels, and its media are no issue any more."""
    dataset = workspace.create_dataset("d", part([COPY, near(0.002), near(0.01), OTHER, OTHER]))
    decide(dataset, 0, 1, 2)
    assert [members(dataset, level) for level in DUPLICATE_LEVELS] == [{frozenset({3, 4})}] * 8
    assert set(dataset.issues("duplicates")["path"].to_pylist()) == {"3.jpg", "4.jpg"}


@pytest.mark.slow
def test_decision__about_exact_copies(workspace: Workspace) -> None:
    """Equal embeddings are kept apart as others are; a third copy is with one of them only."""
    dataset = workspace.create_dataset("d", part([COPY, COPY, COPY, OTHER]))
    decide(dataset, 0, 1)
    assert_hold(dataset)
    (group,) = members(dataset, 1.0)
    assert len(group) == 2
    assert 2 in group
    decide(dataset, 1, 2)
    decide(dataset, 0, 2)
    assert members(dataset) == set()


def test_decision__record(workspace: Workspace) -> None:
    """A decision says who made it and when, and decisions are listed from the oldest on."""
    dataset = workspace.create_dataset("d", part([COPY] * 4))
    ids = ids_of(dataset)
    made = [dataset.not_duplicates([ids["0.jpg"], ids["1.jpg"]]), dataset.not_duplicates([ids["3.jpg"], ids["2.jpg"]])]
    assert dataset.duplicate_decisions() == made
    assert made[1].media_ids == [ids["3.jpg"], ids["2.jpg"]]
    assert {decision.decided_by for decision in made} == {"tester@example.org"}
    assert made[0].decided_at <= made[1].decided_at
    assert made[0].decided_at.tzinfo is not None
    assert made[0].decision_id != made[1].decision_id


@pytest.mark.slow
@pytest.mark.only_soak
def test_decision__stays_by_additions_and_reindexing(workspace: Workspace) -> None:
    """Decisions hold after additions, even of copies that connect the media, and after a reindex."""
    dataset = workspace.create_dataset("d", part([COPY, near(0.002), OTHER]))
    decide(dataset, 0, 1)
    assert members(dataset) == set()
    dataset.add_media(part([COPY, near(0.001), near(0.002)], 3))
    assert_hold(dataset)
    assert set().union(*members(dataset)) >= {3, 4, 5}
    before = members(dataset)
    dataset.reindex()
    assert_hold(dataset)
    assert members(dataset) == before
    dataset.reindex(thresholds=(0.01, 0.02, 0.03, 0.04, 0.05))
    assert members(dataset) == before
    with Workspace(workspace.path, settings=SETTINGS) as again:
        reopened = again.dataset("d")
        assert reopened.duplicate_decisions() == dataset.duplicate_decisions()
        assert members(reopened) == before
        reopened.add_media(part([near(0.0015)], 6))
        assert_hold(reopened)


@pytest.mark.slow
@pytest.mark.only_soak
def test_decision__between_media_of_different_groups(workspace: Workspace) -> None:
    """It changes nothing now, and holds when something is added that would make one group of theirs."""
    left, right = near(0.03, 5), near(0.03, 6)
    dataset = workspace.create_dataset("d", part([left, left, right, right]))
    before = columns_of(dataset), groups_of(dataset)
    decide(dataset, 0, 2)
    assert (columns_of(dataset), groups_of(dataset)) == before
    dataset.add_media(part([COPY], 4))
    assert_hold(dataset)
    assert sorted(map(len, members(dataset))) == [2, 3]
    dataset.reindex()
    assert_hold(dataset)
    assert sorted(map(len, members(dataset))) == [2, 3]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("partial", [False, True])
def test_withdraw__restores_groups_and_ids(workspace: Workspace, partial: bool) -> None:
    """Without the decision all groups are as before, with their ids, and so are similarities and issues."""
    rows = families(40, seed=2)
    dataset = prepared(workspace, "d", part(rows[:30]))
    dataset.add_media(part(rows[30:], 30))
    if not partial:
        dataset.reindex()
    columns = [*GROUPS, "duplicate_similarity", "issue_duplicates", "uniqueness"]
    before = columns_of(dataset, columns)
    largest = dataset.duplicates()[0]
    decision = dataset.not_duplicates(largest.media_ids)
    assert columns_of(dataset, columns) != before
    dataset.withdraw_decision(decision.decision_id)
    assert dataset.duplicate_decisions() == []
    after = columns_of(dataset, columns)
    for name in DUPLICATES:
        assert same_partition(partition(after[name]), partition(before[name]))
    assert after["uniqueness"] == before["uniqueness"]
    for name in ("duplicate_similarity", "issue_duplicates"):
        np.testing.assert_allclose(
            np.array(after[name], float), np.array(before[name], float), atol=2e-6, equal_nan=True
        )
    with pytest.raises(NotFound, match="no decision"):
        dataset.withdraw_decision(decision.decision_id)


@pytest.mark.slow
def test_withdraw__ids_of_groups_that_lost_less_than_half(workspace: Workspace) -> None:
    """A group that loses one of four members and gets it back has its id all the time."""
    dataset = workspace.create_dataset("d", part([COPY, near(0.0005), near(0.001), near(0.03, 6), OTHER]))
    (before,) = groups_of(dataset)
    decision = decide(dataset, 0, 3)
    assert set(groups_of(dataset)) == {before}
    dataset.withdraw_decision(decision)
    assert groups_of(dataset) == {before: {f"{number}.jpg" for number in range(4)}}


@pytest.mark.slow
@pytest.mark.only_soak
def test_withdraw__one_of_several(workspace: Workspace) -> None:
    """The other decisions hold on."""
    dataset = workspace.create_dataset("d", part([COPY] * 3))
    first, second = decide(dataset, 0, 1), decide(dataset, 1, 2)
    assert members(dataset) == {frozenset({0, 2})}
    dataset.withdraw_decision(first)
    assert [decision.decision_id for decision in dataset.duplicate_decisions()] == [second]
    assert_hold(dataset)
    dataset.withdraw_decision(second)
    assert members(dataset) == {frozenset({0, 1, 2})}


@pytest.mark.slow
def test_decision__about_a_group(workspace: Workspace) -> None:
    """A group as :meth:`Dataset.duplicates` returns it stands for its members, as an array of ids does."""
    dataset = workspace.create_dataset("d", part([COPY] * 3 + [OTHER] * 2))
    first, second = dataset.duplicates()
    assert dataset.not_duplicates(first).media_ids == first.media_ids
    assert dataset.not_duplicates(np.array(second.media_ids)).media_ids == second.media_ids  # type: ignore[arg-type] # works all the same
    assert dataset.duplicates() == []


def test_decision__that_makes_no_sense(workspace: Workspace) -> None:
    """One id, the same id twice, none at all, a text and an unknown id are refused, and nothing changes."""
    dataset = workspace.create_dataset("d", part([COPY] * 3))
    ids = list(ids_of(dataset).values())
    before = columns_of(dataset), dataset.info
    group = dataset.duplicates()[0]
    wrong: list[Any] = [[], ids[:1], [ids[0], ids[0]], [*ids, ids[1]], ids[0], None, 7, [3, 4], [[ids[0]], [ids[1]]]]
    wrong += [dataset.info, [group, group], {"a": 1}]
    for each in wrong:
        with pytest.raises(InvalidInput, match="two or more different media ids"):
            dataset.not_duplicates(each)
    for unknown in ("nobody", "", "' OR 1=1 --", ids_of(workspace.create_dataset("e", part([COPY])))["0.jpg"]):
        with pytest.raises(NotFound, match=f"no media {unknown!r}"):
            dataset.not_duplicates([ids[0], unknown])
    with pytest.raises(NotFound, match="no decision 'nothing'"):
        dataset.withdraw_decision("nothing")
    assert (columns_of(dataset), dataset.info) == before
    assert dataset.duplicate_decisions() == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_decision__about_rows_without_an_embedding(workspace: Workspace) -> None:
    """They are in no group anyhow; the decision is kept, and harms nobody."""
    dataset = workspace.create_dataset("d", part([COPY, None, COPY, None]))
    before = columns_of(dataset)
    for pair in ((1, 3), (0, 1)):
        decide(dataset, *pair)
        assert columns_of(dataset) == before
    decide(dataset, 0, 1, 2)
    assert members(dataset) == set()
    dataset.add_media(part([COPY, None], 4))
    assert_hold(dataset)
    dataset.reindex()
    assert_hold(dataset)
    assert len(dataset.duplicate_decisions()) == 3


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("partial", [False, True])
def test_decision__changes_nothing_else(workspace: Workspace, partial: bool) -> None:
    """Status, counts, clusters, scores and what was left out are as before."""
    rows = families(30)
    dataset = prepared(workspace, "d", part(rows[:20]))
    if partial:
        dataset.add_media(part(rows[15:], 15))
    others = [*CLUSTERS, "uniqueness", "outlier_distance", "original", "neighbours", "path"]
    info, skipped, kept = dataset.info, dataset.skipped, columns_of(dataset, others)
    summary = {name: value for name, value in summary_of(dataset).items() if name != "first_free"}
    dataset.not_duplicates(dataset.duplicates()[0].media_ids)
    changed = dataset.info.model_copy(update={"updated_at": info.updated_at})
    assert (changed, dataset.skipped, columns_of(dataset, others)) == (info, skipped, kept)
    assert {name: value for name, value in summary_of(dataset).items() if name != "first_free"} == summary
    assert info.status_new is (DatasetStatus.PARTIAL_INDEX if partial else DatasetStatus.READY)
    if partial:
        dataset.reindex()
    with pytest.raises(Conflict, match="it is READY"):
        dataset.reindex()


@pytest.mark.slow
@pytest.mark.only_soak
def test_decision__by_several_at_once(workspace: Workspace) -> None:
    """Decisions and additions at the same time come one after another, or are refused as in the way; none is lost."""
    rows = np.repeat(families(20, seed=4), 4, axis=0)
    dataset = workspace.create_dataset("d", part(rows))
    ids = ids_of(dataset)
    made: list[str] = []
    failed: list[BaseException] = []

    def work(change: Callable[[Dataset, int], Any]) -> None:
        own = workspace.dataset("d")
        for turn in range(6):
            try:
                change(own, turn)
            except BaseException as error:
                if "is blocked while MEDIA_ADDITION task is running" not in str(error):
                    failed.append(error)

    def deciding(thread: int) -> Callable[[Dataset, int], Any]:
        def change(own: Dataset, turn: int) -> None:
            first = 4 * (6 * thread + turn)
            pair = [ids[f"{first}.jpg"], ids[f"{first + 1}.jpg"]]
            made.append(own.not_duplicates(pair).decision_id)

        return change

    def adding(own: Dataset, turn: int) -> None:
        if turn < 3:
            own.add_media(part(rows[:4], 1000 + 10 * turn))

    threads = [threading.Thread(target=work, args=(each,)) for each in (deciding(0), deciding(1), adding)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    assert sorted(decision.decision_id for decision in dataset.duplicate_decisions()) == sorted(made)
    assert_hold(dataset)
    assert (
        dataset.count()
        == len(set(ids_of(dataset).values()))
        == 80 + 4 * sum(task.task_type == "MEDIA_ADDITION" for task in workspace.tasks().tasks)
    )


@pytest.mark.slow
@examples(6)
@given(data=st.data())
def test_decision__any(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Groups after decisions are those of an index that knows them, whether media were there before or came later."""
    count, first = 24, data.draw(st.integers(6, 24))
    rows = list(families(count, seed=data.draw(st.integers(0, 50)), dimension=4))
    for place in data.draw(st.lists(st.integers(0, count - 1), max_size=6)):
        rows[place] = rows[data.draw(st.integers(0, count - 1))]
    sets = data.draw(st.lists(st.sets(st.integers(0, first - 1), min_size=2, max_size=4), min_size=1, max_size=4))
    with Workspace(tmp_path_factory.mktemp("ws"), settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", part(rows[:first]))
        decided = [decide(dataset, *sorted(each)) for each in sets]
        assert_hold(dataset)
        assert_as_reindexed(dataset)
        if first < count:
            dataset.add_media(part(rows[first:], first))
            assert_hold(dataset)
            assert_as_reindexed(dataset)
        for decision in decided:
            dataset.withdraw_decision(decision)
            assert_hold(dataset)
        whole = workspace.create_dataset("whole", part(rows))
        assert all(members(dataset, level) == members(whole, level) for level in DUPLICATE_LEVELS)


def assert_as_reindexed(dataset: Dataset) -> None:
    """Check that groups are nested and those of an index of all, with the numbers that they keep."""
    found = columns_of(dataset, DUPLICATES)
    for (_, coarse), (_, fine) in combinations(found.items(), 2):
        pairs = {(a, b) for a, b in zip(fine, coarse, strict=True) if a is not None}
        assert len(pairs) == len({a for a, _ in pairs})
    dataset.reindex(thresholds=dataset.embedding_config.thresholds)
    after = columns_of(dataset, DUPLICATES)
    for name in DUPLICATES:
        assert same_partition(partition(found[name]), partition(after[name])), name
