"""What the names in a filter stand for: the columns, tags, custom fields and additions of a dataset."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from framedex.errors import InvalidFilter
from framedex.records import Condition, FieldType
from framedex.vql.leaves import DateAddedTest, FieldTest
from framedex.vql.values import Span, check_order, in_order, listed, moment_span, shown

_EXACT = ("is", "one_of", "missing")
_ORDERED = ("is", "lt", "le", "gt", "ge", "between", "missing")
_TEXTUAL = ("contains", "starts", "ends", *_EXACT)
OPS = {
    FieldType.STRING: _TEXTUAL,
    FieldType.LINK: _TEXTUAL,
    FieldType.FLOAT: (*_ORDERED, "one_of"),
    FieldType.DATETIME: _ORDERED,
    FieldType.ENUM: _EXACT,
}
"""Which ops the values of a custom field take."""
_SHOWN_NAMES = 20


@dataclass(frozen=True)
class KnownField:
    """A custom field that a dataset has.

    Attributes:
        column: of the media table; it may lack there as long as no media item has a value.
        type: of its values.
        is_multi: whether a media item has a list of values.
        options: what values of type enum may be.
    """

    column: str
    type: FieldType
    is_multi: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Related:
    """Media that a filter names by what holds for others: for objects in them, or for the media that objects are in.

    Attributes:
        of_objects: whether the condition is on objects; else it is on media.
        condition: which of them.
        statement: SQL over the relation ``chosen`` of these rows, which returns ``media_id``.
        columns: those that the statement looks at.
    """

    of_objects: bool
    condition: Condition
    statement: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        """Return in words which media these are."""
        values = f" with {self.condition.params}" if self.condition.params else ""
        return f"{'objects' if self.of_objects else 'media'} WHERE {self.condition.text}{values}: {self.statement}"


def _nothing(_related: Related) -> pa.Table:
    return pa.table({"media_id": pa.array([], pa.string())})


@dataclass(frozen=True)
class Scope:
    """What the names in a filter stand for, in one state of a dataset.

    Attributes:
        columns: names of the columns that the media table has; a test on a column that it lacks finds nothing.
        tags: numbers of tags by id and by name; other tags find nothing.
        fields: custom fields by name; other fields are an error.
        added: when media were added, by the number of their batch; of other batches that is not known.
        media: of a filter of objects, what names stand for in the media that they are in; else None.
        find: returns the ids of media that the filter names by others, as the column ``media_id``.
    """

    columns: Collection[str] = ()
    tags: Mapping[str, int] = field(default_factory=dict)
    fields: Mapping[str, KnownField] = field(default_factory=dict)
    added: Mapping[int, datetime] = field(default_factory=dict)
    media: "Scope | None" = None
    find: Callable[[Related], pa.Table] = _nothing

    def batches(self, test: DateAddedTest) -> list[int]:
        """Return the batches that were added when a test says, ascending."""
        times = {number: microseconds(time) for number, time in self.added.items()}
        return sorted(number for number, time in times.items() if in_order(time, test.op, test.spans))

    def field(self, test: FieldTest, path: str) -> "FieldQuery":
        """Return what a test asks of which field.

        Args:
            test: the test.
            path: JSON path of the test.

        Raises:
            InvalidFilter: there is no such field, or the op or a value does not suit its type.
        """
        known = self.fields.get(test.name)
        if known is None:
            raise InvalidFilter(f"{path}.name", f"no custom field {shown(test.name)}; there are {_names(self.fields)}")
        if test.op not in OPS[known.type]:
            allowed = ", ".join(OPS[known.type])
            raise InvalidFilter(f"{path}.op", f"a field of type {known.type} takes {allowed}; found '{test.op}'")
        if test.value is None:
            return FieldQuery(known, test.op)
        try:
            return _query(known, test)
        except ValueError as error:
            raise InvalidFilter(f"{path}.value", str(error)) from None


@dataclass(frozen=True)
class FieldQuery:
    """What is asked of a custom field.

    Attributes:
        known: the field.
        op: one of those of its type.
        texts: the values, of a field of text.
        spans: the values, of a field of numbers or times; times in microseconds since 1970.
    """

    known: KnownField
    op: str
    texts: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


def _query(known: KnownField, test: FieldTest) -> FieldQuery:
    values = listed(test.value)
    texts = tuple(each for each in values if isinstance(each, str))
    numbers = tuple((each, each) for each in values if isinstance(each, float))
    wanted = "numbers" if known.type is FieldType.FLOAT else "text"
    if texts if wanted == "numbers" else numbers:
        raise ValueError(f"a field of type {known.type} takes {wanted}; found {shown(test.value)}")
    if known.type is FieldType.FLOAT or known.type is FieldType.DATETIME:
        spans = numbers or tuple(_moment(text) for text in texts)
        if test.op == "between":
            check_order(spans)
        return FieldQuery(known, test.op, spans=spans)
    wrong = [text for text in texts if known.type is FieldType.ENUM and text not in known.options]
    if wrong:
        raise ValueError(f"the options are {_names(known.options)}; found {shown(wrong[0])}")
    return FieldQuery(known, test.op, texts=texts)


def _moment(text: str) -> tuple[int, int]:
    try:
        return moment_span(text)
    except ValueError:
        raise ValueError(
            f"a field of type datetime takes ISO 8601 text such as '2024-05-17'; found {shown(text)}"
        ) from None


def _names(names: Collection[str]) -> str:
    """Return names as a message lists them."""
    first = ", ".join(shown(name) for name in list(names)[:_SHOWN_NAMES])
    rest = len(names) - _SHOWN_NAMES
    return (first + (f" and {rest} more" if rest > 0 else "")) or "none"


def microseconds(time: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
