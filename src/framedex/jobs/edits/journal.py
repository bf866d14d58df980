"""Steps of the journal: what an edit changed, and how it is undone and done again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask
from framedex.core.counts import counted
from framedex.editable_values import editable_values
from framedex.errors import Conflict, NotFound
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import read_decisions, restore_decision, withdraw
from framedex.jobs.edits.field_definitions import with_field, with_field_name, without_field
from framedex.jobs.edits.label_decisions import apply_labels, label_change
from framedex.jobs.edits.limits import change_limits
from framedex.jobs.edits.rows import find_ids, read_row_ids, write_rows
from framedex.jobs.edits.tag_lists import count_tags
from framedex.jobs.edits.tags import NewState, next_number, with_next_number
from framedex.jobs.edits.values import update_values
from framedex.records import DuplicateDecision
from framedex.storage import datasets, journal_rows, tables
from framedex.storage.definitions import TAGGED_SCHEMA, TAGS, TagDefinition, read_fields, read_tags, write_tags
from framedex.storage.generation import Generation
from framedex.storage.journal_files import write_journal_file
from framedex.storage.media import Media
from framedex.storage.table_names import IN_BASKET, KEEPER, MEDIA
from framedex.storage.table_versions import Table, edited_table
from framedex.tasks import Commit

MOST_MEDIA = 100_000
"""The maximum number of media of a step that keeps their values."""
BEFORE, AFTER = "before ", "after "
"""Prefixes of the columns with the values of a step."""
_ID = "media_id"
_NO_FACTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class NewStep:
    """A step that is added to the journal with the commit of an edit.

    Attributes:
        operation: what was done.
        n_media: the number of media that it changed.
        change: what was changed, but for values of media, as JSON.
        values: the media that were changed, with their values before and after; None without such values.
        reason: why it cannot be undone; None if it can.
        is_state: whether undoing it returns to the generation before it.
    """

    operation: str
    n_media: int = 0
    change: Mapping[str, Any] = field(default_factory=dict)
    values: pa.Table | None = None
    reason: str | None = None
    is_state: bool = False

    def recorder(self, job: JobContext) -> Callable[[Any], int]:
        """Write the values of the step; return what adds it to the journal, in the transaction of the commit.

        That function returns the number of the step.
        """
        file = None if self.values is None else write_journal_file(job.table.parent, self.values)
        settings, before = job.settings, job.head.id if self.is_state else None

        def record(connection: Any) -> int:
            change = self.change
            if self.is_state:
                head = datasets.head(connection, job.dataset_id)
                assert head is not None, "it was committed"
                change = {"head": head.id}
            step = journal_rows.insert_step(
                connection,
                job.dataset_id,
                operation=self.operation,
                created_by=settings.user,
                n_media=self.n_media,
                change=change,
                file=None if file is None else file.name,
                digest=None if file is None else file.digest,
                n_bytes=0 if file is None else file.n_bytes,
                reason=self.reason,
                generation=before,
            )
            if self.is_state:
                journal_rows.keep_generations(connection, job.dataset_id, settings.journal_states)
            return step

        return record


def with_step(
    job: JobContext, commit: Commit, operation: str, n_media: int, *, facts: Mapping[str, Any] = _NO_FACTS
) -> Commit:
    """Return the commit of a job that also adds a step to the journal, which returns to the present head.

    Args:
        job: the context of the job.
        commit: makes a new generation the head.
        operation: what was done.
        n_media: the number of media that it changed.
        facts: what else is kept of it, as JSON.
    """

    def commit_with_step(connection: Any) -> None:
        insert = journal_rows.generation_step(connection, job.dataset_id)
        commit(connection)
        insert(operation=operation, created_by=job.settings.user, n_media=n_media, facts=facts)
        journal_rows.keep_generations(connection, job.dataset_id, job.settings.journal_states)

    return commit_with_step


def with_new_step(job: JobContext, commit: Commit, step: NewStep) -> Commit:
    """Return the commit of a job that also adds a step with values to the journal."""
    record = step.recorder(job)

    def commit_with_step(connection: Any) -> None:
        commit(connection)
        record(connection)

    return commit_with_step


def prune_journal(connection: Any, job: JobContext) -> list[str]:
    """Delete the steps that are too old or too many, by the settings; return their files."""
    settings = job.settings
    before = datasets.now() - timedelta(days=settings.journal_days)
    return journal_rows.prune_steps(connection, job.dataset_id, before=before, max_bytes=settings.journal_bytes)


def edited_values(
    operation: str, media: Media, version: int, rows: Mask, columns: Sequence[str], change: Mapping[str, Any]
) -> NewStep:
    """Return the step of an edit of values of media.

    Args:
        operation: what was done.
        media: the media before the edit.
        version: of the media table after it.
        rows: bool, shape (rows,): the rows that may have changed.
        columns: the edited columns.
        change: what else was changed.
    """
    n_media = int(np.count_nonzero(rows))
    if n_media > MOST_MEDIA:
        return NewStep(operation, n_media, change, reason=too_many(n_media))
    after = edited_table(media.table.path, version)
    row_ids = read_row_ids(media)[rows]
    old, new = (_values(each, row_ids.tolist(), columns, after.schema) for each in (media, replace(media, table=after)))
    pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
    changed = [place for place, (one, other) in enumerate(pairs) if one != other]
    chosen = pa.array(changed, pa.int64())
    ids = media.take(row_ids[changed].tolist(), [_ID]).column(0)
    values = {_ID: ids}
    for name in columns:
        values[BEFORE + name], values[AFTER + name] = old[name].take(chosen), new[name].take(chosen)
    return NewStep(operation, len(changed), change, pa.table(values) if changed else None)


def too_many(n_media: int) -> str:
    """Return the reason why a step of so many media cannot be undone."""
    return f"it changed {counted(n_media, 'media')}, more than the {MOST_MEDIA:,} whose values the journal keeps"


def _values(media: Media, row_ids: list[int], columns: Sequence[str], schema: pa.Schema) -> pa.Table:
    names = [name for name in columns if name in media.table.schema.names]
    present = media.take(row_ids, names) if names else pa.table({})
    missing = {name: pa.nulls(len(row_ids), schema.field(name).type) for name in columns if name not in names}
    return pa.table({name: missing[name] if name in missing else present[name] for name in columns})


def tag_facts(tag: TagDefinition) -> dict[str, Any]:
    """Return a tag as JSON."""
    return {**asdict(tag), "created_at": tag.created_at.isoformat()}


def apply_step(
    media: Media, head: Generation, change: Mapping[str, Any], values: pa.Table | None, *, forward: bool
) -> NewState:
    """Undo a step, or do it again; return the table versions and the summary of the new generation.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        change: of the step.
        values: of the step.
        forward: True does it again.

    Raises:
        Conflict: what it changed has changed since.
    """
    state: NewState = {**head.tables, MEDIA: media.table.version}, head.summary
    if (tag := change.get("tag_added" if forward else "tag_removed")) is not None:
        state = _with_tag(media, state, tag)
    if (field_added := change.get("field_added")) is not None and forward:
        state = with_field(media, state, field_added, has_values=values is not None)
        media = replace(media, table=Table(media.table.path, state[0][MEDIA]))
    if (about := label_change(change)) is not None:
        assert values is not None, "a step about labels keeps them"
        return apply_labels(media, head, about, values, forward=forward)
    if values is not None:
        state = _with_values(media, head, state, values, forward=forward)
    if field_added is not None and not forward:
        state = without_field(media, state, field_added)
    if (renamed_field := change.get("field_renamed")) is not None:
        state = with_field_name(media, state, renamed_field, forward=forward)
    if (tag := change.get("tag_removed" if forward else "tag_added")) is not None:
        state = _without_tag(media, state, tag)
    if (renamed := change.get("tag_renamed")) is not None:
        state = _with_tag_name(media, state, renamed, forward=forward)
    if (limits := change.get("limits")) is not None:
        before, after = (limits[name] for name in (("before", "after") if forward else ("after", "before")))
        if dict(head.summary.limits) != before:
            raise Conflict("the limits were changed meanwhile")
        state = change_limits(media.table.path, head, after)
    return _with_decision(media, head, state, change, forward=forward)


def _with_decision(
    media: Media, head: Generation, state: NewState, change: Mapping[str, Any], *, forward: bool
) -> NewState:
    """Return a state with the decision about duplicates that a step added or withdrew, or without it."""
    if (decision := change.get("decision_added" if forward else "decision_withdrawn")) is not None:
        if decision["decision_id"] in {each.decision_id for each in read_decisions(media.table.path, head.tables)}:
            raise Conflict("the decision is in the dataset already")  # a snapshot with it was restored meanwhile
        try:
            state = restore_decision(media, head, DuplicateDecision.model_validate(decision))
        except NotFound:
            raise Conflict("media of the decision are not in the dataset any more") from None
    if (decision := change.get("decision_withdrawn" if forward else "decision_added")) is not None:
        try:
            state = withdraw(media, head, decision["decision_id"])
        except NotFound:
            raise Conflict("the decision was withdrawn meanwhile") from None
    return state


def _with_values(media: Media, head: Generation, state: NewState, values: pa.Table, *, forward: bool) -> NewState:
    old, new = (BEFORE, AFTER) if forward else (AFTER, BEFORE)
    names = [name.removeprefix(BEFORE) for name in values.schema.names if name.startswith(BEFORE)]
    ids = values[_ID].to_pylist()
    found = find_ids(media, ids)
    if not found.exists.all():
        missing = int(np.count_nonzero(~found.exists))
        raise Conflict(f"the dataset has {missing:,} of its {counted(len(ids), 'media')} no longer")
    versions, summary = state
    fields = (each.column.name for each in read_fields(media.table.path, versions))
    if gone := set(names) - {*media.table.schema.names, *TAG_COLUMNS, IN_BASKET, KEEPER, *fields}:
        raise Conflict(f"the values {min(gone)!r} do not exist any more")
    positions = np.flatnonzero(found.indices >= 0)
    order = pa.array(found.indices[positions])
    row_ids = read_row_ids(media)[positions]
    ordered = values.take(order).combine_chunks()
    expected, wanted = _renamed(ordered, old, names), _renamed(ordered, new, names)
    present = _values(media, row_ids.tolist(), names, expected.schema)
    if present.to_pylist() != expected.to_pylist():
        raise Conflict("a later edit changed the same values of the same media")
    if TAGS in names:
        tags = {tag.number for tag in read_tags(media.table.path, versions)}
        if not set(wanted[TAGS].combine_chunks().flatten().unique().to_pylist()) <= tags:
            raise Conflict("a tag of these media was deleted meanwhile")
    editable = {each.name: each for each in editable_values().values()}
    if len(names) == 1 and names[0] in editable:
        indices = np.full(len(found.indices), -1, dtype=np.int64)
        indices[positions] = np.arange(len(positions))
        array = wanted[names[0]].combine_chunks()
        changed, summary = update_values(media, head, editable[names[0]], array, indices)
        return {**versions, **changed}, summary
    (batch,) = wanted.combine_chunks().to_batches()
    version = write_rows(media, row_ids, batch)
    tables.sync(media.table.path)
    return {**versions, MEDIA: version}, summary


def _renamed(values: pa.Table, prefix: str, names: Sequence[str]) -> pa.Table:
    return values.select([prefix + name for name in names]).rename_columns(list(names))


def _with_tag(media: Media, state: NewState, tag: Mapping[str, Any]) -> NewState:
    """Return a state with a tag again, unless it is there."""
    versions, summary = state
    tags = read_tags(media.table.path, versions)
    if any(each.tag_id == tag["tag_id"] for each in tags):
        return state
    if any(each.name == tag["name"] for each in tags):
        raise Conflict(f"another tag is named {tag['name']!r} now")
    known = TagDefinition(**{**tag, "created_at": datetime.fromisoformat(tag["created_at"])})
    return {**versions, TAGS: write_tags(media.table.path, [*tags, known])}, summary


def _without_tag(media: Media, state: NewState, tag: Mapping[str, Any]) -> NewState:
    """Return a state without a tag; it stays if it is on media."""
    versions, summary = state
    tags = read_tags(media.table.path, versions)
    left = replace(media, table=Table(media.table.path, versions[MEDIA]))
    if not any(each.tag_id == tag["tag_id"] for each in tags) or count_tags(left).get(tag["number"], 0):
        return state
    head = media.generation.model_copy(update={"summary": summary})
    number = next_number(head, TAGS, [each.number for each in tags])
    kept = [each for each in tags if each.tag_id != tag["tag_id"]]
    return {**versions, TAGS: write_tags(media.table.path, kept)}, with_next_number(head, TAGS, number)


def _with_tag_name(media: Media, state: NewState, renamed: Mapping[str, str], *, forward: bool) -> NewState:
    versions, summary = state
    old, new = (renamed[name] for name in (("before", "after") if forward else ("after", "before")))
    tags = read_tags(media.table.path, versions)
    if not any(each.tag_id == renamed["tag_id"] and each.name == old for each in tags):
        raise Conflict(f"the tag {old!r} was renamed or deleted meanwhile")
    if any(each.name == new and each.tag_id != renamed["tag_id"] for each in tags):
        raise Conflict(f"another tag is named {new!r} now")
    changed = [replace(each, name=new) if each.tag_id == renamed["tag_id"] else each for each in tags]
    return {**versions, TAGS: write_tags(media.table.path, changed)}, summary


TAG_COLUMNS: Sequence[str] = tuple(TAGGED_SCHEMA.names)
"""The columns of tags."""
