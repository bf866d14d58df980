"""What people edit: tags, labels, captions and custom fields. Each edit is one generation."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np

from framedex.arrays import Mask, RowIds
from framedex.errors import InvalidInput, NotFound
from framedex.jobs.edits import fields as field_jobs
from framedex.jobs.edits import tags as tag_jobs
from framedex.jobs.edits.labels import caption_array, label_array, write_captions, write_labels
from framedex.jobs.edits.rows import Places, find_ids, mask_of
from framedex.jobs.edits.tag_lists import count_tags
from framedex.operations.context import Context, open_media
from framedex.operations.short_edits import Edit, editing
from framedex.operations.starting import start, with_job_context
from framedex.records import Condition, Field, FieldResult, FieldValue, Tag, TaskType
from framedex.storage import tables
from framedex.storage.definitions import FieldDefinition, TagDefinition, fields_of, held_fields, tags_of
from framedex.storage.field_results import read_result
from framedex.storage.media import Media
from framedex.storage.tables import Table
from framedex.tasks import Job, Task

_STORED_ROWS = 100_000  # values that a task keeps in the catalog, so that another process can do it again

Selection = Callable[[Media], Condition | RowIds] | Sequence[str]
"""Media that an edit is about: by a condition, made for the state that is edited, or by their ids."""


def list_tags(context: Context, dataset_id: str) -> list[Tag]:
    """Return the tags of a dataset, oldest first, with how many media have each."""
    media = open_media(context, dataset_id)
    known = tags_of(media)
    counts = count_tags(media.table) if known else {}
    return [_tag(tag, counts) for tag in known]


def create_tag(context: Context, dataset_id: str, name: str) -> Tag:
    """Make a tag and return it; see :func:`framedex.jobs.edits.tags.create_tag` for the errors."""
    with _editing(context, dataset_id, "create_tag") as (edit, media):
        tag, written = tag_jobs.create_tag(media.table, edit.job.head, name, context.settings.user)
        edit.commit(*written)
    return _tag(tag, {})


def rename_tag(context: Context, dataset_id: str, name_or_id: str, name: str) -> Tag:
    """Give a tag another name and return it; see :func:`framedex.jobs.edits.tags.rename_tag` for the errors."""
    with _editing(context, dataset_id, "rename_tag") as (edit, media):
        tag, written = tag_jobs.rename_tag(media.table, edit.job.head, name_or_id, name)
        edit.commit(*written)
        return _tag(tag, count_tags(media.table))


def delete_tag(context: Context, dataset_id: str, name_or_id: str) -> None:
    """Delete a tag, and take it off all media; see :func:`framedex.jobs.edits.tags.delete_tag` for the errors."""
    with _editing(context, dataset_id, "delete_tag") as (edit, media):
        edit.commit(*tag_jobs.delete_tag(media.table, edit.job.head, name_or_id))


def tag(context: Context, dataset_id: str, selection: Selection, name_or_id: str) -> Tag:
    """Put a tag on media and return it; see :func:`framedex.jobs.edits.tags.put_on` for the errors."""
    with _editing(context, dataset_id, "tag") as (edit, media):
        rows = _chosen(media, selection)
        found, written = tag_jobs.put_on(media.table, edit.job.head, rows, name_or_id, context.settings.user)
        edit.commit(*written)
        return _tag(found, count_tags(Table(media.table.path, written[0]["media"])))


def untag(context: Context, dataset_id: str, selection: Selection, name_or_id: str) -> Tag:
    """Take a tag off media and return it; see :func:`framedex.jobs.edits.tags.take_off` for the errors."""
    with _editing(context, dataset_id, "untag") as (edit, media):
        rows = _chosen(media, selection)
        found, written = tag_jobs.take_off(media.table, edit.job.head, rows, name_or_id)
        edit.commit(*written)
        return _tag(found, count_tags(Table(media.table.path, written[0]["media"])))


def set_labels(context: Context, dataset_id: str, selection: Selection, labels: Any) -> None:
    """Give media labels, the same to all of them.

    Raises:
        InvalidInput: these are no labels.
        NotFound: a media item does not exist.
        Conflict: a task is under way.
    """
    array = label_array([labels])
    with _editing(context, dataset_id, "set_labels") as (edit, media):
        place = np.where(_chosen(media, selection), 0, -1)
        edit.commit(write_labels(media.table, edit.job.head, array, place), edit.job.head.summary)


def set_labels_of(context: Context, dataset_id: str, labels: Mapping[str, Any]) -> None:
    """Give media labels, by their ids; raises as :func:`set_labels`."""
    ids, array = list(labels), label_array(list(labels.values()))
    with _editing(context, dataset_id, "set_labels") as (edit, media):
        edit.commit(write_labels(media.table, edit.job.head, array, _places(media, ids)), edit.job.head.summary)


def set_captions(context: Context, dataset_id: str, captions: Mapping[str, Any]) -> None:
    """Give media captions, by their ids.

    Raises:
        InvalidInput: one is neither text nor None.
        NotFound: a media item does not exist.
        Conflict: a task is under way.
    """
    ids, array = list(captions), caption_array(captions)
    with _editing(context, dataset_id, "set_captions") as (edit, media):
        edit.commit(write_captions(media.table, edit.job.head, array, _places(media, ids)), edit.job.head.summary)


def list_fields(context: Context, dataset_id: str) -> list[Field]:
    """Return the custom fields of a dataset, oldest first."""
    return [_field(field) for field in fields_of(open_media(context, dataset_id))]


def field_values(context: Context, dataset_id: str, media_id: str) -> list[FieldValue]:
    """Return the values of custom fields that a media item has.

    Raises:
        NotFound: there is no such media item.
    """
    media = open_media(context, dataset_id)
    fields = held_fields(media)
    row = media.find(media_id, [field.column.name for field in fields] or ["media_id"])
    found = ((field, row[field.column.name]) for field in fields)
    return [
        FieldValue(field_name=field.name, field_type=field.type, value=value)
        for field, value in found
        if value is not None
    ]


def start_adding_field(
    context: Context, dataset_id: str, name: str, field_type: str, enum_options: Any, is_multi: bool, values: Any
) -> Task:
    """Start the task that makes a custom field and fills it.

    Raises:
        InvalidInput: an argument cannot be used.
        Conflict: the name is taken, or a task is under way.
    """
    spec = field_jobs.check_spec(name, field_type, enum_options, is_multi)
    field_jobs.check_name_free(fields_of(open_media(context, dataset_id)), name)
    rows = _rows(values)
    return start(
        context,
        dataset_id,
        TaskType.CUSTOM_METADATA,
        lambda job, progress: field_jobs.add_field(job, spec, rows, progress=progress),
        operation="add_field",
        config=_asked(
            rows, "add_field", name=name, field_type=spec.type.value, enum_options=enum_options, is_multi=is_multi
        ),
    )


def start_setting_field(context: Context, dataset_id: str, name: str, values: Any) -> Task:
    """Start the task that gives values to a custom field.

    Raises:
        NotFound: there is no such field.
        InvalidInput: the values are neither a mapping nor rows.
        Conflict: a task is under way.
    """
    field_jobs.find_field(fields_of(open_media(context, dataset_id)), name)
    rows = _rows(values)
    return start(
        context,
        dataset_id,
        TaskType.CUSTOM_METADATA,
        lambda job, progress: field_jobs.set_field(job, name, rows, progress=progress),
        operation="set_field",
        config=_asked(rows, "set_field", name=name),
    )


def _asked(rows: Sequence[Any], operation: str, **options: Any) -> dict[str, Any] | None:
    """Return what a task is asked to do, as JSON; None where that is too much to keep, or holds what JSON cannot."""
    if len(rows) > _STORED_ROWS:
        return None
    asked = {"operation": operation, "values": list(rows), **options}
    try:
        found: dict[str, Any] = json.loads(json.dumps(asked, default=_as_text, allow_nan=False))
    except (TypeError, ValueError):
        return None
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} is kept in no task")


def field_job(context: Context, dataset_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job of a task about a custom field that is to be done again."""
    name = config["name"]
    rows = [tuple(row) if isinstance(row, list) else row for row in config["values"]]  # pairs, which JSON has as lists
    if config["operation"] == "set_field":
        return with_job_context(
            context, dataset_id, lambda job, progress: field_jobs.set_field(job, name, rows, progress=progress)
        )
    spec = field_jobs.check_spec(name, config["field_type"], config["enum_options"], config["is_multi"])
    return with_job_context(
        context, dataset_id, lambda job, progress: field_jobs.add_field(job, spec, rows, progress=progress)
    )


def field_result(context: Context, task_id: str) -> FieldResult:
    """Return how far a task that fills a custom field is, and what became of its rows.

    Raises:
        NotFound: there is no such task.
    """
    with context.catalog.read() as connection:
        return read_result(connection, task_id)


def rename_field(context: Context, dataset_id: str, name: str, new_name: str) -> Field:
    """Give a custom field another name and return it; errors as in :func:`~framedex.jobs.edits.fields.rename_field`."""
    with _editing(context, dataset_id, "rename_field") as (edit, media):
        field, written = field_jobs.rename_field(media.table, edit.job.head, name, new_name)
        edit.commit(*written)
    return _field(field)


def delete_field(context: Context, dataset_id: str, name: str) -> None:
    """Delete a custom field with its values; see :func:`framedex.jobs.edits.fields.delete_field` for the errors."""
    with _editing(context, dataset_id, "delete_field") as (edit, media):
        edit.commit(*field_jobs.delete_field(media.table, edit.job.head, name))


@contextmanager
def _editing(context: Context, dataset_id: str, operation: str) -> Iterator[tuple[Edit, Media]]:
    """Yield a short edit, and the media as they are, in a table that can be written to."""
    with editing(context, dataset_id, operation) as edit:
        job = edit.job
        version = tables.roll_back(job.table, job.head.tables["media"])
        assert version is not None, "a head has a media table"
        yield edit, Media(dataset_id, job.head, Table(job.table, version), context.sql, job.roots)


def _chosen(media: Media, selection: Selection) -> Mask:
    """Return for each row whether it is selected.

    Raises:
        NotFound: a media item does not exist.
    """
    if callable(selection):
        return mask_of(media, selection(media))
    return _places(media, selection) >= 0


def _places(media: Media, ids: Sequence[str]) -> Places:
    """Return for each row which of some ids it has; -1 for none.

    Raises:
        NotFound: a media item does not exist.
    """
    for each in ids:
        if not isinstance(each, str):
            raise InvalidInput(f"a media id is text, not {each!r}")
    found = find_ids(media.table, ids)
    if not found.known.all():
        raise NotFound(f"no media {ids[int(found.known.argmin())]!r} in this dataset; nothing was changed")
    return found.place


def _rows(values: Any) -> list[Any]:
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
