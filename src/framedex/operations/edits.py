"""Edits of tags, values and custom fields; each is committed as one generation."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask, RowIds
from framedex.editable_values import EditableValue, find_editable_value
from framedex.errors import InvalidInput, NotFound
from framedex.images.reading import check_media_id
from framedex.jobs.edits import fields as field_jobs
from framedex.jobs.edits import tags as tag_jobs
from framedex.jobs.edits.journal import TAG_COLUMNS, NewStep, edited_values, tag_facts
from framedex.jobs.edits.rows import Indices, find_ids, mask_of
from framedex.jobs.edits.tag_lists import count_tags, rows_with_tag
from framedex.jobs.edits.values import update_values
from framedex.operations.context import Context, open_media
from framedex.operations.names import Operation
from framedex.operations.short_edits import Edit, editing
from framedex.operations.starting import check_available, start, with_job_context
from framedex.records import Field, FieldResult, FieldValue, Tag, TaskType
from framedex.storage.condition import Condition
from framedex.storage.definitions import FieldDefinition, TagDefinition, fields_of, stored_fields, tags_of
from framedex.storage.field_results import read_result
from framedex.storage.media import Media
from framedex.storage.table_versions import edited_table
from framedex.tasks import Job, Task

_STORED_ROWS = 100_000  # values that the catalog stores for a retry by another process

Selection = Callable[[Media], Condition | RowIds] | Sequence[str]
"""Media to edit: a function that returns a condition for the edited state, or a list of ids."""


def list_tags(context: Context, dataset_id: str) -> list[Tag]:
    """Return the tags of a dataset, oldest first, with the number of media of each."""
    media = open_media(context, dataset_id, early=True)
    tags = tags_of(media)
    counts = count_tags(media) if tags else {}
    return [_tag(tag, counts) for tag in tags]


def create_tag(context: Context, dataset_id: str, name: str) -> Tag:
    """Create a tag and return it; errors as in :func:`framedex.jobs.edits.tags.create_tag`."""
    with _editing(context, dataset_id, "create_tag") as (edit, media):
        tag, written = tag_jobs.create_tag(media, edit.job.head, name, context.settings.user)
        edit.commit(*written, step=NewStep("create_tag", change={"tag_added": tag_facts(tag)}))
    return _tag(tag, {})


def rename_tag(context: Context, dataset_id: str, name_or_id: str, name: str) -> Tag:
    """Rename a tag and return it; errors as in :func:`framedex.jobs.edits.tags.rename_tag`."""
    with _editing(context, dataset_id, "rename_tag") as (edit, media):
        before = {each.tag_id: each.name for each in tags_of(media)}
        tag, written = tag_jobs.rename_tag(media, edit.job.head, name_or_id, name)
        renamed = {"tag_id": tag.tag_id, "before": before[tag.tag_id], "after": tag.name}
        edit.commit(*written, step=NewStep("rename_tag", change={"tag_renamed": renamed}))
    return _tag(tag, count_tags(media))


def delete_tag(context: Context, dataset_id: str, name_or_id: str) -> None:
    """Delete a tag and remove it from all media; errors as in :func:`framedex.jobs.edits.tags.delete_tag`."""
    with _editing(context, dataset_id, "delete_tag") as (edit, media):
        tag = tag_jobs.find_tag(tags_of(media), name_or_id)
        rows = rows_with_tag(media, tag.number)
        written = tag_jobs.delete_tag(media, edit.job.head, name_or_id)
        edit.commit(*written, step=_tag_step("delete_tag", media, written, rows, {"tag_removed": tag_facts(tag)}))


def tag(context: Context, dataset_id: str, selection: Selection, name_or_id: str) -> Tag:
    """Assign a tag to media and return it; errors as in :func:`framedex.jobs.edits.tags.assign_tag`."""
    with _editing(context, dataset_id, "tag") as (edit, media):
        rows, before = selected_rows(media, selection), {each.tag_id for each in tags_of(media)}
        result, written = tag_jobs.assign_tag(media, edit.job.head, rows, name_or_id, context.settings.user)
        change = {} if result.tag_id in before else {"tag_added": tag_facts(result)}
        edit.commit(*written, step=_tag_step("tag", media, written, rows, change))
    return _tag(result, count_tags(replace(media, table=edited_table(media.table.path, written[0]["media"]))))


def untag(context: Context, dataset_id: str, selection: Selection, name_or_id: str) -> Tag:
    """Remove a tag from media and return it; errors as in :func:`framedex.jobs.edits.tags.unassign_tag`."""
    with _editing(context, dataset_id, "untag") as (edit, media):
        rows = selected_rows(media, selection)
        result, written = tag_jobs.unassign_tag(media, edit.job.head, rows, name_or_id)
        edit.commit(*written, step=_tag_step("untag", media, written, rows, {}))
    return _tag(result, count_tags(replace(media, table=edited_table(media.table.path, written[0]["media"]))))


def _tag_step(
    operation: str, media: Media, written: tag_jobs.NewState, rows: Mask, change: Mapping[str, Any]
) -> NewStep:
    version = written[0]["media"]
    if version == media.table.version:  # no media changed
        return NewStep(operation, change=change)
    return edited_values(operation, media, version, rows, TAG_COLUMNS, change)


def set_value(
    context: Context, dataset_id: str, name: str, selection: Selection | Mapping[str, Any], value: Any, operation: str
) -> None:
    """Set an editable value of media.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        name: the name of the value.
        selection: the media; or values by media id.
        value: the value of all media of a selection.
        operation: name of the operation for messages.

    Raises:
        InvalidInput: the name or a value is invalid.
        NotFound: a media item does not exist.
        Conflict: a task is in progress.
    """
    editable = find_editable_value(name)
    array = _values_by_id(editable, selection) if isinstance(selection, Mapping) else editable.array([value])
    with _editing(context, dataset_id, operation) as (edit, media):
        if isinstance(selection, Mapping):
            indices = _indices_of(media, list(selection))
        else:
            indices = np.where(selected_rows(media, selection), 0, -1)
        versions, summary = update_values(media, edit.job.head, editable, array, indices)
        step = edited_values(operation, media, versions["media"], indices >= 0, [editable.name], {})
        edit.commit(versions, summary, step=step)


def _values_by_id(editable: EditableValue, values: Mapping[str, Any]) -> pa.Array:
    try:
        return editable.array(values.values())
    except InvalidInput:
        for media_id, each in values.items():
            try:
                editable.parse(each)
            except InvalidInput as error:
                raise InvalidInput(f"{error}; it is that of media {media_id!r}") from None
        raise


def list_fields(context: Context, dataset_id: str) -> list[Field]:
    """Return the custom fields of a dataset, oldest first."""
    return [_field(field) for field in fields_of(open_media(context, dataset_id))]


def field_values(context: Context, dataset_id: str, media_id: str) -> list[FieldValue]:
    """Return the custom field values of a media item.

    Raises:
        NotFound: the media item does not exist.
    """
    check_media_id(media_id)
    media = open_media(context, dataset_id)
    fields = stored_fields(media)
    row = media.find(media_id, [field.column.name for field in fields] or ["media_id"])
    result = ((field, row[field.column.name]) for field in fields)
    return [
        FieldValue(field_name=field.name, field_type=field.type, value=value)
        for field, value in result
        if value is not None
    ]


def check_new_field(
    context: Context, dataset_id: str, name: str, field_type: str, enum_options: Any, is_multi: bool
) -> None:
    """Check that a custom field can be created now; errors as in :func:`start_adding_field`."""
    field_jobs.check_spec(name, field_type, enum_options, is_multi)
    with context.catalog.write() as connection:
        check_available(connection, dataset_id, Operation.ADD_FIELD)
    field_jobs.check_name_free(fields_of(open_media(context, dataset_id)), name)


def start_adding_field(
    context: Context,
    dataset_id: str,
    name: str,
    field_type: str,
    enum_options: Any,
    is_multi: bool,
    values: Any,
    task_id: str | None = None,
) -> Task:
    """Start the task that creates a custom field and writes its values.

    Raises:
        InvalidInput: an argument is invalid.
        Conflict: the name is in use, a task is in progress, or a task has the id.
    """
    spec = field_jobs.check_spec(name, field_type, enum_options, is_multi)
    field_jobs.check_name_free(fields_of(open_media(context, dataset_id)), name)
    rows = _value_rows(values)
    return start(
        context,
        dataset_id,
        TaskType.CUSTOM_METADATA,
        lambda job, progress: field_jobs.add_field(job, spec, rows, progress=progress),
        operation=Operation.ADD_FIELD,
        config=_task_config(
            rows,
            Operation.ADD_FIELD,
            name=name,
            field_type=spec.type.value,
            enum_options=enum_options,
            is_multi=is_multi,
        ),
        task_id=task_id,
    )


def start_setting_field(context: Context, dataset_id: str, name: str, values: Any) -> Task:
    """Start the task that writes values of a custom field.

    Raises:
        NotFound: the dataset has no such field.
        InvalidInput: the values are neither a mapping nor a list of rows.
        Conflict: a task is in progress.
    """
    field_jobs.find_field(fields_of(open_media(context, dataset_id)), name)
    rows = _value_rows(values)
    return start(
        context,
        dataset_id,
        TaskType.CUSTOM_METADATA,
        lambda job, progress: field_jobs.set_field(job, name, rows, progress=progress),
        operation=Operation.SET_FIELD,
        config=_task_config(rows, Operation.SET_FIELD, name=name),
    )


def _task_config(rows: Sequence[Any], operation: Operation, **options: Any) -> dict[str, Any] | None:
    """Return the config of a task, as JSON; None if the values are too many, or cannot be JSON."""
    if len(rows) > _STORED_ROWS:
        return None
    config = {"operation": operation, "values": list(rows), **options}
    try:
        result: dict[str, Any] = json.loads(json.dumps(config, default=_as_text, allow_nan=False))
    except (TypeError, ValueError):
        return None
    return result


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} cannot be stored with a task")


def field_job(context: Context, dataset_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job of a task that writes a custom field, for a retry."""
    name = config["name"]
    rows = [tuple(row) if isinstance(row, list) else row for row in config["values"]]  # pairs, which JSON has as lists
    if config["operation"] == Operation.SET_FIELD:
        return with_job_context(
            context, dataset_id, lambda job, progress: field_jobs.set_field(job, name, rows, progress=progress)
        )
    spec = field_jobs.check_spec(name, config["field_type"], config["enum_options"], config["is_multi"])
    return with_job_context(
        context, dataset_id, lambda job, progress: field_jobs.add_field(job, spec, rows, progress=progress)
    )


def field_result(context: Context, task_id: str) -> FieldResult:
    """Return the progress of a task that writes a custom field, and its row counts.

    Raises:
        NotFound: there is no such task.
    """
    with context.catalog.read() as connection:
        return read_result(connection, task_id)


def rename_field(context: Context, dataset_id: str, name: str, new_name: str) -> Field:
    """Rename a custom field and return it; errors as in :func:`~framedex.jobs.edits.fields.rename_field`."""
    with _editing(context, dataset_id, "rename_field") as (edit, media):
        field, written = field_jobs.rename_field(media.table, edit.job.head, name, new_name)
        renamed = {"field_id": field.field_id, "before": name, "after": field.name}
        edit.commit(*written, step=NewStep("rename_field", change={"field_renamed": renamed}))
    return _field(field)


def delete_field(context: Context, dataset_id: str, name: str) -> None:
    """Delete a custom field and its values; errors as in :func:`framedex.jobs.edits.fields.delete_field`."""
    with _editing(context, dataset_id, "delete_field") as (edit, media):
        column = field_jobs.find_field(fields_of(media), name).column.name
        n_media = 0
        if column in media.table.schema.names:
            n_media = media.count(Condition(f"{column} IS NOT NULL", (), frozenset({column})))
        written = field_jobs.delete_field(media.table, edit.job.head, name)
        edit.commit(*written, step=NewStep("delete_field", n_media, is_state=True))


@contextmanager
def _editing(context: Context, dataset_id: str, operation: str) -> Iterator[tuple[Edit, Media]]:
    """Yield a short edit, and the media at the head, in a writable table."""
    with editing(context, dataset_id, operation) as edit:
        yield edit, edit.media(context)


def selected_rows(media: Media, selection: Selection) -> Mask:
    """Return the mask of selected rows: bool, shape (rows,).

    Raises:
        NotFound: a media item does not exist.
    """
    if callable(selection):
        return mask_of(media, selection(media))
    return _indices_of(media, selection) >= 0


def as_selection(selection: Any) -> Sequence[str]:
    """Return the media ids of a selection that is no view: one id, or a sequence of ids.

    Raises:
        InvalidInput: it is something else.
    """
    if isinstance(selection, str):
        return [selection]
    if isinstance(selection, Mapping) or not isinstance(selection, Sequence):
        raise InvalidInput(
            f"a selection must be a view, a media id or a sequence of media ids, not {type(selection).__name__}"
        )
    return selection


def _indices_of(media: Media, ids: Sequence[str]) -> Indices:
    """Return the index of each row's id in a list of ids, -1 if not listed: int64, shape (rows,).

    Raises:
        InvalidInput: an id is not text.
        NotFound: a media item does not exist.
    """
    for each in ids:
        if not isinstance(each, str):
            raise InvalidInput(f"a media id is text, not {each!r}")
    result = find_ids(media, ids)
    if not result.exists.all():
        raise NotFound(f"no media {ids[int(result.exists.argmin())]!r} in this dataset; nothing was changed")
    return result.indices


def _value_rows(values: Any) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, Mapping):
        return list(values.items())
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(
            "values are a mapping of media ids to values, or a list of objects with 'media_id' and 'value', "
            f"not {type(values).__name__}"
        )
    return list(values)


def _tag(tag: TagDefinition, counts: Mapping[int, int]) -> Tag:
    return Tag(
        tag_id=tag.tag_id,
        name=tag.name,
        created_at=tag.created_at,
        created_by=tag.created_by,
        count=counts.get(tag.number, 0),
    )


def _field(field: FieldDefinition) -> Field:
    return Field(
        field_id=field.field_id,
        field_name=field.name,
        field_type=field.type,
        enum_options=field.enum_options,
        is_multi=field.is_multi,
        created_at=field.created_at,
        created_by=field.created_by,
    )
