"""Actions on results or on a few media, each one step, with what is needed to undo it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field

from framedex.api.dataset import Dataset
from framedex.api.result_set import ResultSet, view_of_ids
from framedex.api.view import View
from framedex.core.checks import check_integer
from framedex.errors import Conflict, InvalidInput, NotFound
from framedex.operations.short_edits import CommittedEdit, committed_edits
from framedex.records import FieldError, JournalStep, Record
from framedex.tasks import Task

MOST_IDS = 500
"""The maximum number of ids, and of values by id, in an action."""
_WAIT_S = 20.0
_DELETE, _SET_FIELD = "delete_media", "set_field"


class ActionName(StrEnum):
    """The name of an action."""

    TAG = "tag"
    UNTAG = "untag"
    SET_LABELS = "set_labels"
    SET_CAPTIONS = "set_captions"
    SET_FIELD = "set_field"
    NOT_DUPLICATES = "not_duplicates"
    LABEL_IS_RIGHT = "label_is_right"
    BASKET_ADD = "basket_add"
    BASKET_REMOVE = "basket_remove"
    KEEP = "keep"
    UNKEEP = "unkeep"
    DELETE = "delete"


class ActionOutcome(Record):
    """The outcome of an action, or of undoing one.

    Attributes:
        undo: the token that undoes it; None if it cannot be undone.
        count: the number of media that it changed.
        generation: the id of the state afterwards.
        task_id: the task that does it, if it had not ended after 20 s; None otherwise.
        errors: the values that were refused, up to 100.
        lost_files: the number of media that an undo brought back without their file, which a clean-up had deleted.
    """

    undo: str | None
    count: int
    generation: str
    task_id: str | None = None
    errors: list[FieldError] = Field(default_factory=list)
    lost_files: int = 0


@dataclass(frozen=True)
class _Targets:
    """The media of an action: a view or ids, or the ids of the values that it sets."""

    dataset: Dataset
    selection: View | list[str] | None
    args: Mapping[str, Any]

    def chosen(self) -> View | list[str]:
        if self.selection is None:
            raise InvalidInput("the action needs its media: on.rid or on.ids")
        return self.selection

    def text(self, name: str) -> str:
        value = self.args.get(name)
        if not isinstance(value, str):
            raise InvalidInput(f"the action needs args.{name}, a text, not {value!r:.80}")
        return value

    def values(self, name: str) -> Mapping[str, Any] | tuple[View | list[str], Any]:
        """Return the values by media id, or the media and their one value."""
        by_id = self.args.get("values")
        if by_id is not None:
            if not isinstance(by_id, Mapping) or not by_id or len(by_id) > MOST_IDS:
                raise InvalidInput(f"args.values has 1 to {MOST_IDS} values by media id")
            if self.selection is not None or name in self.args:
                raise InvalidInput(f"an action has either args.values, or its media and args.{name}")
            return by_id
        if name not in self.args:
            raise InvalidInput(f"the action needs args.{name}, or args.values by media id")
        return self.chosen(), self.args[name]


def apply_action(
    dataset: Dataset,
    action: ActionName,
    on: ResultSet | Sequence[str] | None,
    args: Mapping[str, Any],
    *,
    expect_generation: str | None = None,
) -> ActionOutcome:
    """Apply an action to media and return its outcome.

    Args:
        dataset: the dataset, in which the user acts.
        action: the action.
        on: results, or up to 500 media ids; None if *args* has values by media id.
        args: arguments by name: ``tag``; ``labels``, ``caption``, or ``name`` and ``value`` for a field; instead of one
            value for all, ``values`` by media id; for the basket optionally ``keep``, the id of what is kept instead.
        expect_generation: the id of the state in which the user saw the media; if they have changed since, this is a
            conflict.

    Raises:
        InvalidInput: the media or an argument cannot be used.
        NotFound: a media item, a tag or a field does not exist.
        Conflict: the media have changed since, or a task is running.
        Gone: the state of the results was freed.
    """
    targets = _Targets(dataset, _selection(dataset, on, expect_generation), args)
    with committed_edits() as edits:
        outcome = _ACTIONS[action](targets)
    return outcome or _outcome(dataset, edits)


def undo_step(dataset: Dataset, token: str | None) -> ActionOutcome:
    """Undo an action by its token, by default the last one.

    Raises:
        NotFound: the journal has no such step.
        Conflict: it cannot be undone; the message says why.
    """
    return _of_step(dataset, dataset.undo, token)


def redo_step(dataset: Dataset, token: str | None) -> ActionOutcome:
    """Do an action again that was undone, by its token, by default the one that was undone last.

    Raises:
        NotFound: the journal has no such step.
        Conflict: it cannot be done again; the message says why.
    """
    return _of_step(dataset, dataset.redo, token)


def _of_step(dataset: Dataset, change: Callable[[int | None], JournalStep], token: str | None) -> ActionOutcome:
    if token is not None and not (token.isascii() and token.isdigit() and len(token) < 16):
        raise NotFound(f"no step {token!r:.40} in the journal of this dataset")
    with committed_edits() as edits:
        step = change(None if token is None else int(token))
    generation = edits[-1].generation if edits else dataset.generation
    lost = step.lost_files or 0
    return ActionOutcome(undo=str(step.step), count=step.n_media, generation=generation, lost_files=lost)


def _selection(
    dataset: Dataset, on: ResultSet | Sequence[str] | None, expect_generation: str | None
) -> View | list[str] | None:
    if on is None:
        return None
    if isinstance(on, ResultSet):
        if expect_generation not in (None, on.generation):
            raise Conflict("these results are of another state than expect_generation; read them again")
        return on.view(is_strict=expect_generation is not None)
    check_integer("the number of ids", len(on), minimum=1, maximum=MOST_IDS)
    return list(on) if expect_generation is None else view_of_ids(dataset, on, generation=expect_generation)


def _outcome(dataset: Dataset, edits: Sequence[CommittedEdit]) -> ActionOutcome:
    if not edits:
        return ActionOutcome(undo=None, count=0, generation=dataset.generation)
    last = edits[-1]
    token = None if last.step is None else str(last.step)
    return ActionOutcome(undo=_undoable(dataset, token), count=last.n_media, generation=last.generation)


def _undoable(dataset: Dataset, token: str | None) -> str | None:
    steps = {str(each.step): each for each in dataset.journal(20)}
    return None if token is None or (token in steps and steps[token].reason is not None) else token


def _tag(targets: _Targets) -> None:
    targets.dataset.tag(targets.chosen(), targets.text("tag"))


def _untag(targets: _Targets) -> None:
    targets.dataset.untag(targets.chosen(), targets.text("tag"))


def _set_labels(targets: _Targets) -> None:
    values = targets.values("labels")
    if isinstance(values, Mapping):
        targets.dataset.set_labels(values)
    else:
        targets.dataset.set_labels(*values)


def _set_captions(targets: _Targets) -> None:
    values = targets.values("caption")
    if isinstance(values, Mapping):
        targets.dataset.set_captions(values)
    else:
        targets.dataset.set_value("caption", *values)


def _set_field(targets: _Targets) -> ActionOutcome:
    dataset, values = targets.dataset, targets.values("value")
    if not isinstance(values, Mapping):
        selection, value = values
        ids = selection.ids if isinstance(selection, View) else selection
        values = dict.fromkeys(ids, value)
    before = _last_step(dataset)
    task = dataset.set_field(targets.text("name"), values, wait=False)
    assert isinstance(task, Task), "it was not waited for"
    if not _ended(task):
        return ActionOutcome(undo=None, count=len(values), generation=dataset.generation, task_id=task.id)
    result = dataset.field_result(task.id)
    return ActionOutcome(
        undo=_undo_since(dataset, before, _SET_FIELD),
        count=result.inserted_rows,
        generation=dataset.generation,
        errors=result.sample_errors,
    )


def _not_duplicates(targets: _Targets) -> None:
    selection = targets.chosen()
    targets.dataset.not_duplicates(list(selection.ids) if isinstance(selection, View) else selection)


def _label_is_right(targets: _Targets) -> None:
    targets.dataset.label_is_right(targets.chosen())


def _basket_add(targets: _Targets) -> None:
    targets.dataset.basket.add(targets.chosen(), keep=targets.text("keep") if "keep" in targets.args else None)


def _basket_remove(targets: _Targets) -> None:
    targets.dataset.basket.remove(targets.chosen())


def _keep(targets: _Targets) -> None:
    targets.dataset.keep(targets.chosen())


def _unkeep(targets: _Targets) -> None:
    targets.dataset.unkeep(targets.chosen())


def _delete(targets: _Targets) -> ActionOutcome:
    dataset, selection = targets.dataset, targets.chosen()
    ids = list(selection.ids) if isinstance(selection, View) else list(dict.fromkeys(selection))
    before = _last_step(dataset)
    task = dataset.delete_media(ids, wait=False)
    if not _ended(task):
        return ActionOutcome(undo=None, count=len(ids), generation=dataset.generation, task_id=task.id)
    undo = _undo_since(dataset, before, _DELETE)
    return ActionOutcome(undo=undo, count=len(ids), generation=dataset.generation)


def _last_step(dataset: Dataset) -> int:
    return max((each.step for each in dataset.journal(1)), default=0)


def _undo_since(dataset: Dataset, before: int, operation: str) -> str | None:
    """Return the token of the first step of an operation after another step; None if it cannot be undone.

    A task tells no step. It held the dataset alone, so the first step of its operation is its own.
    """
    steps = [each for each in dataset.journal(20) if each.step > before and each.operation == operation]
    return str(steps[-1].step) if steps and steps[-1].reason is None else None


def _ended(task: Task) -> bool:
    """Return whether a task ends within some seconds; raise its error if it fails."""
    with suppress(TimeoutError):
        task.wait(_WAIT_S)
        return True
    return False


_ACTIONS: Mapping[ActionName, Callable[[_Targets], ActionOutcome | None]] = {
    ActionName.TAG: _tag,
    ActionName.UNTAG: _untag,
    ActionName.SET_LABELS: _set_labels,
    ActionName.SET_CAPTIONS: _set_captions,
    ActionName.SET_FIELD: _set_field,
    ActionName.NOT_DUPLICATES: _not_duplicates,
    ActionName.LABEL_IS_RIGHT: _label_is_right,
    ActionName.BASKET_ADD: _basket_add,
    ActionName.BASKET_REMOVE: _basket_remove,
    ActionName.KEEP: _keep,
    ActionName.UNKEEP: _unkeep,
    ActionName.DELETE: _delete,
}
