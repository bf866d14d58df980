"""Tags: what people define and which media have them, as new versions of the tables."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from framedex.arrays import Mask
from framedex.errors import InvalidInput, NotFound
from framedex.ids import new_id
from framedex.jobs.edits.tag_lists import with_tag, without_tag
from framedex.naming import check_name
from framedex.storage import tables
from framedex.storage.definitions import TAGS, TagDefinition, read_tags, write_tags
from framedex.storage.generation import Generation, Summary
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table
from framedex.vql import UNTAGGED

Written = tuple[dict[str, int], Summary]
"""The versions of the tables of a generation, and its summary."""


def create_tag(media: Table, head: Generation, name: str, created_by: str) -> tuple[TagDefinition, Written]:
    """Write a new tag, which no media have.

    Args:
        media: the media table, at its newest version.
        head: what it is a part of.
        name: of the tag.
        created_by: who makes it.

    Raises:
        InvalidInput: nothing can be named so.
        Conflict: the name is taken.
    """
    known = read_tags(media.path, head.tables)
    tag = _new_tag(head, known, name, created_by)
    return tag, _written(media, head, [*known, tag])


def rename_tag(media: Table, head: Generation, name_or_id: str, name: str) -> tuple[TagDefinition, Written]:
    """Write another name of a tag.

    Raises:
        NotFound: there is no such tag.
        InvalidInput: nothing can be named so.
        Conflict: another tag is named so.
    """
    known = read_tags(media.path, head.tables)
    tag = find_tag(known, name_or_id)
    others = [each.name for each in known if each is not tag]
    _check_tag_name(name, others)
    renamed = replace(tag, name=name)
    return renamed, _written(media, head, [renamed if each is tag else each for each in known])


def delete_tag(media: Table, head: Generation, name_or_id: str) -> Written:
    """Write that there is no such tag any more, on no media.

    Raises:
        NotFound: there is none.
    """
    known = read_tags(media.path, head.tables)
    tag = find_tag(known, name_or_id)
    version = without_tag(media, np.ones(media.count(), dtype=bool), tag.number)
    return _written(media, head, [each for each in known if each is not tag], version)


def put_on(
    media: Table, head: Generation, rows: Mask, name_or_id: str, created_by: str
) -> tuple[TagDefinition, Written]:
    """Write that some media have a tag, which is made where it is a new name. Those that have it keep its date.

    Args:
        media: the media table, at its newest version.
        head: what it is a part of.
        rows: bool, shape (N,): which media.
        name_or_id: of the tag.
        created_by: who makes it.

    Raises:
        NotFound: it is an id, and there is no such tag.
        InvalidInput: nothing can be named so.
    """
    known = read_tags(media.path, head.tables)
    tag = _lookup(known, name_or_id)
    if tag is None:
        tag = _new_tag(head, known, name_or_id, created_by)
        known = [*known, tag]
    version = with_tag(media, rows, tag.number, datetime.now(UTC)) if rows.any() else None
    return tag, _written(media, head, known, version)


def take_off(media: Table, head: Generation, rows: Mask, name_or_id: str) -> tuple[TagDefinition, Written]:
    """Write that some media do not have a tag; arguments as for :func:`put_on`.

    Raises:
        NotFound: there is no such tag.
    """
    known = read_tags(media.path, head.tables)
    tag = find_tag(known, name_or_id)
    return tag, _written(media, head, known, without_tag(media, rows, tag.number))


def find_tag(tags: Sequence[TagDefinition], name_or_id: str) -> TagDefinition:
    """Return the tag of that id, or else of that name.

    Raises:
        NotFound: there is none.
    """
    if (found := _lookup(tags, name_or_id)) is None:
        known = ", ".join(repr(tag.name) for tag in tags[:10]) or "none yet"
        raise NotFound(f"no tag {name_or_id!r} in this dataset; there are: {known}")
    return found


def next_number(head: Generation, table: str, used: Sequence[int]) -> int:
    """Return a number that no tag or field of a dataset ever had: one more than the largest."""
    return max(head.summary.next_numbers.get(table, 0), max(used, default=-1) + 1)


def with_next_number(head: Generation, table: str, number: int) -> Summary:
    """Return the summary of a generation after which the next tag or field gets a number."""
    return head.summary.with_(next_numbers={**head.summary.next_numbers, table: number})


def _lookup(tags: Sequence[TagDefinition], name_or_id: str) -> TagDefinition | None:
    by_id = next((tag for tag in tags if tag.tag_id == name_or_id), None)
    return by_id or next((tag for tag in tags if tag.name == name_or_id), None)


def _new_tag(head: Generation, known: Sequence[TagDefinition], name: str, created_by: str) -> TagDefinition:
    _check_tag_name(name, [tag.name for tag in known])
    number = next_number(head, TAGS, [tag.number for tag in known])
    return TagDefinition(new_id(), number, name, datetime.now(UTC), created_by)


def _check_tag_name(name: str, taken: Sequence[str]) -> None:
    check_name("tag", name, taken=taken, reserved=(UNTAGGED,))
    try:
        uuid.UUID(name)
    except ValueError:
        return
    raise InvalidInput(f"a tag cannot be named {name!r}, which looks like an id")


def _written(media: Table, head: Generation, tags: Sequence[TagDefinition], version: int | None = None) -> Written:
    """Write the definitions and return all versions and the summary; *version* is that of the media table, if new."""
    versions = {**head.tables, MEDIA: media.version if version is None else version}
    known = read_tags(media.path, head.tables)
    if list(tags) != known:
        versions[TAGS] = write_tags(media.path, tags)
    if version is not None:
        tables.sync(media.path)
    number = next_number(head, TAGS, [tag.number for tag in (*known, *tags)])
    return versions, with_next_number(head, TAGS, number)
