"""States of a dataset by name: snapshots, generations that are kept, and the present one."""

from framedex.errors import NotFound
from framedex.operations.context import Context, check_indexed, open_media
from framedex.operations.pinned_rows import media_at
from framedex.records import Snapshot
from framedex.storage import snapshot_rows
from framedex.storage.media import Media

PRESENT = "head"
"""The name of the present state."""


def state_of(context: Context, dataset_id: str, name: Snapshot | str) -> Media:
    """Return the media of a dataset in a state.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        name: a snapshot's record, id or unique name; ``current`` for the current snapshot; ``head`` for the present
            state; or the id of a generation, which is kept for ten minutes after it was replaced.

    Raises:
        NotFound: there is no such state, or it was freed.
        Conflict: the dataset has no index yet.
    """
    present = open_media(context, dataset_id)
    check_indexed(context, present)
    wanted = name.snapshot_id if isinstance(name, Snapshot) else name
    if wanted == PRESENT:
        return present
    with context.catalog.read() as connection:
        missing: NotFound | None = None
        try:
            record = snapshot_rows.find_snapshot(connection, dataset_id, wanted)
            generation = snapshot_rows.generation_of(connection, record.snapshot_id).id
        except NotFound as error:
            missing, generation = error, wanted
    try:
        return media_at(context, dataset_id, generation)
    except NotFound:
        raise (missing or NotFound(f"the state {wanted!r} of this dataset was freed")) from None
