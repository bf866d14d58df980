"""A dataset as plain Python: the results of edits, of undoing and redoing them, and of snapshots and restores."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FAMILIES = 6
"""The number of different embeddings, which are orthogonal."""
STATES = 3
"""The number of last deletions and restores that can be undone: the default of the settings."""
Row = dict[str, Any]
"""Values of a media item: ``media``, ``labels``, ``caption``, ``tags``, ``basket``, ``keeper``, and those of custom
fields by the field's id.

``tags`` has a pair for each tag: its id, and a number that says when it was put on. ``keeper`` is a mark, or 0.
"""


class Refused(Exception):
    """A step that the journal cannot undo or redo."""


@dataclass(frozen=True)
class Media:
    """The file of a media item.

    Attributes:
        uri: its URI, or its path in the folder.
        number: the number of its content.
        is_placed: False where another file is at its place.
        is_missing: whether a comparison with the folder has marked it.
    """

    uri: str
    number: int
    is_placed: bool = True
    is_missing: bool = False

    @property
    def family(self) -> int:
        """The number of its embedding."""
        return self.number % FAMILIES


def fresh(label: str | None, media: Media) -> Row:
    """Return the values of a new media item."""
    labels = () if label is None else (label,)
    return {"media": media, "labels": labels, "caption": None, "tags": (), "basket": False, "keeper": 0}


@dataclass
class Folder:
    """A source folder, which a dataset and its clones share.

    Attributes:
        path: where it is.
        files: the numbers of the contents by path.
    """

    path: Path
    files: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Definition:
    """A tag, or a custom field."""

    id: str
    name: str
    created_by: str


@dataclass(frozen=True)
class Decision:
    """A decision about media, for decisions about labels with their labels; ``number`` says when it was made."""

    id: str
    number: int
    media_ids: tuple[str, ...]
    decided_by: str
    labels: tuple[tuple[str, ...], ...] = ()


@dataclass
class Upload:
    """An upload transaction: the numbers of its images in the order in which they came, and whether it is done."""

    numbers: list[int] = field(default_factory=list)
    is_done: bool = False


@dataclass
class SavedView:
    """A saved view of the media with a label.

    Attributes:
        name, label: the name, and the label.
        first: the first batch that is evaluated.
        is_alerting: whether batches with results raise alerts.
        points: the number of results by batch.
        alerts: the batches that raised an alert.
    """

    name: str
    label: str
    first: int
    is_alerting: bool = True
    points: dict[int, int] = field(default_factory=dict)
    alerts: list[int] = field(default_factory=list)


@dataclass
class State:
    """All that a snapshot keeps.

    Attributes:
        rows: the values of each media item by id, in order.
        tags, fields, apart, right: tags, fields, and decisions about duplicates and labels, oldest first.
        limits: of issues, by type.
        partial: whether additions are not settled.
        batches: the number of the next batch.
    """

    rows: dict[str, Row]
    tags: list[Definition] = field(default_factory=list)
    fields: list[Definition] = field(default_factory=list)
    apart: list[Decision] = field(default_factory=list)
    right: list[Decision] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    partial: bool = False
    batches: int = 1

    def tag_of(self, name: str) -> Definition | None:
        """Return the tag with a name."""
        return next((each for each in self.tags if each.name == name), None)

    def field_of(self, name: str) -> Definition | None:
        """Return the field with a name."""
        return next((each for each in self.fields if each.name == name), None)

    def with_tag(self, tag_id: str) -> list[str]:
        """Return the ids of the media that have a tag."""
        return [each for each, row in self.rows.items() if any(own == tag_id for own, _ in row["tags"])]

    def is_held_right(self, media_id: str) -> bool:
        """Return whether a decision says that the present labels of a media item are right."""
        labels = set(self.rows[media_id]["labels"])
        pairs = (
            (own, set(given)) for each in self.right for own, given in zip(each.media_ids, each.labels, strict=True)
        )
        return any(own == media_id and given == labels for own, given in pairs)


@dataclass(eq=False)
class Step:
    """A step of the journal.

    Attributes:
        operation, user: what was done, and by whom.
        n_media: the number of media that it changed.
        values: the values before and after, by media id; each a part of a row.
        change: what else changed, by kind.
        is_final: whether it can never be undone.
        state: of a deletion or restore: the state to which undoing or redoing it returns.
        head: of a deletion or restore: the number of the commit on which it can be undone or redone.
        undone_by: who has undone it; None while it holds.
        undone_at: the number of the commit that has undone it.
    """

    operation: str
    user: str
    n_media: int = 0
    values: dict[str, tuple[Row, Row]] = field(default_factory=dict)
    change: dict[str, Any] = field(default_factory=dict)
    is_final: bool = False
    state: State | None = None
    head: int = 0
    undone_by: str | None = None
    undone_at: int = 0


@dataclass
class PlainDataset:
    """A dataset of the model.

    Attributes:
        id, namespace, name: its id, and its names.
        is_of_files: whether its media are uploaded images; else tables brought their embeddings.
        uris: the URIs of all media that it ever had, by id; of folders none, as files move.
        state: what it has now.
        journal: the steps, the first one first.
        snapshots: the states of its snapshots by id, the oldest first.
        current: the id of the current snapshot.
        commits: the number of the last commit.
        uploads: the upload transactions by id.
        views: the saved views by name.
        folder: the source folder; None for one of uploads or of a table.
    """

    id: str
    namespace: str
    name: str
    is_of_files: bool
    uris: dict[str, str]
    state: State
    journal: list[Step] = field(default_factory=list)
    snapshots: dict[str, State] = field(default_factory=dict)
    current: str = ""
    commits: int = 0
    uploads: dict[int, Upload] = field(default_factory=dict)
    views: dict[str, SavedView] = field(default_factory=dict)
    folder: Folder | None = None

    def commit(self) -> int:
        """Count a commit and return its number."""
        self.commits += 1
        return self.commits

    def edit(self, operation: str, user: str, new: Mapping[str, Row], **change: Any) -> Step:
        """Note an edit of values.

        Args:
            operation: what was done.
            user: by whom.
            new: the new values by media id.
            change: what else changed.
        """
        step = Step(operation, user, change=change)
        for media_id, values in new.items():
            row = self.state.rows[media_id]
            before = {name: row.get(name) for name in values}
            if before != values:
                step.values[media_id] = before, values
                row.update(values)
        step.n_media = len(step.values)
        self.commit()
        self.journal.append(step)
        return step

    def note(self, operation: str, user: str, n_media: int = 0, *, is_final: bool = False, **change: Any) -> None:
        """Note a step that changes no values of media."""
        self.commit()
        self.journal.append(Step(operation, user, n_media, change=change, is_final=is_final))

    def add_rows(self, new: Mapping[str, Row], *, partial: bool, user: str = "") -> None:
        """Note media that an addition brought, and count them for the saved views.

        Rows of media that the dataset has replace these, as a step of the user.
        """
        if replaced := [each for each in new if each in self.state.rows]:
            self.replace_state("replace_media", user, len(replaced), deepcopy(self.state))
        else:
            self.commit()
        state = self.state
        state.partial = partial
        if not new:
            return
        state.rows = {each: row for each, row in state.rows.items() if each not in new} | dict(new)
        batch, state.batches = state.batches, state.batches + 1
        for view in self.views.values():
            count = sum(view.label in row["labels"] for row in new.values())
            view.points[batch] = count
            if count and view.is_alerting:
                view.alerts.append(batch)

    def replace_state(self, operation: str, user: str, n_media: int, state: State) -> None:
        """Note a step that leads to another state; only the last few can be undone."""
        before, self.state = self.state, state
        state.batches = max(before.batches, state.batches)
        self.journal.append(Step(operation, user, n_media, state=before, head=self.commit()))
        for old in [each for each in self.journal if each.state is not None][:-STATES]:
            old.state, old.is_final = None, True

    def keep_state(self, snapshot_id: str) -> None:
        """Note a snapshot of the present state, which becomes the current one."""
        self.snapshots[snapshot_id] = deepcopy(self.state)
        self.current = snapshot_id

    def chosen_step(self, number: int | None, *, forward: bool) -> Step:
        """Return the step that undo, or redo, takes.

        Args:
            number: of the step; None for the last one.
            forward: True for redo.

        Raises:
            Refused: there is none, it is undone already or not, or it can never be undone.
        """
        steps = [each for each in self.journal if (each.undone_by is not None) == forward]
        if number is not None:
            steps = [each for each in steps if each is self.journal[number - 1]]
        if not steps:
            raise Refused
        step = max(steps, key=lambda each: each.undone_at) if forward else steps[-1]
        if step.is_final:
            raise Refused
        return step

    def apply(self, step: Step, user: str, *, forward: bool) -> None:
        """Undo a step, or redo it.

        Raises:
            Refused: what it changed has changed since.
        """
        if step.state is not None:
            if step.head != self.commits:
                raise Refused
            before, self.state = self.state, deepcopy(step.state)
            step.state, self.state.batches = before, max(before.batches, self.state.batches)
            step.head = self.commit()
        else:
            state = deepcopy(self.state)
            _apply(state, step, forward=forward)
            self.state = state
            self.commit()
        step.undone_by, step.undone_at = (None, 0) if forward else (user, self.commits)


def _apply(state: State, step: Step, *, forward: bool) -> None:
    """Change a state as undoing or redoing a step does; it is not used any more where that is refused."""
    added, removed = ("added", "removed") if forward else ("removed", "added")
    if (tag := step.change.get(f"tag_{added}")) is not None and tag.id not in {each.id for each in state.tags}:
        _refuse_if(state.tag_of(tag.name) is not None)
        state.tags.append(tag)
    definition = step.change.get("field_added")
    if definition is not None and forward:
        _refuse_if(state.field_of(definition.name) is not None)
        state.fields.append(definition)
    _apply_values(state, step, forward=forward)
    if definition is not None and not forward:
        _refuse_if(state.field_of(definition.name) != definition)
        _refuse_if(any(row.pop(definition.id, None) is not None for row in state.rows.values()))
        state.fields.remove(definition)
    if (tag := step.change.get(f"tag_{removed}")) is not None and not state.with_tag(tag.id):
        state.tags = [each for each in state.tags if each.id != tag.id]
    for kind, definitions in (("tag_renamed", state.tags), ("field_renamed", state.fields)):
        if (renamed := step.change.get(kind)) is not None:
            _rename(definitions, *(renamed if forward else (renamed[0], renamed[2], renamed[1])))
    for kind, decisions in (("decision", state.apart), ("label_decision", state.right)):
        if (decision := step.change.get(f"{kind}_{added}")) is not None:
            needed = step.change.get("needed", decision.media_ids)
            _refuse_if(not set(needed) <= state.rows.keys() or decision in decisions)
            decisions[:] = sorted([*decisions, decision], key=lambda each: each.number)
        if (decision := step.change.get(f"{kind}_{removed}")) is not None:
            _refuse_if(decision not in decisions)
            decisions.remove(decision)
    if (limits := step.change.get("limits")) is not None:
        before, after = limits if forward else reversed(limits)
        _refuse_if(state.limits != before)
        state.limits = dict(after)


def _rename(definitions: list[Definition], own: str, old: str, new: str) -> None:
    names = {each.name: each for each in definitions}
    _refuse_if(old not in names or names[old].id != own)
    _refuse_if(new in names and names[new].id != own)
    definitions[:] = [replace(each, name=new) if each.id == own else each for each in definitions]


def _apply_values(state: State, step: Step, *, forward: bool) -> None:
    tags = {each.id for each in state.tags}
    known = {"labels", "caption", "tags", "basket", "keeper", *(each.id for each in state.fields)}
    for media_id, values in step.values.items():
        old, new = values if forward else reversed(values)
        _refuse_if(media_id not in state.rows or not new.keys() <= known)
        row = state.rows[media_id]
        _refuse_if(any(row.get(name) != value for name, value in old.items()))
        _refuse_if(not {tag for tag, _ in new.get("tags", ())} <= tags)
        row.update(new)


def _refuse_if(condition: bool) -> None:
    if condition:
        raise Refused


def passing(state: State, vql: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ids of the media that pass a filter of labels, tags, ids and numbers of fields, in order."""
    conditions = list(vql)
    for media_id, row in state.rows.items():
        if all(_passes(state, media_id, row, each) for each in conditions):
            yield media_id


def _passes(state: State, media_id: str, row: Row, condition: Mapping[str, Any]) -> bool:
    ((key, test),) = condition.items()
    if key == "not":
        return not _passes(state, media_id, row, test)
    value = test["value"]
    match key, test["op"]:
        case "labels", "is":
            return value in row["labels"]
        case "labels", "one_of":
            return bool(set(value) & set(row["labels"]))
        case "tags", "is":
            names = {each.name for each in state.tags if any(each.id == own for own, _ in row["tags"])}
            names |= {"basket"} if row["basket"] else set()
            return bool(set(value) & names) or ("untagged" in value and not row["tags"])
        case "field", "ge":
            definition = state.field_of(test["name"])
            number = None if definition is None else row.get(definition.id)
            return number is not None and number >= value
    raise NotImplementedError(f"{key} {test['op']}")
