"""Edits: actions with undo, the journal, tags, custom fields, limits, decisions."""

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from framedex.access import Action
from framedex.core.counts import counted
from framedex.errors import InvalidInput, NotFound
from framedex.hub.actions import ActionName, ActionOutcome, apply_action, redo_step, undo_step
from framedex.records import Field, IssueLimit, Tag
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_results import (
    ActionRequest,
    DecisionList,
    FieldName,
    JournalPage,
    NewField,
    NewLimits,
    StepRequest,
    StepValues,
    TagName,
)
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("edits")

_DATASET = "/dataset/{dataset_id}"


@router.post(_DATASET + "/actions")
@needs(Action.DATASET_EDIT, heavy=True)
def act_on_media(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: ActionRequest
) -> ActionOutcome:
    """Change media as one step: results, or up to 500 ids.

    Arguments: ``tag`` for tag and untag; ``labels``, ``caption``, or ``name`` and ``value`` for a field, or instead of
    one value ``values`` by media id. With ``expect_generation``, media that have changed since are a conflict.
    """
    on = body.on
    if on is not None and (on.rid is None) == (on.ids is None):
        raise InvalidInput("an action is on either on.rid or on.ids")
    media = None if on is None else on.ids if on.rid is None else service.hub.results.get(actor, dataset, on.rid)
    outcome = apply_action(dataset, body.action, media, body.args, expect_generation=body.expect_generation)
    if body.action is ActionName.DELETE:
        service.hub.trail.note(
            actor, "media.delete", dataset_id=dataset.id, target=f"{counted(outcome.count, 'media')}"
        )
    return outcome


@router.post(_DATASET + "/undo")
@needs(Action.DATASET_EDIT, heavy=True)
def undo_action(dataset_id: str, dataset: OpenedDataset, body: StepRequest) -> ActionOutcome:
    """Undo an action by its token; a conflict says why it cannot be undone."""
    return undo_step(dataset, body.token)


@router.post(_DATASET + "/redo")
@needs(Action.DATASET_EDIT, heavy=True)
def redo_action(dataset_id: str, dataset: OpenedDataset, body: StepRequest) -> ActionOutcome:
    """Do an action again that was undone."""
    return redo_step(dataset, body.token)


@router.get(_DATASET + "/journal")
@needs(Action.DATASET_VIEW)
def journal_page(
    dataset_id: str,
    dataset: OpenedDataset,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> JournalPage:
    """Return steps of the journal, the last first."""
    steps = dataset.journal(offset + limit + 1)
    return JournalPage(steps=steps[offset : offset + limit], has_more=len(steps) > offset + limit)


@router.get(_DATASET + "/journal/{step}", response_model=StepValues, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW)
def journal_step_values(
    dataset_id: str,
    step: Annotated[int, Path(ge=1, le=2**62)],
    request: Request,
    dataset: OpenedDataset,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Any:
    """Return the values that a step of the journal keeps: of each media item those before and after it.

    Pages come as JSON; an Arrow stream has all of them.
    """
    values = dataset.journal_values(step)
    if wants_arrow(request):
        return arrow_response(values.schema, [values])
    return StepValues(rows=values.slice(offset, limit).to_pylist(), total=values.num_rows)


@router.get(_DATASET + "/tags")
@needs(Action.DATASET_VIEW)
def tags_of_dataset(dataset_id: str, dataset: OpenedDataset) -> list[Tag]:
    """Return the tags, the oldest first."""
    return dataset.tags()


@router.post(_DATASET + "/tags")
@needs(Action.DATASET_EDIT)
def add_tag(dataset_id: str, dataset: OpenedDataset, body: TagName) -> Tag:
    """Create a tag."""
    return dataset.create_tag(body.name)


@router.patch(_DATASET + "/tags/{tag}")
@needs(Action.DATASET_EDIT)
def change_tag(dataset_id: str, tag: str, dataset: OpenedDataset, body: TagName) -> Tag:
    """Rename a tag, given by its id or its name."""
    return dataset.rename_tag(tag, body.name)


@router.delete(_DATASET + "/tags/{tag}", response_class=Response)
@needs(Action.DATASET_EDIT)
def remove_tag(dataset_id: str, tag: str, dataset: OpenedDataset) -> Response:
    """Delete a tag, given by its id or its name, and remove it from all media."""
    dataset.delete_tag(tag)
    return Response()


@router.get(_DATASET + "/fields")
@needs(Action.DATASET_VIEW)
def fields_of_dataset(dataset_id: str, dataset: OpenedDataset) -> list[Field]:
    """Return the custom fields, the oldest first."""
    return dataset.fields()


@router.post(_DATASET + "/fields")
@needs(Action.DATASET_EDIT)
def define_field(dataset_id: str, dataset: OpenedDataset, body: NewField) -> Field:
    """Create a custom field without values."""
    dataset.add_field(body.field_name, body.field_type, enum_options=body.enum_options, is_multi=body.is_multi)
    return _field_named(dataset.fields(), body.field_name)


@router.patch(_DATASET + "/fields/{field}")
@needs(Action.DATASET_EDIT)
def change_field(dataset_id: str, field: str, dataset: OpenedDataset, body: FieldName) -> Field:
    """Rename a custom field, given by its id or its name."""
    return dataset.rename_field(_field_named(dataset.fields(), field).field_name, body.field_name)


@router.delete(_DATASET + "/fields/{field}", response_class=Response)
@needs(Action.DATASET_EDIT)
def remove_field(
    dataset_id: str, field: str, service: Service, actor: CurrentActor, dataset: OpenedDataset
) -> Response:
    """Delete a custom field, given by its id or its name, with all its values."""
    name = _field_named(dataset.fields(), field).field_name
    dataset.delete_field(name)
    service.hub.trail.note(actor, "field.delete", dataset_id=dataset.id, target=name)
    return Response()


@router.get(_DATASET + "/limits")
@needs(Action.DATASET_VIEW)
def limits_of_dataset(dataset_id: str, dataset: OpenedDataset) -> list[IssueLimit]:
    """Return the limits of the issue types."""
    return list(dataset.limits.values())


@router.post(_DATASET + "/limits")
@needs(Action.DATASET_EDIT, heavy=True)
def change_limits_of_dataset(dataset_id: str, dataset: OpenedDataset, body: NewLimits) -> list[IssueLimit]:
    """Set limits of issue types, or reset them, and return all."""
    if (body.limits is None) == (body.reset is None):
        raise InvalidInput("give either limits or reset")
    known = dataset.limits
    unknown = sorted(set(body.reset or body.limits or ()) - known.keys())
    if unknown:
        raise InvalidInput(f"no issue type with a limit is named {unknown[0]!r:.80}; choose of {', '.join(known)}")
    if body.limits is not None:
        dataset.set_limits(**body.limits)
    else:
        dataset.reset_limits(*body.reset or ())
    return list(dataset.limits.values())


@router.get(_DATASET + "/decisions")
@needs(Action.DATASET_VIEW)
def decisions_of_dataset(dataset_id: str, dataset: OpenedDataset) -> DecisionList:
    """Return the decisions about duplicates, labels and media to keep."""
    return DecisionList(
        duplicates=dataset.duplicate_decisions(), labels=dataset.label_decisions(), kept=dataset.kept_ids()
    )


@router.delete(_DATASET + "/decisions/{decision_id}", response_class=Response)
@needs(Action.DATASET_EDIT, heavy=True)
def remove_decision(dataset_id: str, decision_id: str, dataset: OpenedDataset) -> Response:
    """Withdraw a decision about duplicates or labels."""
    dataset.withdraw_decision(decision_id)
    return Response()


def _field_named(fields: list[Field], name_or_id: str) -> Field:
    found = next((each for each in fields if name_or_id in (each.field_id, each.field_name)), None)
    if found is None:
        raise NotFound(f"no field {name_or_id!r:.300} in this dataset")
    return found
