"""What values of filters stand for."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.vql.values import MAX_VALUES, Order, in_order, moment_span, shown

DAY_US = 86_400_000_000


def microseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(st.dates())
def test_moment_span__date_is_the_whole_day(day: date) -> None:
    """A day begins at midnight in UTC and ends before the next begins, at both ends of the calendar too."""
    start, end = moment_span(day.isoformat())
    assert start == microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC))
    assert end == start + DAY_US - 1


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_moment_span__zones(time: datetime, minutes: int) -> None:
    """A time of any zone is the same instant; without one it is in UTC."""
    instant = microseconds(time.replace(tzinfo=UTC))
    elsewhere = time.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert moment_span(elsewhere.isoformat()) == (instant, instant)
    assert moment_span(time.isoformat()) == (instant, instant)


def test_moment_span__midnight_is_no_day() -> None:
    """A text with a time is an instant, even the first of a day."""
    assert moment_span("1970-01-01T00:00") == (0, 0)
    assert moment_span("1970-01-02T00:00:00+23:00") == (3_600_000_000, 3_600_000_000)


def test_moment_span__beyond_the_calendar_of_utc() -> None:
    """Zones may push a time out of the years 1 to 9999; it still has a place among the others."""
    assert moment_span("0001-01-01T00:00:00+14:00")[0] == moment_span("0001-01-01")[0] - 14 * 3_600_000_000
    assert moment_span("9999-12-31T23:59:59.999999-12:00")[0] == moment_span("9999-12-31")[1] + 12 * 3_600_000_000


@pytest.mark.parametrize("text", ["", "yesterday", "2024", "2024-02-30", "2024-05-17T25:00", "17.05.2024", "1e3", "\0"])
def test_moment_span__no_time(text: str) -> None:
    """What is no date and no time is an error."""
    with pytest.raises(ValueError, match=r".*"):
        moment_span(text)


@pytest.mark.parametrize(
    ("op", "inside"),
    [
        ("is", [10, 15, 19]),
        ("lt", [9]),
        ("le", [9, 10, 15, 19]),
        ("gt", [20]),
        ("ge", [10, 15, 19, 20]),
        ("between", [10, 15, 19]),
    ],
)
def test_in_order__of_a_span(op: Order, inside: list[int]) -> None:
    """A day is itself from its first to its last moment: `le` includes all of it, `gt` begins behind it."""
    assert [value for value in (9, 10, 15, 19, 20) if in_order(value, op, [(10, 19)])] == inside


def test_in_order__between_two_spans() -> None:
    """Both ends are included, the last one as a whole."""
    assert [value for value in range(8) if in_order(value, "between", [(1, 2), (4, 6)])] == [1, 2, 3, 4, 5, 6]


def test_shown__is_short() -> None:
    """Long and deep values are shown in part."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("x" * 10**6, ["x"] * MAX_VALUES, deep, 10**1000, {str(n): n for n in range(1000)}):
        assert len(shown(value)) <= 301
    assert shown("it's") == '"it\'s"'
    while deep:  # let go of from outside, for the interpreter takes it apart by recursion
        deep = deep[0]  # type: ignore[assignment] # it holds lists alone
