"""The key ``field``."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_never, cast

from pydantic import Field

from framedex.core.checks import suggestion
from framedex.errors import InvalidFilter
from framedex.records import FieldType
from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.scope import CustomField, Scope
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import (
    MAX_VALUES,
    Number,
    Order,
    Span,
    Text,
    TextOp,
    check_order,
    listed,
    moment_span,
    order_sql,
    shown,
    text_sql,
)

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
"""Ops for custom fields of each type."""
_SHOWN_NAMES = 20


@dataclass(frozen=True)
class FieldQuery:
    """A test of a custom field, with values of the field's type.

    Attributes:
        field: the field.
        op: one of those of its type.
        texts: the values, of a field of text.
        spans: the values, of a field of numbers or times; times in microseconds since 1970.
    """

    field: CustomField
    op: str
    texts: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


class FieldTest(ShapedTest):
    """Media by a custom field, which is named as it was defined. Its type decides on the ops.

    - string, link: ``contains``, ``starts``, ``ends`` (case does not matter), ``is`` and ``one_of`` (exact).
    - float: ``is``, ``one_of``, ``lt``, ``le``, ``gt``, ``ge``, ``between``.
    - datetime: ``is``, ``lt``, ``le``, ``gt``, ``ge``, ``between``, with ISO 8601 text; a date is the whole day, UTC.
    - enum: ``is``, ``one_of``, with options of the field.
    - all: ``missing``, without a value: media without a value in the field.

    Of a field with several values any of them will do.
    """

    key = "field"
    is_of_media = True
    name: Text
    op: Literal["contains", "starts", "ends", "is", "one_of", "lt", "le", "gt", "ge", "between", "missing"]
    value: Annotated[
        Text | Number | Annotated[list[Text | Number], Field(max_length=MAX_VALUES)] | None,
        Field(validate_default=True),
    ] = None

    def query(self, scope: Scope, path: str) -> FieldQuery:
        """Return the test with values of the field's type.

        Args:
            scope: the custom fields of the dataset.
            path: JSON path of the test.

        Raises:
            InvalidFilter: there is no such field, or the op or a value does not suit its type.
        """
        field = scope.fields.get(self.name)
        if field is None:
            names = _names(tuple(scope.fields))
            guess = suggestion(self.name, tuple(scope.fields))
            raise InvalidFilter(f"{path}.name", f"no custom field {shown(self.name)}; there are {names}{guess}")
        if self.op not in OPS[field.type]:
            allowed = ", ".join(OPS[field.type])
            raise InvalidFilter(f"{path}.op", f"a field of type {field.type} takes {allowed}; found '{self.op}'")
        if self.value is None:
            return FieldQuery(field, self.op)
        try:
            return _query(field, self.op, self.value)
        except ValueError as error:
            raise InvalidFilter(f"{path}.value", str(error)) from None

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the field's value, or of any of its values."""
        asked = self.query(query.scope, path)
        column, is_multi = asked.field.column, asked.field.is_multi
        if asked.op == "missing":
            return f"(NOT {query.test(column, f'len({column}) > 0' if is_multi else f'{column} IS NOT NULL')})"
        if asked.op == "one_of":
            sql_type = "DOUBLE" if asked.field.type is FieldType.FLOAT else "VARCHAR"
            values: list[Any] = list(asked.texts) or [start for start, _ in asked.spans]
            return (query.any_of if is_multi else query.one_of)(column, values, sql_type)
        text, params = _value_sql(asked, "value" if is_multi else column)
        return query.test(
            column, f"len(list_filter({column}, lambda value: {text})) > 0" if is_multi else text, *params
        )


def _query(field: CustomField, op: str, value: Any) -> FieldQuery:
    values = listed(value)
    texts = tuple(each for each in values if isinstance(each, str))
    numbers = tuple((each, each) for each in values if isinstance(each, float))
    expected = "numbers" if field.type is FieldType.FLOAT else "text"
    if texts if expected == "numbers" else numbers:
        raise ValueError(f"a field of type {field.type} takes {expected}; found {shown(value)}")
    if field.type is FieldType.FLOAT or field.type is FieldType.DATETIME:
        spans = numbers or tuple(_moment(text) for text in texts)
        if op == "between":
            check_order(spans)
        return FieldQuery(field, op, spans=spans)
    wrong = [text for text in texts if field.type is FieldType.ENUM and text not in field.options]
    if wrong:
        guess = suggestion(wrong[0], field.options)
        raise ValueError(f"the options are {_names(field.options)}; found {shown(wrong[0])}{guess}")
    return FieldQuery(field, op, texts=texts)


def _moment(text: str) -> tuple[int, int]:
    try:
        return moment_span(text)
    except ValueError:
        raise ValueError(
            f"a field of type datetime takes ISO 8601 text such as '2024-05-17'; found {shown(text)}"
        ) from None


def _names(names: tuple[str, ...]) -> str:
    """Return the first names for a message, and the number of the others."""
    first = ", ".join(shown(name) for name in names[:_SHOWN_NAMES])
    rest = len(names) - _SHOWN_NAMES
    return (first + (f" and {rest} more" if rest > 0 else "")) or "none"


def _value_sql(query: FieldQuery, expression: str) -> tuple[str, tuple[Any, ...]]:
    """Return the test of one value of a custom field, with ``{}`` in the place of values, and these values."""
    # The op is one of OPS, of its type.
    match query.field.type:
        case FieldType.FLOAT:
            return order_sql(expression, cast("Order", query.op), query.spans, "DOUBLE")
        case FieldType.DATETIME:
            return order_sql(f"epoch_us({expression})", cast("Order", query.op), query.spans, "BIGINT")
        case FieldType.STRING | FieldType.LINK | FieldType.ENUM:
            place = expression if query.op == "is" else f"lower({expression})"
            return text_sql(place, cast("TextOp", query.op)), query.texts
        case _:
            assert_never(query.field.type)


def field(name: str, op: str, value: Any = None) -> Expression:
    """Return the test of a custom field: ``field("price", "between", [5, 10])``, ``field("price", "missing")``.

    Examples:
        >>> ds.where(vql.field("rating", "between", [4, 5])).count()
        1
    """
    return Expression.of(FieldTest, op, value, name=name)
