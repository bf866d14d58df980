"""Compilation of filters for one state of a dataset, and their display."""

from datetime import datetime
from functools import partial

import pyarrow as pa

from framedex.core.counts import counted
from framedex.core.path_columns import relation_with, stored
from framedex.storage.condition import Condition
from framedex.storage.definitions import fields_of, tag_numbers, tags_of
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view, objects_of
from framedex.storage.table_versions import ROW_ID
from framedex.vql import CustomField, Filter, Related, Scope, SearchResults, compile_filter

_SHOWN = 200


def condition_of(media: Media, vql: Filter, results: SearchResults | None = None) -> Condition:
    """Compile a filter to a condition on the dataset's rows.

    Args:
        media: the media to filter.
        vql: a parsed filter.
        results: the results of the filter's searches; see :func:`framedex.vql.compile_filter`.

    Raises:
        InvalidFilter: the filter uses a field that the dataset lacks, or that has another type.
    """
    return compile_filter(vql, scope_of(media), results or {}) if vql else Condition()


def scope_of(media: Media) -> Scope:
    """Return the scope that resolves names in a filter; objects use the tags and custom fields of their media."""
    if media.parents is not None:
        return Scope(
            columns=frozenset(media.table.schema.names),
            added=times_added(media),
            media=scope_of(media.parents),
            find=partial(_related, media),
            dataset_id=media.dataset_id,
        )
    return Scope(
        columns=frozenset(media.table.schema.names),
        tags=tag_numbers(tags_of(media)),
        fields={
            each.name: CustomField(each.column.name, each.type, each.is_multi, tuple(each.enum_options or ()))
            for each in fields_of(media)
        },
        added=times_added(media),
        find=partial(_related, media),
        dataset_id=media.dataset_id,
    )


def _related(media: Media, related: Related) -> pa.Table:
    """Return the ids of media whose objects match a filter, or of objects whose media match it."""
    related_media = objects_of(media) if media.parents is None else media.parents
    if related_media is None or is_empty_object_view(media):
        return pa.table({"media_id": pa.array([], pa.string())})
    return related_media.query(related.statement, related.condition, related.columns, keep=True)


def times_added(media: Media) -> dict[int, datetime]:
    """Return the time in UTC at which media were added, by batch number; batches of older versions are missing."""
    return {int(number): datetime.fromisoformat(time) for number, time in media.generation.summary.added_at.items()}


def explained(condition: Condition) -> str:
    """Return a condition as readable text: the statement, its parameters, and the columns that it reads."""
    values = [f"${number} = {_shown(value)}" for number, value in enumerate(condition.params, 1)]
    # A relation of row ids, as those of a ranked or limited view, comes from no search of the filter.
    tests = dict(zip(condition.relations, condition.searches, strict=False))
    searched = [
        f"{name}: {counted(len(rows), 'rows')}{_searched(tests.get(name))}"
        for name, rows in condition.relations.items()
    ]
    columns = ", ".join(sorted(stored(condition.columns))) or "none"
    statement = [f"SELECT {ROW_ID} FROM {relation_with(condition.columns, 'media')}", f"WHERE {condition.text}"]
    return "\n".join([*statement, *values, *searched, f"columns read: {columns}"])


def _searched(test: object) -> str:
    return "" if test is None else f" of {test if isinstance(test, str) else _shown(test)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
