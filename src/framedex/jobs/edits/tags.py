"""Tags: their definitions, and the rows that have them, as new versions of the tables."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from framedex.core.arrays import Mask
from framedex.core.ids import new_id
from framedex.core.naming import check_name
from framedex.errors import InvalidInput, NotFound
from framedex.jobs.edits.tag_lists import with_tag, without_tag
from framedex.storage import tables
from framedex.storage.definitions import TAGS, TagDefinition, read_tags, write_tags
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
from framedex.vql import BASKET, UNTAGGED

NewState = tuple[dict[str, int], Summary]
"""Table versions and summary of a new generation."""


def create_tag(media: Media, head: Generation, name: str, created_by: str) -> tuple[TagDefinition, NewState]:
    """Write a new tag without media.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        name: of the tag.
        created_by: the user.

    Raises:
        InvalidInput: the name is not valid.
        Conflict: the name is in use.
    """
    tags = read_tags(media.table.path, head.tables)
    tag = _new_tag(head, tags, name, created_by)
    return tag, _write_state(media, head, [*tags, tag])


def rename_tag(media: Media, head: Generation, name_or_id: str, name: str) -> tuple[TagDefinition, NewState]:
    """Rename a tag.

    Raises:
        NotFound: the dataset has no such tag.
        InvalidInput: the new name is not valid.
        Conflict: another tag has this name.
    """
    tags = read_tags(media.table.path, head.tables)
    tag = find_tag(tags, name_or_id)
    others = [each.name for each in tags if each is not tag]
    renamed = replace(tag, name=_tag_name(name, others))
    return renamed, _write_state(media, head, [renamed if each is tag else each for each in tags])


def delete_tag(media: Media, head: Generation, name_or_id: str) -> NewState:
    """Delete a tag and remove it from all media.

    Raises:
        NotFound: the dataset has no such tag.
    """
    tags = read_tags(media.table.path, head.tables)
    tag = find_tag(tags, name_or_id)
    version = without_tag(media, np.ones(media.table.count(), dtype=bool), tag.number)
    return _write_state(media, head, [each for each in tags if each is not tag], version)


def assign_tag(
    media: Media, head: Generation, rows: Mask, name_or_id: str, created_by: str
) -> tuple[TagDefinition, NewState]:
    """Assign a tag to some media; create the tag if the name is new. Media that have the tag keep its date.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        rows: bool, shape (N,): the media.
        name_or_id: of the tag.
        created_by: the user.

    Raises:
        InvalidInput: the name of a new tag is not valid, for example because it looks like an id.
    """
    tags = read_tags(media.table.path, head.tables)
    tag = _lookup(tags, name_or_id)
    if tag is None:
        tag = _new_tag(head, tags, name_or_id, created_by)
        tags = [*tags, tag]
    version = with_tag(media, rows, tag.number, datetime.now(UTC)) if rows.any() else None
    return tag, _write_state(media, head, tags, version)


def unassign_tag(media: Media, head: Generation, rows: Mask, name_or_id: str) -> tuple[TagDefinition, NewState]:
    """Remove a tag from some media; arguments as for :func:`assign_tag`.

    Raises:
        NotFound: the dataset has no such tag.
    """
    tags = read_tags(media.table.path, head.tables)
    tag = find_tag(tags, name_or_id)
    return tag, _write_state(media, head, tags, without_tag(media, rows, tag.number))


def find_tag(tags: Sequence[TagDefinition], name_or_id: str) -> TagDefinition:
    """Return the tag with an id; otherwise the tag with that name.

    Raises:
        NotFound: the dataset has no such tag.
        InvalidInput: the name stands for the basket.
    """
    if (tag := _lookup(tags, name_or_id)) is None:
        if name_or_id == BASKET:
            raise InvalidInput(f"{BASKET!r} is no tag, but the basket: ds.basket has its methods")
        names = ", ".join(repr(each.name) for each in tags[:10]) or "none yet"
        raise NotFound(f"no tag {name_or_id!r} in this dataset; there are: {names}")
    return tag


def next_number(head: Generation, table: str, used: Sequence[int]) -> int:
    """Return the next unused number of a tag or field; numbers of deleted ones are not used again."""
    return max(head.summary.next_numbers.get(table, 0), max(used, default=-1) + 1)


def with_next_number(head: Generation, table: str, number: int) -> Summary:
    """Return the summary of a generation in which *number* is the next number for a tag or field."""
    return head.summary.with_(next_numbers={**head.summary.next_numbers, table: number})


def _lookup(tags: Sequence[TagDefinition], name_or_id: str) -> TagDefinition | None:
    by_id = next((tag for tag in tags if tag.tag_id == name_or_id), None)
    names = (name_or_id, name_or_id.strip()) if isinstance(name_or_id, str) else ()
    return by_id or next((tag for name in names for tag in tags if tag.name == name), None)


def _new_tag(head: Generation, tags: Sequence[TagDefinition], name: str, created_by: str) -> TagDefinition:
    name = _tag_name(name, [tag.name for tag in tags])
    number = next_number(head, TAGS, [tag.number for tag in tags])
    return TagDefinition(new_id(), number, name, datetime.now(UTC), created_by)


def _tag_name(name: str, taken: Sequence[str]) -> str:
    """Return the name of a new tag without blanks around it."""
    name = name.strip() if isinstance(name, str) else name
    check_name("tag", name, taken=taken, reserved=(UNTAGGED, BASKET))
    try:
        uuid.UUID(name)
    except ValueError:
        return name
    raise InvalidInput(f"a tag cannot be named {name!r}, which looks like an id")


def _write_state(media: Media, head: Generation, tags: Sequence[TagDefinition], version: int | None = None) -> NewState:
    """Write the tag definitions; return the table versions and the summary of the new generation.

    Args:
        media: the media.
        head: the generation that is edited.
        tags: all tags.
        version: new version of the media table; None if it has not changed.
    """
    versions = {**head.tables, MEDIA: media.table.version if version is None else version}
    stored = read_tags(media.table.path, head.tables)
    if list(tags) != stored:
        versions[TAGS] = write_tags(media.table.path, tags)
    if version is not None:
        tables.sync(media.table.path)
    number = next_number(head, TAGS, [tag.number for tag in (*stored, *tags)])
    return versions, with_next_number(head, TAGS, number)
