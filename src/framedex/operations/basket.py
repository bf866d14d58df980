"""Edits of the basket, each committed as one generation."""

from framedex.errors import Conflict
from framedex.jobs.edits.basket import put_into_basket
from framedex.jobs.edits.journal import edited_values
from framedex.operations.context import Context, open_media
from framedex.operations.edits import Selection, selected_rows
from framedex.operations.short_edits import editing
from framedex.storage.definitions import tags_of
from framedex.storage.table_names import IN_BASKET, MEDIA
from framedex.vql import BASKET


def check_basket(context: Context, dataset_id: str) -> None:
    """Check that the name of the basket stands for nothing else in filters.

    Raises:
        Conflict: a tag of an older version of the program has this name.
    """
    if any(tag.name == BASKET for tag in tags_of(open_media(context, dataset_id, early=True))):
        raise Conflict(
            f"this dataset has a tag named {BASKET!r}, from a version without the basket; rename the tag first: "
            f'ds.rename_tag("{BASKET}", …)'
        )


def change_basket(context: Context, dataset_id: str, selection: Selection, *, inside: bool) -> None:
    """Put media into the basket, or take them out.

    Raises:
        InvalidInput: an id is not text.
        NotFound: a media item does not exist.
        Conflict: a tag has the name of the basket, or a task is in progress.
    """
    check_basket(context, dataset_id)
    with editing(context, dataset_id, "basket") as edit:
        media = edit.media(context)
        rows = selected_rows(media, selection)
        written = put_into_basket(media, edit.job.head, rows, inside=inside)
        version = written[0][MEDIA]
        if version == media.table.version:  # nothing changed
            edit.commit(*written)
        else:
            edit.commit(*written, step=edited_values("basket", media, version, rows, [IN_BASKET], {}))
