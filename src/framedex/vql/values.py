"""The values of tests: the types of their fields, their checks, and comparisons with them as SQL."""

import reprlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from framedex.core.checks import has_lone_surrogate

MAX_VALUES = 10_000
"""Values that a list may have."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000

Order = Literal["is", "lt", "le", "gt", "ge", "between"]
"""Ops of numbers and times; ``between`` takes two values, the smaller first, and includes both."""
TextOp = Literal["is", "contains", "starts", "ends"]
"""Ops of text: ``is`` is exact; the others compare in lower case."""
PathOp = Literal[TextOp, "one_of"]
"""Ops of names and paths: those of text, and ``one_of``, which is exact and takes a list."""
Span = tuple[int, int] | tuple[float, float]
"""The first and the last of the stored values that a value of a filter stands for: a date is a whole day."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80
_short.maxlevel = 5
_SHOWN = 300


def shown(value: Any) -> str:
    """Return a value as messages show it: shortened, however long or deep it is."""
    text = _short.repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def listed(value: Any) -> list[Any]:
    """Return a value that may be one or several as a list."""
    return value if isinstance(value, list) else [value]


def _encodable(text: str) -> str:
    if has_lone_surrogate(text):
        raise ValueError("text must be valid Unicode, without lone surrogates")
    return text


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def moment_span(text: str) -> tuple[int, int]:
    """Return the first and the last microsecond since 1970 that an ISO 8601 date or time stands for.

    A date is the whole day, in UTC; so is the time of a text without a zone.

    Raises:
        ValueError: it is neither.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        time = datetime.fromisoformat(text)
        since = time.replace(tzinfo=UTC) - _EPOCH - (time.utcoffset() or timedelta())
        start = since // timedelta(microseconds=1)
        return start, start
    start = (day - _EPOCH.date()).days * _DAY_US
    return start, start + _DAY_US - 1


def _moment(value: Any) -> Any:
    if isinstance(value, date):  # and so a datetime
        return value.isoformat()
    return value


def _is_moment(text: str) -> str:
    try:
        moment_span(text)
    except ValueError:
        raise ValueError("a time is ISO 8601 text, '2024-05-17' for the whole day or '2024-05-17T09:30:00Z'") from None
    return text


Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Distance = Annotated[float, Field(strict=True, ge=0, le=2, allow_inf_nan=False)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=0, le=2**53)]
Positive = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=1, le=2**53)]
BatchNumber = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=0, lt=2**31)]
Text = Annotated[str, Field(strict=True), AfterValidator(_encodable)]
Moment = Annotated[
    str,
    BeforeValidator(_moment),
    AfterValidator(_is_moment),
    WithJsonSchema({"type": "string", "description": "ISO 8601; a date without a time is the whole day, in UTC"}),
]
Texts = Text | Annotated[list[Text], Field(max_length=MAX_VALUES)]


def check_shape(op: str, value: Any) -> None:
    """Check that a value has the shape that its op takes: a list of two, a list of any length, one value, or none.

    Raises:
        ValueError: it is not.
    """
    if op == "missing":
        if value is not None:
            raise ValueError("'missing' takes no value")
    elif op == "between":
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError("'between' takes a list of two values")
    elif op == "one_of":
        if not isinstance(value, list):
            raise ValueError("'one_of' takes a list of values")
    elif isinstance(value, list) or value is None:
        raise ValueError(f"'{op}' takes one value")


def check_order(spans: Sequence[Span]) -> None:
    """Check that the first of two values is not the larger one.

    Raises:
        ValueError: it is.
    """
    if len(spans) == 2 and spans[0][0] > spans[1][1]:
        raise ValueError("'between' takes the smaller value first")


def in_order(value: float, op: Order, spans: Sequence[Span]) -> bool:
    """Return whether a number passes an op with the values of a test.

    Args:
        value: a number, or microseconds since 1970.
        op: one of :data:`Order`.
        spans: of the test's values, one or two.
    """
    match op:
        case "lt":
            return value < spans[0][0]
        case "le":
            return value <= spans[0][1]
        case "gt":
            return value > spans[0][1]
        case "ge":
            return value >= spans[0][0]
        case "is" | "between":
            return spans[0][0] <= value <= spans[-1][1]
        case _:
            assert_never(op)


def microseconds(time: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def text_sql(expression: str, op: TextOp) -> str:
    """Return the test of a text by one of :data:`TextOp` as SQL, with ``{}`` in the place of the value.

    Args:
        expression: the text; of all ops but ``is``, in lower case.
        op: how the text is compared with the value.
    """
    match op:
        case "is":
            return f"{expression} = {{}}::VARCHAR"
        case "contains":
            return f"contains({expression}, lower({{}}::VARCHAR))"
        case "starts":
            return f"starts_with({expression}, lower({{}}::VARCHAR))"
        case "ends":
            return f"ends_with({expression}, lower({{}}::VARCHAR))"
        case _:
            assert_never(op)


def order_sql(expression: str, op: Order, spans: Sequence[Span], sql_type: str) -> tuple[str, tuple[float, ...]]:
    """Return :func:`in_order` as SQL, with ``{}`` in the place of values, and these values.

    Args:
        expression: the tested number.
        op: one of :data:`Order`.
        spans: of the test's values, one or two.
        sql_type: of the values.
    """
    match op:
        case "lt":
            return f"{expression} < {{}}::{sql_type}", (spans[0][0],)
        case "le":
            return f"{expression} <= {{}}::{sql_type}", (spans[0][1],)
        case "gt":
            return f"{expression} > {{}}::{sql_type}", (spans[0][1],)
        case "ge":
            return f"{expression} >= {{}}::{sql_type}", (spans[0][0],)
        case "is" | "between":
            return f"{expression} BETWEEN {{}}::{sql_type} AND {{}}::{sql_type}", (spans[0][0], spans[-1][1])
        case _:
            assert_never(op)
