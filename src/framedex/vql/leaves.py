"""What the value object of each key may say."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from framedex.issue_types import IssueName
from framedex.vql.values import (
    MAX_VALUES,
    BatchNumber,
    Count,
    Distance,
    Moment,
    Number,
    Order,
    Positive,
    Share,
    Span,
    Text,
    TextOp,
    Texts,
    check_order,
    check_shape,
    listed,
    moment_span,
)

UNTAGGED = "untagged"
"""In place of a tag: pictures that have none. No tag is named so."""


def _between(schema: dict[str, Any]) -> None:
    """Say in a JSON Schema which ops take a list."""
    lists = {"op": {"enum": [op for op in ("between", "one_of") if op in schema["properties"]["op"]["enum"]]}}
    several = {"properties": {"value": {"type": "array"}}}
    schema["if"], schema["then"], schema["else"] = (
        {"properties": lists},
        several,
        {"not": {**several, "required": ["value"]}},
    )


class Node(BaseModel):
    """Base of all parts of a filter: immutable, no key but the documented ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelsTest(Node):
    """Pictures by their labels; ``is_not`` and ``not_one_of`` are the complements."""

    op: Literal["is", "is_not", "one_of", "not_one_of"]
    value: Texts

    @property
    def names(self) -> list[str]:
        """The labels, whichever way they were given."""
        return listed(self.value)


class TagsTest(Node):
    """Pictures that have any of some tags, each given by its id or name; ``untagged`` stands for having none."""

    op: Literal["is"]
    value: Texts

    @property
    def names(self) -> list[str]:
        """The tags, whichever way they were given."""
        return listed(self.value)

    def numbers(self, tags: Mapping[str, int]) -> list[int]:
        """Return the numbers of the tags that there are, which *tags* has by id and by name."""
        return sorted({tags[name] for name in self.names if name in tags and name != UNTAGGED})


class IssuesTest(Node):
    """Pictures with an issue of that confidence (``in``), or all others (``out``)."""

    op: Literal["issue"]
    value: IssueName
    mode: Literal["in", "out"] = "in"
    confidence_min: Share = 0.0
    confidence_max: Share = 1.0


class DuplicatesTest(Node):
    """Members of near-duplicate groups formed at that similarity, or at the next stricter of the eight levels."""

    op: Literal["duplicates"]
    value: Share


class UniquenessTest(Node):
    """Pictures whose uniqueness is at least the value."""

    op: Literal["uniqueness"]
    value: Share


class TextTest(Node):
    """A search for text: in captions (``fts``), or by meaning (``semantic``).

    ``threshold`` is the least similarity, 0 to 1, of what is found.
    """

    op: Literal["fts", "semantic"]
    value: Text
    threshold: Share | None = None


class SimilarityTest(Node):
    """A search for pictures like a media item, or like a picture that was uploaded for it.

    ``value`` is a media id (``media``) or the anchor id of the upload (``upload``). ``threshold`` is the largest cosine
    distance, 0 (the same direction) to 2 (the opposite one), of what is found; it is no level of clusters.
    """

    op: Literal["upload", "media"]
    value: Text
    threshold: Distance | None = None


SearchTest = TextTest | SimilarityTest
"""A test that somebody has to search for; equal ones are one search."""


class FieldTest(Node):
    """Pictures by a custom field, which is named as it was defined. Which ops it takes is a matter of its type.

    - string, link: ``contains``, ``starts``, ``ends`` (case does not matter), ``is`` and ``one_of`` (exact).
    - float: ``is``, ``one_of``, ``lt``, ``le``, ``gt``, ``ge``, ``between``.
    - datetime: ``is``, ``lt``, ``le``, ``gt``, ``ge``, ``between``, with ISO 8601 text; a date is the whole day, UTC.
    - enum: ``is``, ``one_of``, with options that the field has.
    - all: ``missing``, without a value: pictures that have none.

    Of a field with several values any of them will do.
    """

    model_config = ConfigDict(json_schema_extra=_between)
    name: Text
    op: Literal["contains", "starts", "ends", "is", "one_of", "lt", "le", "gt", "ge", "between", "missing"]
    value: Annotated[
        Text | Number | Annotated[list[Text | Number], Field(max_length=MAX_VALUES)] | None,
        Field(validate_default=True),
    ] = None

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
        return value


class FileNameTest(Node):
    """Pictures by the name of their file, the last part of its path or URI.

    ``is`` is exact; for the others case does not matter.
    """

    op: TextOp
    value: Text


class FolderTest(Node):
    """Pictures by their folder: its path below the source root, with ``/`` between names, and "" for the root itself.

    Of media that are known by a URI it is the part before the file's name. ``is`` is exact; for the others case does
    not matter. ``starts`` and ``ends`` take whole names: what starts with ``animals`` is that folder and all below it,
    but not ``animals2``. ``contains`` takes any part of the path.
    """

    op: TextOp
    value: Text


class MediaTest(Node):
    """Media of a kind: pictures, frames of videos, or all that is of a video: its frames, or that it has none."""

    op: Literal["is"]
    value: Literal["image", "video", "video_frame"]


class SizeTest(Node):
    """Media by the size of their file in bytes, or by their width or height in pixels."""

    model_config = ConfigDict(json_schema_extra=_between)
    op: Order
    value: Count | Annotated[list[Count], Field(max_length=2)]
    of: Literal["bytes", "width", "height"] = "bytes"

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
            check_order([(each, each) for each in listed(value)])
        return value

    @property
    def spans(self) -> Sequence[Span]:
        """The values, each as the first and the last that it stands for."""
        return [(each, each) for each in listed(self.value)]

    @property
    def column(self) -> str:
        """The column of the media table that is asked for."""
        return "size_bytes" if self.of == "bytes" else self.of


class DateAddedTest(Node):
    """Media by when they were added to the dataset, or last replaced because their file had changed.

    Times are ISO 8601 text; without a zone they are UTC, and a date is the whole day: ``le`` and ``between`` include
    it, ``gt`` begins after it. Media that were added before such times were kept pass no such test.
    """

    model_config = ConfigDict(json_schema_extra=_between)
    op: Order
    value: Moment | Annotated[list[Moment], Field(max_length=2)]

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
            check_order([moment_span(each) for each in listed(value)])
        return value

    @property
    def spans(self) -> Sequence[Span]:
        """The values in microseconds since 1970, each as the first and the last that it stands for."""
        return [moment_span(each) for each in listed(self.value)]


class ObjectsTest(Node):
    """Media by the objects in them: at least so many that have any of some labels; of any label without a value.

    With ``confidence_min`` only objects count of which a confidence is known, and it is at least that. A test of
    objects is about the media item that an object is in.
    """

    op: Literal["has"]
    value: Texts | None = None
    min_count: Positive = 1
    confidence_min: Share | None = None

    @property
    def names(self) -> list[str] | None:
        """The labels, whichever way they were given; None for any."""
        return None if self.value is None else listed(self.value)


class ConfidenceTest(Node):
    """Objects by how sure it is that they are there, 0 to 1; those of which that is not known pass no such test."""

    model_config = ConfigDict(json_schema_extra=_between)
    op: Order
    value: Share | Annotated[list[Share], Field(max_length=2)]

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
            check_order([(each, each) for each in listed(value)])
        return value

    @property
    def spans(self) -> Sequence[Span]:
        """The values, each as the first and the last that it stands for."""
        return [(each, each) for each in listed(self.value)]


class SourceTest(Node):
    """Objects by where they come from: the format of their annotations, or the id of the model that found them."""

    model_config = ConfigDict(json_schema_extra=_between)
    op: Literal["is", "one_of"]
    value: Texts

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
        return value


class BatchTest(Node):
    """Media by the number of the addition that brought them: 0 is the creation, 1 the first addition."""

    model_config = ConfigDict(json_schema_extra=_between)
    op: Literal["is", "one_of"]
    value: BatchNumber | Annotated[list[BatchNumber], Field(max_length=MAX_VALUES)]

    @field_validator("value")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
        return value
