"""Records of saved views, their trends and their alerts."""

from datetime import datetime
from typing import Any

from framedex.records.base import Record


class ViewFilters(Record):
    """The filters of a saved view.

    ``entity_type`` is ``IMAGES``, ``OBJECTS`` or ``VIDEOS``. ``threshold`` is the smallest similarity to ``caption``,
    0 to 1, as text; None for the default. ``sort_by`` is the column of the order, None for the order of ingestion.
    """

    entity_type: str
    threshold: str | None
    caption: str | None
    vql: list[dict[str, Any]]
    sort_by: str | None = None
    descending: bool = False


class ViewStats(Record):
    """The results of a saved view in the whole dataset at its last evaluation; all are -1 before the first one."""

    n_images: int
    n_objects: int
    n_video_frames: int


class SavedViewRecord(Record):
    """A saved view. Times are in UTC.

    ``total_results`` is the sum of the counts of all evaluated batches, and ``last_results`` the time of the last
    evaluated batch with a result. ``evaluation_error`` is the reason why the last evaluation failed; None if it did
    not.
    """

    id: str
    dataset_id: str
    name: str
    created_at: datetime
    created_by: str
    creator_id: str | None
    filters: ViewFilters
    stats: ViewStats
    monitoring_enabled: bool
    monitoring_started_at: datetime
    alerting_enabled: bool
    total_results: int
    last_results: datetime | None
    evaluation_error: str | None


class ViewAuthor(Record):
    """The user who saved a view. Without an account, ``email`` and ``name`` are the name under which it was saved."""

    user_id: str
    email: str
    name: str


class TrendPoint(Record):
    """The results of a saved view in a batch of media.

    ``timestamp`` is the time at which the batch was added, in UTC. ``count`` is the number of results in the batch at
    its evaluation, and ``cumulative`` that in this batch and all earlier ones.
    """

    timestamp: datetime
    batch_id: str
    batch: int
    count: int
    cumulative: int


class ViewTrend(Record):
    """The trend of a saved view: a point for each evaluated batch, oldest first."""

    view_name: str
    points: list[TrendPoint]
    total_results: int
    last_results: datetime | None


class Alert(Record):
    """New results of a saved view in a batch of media that was added at ``timestamp``, in UTC."""

    view_id: str
    view_name: str
    dataset_id: str
    dataset_name: str
    batch_id: str
    batch: int
    timestamp: datetime
    result_count: int
