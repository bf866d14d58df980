"""Trends of a dataset: counts of its snapshots and of its present state."""

from datetime import datetime

from framedex.api.view import PinnedView
from framedex.operations.context import Context
from framedex.operations.states import PRESENT, state_of
from framedex.records import StateCounts
from framedex.storage import snapshot_rows
from framedex.storage.media import Media

_MOST_LABELS = 100


def trends(context: Context, dataset_id: str) -> list[StateCounts]:
    """Return the counts of each snapshot of a dataset, oldest first, and of the present state.

    Counts of a state never change, so they are kept in memory.

    Raises:
        Conflict: the dataset has no index yet.
    """
    present = state_of(context, dataset_id, PRESENT)
    with context.catalog.read() as connection:
        snapshots = snapshot_rows.list_snapshots(connection, dataset_id)
    points = [
        _point(context, state_of(context, dataset_id, each), each.snapshot_id, each.snapshot_name, each.created_at)
        for each in reversed(snapshots)
    ]
    return [*points, _point(context, present, PRESENT, PRESENT, present.generation.created_at)]


def _point(context: Context, media: Media, state: str, name: str, created_at: datetime) -> StateCounts:
    key = "trend", media.generation.id
    counted: StateCounts | None = context.selections.get(key)
    if counted is None:
        view = PinnedView.of(context, media.generation.dataset_id, (), media, objects=False)
        counted = StateCounts(
            state=state,
            name=name,
            created_at=created_at,
            n_images=media.generation.n_still_images,
            n_videos=media.generation.n_videos,
            n_objects=media.generation.n_objects,
            issues={each.issue_type: each.count for each in view.issue_summaries()},
            labels={each.name: each.count for each in view.labels()[:_MOST_LABELS]},
        )
        context.selections.put(key, counted, weight=len(counted.model_dump_json()))
    return counted.model_copy(update={"state": state, "name": name, "created_at": created_at})
