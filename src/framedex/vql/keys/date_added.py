"""The key ``date_added``."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from framedex.vql.expression import Expression
from framedex.vql.key_test import OrderedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Moment, Order, Span, in_order, microseconds, moment_span

Time = str | date | datetime


class DateAddedTest(OrderedTest):
    """Media by when they were added to the dataset, or last replaced because their file had changed.

    Times are ISO 8601 text; without a zone they are UTC, and a date is the whole day: ``le`` and ``between`` include
    it, ``gt`` begins after it. Media that were added by a version that did not store times pass no such test.
    """

    key = "date_added"
    op: Order
    value: Moment | Annotated[list[Moment], Field(max_length=2)]

    @staticmethod
    def span_of(value: str) -> Span:
        """Return the first and the last microsecond since 1970 of a date or time."""
        return moment_span(value)

    def batches(self, added: Mapping[int, datetime]) -> list[int]:
        """Return the numbers of the batches that pass the test, ascending.

        Args:
            added: times of addition by the number of the batch.
        """
        return sorted(number for number, time in added.items() if in_order(microseconds(time), self.op, self.spans))

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the batch to be one that was added at that time."""
        return query.one_of("batch", self.batches(query.scope.added), "INTEGER")


def date_added(op: Order, value: Time | Sequence[Time]) -> Expression:
    """Return the test of when media were added; a date is the whole day, and a time without a zone is in UTC.

    Examples:
        >>> ds.where(vql.date_added("gt", "2020-01-31")).count()
        33
    """
    return Expression.of(DateAddedTest, op, value)
