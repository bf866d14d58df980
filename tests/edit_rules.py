"""Edits of datasets by two users in two open workspaces, beside a model: rules of a stateful test."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from framedex import Conflict, InvalidInput, NotFound, Workspace
from framedex.settings import Settings
from tests import compared_datasets as compared
from tests.compared_datasets import Name, Where
from tests.plain_dataset import FAMILIES, Decision, Definition, PlainDataset, Refused, passing
from tests.second_process import SecondProcess

URIS = 40
"""The number of all media that can be added."""
How = tuple[int, str, int]
HOW = st.tuples(st.integers(0, 5), st.sampled_from(["ann@x.org", "bob@x.org"]), st.integers(0, 1))
"""The number of a dataset, a user, and the open workspace that the user has."""
LABEL = st.sampled_from(["a", "b", "c"])
LABELS = st.lists(LABEL, max_size=2, unique=True)
TAG = st.sampled_from(["x", "y", "z"])
FIELD = st.sampled_from(["score", "grade"])
NUMBERS = st.lists(st.integers(0, URIS - 1), min_size=1, max_size=5, unique=True)
PLACES = st.one_of(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True), NUMBERS)
"""Places of media, often of the first ones: edits of the same media matter more than edits of all."""
SELECTION = st.one_of(PLACES, PLACES, LABEL)
"""Places of media, or the label that a view selects."""
NUMBER = st.one_of(st.none(), st.integers(0, 9))
PLACE = st.integers(0, 9)
LIMITS = st.dictionaries(
    st.sampled_from(["outliers", "duplicates", "mislabels"]), st.sampled_from([0.96, 0.99, 1.0, None]), min_size=1
)
Selection = list[int] | str
OVERTAKEN = ("captions", "labels", "tag", "tag that is gone", "number of a tag", "field", "decision", "limits")
"""What one user changes and another one then changes, too; see `EditRules.overtake`."""


class ThisProcess:
    """A workspace that is open in this process, with the methods of a second process."""

    def __init__(self, folder: Path, options: Settings) -> None:
        self._arguments = folder, options
        self._workspace = Workspace(folder, settings=options)

    def run(self, function: Any, *arguments: Any, **options: Any) -> Any:
        return function(self._workspace, *arguments, **options)

    def reopen(self) -> None:
        self._workspace.close()
        folder, options = self._arguments
        self._workspace = Workspace(folder, settings=options)

    def close(self) -> None:
        self._workspace.close()


class Session:
    """A dataset of the model with the calls that a user makes of it in one of the workspaces."""

    def __init__(self, process: ThisProcess | SecondProcess, model: PlainDataset, user: str) -> None:
        self.process, self.model, self.state, self.user = process, model, model.state, user

    @property
    def name(self) -> Name:
        return Name(self.model.namespace, self.user, self.model.name)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return self.process.run(compared.call, self.name, method, *arguments, **options)

    def call_upload(self, upload_id: int, method: str, *arguments: Any, **options: Any) -> None:
        self.process.run(compared.call_upload, self.name, upload_id, method, *arguments, **options)

    def call_view(self, view: str, method: str, *arguments: Any) -> None:
        self.process.run(compared.call_view, self.name, view, method, *arguments)

    def chosen(self, selection: Selection) -> tuple[list[str], Any]:
        """Return the ids of a selection, and the selection itself."""
        if isinstance(selection, str):
            vql: list[Mapping[str, Any]] = [{"labels": {"op": "is", "value": selection}}]
            return list(passing(self.state, vql)), Where(vql)
        ids = list(self.state.rows)
        chosen = list(dict.fromkeys(ids[place % len(ids)] for place in selection)) if ids else []
        return chosen, chosen


class EditRules(RuleBasedStateMachine):
    """Edits of values, tags, fields and decisions, undone and redone, beside a model.

    Attributes:
        done: how often each kind of step was done, in all examples; with ``, refused`` those that were refused.
        processes: two open workspaces.
        models: the datasets as they should be, by id.
        numbers: numbers that say what was made earlier.
        touched: the datasets that have changed since the last comparison.
        is_agreeing: whether the last step is done, and what it did was compared where that was due.
    """

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[ThisProcess | SecondProcess] = []
        self.models: dict[str, PlainDataset] = {}
        self.numbers = count(1)
        self.touched: dict[str, PlainDataset] = {}
        self.is_agreeing = True

    # What the rules share

    def session(self, how: How) -> Session:
        self.is_agreeing = False
        place, user, via = how
        return Session(self.processes[via], list(self.models.values())[place % len(self.models)], user)

    def did(self, step: str, *models: PlainDataset) -> None:
        self.done[step] += 1
        self.touched |= {each.id: each for each in models}

    @staticmethod
    def likely(definitions: Sequence[Definition], name: str) -> str:
        """Return a name, in most cases that of an existing tag or field: what is refused is not all that counts."""
        names = [each.name for each in definitions]
        return names[0] if names and name not in ("z", "grade", *names) else name

    def refused(self, error: type[Exception], session: Session, method: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(error):
            session.call(method, *arguments, **options)
        self.did(f"{method}, refused", session.model)

    # Tags

    @rule(how=HOW, selection=SELECTION, name=TAG)
    def tag(self, how: How, selection: Selection, name: str) -> None:
        session = self.session(how)
        ids, selected = session.chosen(selection)
        shown, tag = session.call("tag", selected, name), session.state.tag_of(name)
        change = {}
        if tag is None:
            change["tag_added"] = tag = Definition(shown.tag_id, name, session.user)
            session.state.tags.append(tag)
        stamp, new = next(self.numbers), {}
        for each in ids:
            tags = session.state.rows[each]["tags"]
            new[each] = {"tags": tags if any(own == tag.id for own, _ in tags) else (*tags, (tag.id, stamp))}
        session.model.edit("tag", session.user, new, **change)
        assert shown.count == len(session.state.with_tag(tag.id))
        self.did("tag", session.model)

    @rule(how=HOW, selection=SELECTION, name=TAG)
    def untag(self, how: How, selection: Selection, name: str) -> None:
        session = self.session(how)
        name = self.likely(session.state.tags, name)
        ids, selected = session.chosen(selection)
        if (tag := session.state.tag_of(name)) is None:
            self.refused(NotFound, session, "untag", selected, name)
            return
        if not isinstance(selected, Where) and (tagged := session.state.with_tag(tag.id)):
            ids = selected = list(dict.fromkeys([*tagged[: len(selected) // 2], *ids]))
        assert session.call("untag", selected, name).tag_id == tag.id
        kept = {each: tuple(own for own in session.state.rows[each]["tags"] if own[0] != tag.id) for each in ids}
        session.model.edit("untag", session.user, {each: {"tags": tags} for each, tags in kept.items()})
        self.did("untag", session.model)

    @rule(how=HOW, name=TAG)
    def create_tag(self, how: How, name: str) -> None:
        session = self.session(how)
        if session.state.tag_of(name) is not None:
            self.refused(Conflict, session, "create_tag", name)
            return
        tag = Definition(session.call("create_tag", name).tag_id, name, session.user)
        session.state.tags.append(tag)
        session.model.note("create_tag", session.user, tag_added=tag)
        self.did("create_tag", session.model)

    @rule(how=HOW, old=TAG, new=TAG)
    def rename_tag(self, how: How, old: str, new: str) -> None:
        session = self.session(how)
        old = self.likely(session.state.tags, old)
        tag, other = session.state.tag_of(old), session.state.tag_of(new)
        if tag is None or other not in (None, tag):
            self.refused(Conflict if tag else NotFound, session, "rename_tag", old, new)
            return
        assert session.call("rename_tag", old, new).count == len(session.state.with_tag(tag.id))
        session.state.tags[session.state.tags.index(tag)] = Definition(tag.id, new, tag.created_by)
        session.model.note("rename_tag", session.user, tag_renamed=(tag.id, old, new))
        self.did("rename_tag", session.model)

    @rule(how=HOW, name=TAG)
    def delete_tag(self, how: How, name: str) -> None:
        session = self.session(how)
        name = self.likely(session.state.tags, name)
        if (tag := session.state.tag_of(name)) is None:
            self.refused(NotFound, session, "delete_tag", name)
            return
        session.call("delete_tag", name)
        new = {
            each: {"tags": tuple(own for own in session.state.rows[each]["tags"] if own[0] != tag.id)}
            for each in session.state.with_tag(tag.id)
        }
        session.model.edit("delete_tag", session.user, new, tag_removed=tag)
        session.state.tags.remove(tag)
        self.did("delete_tag", session.model)

    # Values of media

    @rule(how=HOW, selection=SELECTION, labels=LABELS)
    def set_labels(self, how: How, selection: Selection, labels: list[str]) -> None:
        session = self.session(how)
        ids, selected = session.chosen(selection)
        session.call("set_labels", selected, labels)
        session.model.edit("set_labels", session.user, {each: {"labels": tuple(labels)} for each in ids})
        self.did("set_labels", session.model)

    @rule(how=HOW, places=PLACES, text=st.sampled_from([None, "one", "two"]))
    def set_captions(self, how: How, places: list[int], text: str | None) -> None:
        session = self.session(how)
        ids, _ = session.chosen(places)
        session.call("set_captions", dict.fromkeys(ids, text))
        session.model.edit("set_captions", session.user, {each: {"caption": text} for each in ids})
        self.did("set_captions", session.model)

    @rule(how=HOW, selection=SELECTION, inside=st.booleans())
    def change_basket(self, how: How, selection: Selection, inside: bool) -> None:
        session = self.session(how)
        ids, selected = session.chosen(selection)
        session.call("basket.add" if inside else "basket.remove", selected)
        if any(session.state.rows[each]["basket"] != inside for each in ids):
            session.model.edit("basket", session.user, {each: {"basket": inside} for each in ids})
        else:
            session.model.commit()
        self.did("basket", session.model)

    @rule(how=HOW, name=FIELD, places=st.one_of(st.just([]), PLACES), number=NUMBER)
    def add_field(self, how: How, name: str, places: list[int], number: float | None) -> None:
        session = self.session(how)
        ids, _ = session.chosen(places)
        values = dict.fromkeys(ids, number)
        if session.state.field_of(name) is not None:
            self.refused(Conflict, session, "add_field", name, "float", values=values)
            return
        assert session.call("add_field", name, "float", values=values).inserted_rows == len(ids)
        definition = Definition(session.process.run(compared.newest_field, session.name), name, session.user)
        session.state.fields.append(definition)
        new = {each: {definition.id: number} for each in ids}
        session.model.edit("add_field", session.user, new, field_added=definition)
        self.did("add_field", session.model)

    @rule(how=HOW, name=FIELD, places=PLACES, number=NUMBER)
    def set_field(self, how: How, name: str, places: list[int], number: float | None) -> None:
        session = self.session(how)
        name = self.likely(session.state.fields, name)
        ids, _ = session.chosen(places)
        values = dict.fromkeys(ids, number)
        if (definition := session.state.field_of(name)) is None:
            self.refused(NotFound, session, "set_field", name, values)
            self.add_field(how, name, places, number)
            return
        assert session.call("set_field", name, values).inserted_rows == len(ids)
        new = {each: {definition.id: number} for each in ids}
        session.model.edit("set_field", session.user, new).is_final = not ids
        self.did("set_field", session.model)

    @precondition(lambda self: any(each.state.fields for each in self.models.values()))
    @rule(how=HOW, name=FIELD, new=FIELD)
    def rename_field(self, how: How, name: str, new: str) -> None:
        session = self.session(how)
        name = self.likely(session.state.fields, name)
        definition, other = session.state.field_of(name), session.state.field_of(new)
        if definition is None or other not in (None, definition):
            self.refused(Conflict if definition else NotFound, session, "rename_field", name, new)
            return
        session.call("rename_field", name, new)
        place = session.state.fields.index(definition)
        session.state.fields[place] = Definition(definition.id, new, definition.created_by)
        session.model.note("rename_field", session.user, field_renamed=(definition.id, name, new))
        self.did("rename_field", session.model)

    @precondition(lambda self: any(each.state.fields for each in self.models.values()))
    @rule(how=HOW, name=FIELD)
    def delete_field(self, how: How, name: str) -> None:
        session = self.session(how)
        name = self.likely(session.state.fields, name)
        if (definition := session.state.field_of(name)) is None:
            self.refused(NotFound, session, "delete_field", name)
            return
        session.call("delete_field", name)
        after = deepcopy(session.state)
        after.fields.remove(definition)
        n_media = sum(row.pop(definition.id, None) is not None for row in after.rows.values())
        session.model.replace_state("delete_field", session.user, n_media, after)
        self.did("delete_field", session.model)

    # Limits and decisions

    @rule(how=HOW, limits=LIMITS)
    def set_limits(self, how: How, limits: dict[str, float | None]) -> None:
        session = self.session(how)
        session.call("set_limits", **limits)
        after = {name: each for name, each in {**session.state.limits, **limits}.items() if each}
        self.change_limits("set_limits", session, after)

    @rule(how=HOW, names=st.lists(st.sampled_from(["outliers", "duplicates"]), max_size=1))
    def reset_limits(self, how: How, names: list[str]) -> None:
        session = self.session(how)
        session.call("reset_limits", *names)
        after = {name: each for name, each in session.state.limits.items() if names and name not in names}
        self.change_limits("reset_limits", session, after)

    def change_limits(self, operation: str, session: Session, after: dict[str, Any]) -> None:
        if after != session.state.limits:
            session.model.note(operation, session.user, limits=(session.state.limits, after))
            session.state.limits = after
        self.did(operation, session.model)

    @rule(how=HOW, family=st.integers(0, FAMILIES - 1), places=PLACES)
    def decide(self, how: How, family: int, places: list[int]) -> None:
        """Say that some media with one embedding are no duplicates."""
        session = self.session(how)
        alike = [each for each in session.state.rows if session.state.rows[each]["media"].family == family]
        ids = list(dict.fromkeys(alike[place % len(alike)] for place in places)) if alike else []
        if len(ids) < 2:
            self.refused(InvalidInput, session, "not_duplicates", ids)
            return
        decision_id = session.call("not_duplicates", ids).decision_id
        made = Decision(decision_id, next(self.numbers), tuple(ids), session.user)
        session.state.apart.append(made)
        session.model.note("not_duplicates", session.user, len(ids), decision_added=made)
        self.did("not_duplicates", session.model)

    @rule(how=HOW, selection=SELECTION)
    def is_right(self, how: How, selection: Selection) -> None:
        session = self.session(how)
        ids, selected = session.chosen(selection)
        if not ids or not all(session.state.rows[each]["labels"] for each in ids):
            self.refused(InvalidInput, session, "label_is_right", selected)
            return
        ids = [each for each in session.state.rows if each in ids]
        labels = tuple(session.state.rows[each]["labels"] for each in ids)
        decision_id = session.call("label_is_right", selected).decision_id
        made = Decision(decision_id, next(self.numbers), tuple(ids), session.user, labels)
        session.state.right.append(made)
        session.model.note("label_is_right", session.user, len(ids), label_decision_added=made)
        self.did("label_is_right", session.model)

    @precondition(lambda self: any(each.state.apart or each.state.right for each in self.models.values()))
    @rule(how=HOW, place=PLACE)
    def withdraw(self, how: How, place: int) -> None:
        session = self.session(how)
        made = [*session.state.apart, *session.state.right]
        if not made:
            self.refused(NotFound, session, "withdraw_decision", "none")
            return
        decision = made[place % len(made)]
        session.call("withdraw_decision", decision.id)
        if decision in session.state.right:
            session.state.right.remove(decision)
            needed = [each for each in decision.media_ids if each in session.state.rows]
            session.model.note(
                "withdraw_decision",
                session.user,
                len(decision.media_ids),
                label_decision_removed=decision,
                needed=needed,
            )
        else:
            session.state.apart.remove(decision)
            session.model.note("withdraw_decision", session.user, decision_removed=decision)
        self.did("withdraw_decision", session.model)

    # The journal

    @rule(how=HOW, number=st.one_of(st.none(), st.integers(0, 60)))
    def undo(self, how: How, number: int | None) -> None:
        self.undo_or_redo(how, number, forward=False)

    @rule(how=HOW, number=st.one_of(st.none(), st.integers(0, 60)))
    def redo(self, how: How, number: int | None) -> None:
        self.undo_or_redo(how, number, forward=True)

    @rule(how=HOW, times=st.integers(2, 5))
    def undo_and_redo(self, how: How, times: int) -> None:
        """Undo the last steps one after another, and redo them."""
        for forward in (False, True):
            for _ in range(times):
                if not self.undo_or_redo(how, None, forward=forward):
                    break

    @rule(how=HOW, places=PLACES, kinds=st.lists(st.sampled_from(OVERTAKEN), min_size=2, max_size=4, unique=True))
    def overtake(self, how: How, places: list[int], kinds: list[str]) -> None:
        """Undo steps after another user has changed the same: it is refused, or leaves what is of the other one.

        Single steps seldom meet in this way.
        """
        for kind in kinds:
            self.overtake_one(how, places, kind)

    def overtake_one(self, how: How, places: list[int], kind: str) -> None:
        """Do something as one user, something else as the other one, and undo the first of both."""
        session = self.session(how)
        other = (how[0], "bob@x.org" if how[1] == "ann@x.org" else "ann@x.org", 1 - how[2])
        first, second = self.free_tags(how) if "tag" in kind else ("", "")
        back = 1
        match kind:
            case "captions":
                self.set_captions(how, places, "one")
                self.set_captions(other, places[:1], "two")
            case "labels":
                self.set_labels(how, places, ["a"])
                self.set_labels(other, places[-1:], ["b"])
            case "tag":
                self.tag(how, places, first)
                self.tag(other, [place + 1 for place in places], first)
            case "tag that is gone":
                self.tag(how, places, first)
                self.untag(how, places, first)
                self.delete_tag(other, first)
            case "number of a tag":
                self.tag(how, places, first)
                self.delete_tag(how, first)
                self.tag(other, [place + 1 for place in places], second)
            case "field":
                if session.state.fields:
                    self.delete_field(how, session.state.fields[0].name)
                self.add_field(how, "score", [], None)
                self.set_field(other, "score", places, 5)
            case "decision":
                for family in range(2):
                    self.decide(how, family, [0, 1])
                self.withdraw(other, max(0, len(session.state.apart) - 2))
                back = 0
            case "limits":
                self.set_limits(how, {"outliers": 0.96})
                self.reset_limits(other, [])
                back = 0
        self.undo(how, back)

    def free_tags(self, how: How) -> tuple[str, str]:
        """Delete tags until two names are free; return these."""
        session = self.session(how)
        while len(free := [name for name in ("x", "y", "z") if session.state.tag_of(name) is None]) < 2:
            self.delete_tag(how, session.state.tags[0].name)
        return free[0], free[1]

    def undo_or_redo(self, how: How, place: int | None, *, forward: bool) -> bool:
        """Undo or redo a step; return False if that was refused."""
        session, method = self.session(how), "redo" if forward else "undo"
        model, number = session.model, None
        if place is not None:
            # Most numbers are those of steps that can be undone, or redone.
            numbers = [at for at, each in enumerate(model.journal, 1) if (each.undone_by is not None) == forward]
            numbers = numbers if place < 50 and numbers else list(range(1, len(model.journal) + 1))
            number = numbers[-1 - place % len(numbers)] if numbers else 1
        if number is not None and number > len(model.journal):
            self.refused(NotFound, session, method, number)
            return False
        try:
            step = model.chosen_step(number, forward=forward)
            model.apply(step, session.user, forward=forward)
        except Refused:
            self.refused(Conflict, session, method, number)
            return False
        assert session.call(method, number).step == model.journal.index(step) + 1
        self.did(method, model)
        return True
