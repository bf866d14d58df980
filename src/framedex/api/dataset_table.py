"""The datasets of a workspace as a table for notebooks."""

from collections.abc import Sequence

from framedex.records import DatasetRecord
from framedex.render import html

_SHOWN = 20
_HEADER = ("dataset", "images", "videos", "objects", "status", "created (UTC)")


def datasets_html(place: str, records: Sequence[DatasetRecord]) -> str:
    """Return a table of datasets.

    Args:
        place: the folder of the workspace, or the address of a service.
        records: its datasets, newest first.
    """
    shown = records[:_SHOWN]
    rows = (
        (each.display_name, each.n_images, each.n_videos, each.n_objects, each.status_new.value, _time(each))
        for each in shown
    )
    rest = len(records) - len(shown)
    return html.block(
        html.heading(place, 3),
        html.table(_HEADER, rows) if records else html.note("no datasets yet: create_dataset(name, folder) makes one"),
        html.note(f"and {rest:,} more") if rest else "",
    )


def _time(record: DatasetRecord) -> str:
    return f"{record.created_at:%Y-%m-%d %H:%M}"
