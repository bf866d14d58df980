"""All that is known of one media item or object."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from framedex.browse.explore import COLUMNS, preview
from framedex.browse.media_uris import MediaUris
from framedex.core.ids import Kind, group_id
from framedex.issue_types import issue_types
from framedex.records import FieldValue, MediaIssue, MediaItem
from framedex.storage.definitions import TAGS, tag_names, tags_of
from framedex.storage.media import Media
from framedex.storage.media_rows import CLUSTERS, N_PAGES, OF_FAULTS

_FURTHER = ("size_bytes", "error", *OF_FAULTS.names, N_PAGES.name, TAGS, "parent_id", *CLUSTERS)


def media_item(media: Media, media_id: str, *, field_values: Sequence[FieldValue], uris: MediaUris) -> MediaItem:
    """Return all that is known of an item.

    Args:
        media: the media, or the objects, that contain it.
        media_id: the item.
        field_values: the values of its custom fields.
        uris: the URIs of items.

    Raises:
        NotFound: there is no such item.
    """
    issues = {name: issue.confidence_column for name, issue in issue_types().items()}
    present = set(media.table.schema.names)
    wanted = [*COLUMNS, *media.location, *_FURTHER, *issues.values()]
    row = media.find(media_id, [name for name in dict.fromkeys(wanted) if name in present])
    shown = preview(media, row, tag_names(tags_of(media)).to_pylist(), uris)
    return MediaItem(
        **dict(shown),
        issues=_issues(row, issues),
        field_values=list(field_values),
        file_size=row["size_bytes"],
        cluster_ids=_cluster_ids(media, row),
        error=row["error"],
        fault=row.get("fault"),
        gaps=row.get("gaps"),
        shown_from=row.get("shown_from"),
        shown_to=row.get("shown_to"),
        n_pages=row.get(N_PAGES.name),
    )


def _issues(row: Mapping[str, Any], columns: Mapping[str, str]) -> list[MediaIssue]:
    confidences = ((name, row.get(column)) for name, column in columns.items())
    return [
        MediaIssue(issue_type=name, confidence=confidence)
        for name, confidence in confidences
        if confidence is not None and not math.isnan(confidence)
    ]


def _cluster_ids(media: Media, row: Mapping[str, Any]) -> list[str]:
    numbers = [row.get(column) for column in CLUSTERS]
    return [
        group_id(media.dataset_id, Kind.CLUSTER, level, number)
        for level, number in enumerate(numbers)
        if number is not None
    ]
