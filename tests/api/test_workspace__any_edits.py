"""After any sequence of edits, undone, done again and folded, a dataset is as a plain model says."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from framedex import Conflict, Dataset, Workspace
from framedex.analysis import removals
from framedex.jobs.edits import labels as label_edits
from framedex.jobs.edits import removal
from framedex.jobs.edits import rows as row_edits
from framedex.records import Snapshot
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS
from tests.growth import part
from tests.laws import examples

ROWS, STATES = 40, 3
PLACES = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=5, unique=True)
LABELS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True)
USERS = st.sampled_from(["ann@x.org", "bob@x.org"])
Rows = dict[str, dict[str, Any]]


@dataclass(eq=False)  # steps that changed nothing look alike
class Step:
    """A step of the model's journal.

    Attributes:
        user: who did it.
        before, after: of a step of values the old and new values by media and name; of another one the whole states.
        head: of a step that returns to states: the number of the commit from which it can.
        undone: when it was undone, counted in commits; 0 if it holds.
        lost: whether its state was freed.
    """

    user: str
    before: Rows
    after: Rows
    head: int = 0
    undone: int = 0
    lost: bool = False
    is_state: bool = False


@dataclass
class Model:
    """A dataset as plain Python: the values of each media item by id, in order."""

    rows: Rows
    journal: list[Step] = field(default_factory=list)
    commits: int = 1


class AnyEdits(RuleBasedStateMachine):
    """Edits a dataset in a namespace for several users, beside a model."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        for module, name, value in (
            (removal, "_ALL", 0), (label_edits, "_ALL", 0), (removals, "_FEW", 0), (row_edits, "_FEW", 12),
            (row_edits, "_FEW_SHARE", 10**9),
        ):  # fmt: skip
            self.patches.setattr(module, name, value)
        self.home = Path(tempfile.mkdtemp(prefix="framedex-any-edits-"))
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)
        rng = np.random.default_rng(1)
        vectors = unit(rng.normal(size=(5, 8))[np.arange(ROWS) % 5] + 0.1 * rng.normal(size=(ROWS, 8)))
        handle = self.workspace.in_namespace("team")
        dataset = handle.create_dataset("d", part(vectors, label=["abcde"[row % 5] for row in range(ROWS)]))
        self.id = dataset.id
        ids = dataset.where([]).media_ids()
        self.model = Model({each: self.values(labels=["abcde"[row % 5]]) for row, each in enumerate(ids)})
        self.snapshots: list[tuple[Snapshot, Rows]] = []

    @staticmethod
    def values(**given: Any) -> dict[str, Any]:
        return {"labels": [], "caption": None, "tags": frozenset(), **given}

    def dataset(self, user: str = "ann@x.org") -> Dataset:
        return self.workspace.in_namespace("team").acting_as(user).dataset("d")

    def chosen(self, places: list[int]) -> list[str]:
        ids = list(self.model.rows)
        return list(dict.fromkeys(ids[place % len(ids)] for place in places)) if ids else []

    def edit(self, user: str, do: Callable[[Dataset], Any], name: str, new: dict[str, Any]) -> None:
        """Do an edit of values and note it in the model."""
        do(self.dataset(user))
        before = {each: {name: self.model.rows[each][name]} for each in new}
        after = {each: {name: value} for each, value in new.items()}
        changed = [each for each in new if before[each] != after[each]]
        for each in changed:
            self.model.rows[each] = {**self.model.rows[each], **after[each]}
        self.model.commits += 1
        step = Step(user, {each: before[each] for each in changed}, {each: after[each] for each in changed})
        self.model.journal.append(step)

    @rule(user=USERS, places=PLACES, tag=st.sampled_from(["x", "y"]))
    def tag(self, user: str, places: list[int], tag: str) -> None:
        if chosen := self.chosen(places):
            new = {each: self.model.rows[each]["tags"] | {tag} for each in chosen}
            self.edit(user, lambda dataset: dataset.tag(chosen, tag), "tags", new)

    @rule(user=USERS, places=PLACES)
    def untag(self, user: str, places: list[int]) -> None:
        chosen = self.chosen(places)
        if chosen and any(tag.name == "x" for tag in self.dataset().tags()):
            new = {each: self.model.rows[each]["tags"] - {"x"} for each in chosen}
            self.edit(user, lambda dataset: dataset.untag(chosen, "x"), "tags", new)

    @rule(user=USERS, places=PLACES, labels=LABELS)
    def set_labels(self, user: str, places: list[int], labels: list[str]) -> None:
        if chosen := self.chosen(places):
            new = dict.fromkeys(chosen, labels)
            self.edit(user, lambda dataset: dataset.set_labels(dict.fromkeys(chosen, labels)), "labels", new)

    @rule(user=USERS, places=PLACES, text=st.sampled_from([None, "one", "two"]))
    def set_captions(self, user: str, places: list[int], text: str | None) -> None:
        if chosen := self.chosen(places):
            new = dict.fromkeys(chosen, text)
            self.edit(user, lambda dataset: dataset.set_captions(dict.fromkeys(chosen, text)), "caption", new)

    def to_state(self, user: str, rows: Rows) -> None:
        """Note in the model that the dataset has another state."""
        before, self.model.rows = self.model.rows, rows
        self.model.commits += 1
        step = Step(user, before, rows, head=self.model.commits, is_state=True)
        self.model.journal.append(step)
        for old in [each for each in self.model.journal if each.is_state and not each.lost][:-STATES]:
            old.lost = True

    @precondition(lambda self: len(self.model.rows) > 10)
    @rule(user=USERS, places=PLACES)
    def delete(self, user: str, places: list[int]) -> None:
        chosen = self.chosen(places)
        self.dataset(user).delete_media(chosen)
        self.to_state(user, {each: values for each, values in self.model.rows.items() if each not in chosen})

    @precondition(lambda self: len(self.snapshots) < 3)
    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.dataset().snapshot(), deepcopy(self.model.rows)))

    @precondition(lambda self: self.snapshots)
    @rule(user=USERS, place=st.integers(0, 2))
    def restore(self, user: str, place: int) -> None:
        snapshot, rows = self.snapshots[place % len(self.snapshots)]
        self.dataset(user).restore(snapshot)
        self.to_state(user, deepcopy(rows))

    @rule(user=USERS, place=st.integers(0, 30), last=st.booleans(), forward=st.booleans())
    def undo_or_redo(self, user: str, place: int, last: bool, forward: bool) -> None:
        """Undo or redo a step, the last one or any one; the model says whether that is possible."""
        steps = [each for each in self.model.journal if bool(each.undone) == forward]
        dataset = self.dataset(user)
        do = dataset.redo if forward else dataset.undo
        if not steps:
            with pytest.raises(Conflict, match="nothing to"):
                do()
            return
        if not last:
            step = steps[place % len(steps)]
        else:
            step = max(steps, key=lambda each: each.undone) if forward else steps[-1]
        number = None if last else self.model.journal.index(step) + 1
        if not self.is_possible(step, forward):
            with pytest.raises(Conflict):
                do(number)
            return
        if self.lacks_tags(step, forward):  # only the step that made a tag makes it again
            with suppress(Conflict):
                do(number)
                self.take(step, forward)
            return
        assert do(number).step == self.model.journal.index(step) + 1
        self.take(step, forward)

    def take(self, step: Step, forward: bool) -> None:
        """Note in the model that a step was undone or done again."""
        self.model.commits += 1
        target = step.after if forward else step.before
        if step.is_state:
            self.model.rows, step.head = deepcopy(target), self.model.commits
        else:
            for each, values in target.items():
                self.model.rows[each] = {**self.model.rows[each], **values}
        step.undone = 0 if forward else self.model.commits

    def lacks_tags(self, step: Step, forward: bool) -> bool:
        """Return whether media would get a tag that does not exist any more."""
        tags = {tag.name for tag in self.dataset().tags()}
        target = step.after if forward else step.before
        return not step.is_state and any(set(values.get("tags", ())) - tags for values in target.values())

    def is_possible(self, step: Step, forward: bool) -> bool:
        if step.lost:
            return False
        if step.is_state:
            return step.head == self.model.commits
        expected = step.before if forward else step.after
        return all(
            each in self.model.rows and all(self.model.rows[each][name] == value for name, value in values.items())
            for each, values in expected.items()
        )

    @rule()
    def fold(self) -> None:
        self.workspace.vacuum()

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.home / "ws", settings=SETTINGS)

    @invariant()
    def agrees_with_the_model(self) -> None:
        dataset = self.dataset()
        table = dataset.where([]).to_arrow(["media_id", "labels", "caption", "tags"])
        found = {}
        for row in table.to_pylist():
            labels, tags = row["labels"] or [], frozenset(row["tags"] or ())
            found[row["media_id"]] = self.values(labels=labels, caption=row["caption"], tags=tags)
        assert found == self.model.rows
        assert list(found) == list(self.model.rows)
        journal = list(reversed(dataset.journal(None)))
        assert [(each.created_by, each.undone_at is not None) for each in journal] == [
            (each.user, bool(each.undone)) for each in self.model.journal
        ]
        one = dataset.where([{"labels": {"op": "is", "value": "a"}}]).count()
        assert one == sum("a" in values["labels"] for values in found.values())

    def teardown(self) -> None:
        assert self.workspace.check().findings == []
        self.workspace.close()
        shutil.rmtree(self.home)
        self.patches.undo()


TestAnyEdits = pytest.mark.slow(AnyEdits.TestCase)
TestAnyEdits.settings = examples(25, stateful_step_count=40)
