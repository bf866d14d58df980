"""Saved views of a dataset: what of a view is stored, and how it is opened again."""

import json
from collections.abc import Sequence
from typing import Any

from framedex.core.checks import check_flag, check_fraction
from framedex.core.naming import check_name
from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_entities
from framedex.operations.searches import condition_for, open_searcher
from framedex.operations.sorting import sort_field
from framedex.operations.steps import Contained, Filtered, Searched, Sorted, Steps
from framedex.records import Alert, EntityType, SavedViewRecord, ViewFilters, ViewTrend
from framedex.search.text_queries import check_text
from framedex.storage import datasets, view_rows
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.vql import Filter, SimilarityTest, parse, searches, to_json
from framedex.vql import media as of_kind

MAX_BYTES = 65_536
"""The maximum size of the filter of a saved view as JSON: manifests contain it."""


def save_view(
    context: Context,
    dataset_id: str,
    name: Any,
    steps: Steps,
    *,
    entity_type: str,
    caption: str | None,
    threshold: float | None,
    creator_id: str | None = None,
) -> SavedViewRecord:
    """Save the steps of a view under a name; see :meth:`framedex.Dataset.save_view`.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        name: the name.
        steps: the steps of the view.
        entity_type: ``IMAGES``, ``OBJECTS`` or ``VIDEOS``.
        caption: the text that results have to match; None for all.
        threshold: the smallest similarity to the caption, 0 to 1; None or 0 for the default. Without a caption it is
            stored, and changes nothing.
        creator_id: id of the user who saves it, where users have ids.
    """
    context.catalog.check_writable()
    name = _checked_name(name)
    filters = _filters(steps, entity_type, caption, threshold)
    media = open_entities(context, dataset_id, objects=entity_type == EntityType.OBJECTS)
    media.count(condition_for(context, media, filter_of(context, media, filters)))  # raises if it cannot be evaluated
    with context.catalog.write() as connection:
        head = datasets.head(connection, dataset_id)
        assert head is not None, "its media were opened"
        view_id = view_rows.insert_view(
            connection,
            dataset_id,
            name,
            filters,
            created_by=context.settings.user,
            creator_id=creator_id,
            first_batch=head.summary.batches,
        )
        return view_rows.find_view(connection, dataset_id, view_id)


def _checked_name(name: Any) -> str:
    name = name.strip() if isinstance(name, str) else name
    check_name("saved view", name)
    return str(name)


def _filters(steps: Steps, entity_type: str, caption: str | None, threshold: float | None) -> ViewFilters:
    """Return what is stored of a view.

    Raises:
        InvalidInput: a step cannot be stored, or an argument cannot be used.
    """
    elements: list[Any] = []
    order = None
    for step in steps:
        match step:
            case Filtered():
                elements += step.vql
            case Sorted():
                order = step
            case _:
                raise InvalidInput(_refusal(step))
    vql = parse(elements)
    if any(isinstance(test, SimilarityTest) and test.op == "upload" for test in searches(vql)):
        raise InvalidInput(
            "a view that compares media with an uploaded image cannot be saved: the upload is kept for a day only; "
            "use the similarity to a media item"
        )
    plain = to_json(vql)
    if (size := len(json.dumps(plain))) > MAX_BYTES:
        raise InvalidInput(
            f"the filter of a saved view has at most {MAX_BYTES:,} bytes as JSON; this one has {size:,}. "
            "Tag the media instead, and save a view of the tag"
        )
    return ViewFilters(
        entity_type=entity_type,
        threshold=_threshold_text(threshold),
        caption=None if caption is None else check_text(caption),
        vql=plain,
        sort_by=None if order is None else order.column,
        descending=order is not None and order.descending,
    )


def _threshold_text(threshold: float | None) -> str | None:
    """Return a threshold as stored: the text of the number; None for the default."""
    if threshold is None:
        return None
    check_fraction("threshold", threshold)
    return repr(float(threshold)) if threshold else None


def _refusal(step: object) -> str:
    ways = "a saved view consists of filters, an order, and a caption with a threshold"
    match step:
        case Searched():
            return (
                f"the results of a search cannot be saved as a view: {ways}. Give the text as caption=, or as a "
                "filter: view.where(vql.text(…)), vql.similarity(…)"
            )
        case Contained():
            return (
                f"the objects in a filtered selection of media cannot be saved as a view: {ways}. "
                "Begin with ds.objects, whose filters also test the media"
            )
        case _:
            return (
                f"a view that was limited, sampled, split or selected by id cannot be saved: {ways}. "
                "Tag its media, and save a view of the tag"
            )


def filter_of(context: Context, media: Media, filters: ViewFilters) -> Filter:
    """Return the filter that a saved view stands for in a state of its dataset.

    A caption is searched by meaning where the dataset supports it, else for its words.

    Raises:
        InvalidFilter: the stored filter is not valid in this version.
    """
    elements: list[Any] = list(filters.vql)
    if filters.caption is not None:
        is_empty = is_empty_object_view(media)
        op = "semantic" if not is_empty and open_searcher(context, media).knows_meaning else "fts"
        threshold = {} if filters.threshold is None else {"threshold": float(filters.threshold)}
        elements.append({"text": {"op": op, "value": filters.caption, **threshold}})
    if filters.entity_type == EntityType.VIDEOS:
        elements += of_kind("video_frame")
    return parse(elements)


def saved_steps(context: Context, record: SavedViewRecord) -> Steps:
    """Return the steps of a saved view in the present state of its dataset.

    Raises:
        InvalidFilter: the stored filter is not valid in this version.
        InvalidInput: the column of its order does not exist any more.
    """
    filters = record.filters
    media = open_entities(context, record.dataset_id, objects=filters.entity_type == EntityType.OBJECTS)
    vql = filter_of(context, media, filters)
    steps: Steps = (Filtered(vql),) if vql else ()
    if filters.sort_by is None:
        return steps
    sort_field(media, filters.sort_by)
    return (*steps, Sorted(filters.sort_by, filters.descending))


def get_view(context: Context, dataset_id: str, name_or_id: str) -> SavedViewRecord:
    """Return a saved view of a dataset.

    Raises:
        NotFound: the dataset has no such view.
    """
    with context.catalog.read() as connection:
        return view_rows.find_view(connection, dataset_id, name_or_id)


def get_views(context: Context, dataset_id: str) -> list[SavedViewRecord]:
    """Return the saved views of a dataset, newest first."""
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, dataset_id)
        return view_rows.list_views(connection, dataset_id)


def rename_saved_view(context: Context, dataset_id: str, view_id: str, name: Any) -> SavedViewRecord:
    """Rename a saved view; see :meth:`framedex.SavedView.rename`."""
    name = _checked_name(name)
    with context.catalog.write() as connection:
        view_rows.rename_view(connection, view_rows.find_view(connection, dataset_id, view_id), name)
        return view_rows.find_view(connection, dataset_id, view_id)


def set_alerting(context: Context, dataset_id: str, view_id: str, *, enabled: bool) -> SavedViewRecord:
    """Turn the alerts of a saved view on or off; see :meth:`framedex.SavedView.set_alerting`."""
    check_flag("enabled", enabled)
    with context.catalog.write() as connection:
        record = view_rows.find_view(connection, dataset_id, view_id)
        _check_monitored(record)
        view_rows.set_view_alerting(connection, record, enabled=bool(enabled))
        return view_rows.find_view(connection, dataset_id, view_id)


def delete_view(context: Context, dataset_id: str, view_id: str) -> None:
    """Delete a saved view with its trend and its alerts.

    Raises:
        NotFound: it does not exist any more.
    """
    with context.catalog.write() as connection:
        view_rows.remove_view(connection, view_rows.find_view(connection, dataset_id, view_id))


def get_trend(context: Context, dataset_id: str, view_id: str) -> ViewTrend:
    """Return the trend of a saved view; see :meth:`framedex.SavedView.trend`."""
    with context.catalog.read() as connection:
        record = view_rows.find_view(connection, dataset_id, view_id)
        _check_monitored(record)
        return ViewTrend(
            view_name=record.name,
            points=view_rows.list_points(connection, record),
            total_results=record.total_results,
            last_results=record.last_results,
        )


def get_alerts(context: Context, dataset_id: str, view_id: str | None = None) -> Sequence[Alert]:
    """Return the alerts of a dataset, or of one of its saved views, oldest first."""
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, dataset_id)
        return view_rows.list_alerts(connection, dataset_id, view_id)


def _check_monitored(record: SavedViewRecord) -> None:
    if not record.monitoring_enabled:
        raise InvalidInput("Monitoring is not enabled for this view")
