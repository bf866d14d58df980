"""The elements of a filter: objects of one key each, and the two that hold others."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, TypeAdapter

from framedex.vql.leaves import (
    BatchTest,
    ConfidenceTest,
    DateAddedTest,
    DuplicatesTest,
    FieldTest,
    FileNameTest,
    FolderTest,
    IssuesTest,
    LabelsTest,
    MediaTest,
    Node,
    ObjectsTest,
    SearchTest,
    SimilarityTest,
    SizeTest,
    SourceTest,
    TagsTest,
    TextTest,
    UniquenessTest,
)


class _Element(Node):
    id: str | int | None = Field(default=None, exclude=True, description="ignored")


class Text(_Element):
    """``{"text": …}``."""

    text: TextTest


class Similarity(_Element):
    """``{"similarity": …}``."""

    similarity: SimilarityTest


class Labels(_Element):
    """``{"labels": …}``."""

    labels: LabelsTest


class Tags(_Element):
    """``{"tags": …}``."""

    tags: TagsTest


class Issues(_Element):
    """``{"issues": …}``."""

    issues: IssuesTest


class Duplicates(_Element):
    """``{"duplicates": …}``."""

    duplicates: DuplicatesTest


class Uniqueness(_Element):
    """``{"uniqueness": …}``."""

    uniqueness: UniquenessTest


class CustomField(_Element):
    """``{"field": …}``."""

    field: FieldTest


class FileName(_Element):
    """``{"file_name": …}``."""

    file_name: FileNameTest


class Folder(_Element):
    """``{"folder": …}``."""

    folder: FolderTest


class MediaKind(_Element):
    """``{"media": …}``."""

    media: MediaTest


class Size(_Element):
    """``{"size": …}``."""

    size: SizeTest


class DateAdded(_Element):
    """``{"date_added": …}``."""

    date_added: DateAddedTest


class Batch(_Element):
    """``{"batch": …}``."""

    batch: BatchTest


class Objects(_Element):
    """``{"objects": …}``."""

    objects: ObjectsTest


class Confidence(_Element):
    """``{"confidence": …}``."""

    confidence: ConfidenceTest


class Source(_Element):
    """``{"source": …}``."""

    source: SourceTest


class AnyOf(_Element):
    """``{"any": […]}``: at least one of the elements holds; none of an empty list does."""

    any: "list[Element]"


class Not(_Element):
    """``{"not": …}``: the complement of an element, or of a list combined with AND."""

    negated: "Element | list[Element]" = Field(alias="not")


Element = (
    Text
    | Similarity
    | Labels
    | Tags
    | Issues
    | Duplicates
    | Uniqueness
    | CustomField
    | FileName
    | Folder
    | MediaKind
    | Size
    | DateAdded
    | Batch
    | Objects
    | Confidence
    | Source
    | AnyOf
    | Not
)
Filter = tuple[Element, ...]
KEYS: dict[str, type[_Element]] = {
    "text": Text,
    "similarity": Similarity,
    "labels": Labels,
    "tags": Tags,
    "issues": Issues,
    "duplicates": Duplicates,
    "uniqueness": Uniqueness,
    "field": CustomField,
    "file_name": FileName,
    "folder": Folder,
    "media": MediaKind,
    "size": Size,
    "date_added": DateAdded,
    "batch": Batch,
    "objects": Objects,
    "confidence": Confidence,
    "source": Source,
    "any": AnyOf,
    "not": Not,
}
AnyOf.model_rebuild()
Not.model_rebuild()
_ADAPTER: TypeAdapter[list[Element]] = TypeAdapter(list[Element])


def children(element: Element) -> list[Element]:
    """Return the elements that an element holds itself."""
    if isinstance(element, AnyOf):
        return element.any
    if isinstance(element, Not):
        return element.negated if isinstance(element.negated, list) else [element.negated]
    return []


def walk(vql: Filter) -> Iterator[tuple[Element, int]]:
    """Yield all elements of a filter in the order in which they are written, each with its depth, from 1."""
    # A stack of our own: elements may be nested deeper than Python calls may be.
    waiting: list[tuple[Element, int]] = [(element, 1) for element in reversed(vql)]
    while waiting:
        element, depth = waiting.pop()
        yield element, depth
        waiting.extend((child, depth + 1) for child in reversed(children(element)))


def is_of_media(element: Element) -> bool:
    """Return whether an element asks what is said of media alone: of objects it asks it of those that they are in."""
    inner = children(element)
    return isinstance(element, Tags | CustomField | Objects) or (bool(inner) and all(map(is_of_media, inner)))


def searches(vql: Filter) -> tuple[SearchTest, ...]:
    """Return the distinct tests of a filter that have to be searched for, in the order in which they are written."""
    found: dict[SearchTest, None] = {}
    for element, _ in walk(vql):
        if isinstance(element, Text):
            found[element.text] = None
        elif isinstance(element, Similarity):
            found[element.similarity] = None
    return tuple(found)


def leading_searches(vql: Filter) -> tuple[SearchTest, ...]:
    """Return the distinct tests that all media of a filter were found by: those that stand in no other element."""
    alone = tuple(element for element in vql if isinstance(element, Text | Similarity))
    return searches(alone)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of filters."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "VQL",
        "description": "A filter of media: elements of one key each, combined with AND.",
    }
    return {**head, **_ADAPTER.json_schema(by_alias=True)}
