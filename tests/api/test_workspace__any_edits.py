"""After any sequence of all that changes datasets, they are as a plain model says, for each of two open workspaces.

The number of steps is that of operations that did something or were refused for a reason.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace
from framedex.analysis import removals
from framedex.jobs.edits import labels as label_edits
from framedex.jobs.edits import removal
from framedex.jobs.edits import rows as row_edits
from framedex.records import DatasetStatus, Snapshot
from framedex.storage.media_rows import CLUSTERS
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS, part
from tests.laws import examples
from tests.plain_dataset import Decision, Definition, Media, PlainDataset, Refused, Row, State, passing

ROWS, URIS, FAMILIES = 24, 40, 6
"""The media of a new dataset, all that can be added, and their different embeddings, which are orthogonal."""
NAMESPACES = ("team", "")
MOST_DATASETS, MOST_SNAPSHOTS = 3, 4
EAGER = SETTINGS.model_copy(update={"keep_versions_s": 0.0, "clean_every_s": 0.0})
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2**30 else None
"""For workspaces: in memory if possible, because tests of many steps would wait for the disk most of the time."""
HOW = st.tuples(st.integers(0, 5), st.sampled_from(["ann@x.org", "bob@x.org"]), st.integers(0, 1))
"""The number of a dataset, a user, and the open workspace that the user has."""
LABEL = st.sampled_from(["a", "b", "c"])
LABELS = st.lists(LABEL, max_size=2, unique=True)
TAG = st.sampled_from(["x", "y", "z"])
FIELD = st.sampled_from(["score", "grade"])
NAME = st.sampled_from(["d", "e"])
PLACES = st.lists(st.integers(0, URIS - 1), min_size=1, max_size=5, unique=True)
SELECTION = st.one_of(PLACES, PLACES, LABEL)
"""Places of media, or the label that a view selects."""
NUMBER = st.one_of(st.none(), st.integers(0, 9))
LIMITS = st.dictionaries(
    st.sampled_from(["outliers", "duplicates", "mislabels"]), st.sampled_from([0.96, 0.99, 1.0, None]), min_size=1
)
Selection = list[int] | str


class AnyEdits(RuleBasedStateMachine):
    """Changes datasets of two namespaces for two users in two open workspaces, beside a model.

    Attributes:
        settings_of: the settings of the workspaces.
        done: how often each kind of step was done, in all examples.
        models: the datasets as they should be, by id.
    """

    settings_of: ClassVar = SETTINGS
    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        for module, name, value in (
            (removal, "_ALL", 0), (label_edits, "_ALL", 0), (removals, "_FEW", 0), (row_edits, "_FEW", 12),
            (row_edits, "_FEW_SHARE", 10**9),
        ):  # fmt: skip
            self.patches.setattr(module, name, value)
        self.home = Path(tempfile.mkdtemp(prefix="framedex-any-edits-", dir=FOLDER))
        self.workspaces = [Workspace(self.home / "ws", settings=self.settings_of) for _ in range(2)]
        self.models: dict[str, PlainDataset] = {}
        self.stamps, self.steps = count(1), 0
        self.touched: list[PlainDataset] = []
        self.make((0, "ann@x.org", 0), "team", "d")

    # What the rules share

    def dataset(self, model: PlainDataset, user: str = "ann@x.org", via: int = 0) -> Dataset:
        return self.workspaces[via].in_namespace(model.namespace).acting_as(user).dataset(model.name)

    def pick(self, how: tuple[int, str, int]) -> tuple[PlainDataset, Dataset, State, str]:
        place, user, via = how
        model = list(self.models.values())[place % len(self.models)]
        return model, self.dataset(model, user, via), model.state, user

    def did(self, step: str, *models: PlainDataset) -> None:
        self.done[step] += 1
        self.touched += models

    def chosen(self, model: PlainDataset, dataset: Dataset, selection: Selection) -> tuple[list[str], Any]:
        """Return the ids of a selection, and the selection itself."""
        if isinstance(selection, str):
            vql = [{"labels": {"op": "is", "value": selection}}]
            return list(passing(model.state, vql)), dataset.where(vql)
        ids = list(model.state.rows)
        chosen = list(dict.fromkeys(ids[place % len(ids)] for place in selection)) if ids else []
        return chosen, chosen

    @staticmethod
    def likely(definitions: list[Definition], name: str) -> str:
        """Return a name, in most cases that of an existing tag or field: what is refused is not all that counts."""
        names = [each.name for each in definitions]
        return names[0] if names and name not in ("z", "grade", *names) else name

    def refused(self, step: str, error: type[Exception], do: Callable[[], Any]) -> None:
        with pytest.raises(error):
            do()
        self.did(f"{step}, refused")

    # Tags

    @rule(how=HOW, selection=SELECTION, name=TAG)
    def tag(self, how: tuple[int, str, int], selection: Selection, name: str) -> None:
        model, dataset, state, user = self.pick(how)
        ids, selected = self.chosen(model, dataset, selection)
        found, tag = dataset.tag(selected, name), state.tag_of(name)
        change = {}
        if tag is None:
            change["tag_added"] = tag = Definition(found.tag_id, name, user)
            state.tags.append(tag)
        stamp, new = next(self.stamps), {}
        for each in ids:
            tags = state.rows[each]["tags"]
            new[each] = {"tags": tags if any(own == tag.id for own, _ in tags) else (*tags, (tag.id, stamp))}
        model.edit("tag", user, new, **change)
        assert found.count == len(state.with_tag(tag.id))
        self.did("tag", model)

    @rule(how=HOW, selection=SELECTION, name=TAG)
    def untag(self, how: tuple[int, str, int], selection: Selection, name: str) -> None:
        model, dataset, state, user = self.pick(how)
        name = self.likely(state.tags, name)
        ids, selected = self.chosen(model, dataset, selection)
        if (tag := state.tag_of(name)) is None:
            self.refused("untag", NotFound, lambda: dataset.untag(selected, name))
            return
        assert dataset.untag(selected, name).tag_id == tag.id
        kept = {each: tuple(own for own in state.rows[each]["tags"] if own[0] != tag.id) for each in ids}
        model.edit("untag", user, {each: {"tags": tags} for each, tags in kept.items()})
        self.did("untag", model)

    @rule(how=HOW, name=TAG)
    def create_tag(self, how: tuple[int, str, int], name: str) -> None:
        model, dataset, state, user = self.pick(how)
        if state.tag_of(name) is not None:
            self.refused("create_tag", Conflict, lambda: dataset.create_tag(name))
            return
        tag = Definition(dataset.create_tag(name).tag_id, name, user)
        state.tags.append(tag)
        model.note("create_tag", user, tag_added=tag)
        self.did("create_tag", model)

    @rule(how=HOW, old=TAG, new=TAG)
    def rename_tag(self, how: tuple[int, str, int], old: str, new: str) -> None:
        model, dataset, state, user = self.pick(how)
        old = self.likely(state.tags, old)
        tag, other = state.tag_of(old), state.tag_of(new)
        if tag is None or other not in (None, tag):
            self.refused("rename_tag", Conflict if tag else NotFound, lambda: dataset.rename_tag(old, new))
            return
        assert dataset.rename_tag(old, new).count == len(state.with_tag(tag.id))
        state.tags[state.tags.index(tag)] = Definition(tag.id, new, tag.created_by)
        model.note("rename_tag", user, renamed=(tag.id, old, new))
        self.did("rename_tag", model)

    @rule(how=HOW, name=TAG)
    def delete_tag(self, how: tuple[int, str, int], name: str) -> None:
        model, dataset, state, user = self.pick(how)
        name = self.likely(state.tags, name)
        if (tag := state.tag_of(name)) is None:
            self.refused("delete_tag", NotFound, lambda: dataset.delete_tag(name))
            return
        dataset.delete_tag(name)
        new = {
            each: {"tags": tuple(own for own in state.rows[each]["tags"] if own[0] != tag.id)}
            for each in state.with_tag(tag.id)
        }
        model.edit("delete_tag", user, new, tag_removed=tag)
        state.tags.remove(tag)
        self.did("delete_tag", model)

    # Values of media

    @rule(how=HOW, selection=SELECTION, labels=LABELS)
    def set_labels(self, how: tuple[int, str, int], selection: Selection, labels: list[str]) -> None:
        model, dataset, _, user = self.pick(how)
        ids, selected = self.chosen(model, dataset, selection)
        dataset.set_labels(selected, labels)
        model.edit("set_labels", user, {each: {"labels": tuple(labels)} for each in ids})
        self.did("set_labels", model)

    @rule(how=HOW, places=PLACES, text=st.sampled_from([None, "one", "two"]))
    def set_captions(self, how: tuple[int, str, int], places: list[int], text: str | None) -> None:
        model, dataset, _, user = self.pick(how)
        ids, _ = self.chosen(model, dataset, places)
        dataset.set_captions(dict.fromkeys(ids, text))
        model.edit("set_captions", user, {each: {"caption": text} for each in ids})
        self.did("set_captions", model)

    @rule(how=HOW, selection=SELECTION, inside=st.booleans())
    def change_basket(self, how: tuple[int, str, int], selection: Selection, inside: bool) -> None:
        model, dataset, state, user = self.pick(how)
        ids, selected = self.chosen(model, dataset, selection)
        (dataset.basket.add if inside else dataset.basket.remove)(selected)
        if any(state.rows[each]["basket"] != inside for each in ids):
            model.edit("basket", user, {each: {"basket": inside} for each in ids})
        else:
            model.commit()
        self.did("basket", model)

    @rule(how=HOW, name=FIELD, places=st.one_of(st.just([]), PLACES), number=NUMBER)
    def add_field(self, how: tuple[int, str, int], name: str, places: list[int], number: float | None) -> None:
        model, dataset, state, user = self.pick(how)
        ids, _ = self.chosen(model, dataset, places)
        values = dict.fromkeys(ids, number)
        if state.field_of(name) is not None:
            self.refused("add_field", Conflict, lambda: dataset.add_field(name, "float", values=values))
            return
        assert dataset.add_field(name, "float", values=values).inserted_rows == len(ids)
        definition = Definition(dataset.fields()[-1].field_id, name, user)
        state.fields.append(definition)
        model.edit("add_field", user, {each: {definition.id: number} for each in ids}).is_final = not ids
        self.did("add_field", model)

    @rule(how=HOW, name=FIELD, places=PLACES, number=NUMBER)
    def set_field(self, how: tuple[int, str, int], name: str, places: list[int], number: float | None) -> None:
        model, dataset, state, user = self.pick(how)
        name = self.likely(state.fields, name)
        ids, _ = self.chosen(model, dataset, places)
        values = dict.fromkeys(ids, number)
        if (definition := state.field_of(name)) is None:
            self.refused("set_field", NotFound, lambda: dataset.set_field(name, values))
            self.add_field(how, name, places, number)
            return
        assert dataset.set_field(name, values).inserted_rows == len(ids)
        model.edit("set_field", user, {each: {definition.id: number} for each in ids}).is_final = not ids
        self.did("set_field", model)

    @precondition(lambda self: any(each.state.fields for each in self.models.values()))
    @rule(how=HOW, name=FIELD, new=st.one_of(st.none(), FIELD))
    def rename_or_delete_field(self, how: tuple[int, str, int], name: str, new: str | None) -> None:
        model, dataset, state, user = self.pick(how)
        name, operation = self.likely(state.fields, name), "delete_field" if new is None else "rename_field"

        def do() -> None:
            if new is None:
                dataset.delete_field(name)
            else:
                dataset.rename_field(name, new)

        definition, other = state.field_of(name), None if new is None else state.field_of(new)
        if definition is None or other not in (None, definition):
            self.refused(operation, NotFound if definition is None else Conflict, do)
            return
        do()
        place = state.fields.index(definition)
        state.fields[place : place + 1] = [] if new is None else [Definition(definition.id, new, definition.created_by)]
        if new is None:
            for row in state.rows.values():
                row.pop(definition.id, None)
        model.note(operation, user, is_final=True)
        self.did(operation, model)

    # Limits and decisions

    @rule(how=HOW, limits=LIMITS)
    def set_limits(self, how: tuple[int, str, int], limits: dict[str, float | None]) -> None:
        model, dataset, state, user = self.pick(how)
        dataset.set_limits(**limits)
        self.change_limits(
            model, "set_limits", user, {name: each for name, each in {**state.limits, **limits}.items() if each}
        )

    @rule(how=HOW, names=st.lists(st.sampled_from(["outliers", "duplicates"]), max_size=1))
    def reset_limits(self, how: tuple[int, str, int], names: list[str]) -> None:
        model, dataset, state, user = self.pick(how)
        dataset.reset_limits(*names)
        after = {name: each for name, each in state.limits.items() if names and name not in names}
        self.change_limits(model, "reset_limits", user, after)

    def change_limits(self, model: PlainDataset, operation: str, user: str, after: dict[str, Any]) -> None:
        if after != model.state.limits:
            model.note(operation, user, limits=(model.state.limits, after))
            model.state.limits = after
        self.did(operation, model)

    @rule(how=HOW, family=st.integers(0, FAMILIES - 1), places=PLACES)
    def decide(self, how: tuple[int, str, int], family: int, places: list[int]) -> None:
        """Say that some media with one embedding are no duplicates."""
        model, dataset, state, user = self.pick(how)
        alike = [each for each in state.rows if model.media[each].family == family]
        ids = list(dict.fromkeys(alike[place % len(alike)] for place in places)) if alike else []
        if len(ids) < 2:
            self.refused("not_duplicates", InvalidInput, lambda: dataset.not_duplicates(ids))
            return
        made = Decision(dataset.not_duplicates(ids).decision_id, tuple(ids), user)
        state.apart.append(made)
        model.note("not_duplicates", user, len(ids), decision_added=made)
        self.did("not_duplicates", model)

    @rule(how=HOW, selection=SELECTION)
    def is_right(self, how: tuple[int, str, int], selection: Selection) -> None:
        model, dataset, state, user = self.pick(how)
        ids, selected = self.chosen(model, dataset, selection)
        if not ids or not all(state.rows[each]["labels"] for each in ids):
            self.refused("label_is_right", InvalidInput, lambda: dataset.label_is_right(selected))
            return
        ids = [each for each in state.rows if each in ids]
        labels = tuple(state.rows[each]["labels"] for each in ids)
        state.right.append(Decision(dataset.label_is_right(selected).decision_id, tuple(ids), user, labels))
        model.note("label_is_right", user, len(ids), is_final=True)
        self.did("label_is_right", model)

    @precondition(lambda self: any(each.state.apart or each.state.right for each in self.models.values()))
    @rule(how=HOW, place=st.integers(0, 9))
    def withdraw(self, how: tuple[int, str, int], place: int) -> None:
        model, dataset, state, user = self.pick(how)
        made = [*state.apart, *state.right]
        if not made:
            self.refused("withdraw_decision", NotFound, lambda: dataset.withdraw_decision("none"))
            return
        decision = made[place % len(made)]
        dataset.withdraw_decision(decision.id)
        if decision in state.right:
            state.right.remove(decision)
            model.note("withdraw_decision", user, is_final=True)
        else:
            state.apart.remove(decision)
            model.note("withdraw_decision", user, decision_removed=decision)
        self.did("withdraw_decision", model)

    # The journal

    @rule(how=HOW, number=st.one_of(st.none(), st.integers(0, 60)))
    def undo(self, how: tuple[int, str, int], number: int | None) -> None:
        self.undo_or_redo(how, number, forward=False)

    @rule(how=HOW, number=st.one_of(st.none(), st.integers(0, 60)))
    def redo(self, how: tuple[int, str, int], number: int | None) -> None:
        self.undo_or_redo(how, number, forward=True)

    @rule(how=HOW, times=st.integers(2, 5))
    def undo_and_redo(self, how: tuple[int, str, int], times: int) -> None:
        """Undo the last steps one after another, and redo them."""
        for forward in (False, True):
            for _ in range(times):
                self.undo_or_redo(how, None, forward=forward)

    def undo_or_redo(self, how: tuple[int, str, int], place: int | None, *, forward: bool) -> None:
        model, dataset, _, user = self.pick(how)
        name, do = ("redo", dataset.redo) if forward else ("undo", dataset.undo)
        number = None
        if place is not None:
            # Most numbers are those of steps that can be undone, or redone.
            numbers = [at for at, each in enumerate(model.journal, 1) if (each.undone_by is not None) == forward]
            numbers = numbers if place < 50 and numbers else list(range(1, len(model.journal) + 1))
            number = numbers[-1 - place % len(numbers)] if numbers else 1
        try:
            if number is not None and number > len(model.journal):
                self.refused(name, NotFound, lambda: do(number))
                return
            step = model.chosen_step(number, forward=forward)
            model.apply(step, user, forward=forward)
        except Refused:
            self.refused(name, Conflict, lambda: do(number))
            self.touched.append(model)
            return
        assert do(number).step == model.journal.index(step) + 1
        self.did(name, model)

    # States

    @rule(how=HOW, selection=PLACES)
    def delete_media(self, how: tuple[int, str, int], selection: list[int]) -> None:
        model, dataset, state, user = self.pick(how)
        ids, _ = self.chosen(model, dataset, selection)
        dataset.delete_media(ids)
        if ids:
            after = deepcopy(state)
            after.rows = {each: row for each, row in after.rows.items() if each not in ids}
            model.replace_state("delete_media", user, len(ids), after)
        else:
            model.commit()
        self.did("delete_media", model)

    @rule(how=HOW, numbers=PLACES, label=LABEL, settle=st.booleans())
    def add_media(self, how: tuple[int, str, int], numbers: list[int], label: str, settle: bool) -> None:
        model, dataset, state, _ = self.pick(how)
        dataset.add_media(table(numbers, [label] * len(numbers)), auto_reindex=settle)
        new = self.read_new(model, dataset)
        present = {model.media[each].uri for each in state.rows}
        wanted = [f"{number}.jpg" for number in numbers if f"{number}.jpg" not in present]
        assert [model.media[each].uri for each in new] == wanted
        state.rows |= {each: fresh(label) for each in new}
        state.partial = (state.partial or bool(new)) and not settle
        model.commit()
        self.did("add_media", model)

    def read_new(self, model: PlainDataset, dataset: Dataset) -> list[str]:
        """Note the media of a dataset that the model does not have; return their ids."""
        shown = dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
        for row in shown:
            uri = row["image_filename"]
            media = Media(uri, int(uri.partition(".")[0]) % FAMILIES)
            assert model.media.setdefault(row["media_id"], media) == media
        return [row["media_id"] for row in shown if row["media_id"] not in model.state.rows]

    @precondition(lambda self: any(each.state.partial for each in self.models.values()))
    @rule(how=HOW)
    def reindex(self, how: tuple[int, str, int]) -> None:
        model, dataset, state, _ = self.pick(how)
        if not state.partial:
            self.refused("reindex", Conflict, dataset.reindex)
            return
        dataset.reindex()
        state.partial = False
        model.commit()
        self.did("reindex", model)

    @rule(how=HOW)
    def snapshot(self, how: tuple[int, str, int]) -> None:
        model, dataset, state, _ = self.pick(how)
        if state.partial:
            self.refused("snapshot", Conflict, dataset.snapshot)
            return
        if len(model.snapshots) < MOST_SNAPSHOTS:
            self.keep(model, dataset.snapshot())
            self.did("snapshot", model)

    def keep(self, model: PlainDataset, snapshot: Snapshot) -> None:
        model.snapshots[snapshot.snapshot_id] = deepcopy(model.state)
        model.current = snapshot.snapshot_id

    @rule(how=HOW, place=st.integers(0, MOST_SNAPSHOTS))
    def restore(self, how: tuple[int, str, int], place: int) -> None:
        model, dataset, _, user = self.pick(how)
        snapshot = list(model.snapshots)[place % len(model.snapshots)]
        dataset.restore(snapshot)
        state = deepcopy(model.snapshots[snapshot])
        model.replace_state("restore", user, len(state.rows), state)
        model.current = snapshot
        self.did("restore", model)

    @rule(how=HOW, place=st.integers(0, MOST_SNAPSHOTS))
    def forget(self, how: tuple[int, str, int], place: int) -> None:
        model, dataset, _, _ = self.pick(how)
        others = [each for each in model.snapshots if each != model.current]
        snapshot = others[place % len(others)] if place and others else model.current
        if snapshot == model.current:
            self.refused("delete_snapshot", Conflict, lambda: dataset.delete_snapshot(snapshot))
            return
        dataset.delete_snapshot(snapshot)
        del model.snapshots[snapshot]
        self.did("delete_snapshot", model)

    @precondition(lambda self: len(self.models) < MOST_DATASETS)
    @rule(how=HOW, place=st.integers(0, MOST_SNAPSHOTS))
    def clone(self, how: tuple[int, str, int], place: int) -> None:
        model, dataset, _, _ = self.pick(how)
        snapshot = list(model.snapshots)[place % len(model.snapshots)]
        copy = dataset.clone(snapshot)
        state, media = deepcopy(model.snapshots[snapshot]), dict(model.media)
        made = self.models[copy.id] = PlainDataset(copy.id, model.namespace, copy.name, media, state)
        self.keep(made, copy.snapshots()[0])
        self.did("clone", model, made)

    # Datasets and workspaces

    @precondition(lambda self: len(self.models) < MOST_DATASETS)
    @rule(how=HOW, namespace=st.sampled_from(NAMESPACES), name=NAME)
    def make(self, how: tuple[int, str, int], namespace: str, name: str) -> None:
        _, user, via = how
        handle = self.workspaces[via].in_namespace(namespace).acting_as(user)
        labels = ["abcde"[number % 5] for number in range(ROWS)]
        if self.is_taken(namespace, name):
            self.refused("create_dataset", Conflict, lambda: handle.create_dataset(name, table([0], ["a"])))
            return
        dataset = handle.create_dataset(name, table(range(ROWS), labels), thresholds=THRESHOLDS)
        model = self.models[dataset.id] = PlainDataset(dataset.id, namespace, name, {}, State({}))
        new = self.read_new(model, dataset)
        model.state.rows = {each: fresh(label) for each, label in zip(new, labels, strict=True)}
        self.keep(model, dataset.snapshots()[0])
        self.did("create_dataset", model)

    def is_taken(self, namespace: str, name: str) -> bool:
        return any((each.namespace, each.name) == (namespace, name) for each in self.models.values())

    @rule(how=HOW, name=NAME)
    def rename(self, how: tuple[int, str, int], name: str) -> None:
        model, dataset, _, _ = self.pick(how)
        if name != model.name and self.is_taken(model.namespace, name):
            self.refused("rename", Conflict, lambda: dataset.rename(name))
            return
        dataset.rename(name)
        model.name = name
        self.did("rename", model)

    @precondition(lambda self: len(self.models) > 1)
    @rule(how=HOW)
    def delete(self, how: tuple[int, str, int]) -> None:
        model, _, _, user = self.pick(how)
        self.workspaces[how[2]].in_namespace(model.namespace).acting_as(user).delete_dataset(model.name)
        del self.models[model.id]
        self.did("delete_dataset")

    @rule(how=HOW)
    def vacuum(self, how: tuple[int, str, int]) -> None:
        """Fold edits, and free what nothing needs."""
        assert self.workspaces[how[2]].vacuum().skipped == {}
        self.did("vacuum", *self.models.values())

    @rule(how=HOW, both=st.booleans())
    def reopen(self, how: tuple[int, str, int], both: bool) -> None:
        for via in (0, 1) if both else (how[2],):
            self.workspaces[via].close()
            self.workspaces[via] = Workspace(self.home / "ws", settings=self.settings_of)
        self.did("reopen", *self.models.values())

    # Comparisons

    @invariant()
    def agrees_with_the_model(self) -> None:
        """Compare the changed datasets, and now and then all that there is; each time in the other workspace."""
        touched, self.touched = {each.id: each for each in self.touched}, []
        self.steps += 1
        for model in self.models.values():
            if model.id in touched:
                compare_rows(self.dataset(model, via=self.steps % 2), model)
        if self.steps % 10 == 0:
            self.compare_all(self.steps // 10 % 2)

    def compare_all(self, via: int) -> None:
        workspace = self.workspaces[via]
        assert workspace.namespaces() == sorted({each.namespace for each in self.models.values()})
        for namespace in NAMESPACES:
            shown = {each.id: each.display_name for each in workspace.in_namespace(namespace).datasets()}
            assert shown == {each.id: each.name for each in self.models.values() if each.namespace == namespace}
        for model in self.models.values():
            dataset = self.dataset(model, via=via)
            compare_rows(dataset, model)
            compare_all_else(dataset, model)

    def teardown(self) -> None:
        try:
            self.compare_all(0)
            assert self.workspaces[0].check().findings == []
            for model in self.models.values():
                dataset = self.dataset(model, via=1)
                for snapshot, state in model.snapshots.items():
                    dataset.restore(snapshot)
                    model.replace_state("restore", "ann@x.org", len(state.rows), deepcopy(state))
                    model.current = snapshot
                    compare_rows(self.dataset(model), model)
                    compare_all_else(self.dataset(model), model)
        finally:
            for workspace in self.workspaces:
                workspace.close()
            shutil.rmtree(self.home)
            self.patches.undo()


def fresh(label: str) -> Row:
    """Return the values of a new media item."""
    return {"labels": (label,), "caption": None, "tags": (), "basket": False}


def table(numbers: Sequence[int], labels: Sequence[str]) -> Any:
    """Return a table of media with some numbers; every sixth has the same embedding."""
    rows = part(np.eye(8)[np.array(numbers) % FAMILIES], label=list(labels))
    uris = [f"{number}.jpg" for number in numbers]
    return rows.set_column(0, "uri", [uris])


def compare_rows(dataset: Dataset, model: PlainDataset) -> None:
    """Compare media, their values and the journal."""
    state = model.state
    names = {each.id: each.name for each in state.tags}
    columns = ["media_id", "image_filename", "labels", "caption", "tags", *(each.name for each in state.fields)]
    shown = [
        {**row, "labels": row["labels"] or [], "tags": sorted(row["tags"] or ())}
        for row in dataset.where([]).to_arrow(columns).to_pylist()
    ]
    assert shown == [
        {
            "media_id": media_id,
            "image_filename": model.media[media_id].uri,
            "labels": list(row["labels"]),
            "caption": row["caption"],
            "tags": sorted(names[tag] for tag, _ in row["tags"]),
            **{each.name: row.get(each.id) for each in state.fields},
        }
        for media_id, row in state.rows.items()
    ]
    assert dataset.basket.media_ids() == [each for each, row in state.rows.items() if row["basket"]]
    journal = [
        (each.step, each.operation, each.created_by, each.n_media, each.undone_by, each.reason is not None)
        for each in reversed(dataset.journal(None))
    ]
    assert journal == [
        (number, each.operation, each.user, each.n_media, each.undone_by, each.is_final)
        for number, each in enumerate(model.journal, 1)
    ]


Filters = list[list[Mapping[str, Any]]]
FILTERS: Filters = [
    [{"labels": {"op": "is", "value": "a"}}],
    [{"labels": {"op": "one_of", "value": ["b", "e"]}}, {"tags": {"op": "is", "value": ["x"]}}],
    [{"tags": {"op": "is", "value": ["untagged", "basket"]}}],
    [{"not": {"tags": {"op": "is", "value": ["y", "z"]}}}],
]


def compare_all_else(dataset: Dataset, model: PlainDataset) -> None:
    """Compare definitions, decisions, limits, snapshots, counts, filters, clusters, duplicate groups and issues."""
    state = model.state
    assert [(each.tag_id, each.name, each.created_by, each.count) for each in dataset.tags()] == [
        (each.id, each.name, each.created_by, len(state.with_tag(each.id))) for each in state.tags
    ]
    assert [(each.field_id, each.field_name, each.created_by) for each in dataset.fields()] == [
        (each.id, each.name, each.created_by) for each in state.fields
    ]
    assert [(each.decision_id, each.decided_by, tuple(each.media_ids)) for each in dataset.duplicate_decisions()] == [
        (each.id, each.decided_by, each.media_ids) for each in state.apart
    ]
    right = [(each.decision_id, each.decided_by, each.media_ids, each.labels) for each in dataset.label_decisions()]
    assert right == [
        (each.id, each.decided_by, list(each.media_ids), [list(labels) for labels in each.labels])
        for each in state.right
    ]
    assert {name: each.limit for name, each in dataset.limits.items() if each.is_set} == state.limits
    snapshots = [(each.snapshot_id, each.n_images, each.is_current) for each in reversed(dataset.snapshots())]
    assert snapshots == [(key, len(kept.rows), key == model.current) for key, kept in model.snapshots.items()]
    assert dataset.info.n_images == dataset.count() == len(state.rows)
    assert dataset.info.status_new is (DatasetStatus.PARTIAL_INDEX if state.partial else DatasetStatus.READY)
    of_fields: Filters = [[{"field": {"name": each.name, "op": "ge", "value": 4}}] for each in state.fields]
    for vql in [*FILTERS, *of_fields]:
        assert dataset.where(vql).media_ids() == list(passing(state, vql))
    compare_index(dataset, model)


def compare_index(dataset: Dataset, model: PlainDataset) -> None:
    """Compare clusters, duplicate groups and the issues of labels that are right.

    Embeddings are equal or orthogonal: those of a family are one cluster at each level, and one duplicate group but for
    decisions. A decision may divide the rest of its family in any way.
    """
    state = model.state
    families: dict[int, set[str]] = {}
    for media_id in state.rows:
        families.setdefault(model.media[media_id].family, set()).add(media_id)
    labels = ["is_mislabels_issue", "is_label_outlier_issue"]
    shown = dataset.to_arrow(["media_id", *CLUSTERS, *labels]).to_pylist()
    for level in CLUSTERS:
        clusters: dict[str, set[str]] = {}
        for row in shown:
            clusters.setdefault(row[level], set()).add(row["media_id"])
        assert sorted(map(sorted, clusters.values())) == sorted(map(sorted, families.values()))
    groups = [set(group.media_ids) for group in dataset.duplicates()]
    for family in families.values():
        apart = [set(each.media_ids) & family for each in state.apart]
        inside = [group for group in groups if group & family]
        if any(len(each) > 1 for each in apart):
            assert all(group <= family and len(group) > 1 for group in inside)
            assert all(len(group & each) <= 1 for group in inside for each in apart)
        else:
            assert inside == ([family] if len(family) > 1 else [])
    for row in shown:
        if state.is_held_right(row["media_id"]):
            assert not any(row[name] for name in labels)


CASES, EXAMPLES, STEPS = 6, 22, 100
ACCEPTED = 10_000
"""The least number of steps of all cases together, those that are refused not counted, with the profile ``full``."""


@pytest.mark.slow
@pytest.mark.parametrize("case", range(CASES))
def test_workspace__any_edits(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is done, whoever does it and wherever: datasets are as the model says, and at the end all snapshots.

    In every second case, what nothing needs any more is deleted at once.
    """
    monkeypatch.setattr(AnyEdits, "settings_of", EAGER if case % 2 else SETTINGS)
    monkeypatch.setattr(AnyEdits, "done", Counter())
    tried = examples(EXAMPLES, stateful_step_count=STEPS)
    run_state_machine_as_test(AnyEdits, settings=tried)
    accepted = sum(number for step, number in AnyEdits.done.items() if not step.endswith(", refused"))
    assert accepted >= ACCEPTED / CASES * tried.max_examples / EXAMPLES
