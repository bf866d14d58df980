"""Edits of a dataset of a service: tags, labels, captions, custom fields, limits, decisions, the journal."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from framedex.api.record_list import RecordList
from framedex.client import calls
from framedex.client.actions import act, tag_named
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.client.view import ClientView
from framedex.client.work import ClientTask
from framedex.errors import InvalidInput, NotFound, TaskFailed
from framedex.records import (
    CleanupSummary,
    DuplicateDecision,
    DuplicateGroup,
    Field,
    FieldResult,
    FieldValue,
    IssueLimit,
    JournalStep,
    LabelDecision,
    Tag,
)
from framedex.vql import BASKET, parse, tags, to_json

_NOT_GIVEN: Any = object()
_BY_ID = 500
_FIRST_S, _LONGEST_S = 0.05, 1.0


class ClientEdits:
    """Edits of a dataset of a service; see :class:`framedex.Dataset`. Values by id are sent 500 at a time."""

    _connection: Connection
    id: str

    def tags(self) -> list[Tag]:
        """Return the tags, oldest first, each with its number of media."""
        return RecordList(Tag.model_validate(each) for each in self._connection.json(calls.TAGS, dataset_id=self.id))

    def create_tag(self, name: str) -> Tag:
        """Create a tag without media, and return it."""
        return Tag.model_validate(self._connection.json(calls.CREATE_TAG, body={"name": name}, dataset_id=self.id))

    def rename_tag(self, tag: str, name: str) -> Tag:
        """Rename a tag (by name or id), and return it."""
        found = tag_named(self._connection, self.id, tag)
        body = self._connection.json(calls.RENAME_TAG, body={"name": name}, dataset_id=self.id, tag=found.tag_id)
        return Tag.model_validate(body)

    def delete_tag(self, tag: str) -> None:
        """Delete a tag (by name or id), and remove it from all media."""
        found = tag_named(self._connection, self.id, tag)
        self._connection.json(calls.DELETE_TAG, dataset_id=self.id, tag=found.tag_id)

    def tag(self, selection: Any, tag: str) -> Tag:
        """Tag media, and return the tag; see :meth:`framedex.Dataset.tag`."""
        act(self._connection, self.id, "tag", selection, tag=tag)
        return tag_named(self._connection, self.id, tag)

    def untag(self, selection: Any, tag: str) -> Tag:
        """Remove a tag (by name or id) from media, and return it."""
        act(self._connection, self.id, "untag", selection, tag=tag)
        return tag_named(self._connection, self.id, tag)

    def set_labels(self, selection: Any, labels: Any = _NOT_GIVEN) -> None:
        """Replace the labels of media; see :meth:`framedex.Dataset.set_labels`."""
        self._set("set_labels", "labels", selection, labels)

    def set_captions(self, captions: Mapping[str, str | None]) -> None:
        """Replace the captions of media, by media id; None removes a caption."""
        if not isinstance(captions, Mapping):
            raise InvalidInput(f"set_captions takes captions by media id, not {type(captions).__name__}")
        self._set("set_captions", "caption", captions, _NOT_GIVEN)

    def _set(self, action: str, value_name: str, selection: Any, value: Any, **more: Any) -> list[dict[str, Any]]:
        if isinstance(selection, Mapping) != (value is _NOT_GIVEN):
            raise InvalidInput(f"{action} takes either values by media id, or a selection and its value")
        if not isinstance(selection, Mapping):
            return [act(self._connection, self.id, action, selection, **{value_name: value}, **more)]
        values = {media_id: _as_json(each) for media_id, each in selection.items()}
        return [act(self._connection, self.id, action, None, values=part, **more) for part in _parts(values)]

    def label_is_right(self, selection: Any) -> LabelDecision:
        """Record the decision that the present labels of media are right, and return it."""
        act(self._connection, self.id, "label_is_right", selection)
        return self.label_decisions()[-1]

    def not_duplicates(self, media_ids: Sequence[str] | DuplicateGroup) -> DuplicateDecision:
        """Record the decision that media are not duplicates of one another, and return it."""
        ids = media_ids.media_ids if isinstance(media_ids, DuplicateGroup) else media_ids
        act(self._connection, self.id, "not_duplicates", list(ids))
        return self.duplicate_decisions()[-1]

    def duplicate_decisions(self) -> list[DuplicateDecision]:
        """Return the decisions made by :meth:`not_duplicates`, oldest first."""
        body = self._connection.json(calls.DECISIONS, dataset_id=self.id)
        return RecordList(DuplicateDecision.model_validate(each) for each in body["duplicates"])

    def label_decisions(self) -> list[LabelDecision]:
        """Return the decisions made by :meth:`label_is_right`, oldest first."""
        body = self._connection.json(calls.DECISIONS, dataset_id=self.id)
        return RecordList(LabelDecision.model_validate(each) for each in body["labels"])

    def withdraw_decision(self, decision_id: str) -> None:
        """Withdraw a decision about duplicates or labels."""
        self._connection.json(calls.WITHDRAW_DECISION, dataset_id=self.id, decision_id=decision_id)

    def keep(self, selection: Any) -> None:
        """Choose media to keep, which no clean-up removes."""
        act(self._connection, self.id, "keep", selection)

    def unkeep(self, selection: Any) -> None:
        """Let clean-ups remove media again that were kept."""
        act(self._connection, self.id, "unkeep", selection)

    def kept_ids(self) -> list[str]:
        """Return the ids of the media that people chose to keep, in row order."""
        return list(self._connection.json(calls.DECISIONS, dataset_id=self.id)["kept"])

    @property
    def basket(self) -> "ClientBasket":
        """The media in the basket, a view with the methods ``add``, ``remove`` and ``clear``."""
        selection = ViewParts(vql=tuple(to_json(parse(tags(BASKET)))))
        return ClientBasket(self._connection, self.id, selection)

    def delete_media(self, selection: Any, *, wait: bool = True) -> ClientTask | None:
        """Delete media from the dataset; see :meth:`framedex.Dataset.delete_media`.

        Returns:
            the task, if it is still running; None if it has ended.
        """
        answer = act(self._connection, self.id, "delete", selection)
        if answer["task_id"] is None:
            return None
        task = ClientTask(self._connection, answer["task_id"], self.id)
        if wait:
            task.wait()
        return task

    def journal(self, limit: int | None = 100) -> list[JournalStep]:
        """Return the steps by which the dataset was edited, the last first."""
        steps: list[JournalStep] = []
        has_more = True
        while has_more and (limit is None or len(steps) < limit):
            query = {"offset": len(steps), "limit": 500 if limit is None else min(500, limit - len(steps))}
            page = self._connection.json(calls.JOURNAL, query=query, dataset_id=self.id)
            steps += [JournalStep.model_validate(each) for each in page["steps"]]
            has_more = page["has_more"]
        return RecordList(steps)

    def journal_values(self, step: int) -> pa.Table:
        """Return the values that a step of the journal keeps; see :meth:`framedex.Dataset.journal_values`."""
        return self._connection.table(calls.STEP_VALUES, dataset_id=self.id, step=step)

    def undo(self, step: int | None = None) -> JournalStep:
        """Undo a step of the journal, by default the last one, and return it."""
        return self._changed_step(calls.UNDO, step)

    def redo(self, step: int | None = None) -> JournalStep:
        """Do a step again that was undone, by default the last one, and return it."""
        return self._changed_step(calls.REDO, step)

    def _changed_step(self, call: calls.Call, step: int | None) -> JournalStep:
        body = {"token": None if step is None else str(step)}
        answer = self._connection.json(call, body=body, dataset_id=self.id)
        changed = next(each for each in self.journal(None) if each.step == int(answer["undo"]))
        return changed.model_copy(update={"lost_files": answer["lost_files"] or None})

    @property
    def limits(self) -> dict[str, IssueLimit]:
        """The limit of each issue type with a value, by name, with its default."""
        body = self._connection.json(calls.LIMITS, dataset_id=self.id)
        return {each["issue_type"]: IssueLimit.model_validate(each) for each in body}

    def set_limits(self, **limits: float | None) -> None:
        """Set limits of issue types; None returns to the default."""
        self._connection.json(calls.SET_LIMITS, body={"limits": limits}, dataset_id=self.id)

    def reset_limits(self, *issue_types: str) -> None:
        """Return limits to their defaults: those of the given issue types, or all."""
        self._connection.json(calls.SET_LIMITS, body={"reset": list(issue_types)}, dataset_id=self.id)

    def fields(self) -> list[Field]:
        """Return the custom fields, oldest first."""
        return RecordList(
            Field.model_validate(each) for each in self._connection.json(calls.FIELDS, dataset_id=self.id)
        )

    def field_values(self, media_id: str) -> list[FieldValue]:
        """Return the custom field values of a media item."""
        body = self._connection.json(calls.FIELD_VALUES, dataset_id=self.id, media_id=media_id)
        return RecordList(FieldValue.model_validate(each) for each in body)

    def add_field(
        self,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
        values: Mapping[str, Any] | None = None,
    ) -> FieldResult:
        """Create a custom field, set its values, and return the result; see :meth:`framedex.Dataset.add_field`."""
        body = {
            "field_name": name, "field_type": field_type, "is_multi": is_multi,
            "enum_options": None if enum_options is None else list(enum_options),
        }  # fmt: skip
        if values is None:
            self._connection.json(calls.CREATE_FIELD, body=body, dataset_id=self.id)
            return self.set_field(name, {})
        task_id = self._connection.json(calls.NEW_FIELD_TASK, body=body, dataset_id=self.id)["task_id"]
        rows = [{"media_id": media_id, "value": _as_json(value)} for media_id, value in values.items()]
        self._connection.json(calls.FILL_FIELD, body=rows, dataset_id=self.id, metadata_task_id=task_id)
        return self._filled(task_id)

    def _filled(self, task_id: str) -> FieldResult:
        """Return the result of a task that fills a field, once it has ended."""
        pause = _FIRST_S
        while True:
            body = self._connection.json(calls.FIELD_STATUS, dataset_id=self.id, metadata_task_id=task_id)
            result = FieldResult.model_validate(body)
            if result.status.startswith("COMPLETED"):
                return result
            if result.status in ("FAILED", "ABORTED"):
                raise TaskFailed(f"task {task_id} failed")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)

    def set_field(self, name: str, values: Mapping[str, Any]) -> FieldResult:
        """Set values of a custom field, and return the result, in which rows are counted over all parts."""
        answers = self._set("set_field", "value", values, _NOT_GIVEN, name=name)
        for each in answers:
            if each["task_id"] is not None:
                ClientTask(self._connection, each["task_id"], self.id).wait()
        errors = [error for each in answers for error in each["errors"]]
        return FieldResult(
            task_id="",
            status="COMPLETED_WITH_ERRORS" if errors else "COMPLETED",
            progress=100,
            inserted_rows=sum(each["count"] for each in answers),
            error_count=len(errors),
            sample_errors=errors[:100],
        )

    def rename_field(self, name: str, new_name: str) -> Field:
        """Rename a custom field, and return it."""
        body = {"field_name": new_name}
        return Field.model_validate(
            self._connection.json(calls.RENAME_FIELD, body=body, dataset_id=self.id, field=self._field(name).field_id)
        )

    def delete_field(self, name: str) -> None:
        """Delete a custom field with all its values."""
        self._connection.json(calls.DELETE_FIELD, dataset_id=self.id, field=self._field(name).field_id)

    def _field(self, name: str) -> Field:
        found = next((each for each in self.fields() if each.field_name == name), None)
        if found is None:
            raise NotFound(f"no field {name!r} in this dataset")
        return found

    def plan_cleanup(
        self,
        *,
        duplicates: float | str | None = None,
        issues: Sequence[str] | Mapping[str, float] = (),
        keep: str = "best",
        basket: bool = False,
        unsure: bool = False,
        within_videos: bool = False,
        where: Sequence[Any] | None = None,
    ) -> "ClientPlan":
        """Return a plan of media to remove; see :meth:`framedex.Dataset.plan_cleanup`."""
        rules = {
            "duplicates": duplicates,
            "issues": dict(issues) if isinstance(issues, Mapping) else list(issues),
            "keep": keep,
            "basket": basket,
            "unsure": unsure,
            "within_videos": within_videos,
            "where": None if where is None else to_json(parse(where)),
        }
        body = self._connection.json(calls.PLAN_CLEANUP, body=rules, dataset_id=self.id)
        return ClientPlan(self._connection, self.id, body)


class ClientBasket(ClientView):
    """The media that are in the basket of a dataset of a service, as a view; see :class:`framedex.Basket`."""

    def add(self, selection: Any, *, keep: str | None = None) -> None:
        """Put media into the basket, and keep one media item in their place; see :meth:`framedex.Basket.add`."""
        act(self._connection, self._dataset_id, "basket_add", selection, **({} if keep is None else {"keep": keep}))

    def remove(self, selection: Any) -> None:
        """Take media out of the basket."""
        act(self._connection, self._dataset_id, "basket_remove", selection)

    def where(self, vql: Sequence[Any]) -> "ClientBasket":
        """Return the part of the basket that passes a filter."""
        return ClientBasket(self._connection, self._dataset_id, super().where(vql)._selection)

    def clear(self) -> None:
        """Take the media of this view out of the basket."""
        self.remove(self)


class ClientPlan:
    """A clean-up plan of a service, kept there for ten minutes; see :class:`framedex.CleanupPlan`.

    Attributes:
        summary: the numbers of media to remove, by reason, and the size of their files.
        words: the summary in words.
    """

    def __init__(self, connection: Connection, dataset_id: str, body: Mapping[str, Any]) -> None:
        self._connection, self._dataset_id, self._plan_id = connection, dataset_id, body["plan_id"]
        self.summary, self.words = CleanupSummary.model_validate(body["summary"]), str(body["words"])

    def __len__(self) -> int:
        """Return the number of media to remove."""
        return self.summary.removed

    def to_arrow(self) -> pa.Table:
        """Return a row for each media item to remove or to keep; see :meth:`framedex.CleanupPlan.to_arrow`.

        Raises:
            Gone: the plan is not kept any more.
        """
        return self._connection.table(calls.PLAN_ROWS, dataset_id=self._dataset_id, plan_id=self._plan_id)

    def without(self, selection: str | Sequence[str]) -> "ClientPlan":
        """Return the plan that leaves some of the media to remove in the dataset.

        Raises:
            InvalidInput: the plan does not remove one of the media.
            Gone: the plan is not kept any more.
        """
        ids = [selection] if isinstance(selection, str) else list(selection)
        body = {"media_ids": ids}
        ids_of_plan = {"dataset_id": self._dataset_id, "plan_id": self._plan_id}
        answer = self._connection.json(calls.PLAN_WITHOUT, body=body, **ids_of_plan)
        return ClientPlan(self._connection, self._dataset_id, answer)

    def start(self, *, delete_files: bool = False) -> ClientTask:
        """Start the removal of the media of the plan, and return the task.

        Raises:
            Conflict: the dataset has changed since the plan was made, or another of its tasks is running.
            Forbidden: the user may not do it.
            InvalidInput: the plan removes nothing.
            Gone: the plan is not kept any more.
        """
        if not len(self):
            raise InvalidInput("the plan removes nothing")
        body = {"plan_id": self._plan_id, "delete_files": delete_files}
        answer = self._connection.json(calls.APPLY_CLEANUP, body=body, dataset_id=self._dataset_id)
        return ClientTask(self._connection, answer["task_id"], self._dataset_id)

    def __repr__(self) -> str:
        return f"<framedex.ClientPlan: {self.words}>"


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return [_as_json(each) for each in value] if isinstance(value, list | tuple) else value


def _parts(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    ids = list(values)
    for start in range(0, len(ids), _BY_ID):
        yield {each: values[each] for each in ids[start : start + _BY_ID]}
