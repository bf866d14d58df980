"""The journal of a dataset: its steps, and undoing and redoing them."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from framedex.errors import Conflict, WorkspaceError
from framedex.jobs.edits.journal import AFTER, BEFORE, apply_step
from framedex.jobs.lost_files import count_lost_files
from framedex.operations.context import Context, open_media
from framedex.operations.short_edits import Edit, editing
from framedex.records import JournalStep
from framedex.storage import datasets, journal_rows
from framedex.storage.definitions import TAGS, fields_of, tag_names, tags_of
from framedex.storage.journal_files import read_journal_file
from framedex.storage.journal_rows import StoredStep
from framedex.storage.media import Media
from framedex.storage.table_checks import reading_fault
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table


def list_journal(context: Context, dataset_id: str, *, limit: int | None) -> list[JournalStep]:
    """Return the steps of a dataset, the last first."""
    with context.catalog.read() as connection:
        return [each.record for each in journal_rows.list_steps(connection, dataset_id, limit=limit)]


def values_of_step(context: Context, dataset_id: str, step: int) -> pa.Table:
    """Return the values of a step; see :meth:`framedex.Dataset.journal_values`."""
    with context.catalog.read() as connection:
        stored = journal_rows.find_step(connection, dataset_id, step)
    record = stored.record
    if stored.file is None:
        reason = "it changed no values of media, or too many" if record.reason is None else record.reason
        raise Conflict(f"step {record.step} ({record.operation}) keeps no values: {reason}")
    media = open_media(context, dataset_id)
    values = read_journal_file(media.table.path.parent, stored.file, stored.digest)
    names = {each.column.name: each.name for each in fields_of(media)}
    tags: list[str | None] = tag_names(tags_of(media)).to_pylist()
    columns: dict[str, Any] = {}
    for name, column in zip(values.schema.names, values.columns, strict=True):
        prefix = next((each for each in (BEFORE, AFTER) if name.startswith(each)), "")
        own = name.removeprefix(prefix)
        columns[prefix + names.get(own, own)] = _named(column, tags) if prefix and own == TAGS else column
    return pa.table(columns)


def _named(numbers: pa.ChunkedArray, tags: list[str | None]) -> pa.Array:
    """Return lists of tags by their names; tags that were deleted since are left out."""
    lists = [
        [name for number in each or () if number < len(tags) and (name := tags[number]) is not None]
        for each in numbers.to_pylist()
    ]
    return pa.array([each or None for each in lists], pa.list_(pa.string()))


def undo(context: Context, dataset_id: str, step: int | None) -> JournalStep:
    """Undo a step, by default the last one that holds, as one generation; return it.

    Raises:
        NotFound: the journal has no such step.
        Conflict: there is none, it is undone already, it cannot be undone, or what it changed has changed since; or a
            task is in progress.
    """
    with editing(context, dataset_id, "undo", alone=True) as edit:
        stored = _stored(context, dataset_id, step, forward=False)
        _apply(context, edit, stored, forward=False)
        lost = _lost_files(context, edit, stored)
    return _record(context, dataset_id, stored).model_copy(update={"lost_files": lost or None})


def redo(context: Context, dataset_id: str, step: int | None) -> JournalStep:
    """Do a step again, by default the one that was undone last, as one generation; return it.

    Raises:
        NotFound: the journal has no such step.
        Conflict: there is none, it is not undone, or what it changed has changed since; or a task is in progress.
    """
    with editing(context, dataset_id, "redo", alone=True) as edit:
        stored = _stored(context, dataset_id, step, forward=True)
        _apply(context, edit, stored, forward=True)
    return _record(context, dataset_id, stored)


def _lost_files(context: Context, edit: Edit, stored: StoredStep) -> int:
    """Return how many media an undone step brought back without their file."""
    if not stored.change.get("with_files"):
        return 0
    job = edit.job
    before = Media(job.dataset_id, job.head, Table(job.table, job.head.tables[MEDIA]), context.sql, job.roots)
    with context.catalog.read() as connection:
        generation = datasets.find_generation(connection, job.dataset_id, str(stored.generation))
    table = Table(job.table, generation.tables[MEDIA])
    return count_lost_files(before, replace(before, generation=generation, table=table))


def _stored(context: Context, dataset_id: str, step: int | None, *, forward: bool) -> StoredStep:
    """Return the step to undo, or to do again."""
    with context.catalog.read() as connection:
        if step is not None:
            stored = journal_rows.find_step(connection, dataset_id, step)
        else:
            steps = journal_rows.list_steps(connection, dataset_id)
            chosen = [each for each in steps if (each.record.undone_at is not None) == forward]
            if forward:  # the last one to be undone comes first; several in one microsecond in the order of steps
                chosen.sort(key=lambda each: (-_time(each), each.record.step))
            if not chosen:
                raise Conflict(f"there is nothing to {'redo' if forward else 'undo'} in the journal of this dataset")
            stored = chosen[0]
    record = stored.record
    if (record.undone_at is not None) != forward:
        raise Conflict(f"step {record.step} ({record.operation}) is {'not undone' if forward else 'undone already'}")
    if record.reason is not None:
        verb = "redone" if forward else "undone"
        raise Conflict(f"step {record.step} ({record.operation}) cannot be {verb}: {record.reason}")
    return stored


def _time(stored: StoredStep) -> float:
    return 0.0 if stored.record.undone_at is None else stored.record.undone_at.timestamp()


def _return_to_generation(context: Context, edit: Edit, stored: StoredStep, *, forward: bool) -> None:
    """Undo a step that changed which media there are, or do it again: by the generation before or after it."""
    job, record = edit.job, stored.record
    verb = "redone" if forward else "undone"
    if job.head.id != stored.change["head"]:
        raise Conflict(
            f"step {record.step} ({record.operation}) cannot be {verb}: the dataset was changed since; "
            "undo the later steps first, or restore a snapshot"
        )
    with context.catalog.read() as connection:
        generation = datasets.find_generation(connection, job.dataset_id, str(stored.generation))
    for name, version in generation.tables.items():
        if (fault := reading_fault(context.layout.table(job.dataset_id, name), version)) is not None:
            raise Conflict(
                f"step {record.step} ({record.operation}) cannot be {verb}: the state to which it returns "
                f"is damaged: {fault}"
            )

    def also(connection: Any) -> None:
        head = datasets.head(connection, job.dataset_id)
        assert head is not None, "it was committed"
        journal_rows.set_generation(
            connection, job.dataset_id, record.step, job.head.id, {**stored.change, "head": head.id}
        )
        user = None if forward else context.settings.user
        journal_rows.mark_step(connection, job.dataset_id, record.step, undone_by=user)

    edit.commit_generation(generation, also=also)


def _apply(context: Context, edit: Edit, stored: StoredStep, *, forward: bool) -> None:
    job, record = edit.job, stored.record
    if stored.generation is not None:
        _return_to_generation(context, edit, stored, forward=forward)
        return
    values = None
    if stored.file is not None:
        try:
            values = read_journal_file(job.table.parent, stored.file, stored.digest)
        except WorkspaceError as error:
            raise WorkspaceError(f"step {record.step} ({record.operation}): {error}") from None
    try:
        versions, summary = apply_step(edit.media(context), job.head, stored.change, values, forward=forward)
    except Conflict as error:
        verb, later = "redone" if forward else "undone", _later(context, edit, stored)
        raise Conflict(f"step {record.step} ({record.operation}) cannot be {verb}: {error}{later}") from None
    user = None if forward else context.settings.user
    edit.commit(
        versions,
        summary,
        also=lambda connection: journal_rows.mark_step(connection, job.dataset_id, record.step, undone_by=user),
    )


def _later(context: Context, edit: Edit, stored: StoredStep) -> str:
    """Return a part of a message that names the next step which changed the same media; empty if there is none."""
    if stored.file is None:
        return ""
    folder = edit.job.table.parent
    mine = read_journal_file(folder, stored.file, stored.digest)
    ids, names = set(mine["media_id"].to_pylist()), set(mine.schema.names) - {"media_id"}
    with context.catalog.read() as connection:
        steps = journal_rows.list_steps(connection, edit.job.dataset_id)
    for each in reversed(steps):
        if each.record.step <= stored.record.step or each.record.undone_at is not None or each.file is None:
            continue
        try:
            other = read_journal_file(folder, each.file, each.digest)
        except WorkspaceError:  # `framedex check` names it
            continue
        if names & set(other.schema.names) and ids & set(other["media_id"].to_pylist()):
            record = each.record
            return f": step {record.step} ({record.operation} by {record.created_by})"
    return ""


def _record(context: Context, dataset_id: str, stored: StoredStep) -> JournalStep:
    with context.catalog.read() as connection:
        return journal_rows.find_step(connection, dataset_id, stored.record.step).record
