"""Custom fields: their definitions, and the jobs that write their values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from framedex.core.checks import check_flag
from framedex.core.ids import new_id
from framedex.core.naming import check_name
from framedex.core.printable import is_printable, is_visible
from framedex.errors import InvalidInput, NotFound
from framedex.export.table_columns import reserved_names
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.field_definitions import field_facts
from framedex.jobs.edits.field_values import RowOutcome, read_values
from framedex.jobs.edits.journal import NewStep, edited_values
from framedex.jobs.edits.rows import write_values
from framedex.jobs.edits.tags import NewState, next_number, with_next_number
from framedex.records import FieldType
from framedex.storage import tables
from framedex.storage.definitions import FIELDS, FieldDefinition, read_fields, write_fields
from framedex.storage.field_results import keep_result
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress

_MAX_OPTION = 20


@dataclass(frozen=True)
class FieldSpec:
    """Definition of a custom field, as the user requests it.

    Attributes:
        name: unique in the dataset.
        type: type of the values.
        enum_options: allowed values, for the type enum only.
        is_multi: whether a media item has a list of values.
    """

    name: str
    type: FieldType
    enum_options: list[str] | None
    is_multi: bool


def check_spec(name: Any, field_type: Any, enum_options: Any, is_multi: Any) -> FieldSpec:
    """Return the definition of a custom field.

    Raises:
        InvalidInput: the type is unknown, or the options or the name are invalid.
    """
    check_name("field", name, reserved=reserved_names())
    try:
        kind = FieldType(field_type)
    except ValueError:
        raise InvalidInput(f"no field type {field_type!r}; there are: {', '.join(FieldType)}") from None
    check_flag("is_multi", is_multi)
    if kind is not FieldType.ENUM:
        if enum_options:
            raise InvalidInput(f"only a field of type enum has options; {name!r} is of type {kind}")
        return FieldSpec(name, kind, None, is_multi)
    return FieldSpec(name, kind, _check_options(enum_options), is_multi)


def _check_options(options: Any) -> list[str]:
    if isinstance(options, str) or not isinstance(options, Sequence) or not options:
        raise InvalidInput(f"a field of type enum needs a list of at least one option, not {options!r}")
    for option in options:
        if not _is_option(option):
            raise InvalidInput(f"an option is 1 to {_MAX_OPTION} printable characters, not {option!r}")
    if len(set(options)) < len(options):
        duplicate = next(option for index, option in enumerate(options) if option in options[:index])
        raise InvalidInput(f"the options must differ; {duplicate!r} is there twice")
    return list(options)


def _is_option(option: Any) -> bool:
    is_text = isinstance(option, str) and len(option) <= _MAX_OPTION
    return is_text and is_printable(option) and is_visible(option)


def check_name_free(fields: Sequence[FieldDefinition], name: str) -> None:
    """Check that a field name is valid and not in use.

    Raises:
        InvalidInput: the name is not valid.
        Conflict: a field has this name.
    """
    check_name("field", name, taken=[field.name for field in fields], reserved=reserved_names())


def add_field(job: JobContext, spec: FieldSpec, rows: Sequence[Any], *, progress: TaskProgress) -> Commit:
    """Write a new custom field with its values and return the commit.

    Args:
        job: the dataset.
        spec: the field.
        rows: see :func:`framedex.jobs.edits.field_values.read_values`.
        progress: of the task.

    Raises:
        Conflict: the name is in use.
    """
    fields = read_fields(job.table, job.head.tables)
    check_name_free(fields, spec.name)
    number = next_number(job.head, FIELDS, [field.number for field in fields])
    created_by = job.settings.user
    field = FieldDefinition(
        new_id(), number, spec.name, spec.type, spec.enum_options, spec.is_multi, datetime.now(UTC), created_by
    )
    written = write_fields(job.table, [*fields, field])
    summary = with_next_number(job.head, FIELDS, number + 1)
    return _fill(job, _with(job.head, {FIELDS: written}, summary), field, rows, progress)


def set_field(job: JobContext, name: str, rows: Sequence[Any], *, progress: TaskProgress) -> Commit:
    """Write values of a custom field and return the commit; arguments as for :func:`add_field`.

    Raises:
        NotFound: the dataset has no such field.
    """
    field = find_field(read_fields(job.table, job.head.tables), name)
    return _fill(job, job.head, field, rows, progress)


def _with(head: Generation, versions: dict[str, int], summary: Summary) -> Generation:
    """Return a generation with the versions of some tables, and the summary, replaced."""
    return head.model_copy(update={"tables": {**head.tables, **versions}, "summary": summary})


def _fill(
    job: JobContext, head: Generation, field: FieldDefinition, rows: Sequence[Any], progress: TaskProgress
) -> Commit:
    version = tables.roll_back(job.table, job.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    media = Media(job.dataset_id, job.head, Table(job.table, version), Sql(), job.roots)
    new = read_values(media, field, rows, progress=progress.part("reading values", 0.0, 0.6))
    is_new = head is not job.head
    change = {"field_added": field_facts(field)} if is_new else {}
    step = NewStep("add_field", change=change) if is_new else NewStep("set_field", reason="it changed no media")
    if new.outcome.inserted:
        version = write_values(media, field.column, new.values, new.indices)
        progress("writing", 0.9)
        step = edited_values(step.operation, media, version, new.indices >= 0, [field.column.name], change)
        tables.sync(job.table)
    progress("writing", 1.0)
    return _commit(job, _with(head, {MEDIA: version}, head.summary), new.outcome, step)


def _commit(job: JobContext, head: Generation, outcome: RowOutcome, step: NewStep) -> Commit:
    record = step.recorder(job)
    commit_head = generation_commit(
        job.dataset_id, tables=head.tables, n_images=head.n_images, config=job.config, summary=head.summary
    )

    def commit(connection: Any) -> None:
        keep_result(
            connection,
            job.dataset_id,
            {
                "inserted_rows": outcome.inserted,
                "error_count": outcome.errors,
                "sample_errors": [error.model_dump() for error in outcome.samples],
            },
        )
        commit_head(connection)
        record(connection)

    return commit


def rename_field(table: Table, head: Generation, name: str, new_name: str) -> tuple[FieldDefinition, NewState]:
    """Rename a custom field.

    Raises:
        NotFound: the dataset has no such field.
        InvalidInput: the new name is not valid.
        Conflict: another field has this name.
    """
    fields = read_fields(table.path, head.tables)
    field = find_field(fields, name)
    check_name_free([each for each in fields if each is not field], new_name)
    renamed = replace(field, name=new_name)
    written = write_fields(table.path, [renamed if each is field else each for each in fields])
    return renamed, ({**head.tables, MEDIA: table.version, FIELDS: written}, head.summary)


def delete_field(table: Table, head: Generation, name: str) -> NewState:
    """Delete a custom field and its values.

    Raises:
        NotFound: the dataset has no such field.
    """
    fields = read_fields(table.path, head.tables)
    field = find_field(fields, name)
    version = tables.drop_columns(table, [field.column.name])
    tables.sync(table.path)
    written = write_fields(table.path, [each for each in fields if each is not field])
    summary = with_next_number(head, FIELDS, next_number(head, FIELDS, [each.number for each in fields]))
    return {**head.tables, MEDIA: version, FIELDS: written}, summary


def find_field(fields: Sequence[FieldDefinition], name: str) -> FieldDefinition:
    """Return the custom field with a name.

    Raises:
        NotFound: the dataset has no such field.
    """
    field = next((each for each in fields if each.name == name), None)
    if field is None:
        names = ", ".join(repr(each.name) for each in fields[:10]) or "none yet"
        raise NotFound(f"no field {name!r} in this dataset; there are: {names}")
    return field
