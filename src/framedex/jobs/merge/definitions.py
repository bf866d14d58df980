"""Tags, custom fields and decisions of two datasets in one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from framedex.annotations.source_lists import SourceClass
from framedex.errors import InvalidInput
from framedex.jobs.edits.decisions import DECISIONS, read_decisions, write_decisions
from framedex.jobs.merge.moved_media import MovedMedia
from framedex.storage.classes import CLASSES
from framedex.storage.classes import SCHEMA as CLASS_COLUMNS
from framedex.storage.definitions import (
    FIELDS,
    TAGS,
    FieldDefinition,
    TagDefinition,
    read_fields,
    read_tags,
    write_fields,
    write_tags,
)
from framedex.storage.generation import Generation
from framedex.storage.label_decisions import LabelDecisions, read_label_decisions, write_label_decisions
from framedex.storage.table_names import LABEL_DECISIONS
from framedex.storage.table_versions import small_table


@dataclass(frozen=True)
class MergedDefinitions:
    """The tags and custom fields of both datasets.

    Attributes:
        tags: of both, those of the first one before the others.
        tag_numbers: the number of each tag of the second dataset in the merged one.
        fields: of both.
        columns: by the column of a field of the second dataset: the field in the merged one.
        next_numbers: the least number of a tag or field that was never used.
    """

    tags: list[TagDefinition]
    tag_numbers: dict[int, int]
    fields: list[FieldDefinition]
    columns: dict[str, FieldDefinition]
    next_numbers: dict[str, int]

    @classmethod
    def of(cls, tables: tuple[Path, Path], heads: tuple[Generation, Generation]) -> "MergedDefinitions":
        """Merge the definitions of two datasets. Tags and fields of one name are one.

        Args:
            tables: folders of the media tables.
            heads: their generations.

        Raises:
            InvalidInput: two fields of one name have different types; the message names them.
        """
        tags, others = (read_tags(path, head.tables) for path, head in zip(tables, heads, strict=True))
        numbers = {tag.name: tag.number for tag in tags}
        next_tag = _next(heads[0], TAGS, [tag.number for tag in tags])
        tag_numbers = {}
        for tag in others:
            if tag.name not in numbers:
                numbers[tag.name] = next_tag
                tags = [*tags, replace(tag, number=next_tag)]
                next_tag += 1
            tag_numbers[tag.number] = numbers[tag.name]
        fields, new = (read_fields(path, head.tables) for path, head in zip(tables, heads, strict=True))
        by_name = {field.name: field for field in fields}
        next_field = _next(heads[0], FIELDS, [field.number for field in fields])
        columns = {}
        for field in new:
            if field.name in by_name:
                merged = _merged(by_name[field.name], field)
            else:
                merged, next_field = replace(field, number=next_field), next_field + 1
            by_name[field.name] = columns[field.column.name] = merged
        return cls(tags, tag_numbers, [*by_name.values()], columns, {TAGS: next_tag, FIELDS: next_field})

    def write(self, table: Path, before: Mapping[str, int]) -> dict[str, int]:
        """Write the definitions beside a media table; return the versions of their tables, as far as there are any."""
        versions = {}
        if self.tags or TAGS in before:
            versions[TAGS] = write_tags(table, self.tags)
        if self.fields or FIELDS in before:
            versions[FIELDS] = write_fields(table, self.fields)
        return versions


def _next(head: Generation, table: str, used: Sequence[int]) -> int:
    return max(head.summary.next_numbers.get(table, 0), max(used, default=-1) + 1)


def _merged(one: FieldDefinition, other: FieldDefinition) -> FieldDefinition:
    if (one.type, one.is_multi) != (other.type, other.is_multi):
        kinds = [f"{'a list of ' if each.is_multi else ''}{each.type}" for each in (one, other)]
        raise InvalidInput(
            f"the field {one.name!r} is {kinds[0]} in one dataset and {kinds[1]} in the other; rename one of them first"
        )
    if one.enum_options is None:
        return one
    return replace(one, enum_options=list(dict.fromkeys([*one.enum_options, *(other.enum_options or ())])))


def write_merged_decisions(
    table: Path, heads: tuple[Generation, Generation], other: Path, identities: MovedMedia
) -> dict[str, int]:
    """Write the decisions of people of both datasets; return the versions of their tables, as far as there are any.

    Decisions of the second dataset hold for the media of which the merged one has a row.

    Args:
        table: folder of the media table, beside which those of the first dataset are.
        heads: the generations of both datasets.
        other: folder of the media table of the second dataset.
        identities: of its media.
    """
    versions: dict[str, int] = {}
    ids = dict(zip(identities.old_ids.to_pylist(), identities.new_ids.to_pylist(), strict=True))
    about_copies = read_decisions(table, heads[0].tables)
    for decision in read_decisions(other, heads[1].tables):
        members = list(dict.fromkeys(new for each in decision.media_ids if (new := ids.get(each)) is not None))
        if len(members) > 1:
            about_copies.append(decision.model_copy(update={"media_ids": members}))
    if about_copies:
        about_copies.sort(key=lambda each: each.decided_at)
        versions[DECISIONS] = write_decisions(table, about_copies)
    own, others = read_label_decisions(table, heads[0].tables), read_label_decisions(other, heads[1].tables).rows
    if len(others):
        moved = identities.moved(others["media_id"].combine_chunks())
        position = others.schema.get_field_index("media_id")
        others = others.set_column(position, others.schema.field("media_id"), moved).filter(moved.is_valid())
    if own or len(others):
        rows = pa.concat_tables([own.rows, others.cast(own.rows.schema)])
        versions[LABEL_DECISIONS] = write_label_decisions(table, LabelDecisions(rows.sort_by("decided_at")))
    return versions


def declared_by(table: Path, versions: Mapping[str, int]) -> list[SourceClass]:
    """Return the classes of boxes in the class list of a dataset, with their ids."""
    if CLASSES not in versions:
        return []
    rows = small_table(table.with_name(f"{CLASSES}.lance"), versions[CLASSES], CLASS_COLUMNS.names).to_pylist()
    return [
        SourceClass(row["name"], row["id"], row["supercategory"], row["details"]) for row in rows if row["of_boxes"]
    ]
