"""Clean-ups never remove the last copy of an image, nor what people chose to keep: in any order of plans and edits."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import CleanupPlan, Conflict, Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.operations.starting import delete_dataset
from tests.gallery import SETTINGS, fill
from tests.growth import part
from tests.image_files import photo, write
from tests.inside import context_of
from tests.laws import examples
from tests.prepared import prepared

ROWS = 36


def action_of(plan: CleanupPlan) -> dict[str, str]:
    """Return what a plan does with each image, by path."""
    return {row["path"]: row["action"] for row in plan.to_arrow().to_pylist()}


def reason_of(plan: CleanupPlan, path: str) -> str:
    """Return the reason of a plan for what it does with an image."""
    return next(str(row["reason"]) for row in plan.to_arrow().to_pylist() if row["path"] == path)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Dataset, Workspace]]]:
    """A dataset of near-duplicates of odd sizes, and one of equal files of which some are broken; clones are edited.

    Each has the workspace that another person has opened.
    """
    home = tmp_path_factory.mktemp("copies")
    folder = fill(home / "images", 6)
    for number, name in enumerate([*sorted(folder.iterdir())[:3], *sorted(folder.iterdir())[:2]]):
        (folder / f"copy-{number}.png").write_bytes(Path(name).read_bytes())
    for broken in ("broken-0.jpg", "broken-1.jpg", "broken-2.jpg"):
        (folder / broken).write_bytes(b"no image")
    write(folder / "dark-0.png", photo(7) // 12)
    (folder / "dark-1.png").write_bytes((folder / "dark-0.png").read_bytes())
    vectors = np.eye(ROWS)[[0, 0, 1, 1, 1, *(number // 2 for number in range(4, 35))]]
    vectors[1::3, -1], vectors[2::3, -2] = 0.1, 0.25  # near-duplicates of several levels
    sides = [9000 if number < 6 else 100 + number for number in range(ROWS)]
    of_bob = SETTINGS.model_copy(update={"user": "bob@example.org"})
    with (
        Workspace(home / "workspace", settings=SETTINGS) as workspace,
        Workspace(home / "workspace", settings=of_bob) as other,
    ):
        near = workspace.create_dataset("near", part(vectors, width=sides, height=sides))
        yield [(near, other), (workspace.create_dataset("equal", folder, "gist"), other)]


places = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=8, unique=True)
rules = st.fixed_dictionaries(
    {
        "duplicates": st.sampled_from([None, 0.96, 0.98, 1.0, "exact", "near"]),
        "issues": st.sampled_from([[], ["odd_size"], ["dark", "corrupted"], ["odd_size", "corrupted", "dark"]]),
        "keep": st.sampled_from(["best", "first", "oldest", "largest"]),
        "basket": st.booleans(),
    }
)
person = st.integers(0, 1)
steps = st.lists(
    st.one_of(
        st.tuples(person, st.sampled_from(["basket", "basket", "unbasket", "keep", "keep_one"]), places),
        st.tuples(person, st.sampled_from(["plan", "clean", "race"]), rules, st.none() | places),
        st.tuples(person, st.just("apply"), st.integers(0, 3), st.booleans()),
    ),
    max_size=14,
)


@pytest.mark.slow
@examples(30)
@given(which=st.integers(0, 1), taken=steps)
def test_cleanup__leaves_a_copy_and_every_keeper(
    sources: list[tuple[Dataset, Workspace]], which: int, taken: list[Any]
) -> None:
    """After any plans of two people, of each group a member is left, and so is all that either chose."""
    source, other = sources[which]
    people = [source.clone()]
    people.append(other.dataset(people[0].id))
    dataset = people[0]
    groups = [set(each.media_ids) for each in (*dataset.duplicates(), *dataset.duplicates(exact=True))]
    chosen, plans = set[str](), list[tuple[CleanupPlan, str]]()
    for who, kind, value, *more in taken:
        dataset = people[who]
        ids = dataset.where([]).media_ids()
        some = list(dict.fromkeys(ids[place % len(ids)] for place in value)) if isinstance(value, list) else []
        match kind:
            case "basket":
                dataset.basket.add(some)
            case "unbasket":
                dataset.basket.remove(some)
            case "keep":
                dataset.keep(some)
                chosen.update(some)
            case "keep_one":
                rest = next((each for each in groups if some[0] in each), {some[0]}) & set(ids) - {some[0]}
                dataset.basket.add(sorted(rest), keep=some[0])
                chosen = chosen - rest | {some[0]}
            case "plan" | "clean" | "race":
                if value["duplicates"] is not None or value["issues"] or value["basket"]:
                    where = [] if more[0] is None else vql.ids([ids[place % len(ids)] for place in more[0]])
                    plans.append((dataset.plan_cleanup(**value, where=where), dataset.generation))
                    if kind == "race":
                        _race([plans.pop()[0], people[1 - who].plan_cleanup(**value)])
                    elif kind == "clean":
                        _apply(dataset, *plans.pop(), take_out=False)
            case _:
                if plans:
                    _apply(dataset, *plans.pop(value % len(plans)), take_out=more[0])
        left = set(people[1 - who].where([]).media_ids())
        assert all(group & left for group in groups)
        assert chosen <= left
        assert set(people[1 - who].kept_ids()) == chosen
    delete_dataset(context_of(dataset), dataset.id)


def _race(plans: list[CleanupPlan]) -> None:
    """Apply plans of one state at once: one is done, the others are refused."""
    plans = [each for each in plans if len(each)]
    with ThreadPoolExecutor(2) as threads:
        errors = [each.exception() for each in [threads.submit(plan.apply) for plan in plans]]
    assert errors.count(None) == min(len(plans), 1)
    assert all(isinstance(each, Conflict) for each in errors if each is not None)


def _apply(dataset: Dataset, plan: CleanupPlan, generation: str, *, take_out: bool) -> None:
    """Apply a plan and check that it does what it shows in one step, or is refused after another change."""
    before, step = dataset.where([]).media_ids(), max((each.step for each in dataset.journal(1)), default=0)
    if take_out and len(plan):
        plan = plan.without(plan.removed_ids()[::2])
    removed = set(plan.removed_ids())
    if removed and dataset.generation != generation:
        with pytest.raises(Conflict, match="has changed since the plan was made"):
            plan.apply()
        removed = set()
    else:
        assert plan.apply().removed == len(removed) == plan.summary.removed == sum(plan.summary.counts.values())
    assert dataset.where([]).media_ids() == [each for each in before if each not in removed]
    done = [(each.operation, each.n_media) for each in dataset.journal() if each.step > step]
    assert done == ([("cleanup", len(removed))] if removed else [])


@pytest.fixture
def pairs(workspace: Workspace, tmp_path: Path) -> Dataset:
    """Three photos, each with a copy of equal content, and a photo without one."""
    folder = fill(tmp_path / "images", 4)
    for name in ("000", "001", "002"):
        (folder / f"{name}-copy.png").write_bytes((folder / f"{name}.png").read_bytes())
    return prepared(workspace, "pairs", folder, "gist")


@pytest.mark.parametrize("duplicates", [0.96, "exact", "near"])
def test_plan__keeps_what_a_person_chose(pairs: Dataset, duplicates: Any) -> None:
    """What was chosen instead of the basket stays, whatever the rule proposes; the plan has the basket, too."""
    (first, *_) = pairs.duplicates(exact=True)
    (other,) = set(first.media_ids) - {first.keep}
    pairs.basket.add(first.keep, keep=other)
    assert {each.keep for each in pairs.duplicates() if other in each.media_ids} == {other}
    plan = pairs.plan_cleanup(duplicates=duplicates, basket=True)
    assert first.keep in plan.removed_ids()
    assert other not in plan.removed_ids()
    plan.apply()
    assert set(pairs.view.media_ids()) & {first.keep, other} == {other}
    assert [(each.operation, each.n_media) for each in pairs.journal()] == [("cleanup", 3), ("basket", 2)]
    assert pairs.plan_cleanup(basket=True).words == "0 media to remove; 0 kept in their place"
    pairs.undo()
    pairs.undo()
    assert (pairs.count(), pairs.basket.count(), pairs.kept_ids()) == (7, 0, [])


def test_plan__of_a_basket_with_whole_groups(pairs: Dataset) -> None:
    """Of a group that is in the basket as a whole the best stays and leaves the basket, also in later plans."""
    pairs.basket.add(pairs.view)
    plan = pairs.plan_cleanup(basket=True)
    rows = action_of(plan)
    assert rows == {
        "000.png": "keep", "000-copy.png": "remove", "001.png": "keep", "001-copy.png": "remove",
        "002.png": "keep", "002-copy.png": "remove", "003.png": "remove",
    }  # fmt: skip
    assert plan.words.startswith("4 media to remove: 4 in the basket; ")
    assert plan.words.endswith("; 3 kept in their place; 3 stay as chosen or last copies")
    assert reason_of(plan, "000.png").startswith("in the basket; kept of 2 near-duplicates, 2 in the basket: ")
    assert reason_of(plan, "000-copy.png") == "in the basket; its group keeps 000.png"
    plan.apply()
    assert pairs.basket.count() == 0
    pairs.basket.add(pairs.view)
    again = pairs.plan_cleanup(basket=True)
    assert (again.removed_ids(), again.summary.protected) == ([], 3)
    assert reason_of(again, "000.png") == (
        "in the basket; kept as the last one: clean-ups removed its copies"
    )  # fmt: skip
    pairs.unkeep(pairs.view)
    assert len(pairs.plan_cleanup(basket=True)) == 3
    pairs.delete_media(pairs.view)
    assert pairs.count() == 0, "who deletes media by name may delete the last copies"


@pytest.mark.slow
def test_plan__of_rules_and_basket_together(workspace: Workspace) -> None:
    """Where a rule names one copy and the basket the other, the better one stays, in one plan or in two."""
    sides = [*range(100, 160, 2), 9000, 150]
    dataset = workspace.create_dataset("odd", part(np.eye(31)[[*range(31), 30]], width=sides, height=sides))
    ids = {row["image_filename"]: row["media_id"] for row in dataset.view}
    dataset.basket.add(ids["31.jpg"])
    both = dataset.plan_cleanup(issues=["odd_size"], basket=True)
    assert action_of(both) == {"30.jpg": "remove", "31.jpg": "keep"}
    assert reason_of(both, "31.jpg") == (
        "in the basket; kept of 2 near-duplicates, 1 without an issue, 1 in the basket"
    )  # fmt: skip
    dataset.plan_cleanup(issues=["odd_size"]).apply()
    assert dataset.basket.media_ids() == [ids["31.jpg"]]
    last = dataset.plan_cleanup(basket=True)
    assert reason_of(last, "31.jpg") == "in the basket; kept as the last one: clean-ups removed its copies"
    assert (last.removed_ids(), last.summary.protected) == ([], 1)


def test_plan__of_a_copy_whose_copies_are_missing(pairs: Dataset, tmp_path: Path) -> None:
    """A copy whose file is gone does not count: the one whose file is there stays."""
    (tmp_path / "images" / "000.png").unlink()
    pairs.sync(apply=True)
    assert pairs.where(vql.missing()).media_ids() == [pairs.media_id("000.png")]
    both = [pairs.media_id(name) for name in ("000-copy.png", "001.png")]
    pairs.basket.add(both)
    assert pairs.plan_cleanup(basket=True).removed_ids() == both[1:]


def test_without__takes_rows_out(pairs: Dataset) -> None:
    """What is taken out of a plan stays, all else is as it was; what the plan does not remove is refused."""
    plan = pairs.plan_cleanup(duplicates="exact")
    ids = plan.removed_ids()
    less = plan.without(ids[0])
    assert (less.removed_ids(), plan.removed_ids()) == (ids[1:], ids)
    assert (less.summary.removed, less.summary.kept, sum(less.summary.sizes.values())) == (
        2, 2, less.summary.size_bytes,
    )  # fmt: skip
    (row,) = [each for each in less.to_arrow().to_pylist() if each["media_id"] == ids[0]]
    assert (row["action"], row["issue_type"], row["kept_media_id"]) == ("keep", None, None)
    assert row["reason"].startswith("taken out of the plan by hand: same content as ")
    with pytest.raises(InvalidInput, match=f"does not remove media '{ids[0]}'"):
        less.without(ids[:2])
    assert less.apply().removed == 2
    assert set(ids) & set(pairs.view.media_ids()) == {ids[0]}


def test_keep__what_cannot_be(pairs: Dataset) -> None:
    """Media that do not exist cannot be kept, nor can media be put into the basket in place of themselves."""
    ids = pairs.view.media_ids()
    with pytest.raises(NotFound):
        pairs.keep("x")
    with pytest.raises(NotFound):
        pairs.basket.add(ids[:1], keep="x")
    with pytest.raises(InvalidInput, match="which is among the media for the basket"):
        pairs.basket.add(ids[:2], keep=ids[1])
    assert (pairs.basket.count(), pairs.kept_ids(), len(pairs.journal())) == (0, [], 0)


@pytest.mark.slow
def test_keep__is_carried(workspace: Workspace, tmp_path: Path) -> None:
    """Clones, merges, reindexes, restores and changed files carry what people chose to keep."""
    folder = fill(tmp_path / "images", 3)
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    dataset = workspace.create_dataset("files", folder, "gist")
    copy = dataset.media_id("copy.png")
    other = dataset.clone()
    dataset.keep(copy)
    kept = dataset.snapshot("kept")
    assert other.kept_ids() == []
    write(folder / "copy.png", photo(50))
    dataset.add_media(folder)
    dataset.reindex()
    assert dataset.kept_ids() == [copy]
    assert dataset.clone().kept_ids() == [copy]
    dataset.unkeep(copy)
    dataset.restore(kept)
    assert dataset.kept_ids() == [copy]
    assert other.merge(dataset, "both").kept_ids() == [copy]
