"""The labels of media or objects, with the number of items that have each."""

from framedex.records import LabelCount
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import ROW_ID

_LABELS = f"SELECT {ROW_ID}, unnest(labels) AS name FROM chosen"


def label_counts(media: Media, condition: Condition) -> list[LabelCount]:
    """Return the labels of the items that meet a condition, the most frequent first, then by name.

    Args:
        media: the media, or the objects, to count. An item with several labels counts for each of them.
        condition: the condition that items must meet.
    """
    if is_empty_object_view(media):
        return []
    # Counting distinct rows takes a third of the time of making the labels of each row distinct.
    text = f"SELECT name, count(DISTINCT {ROW_ID}) AS count FROM ({_LABELS}) GROUP BY name ORDER BY count DESC, name"
    return [LabelCount(**row) for row in media.query(text, condition, ["labels"]).to_pylist()]
