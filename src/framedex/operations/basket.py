"""Edits of the basket and of keepers, each committed as one generation."""

from collections.abc import Sequence

from framedex.core.arrays import Mask
from framedex.errors import Conflict, InvalidInput
from framedex.images.reading import check_media_id
from framedex.jobs.edits.basket import choose_keepers, put_into_basket
from framedex.jobs.edits.journal import edited_values
from framedex.jobs.edits.tags import NewState
from framedex.operations.context import Context, open_media
from framedex.operations.edits import Selection, selected_rows
from framedex.operations.short_edits import Edit, editing
from framedex.storage.condition import Condition
from framedex.storage.definitions import tags_of
from framedex.storage.media import Media
from framedex.storage.table_names import IN_BASKET, KEEPER, MEDIA, KeeperMark
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


def change_basket(
    context: Context, dataset_id: str, selection: Selection, *, inside: bool, keep: str | None = None
) -> None:
    """Put media into the basket, or take them out.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        selection: the media.
        inside: whether they are in the basket afterwards.
        keep: the id of a media item that a person chose to keep in their place; None for none.

    Raises:
        InvalidInput: an id is not text, or the media item to keep is among those of the selection.
        NotFound: a media item does not exist.
        Conflict: a tag has the name of the basket, or a task is in progress.
    """
    check_basket(context, dataset_id)
    if keep is not None:
        check_media_id(keep)
    with editing(context, dataset_id, "basket") as edit:
        media = edit.media(context)
        rows = selected_rows(media, selection)
        if keep is None:
            written = put_into_basket(media, edit.job.head, rows, inside=inside)
            _commit(edit, media, written, "basket", rows, [IN_BASKET])
            return
        kept = selected_rows(media, [keep])
        if (rows & kept).any():
            raise InvalidInput(f"keep names media {keep!r}, which is among the media for the basket")
        written = put_into_basket(media, edit.job.head, rows, inside=inside, keep=kept)
        _commit(edit, media, written, "basket", rows | kept, [IN_BASKET, KEEPER])


def change_keepers(context: Context, dataset_id: str, selection: Selection, *, keep: bool) -> None:
    """Make media keepers, which no clean-up removes, or take that back; errors as in :func:`change_basket`."""
    operation = "keep" if keep else "unkeep"
    with editing(context, dataset_id, operation) as edit:
        media = edit.media(context)
        rows = selected_rows(media, selection)
        written = choose_keepers(media, edit.job.head, rows, keep=keep)
        _commit(edit, media, written, operation, rows, [IN_BASKET, KEEPER] if keep else [KEEPER])


def _commit(edit: Edit, media: Media, written: NewState, operation: str, rows: Mask, columns: Sequence[str]) -> None:
    version = written[0][MEDIA]
    if version == media.table.version:  # nothing changed
        edit.commit(*written)
    else:
        edit.commit(*written, step=edited_values(operation, media, version, rows, columns, {}))


def keeper_ids(context: Context, dataset_id: str) -> list[str]:
    """Return the ids of the media that people chose to keep, in row order."""
    media = open_media(context, dataset_id, early=True)
    if KEEPER not in media.table.schema.names:
        return []
    condition = Condition(f"coalesce({KEEPER} = {KeeperMark.CHOSEN:d}, FALSE)", (), frozenset({KEEPER}))
    ids: list[str] = media.values(condition, "media_id")[1].to_pylist()
    return ids
