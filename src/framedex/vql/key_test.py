"""Base classes of all tests, one test for each key of the language."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from framedex.errors import InvalidFilter
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Order, Span, Texts, check_order, check_shape, listed, order_sql, shown


class KeyTest(BaseModel, ABC):
    """A test of media or objects: the value of one key, and its SQL.

    Instances are immutable. Their fields are those of the JSON object, and no others are allowed.

    Attributes:
        key: the key that it is the value of.
        is_of_media: whether a filter of objects asks it of the media that the objects are in.
        is_costly: whether it counts towards the limit of searches in a filter.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: ClassVar[str]
    is_of_media: ClassVar[bool] = False
    is_costly: ClassVar[bool] = False

    @abstractmethod
    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return an SQL expression that is TRUE or FALSE for each row, never NULL.

        Args:
            query: takes the values and columns of the expression.
            path: JSON path of the test.

        Raises:
            InvalidFilter: the test does not suit the scope; at that path or below.
        """

    def merge_key(self, *, any_of: bool) -> Hashable:
        """Return a key that is equal for tests beside each other that :meth:`merge` can join; by default equal ones.

        Args:
            any_of: whether the tests are combined with OR; else with AND.
        """
        del any_of
        return self.key, self.model_dump_json()

    @classmethod
    def merge(cls, tests: Sequence[Self], *, any_of: bool) -> Self:
        """Return one test in the place of several that have the same :meth:`merge_key`."""
        del any_of
        return tests[0]


class SearchTest(KeyTest):
    """A test whose rows a search returns; equal tests are one search.

    Examples:
        >>> [type(each).__name__ for each in vql.searches(vql.parse(vql.text("fts", "cat")))]
        ['TextTest']
    """

    is_costly = True
    ranks: ClassVar[bool] = True
    """Whether the results have an order, in which a filter shows them."""
    op: Any
    value: Any

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to be among the results of the search."""
        if self not in query.results:
            raise InvalidFilter(
                path, f"the {self.key} search for {shown(self.value)} ({self.op}) has not been carried out"
            )
        name = query.relation(self, lambda: query.results[self])
        return f"((_rowid IN (SELECT _rowid FROM {name})) IS TRUE)"


def _describe_shapes(schema: dict[str, Any]) -> None:
    """Add to a JSON Schema which ops take a list."""
    lists = [op for op in ("between", "one_of") if op in schema["properties"]["op"]["enum"]]
    several = {"properties": {"value": {"type": "array"}}}
    schema["if"] = {"properties": {"op": {"enum": lists}}}
    schema["then"] = several
    schema["else"] = {"not": {**several, "required": ["value"]}}


class ShapedTest(KeyTest):
    """A test whose op decides whether it takes one value, two, a list, or none."""

    model_config = ConfigDict(json_schema_extra=_describe_shapes)

    @field_validator("value", check_fields=False)
    @classmethod
    def _check_shape(cls, value: Any, info: ValidationInfo) -> Any:
        if "op" in info.data:
            check_shape(info.data["op"], value)
        return value


class OrderedTest(ShapedTest):
    """A test of values that have an order: numbers, or times.

    A key whose values cannot be missing has only the ops of :data:`Order`.
    """

    op: Literal[Order, "missing"]
    value: Any

    @field_validator("value", check_fields=False)
    @classmethod
    def _check_order(cls, value: Any) -> Any:
        if value is not None:
            check_order([cls.span_of(each) for each in listed(value)])
        return value

    @staticmethod
    def span_of(value: Any) -> Span:
        """Return the first and the last of the stored values that a value stands for; by default itself."""
        return value, value

    @property
    def spans(self) -> Sequence[Span]:
        """The spans of the values, one or two."""
        return [self.span_of(each) for each in listed(self.value)]

    def ordered_sql(self, query: SqlBuilder, column: str, sql_type: str) -> str:
        """Return the test of a column to stand to the values as the op says, or to have no value.

        Args:
            query: takes the values and columns of the expression.
            column: of numbers.
            sql_type: of the values.
        """
        if self.op == "missing":
            return f"(NOT {query.test(column, f'{column} IS NOT NULL')})"
        text, values = order_sql(column, self.op, self.spans, sql_type)
        return query.test(column, text, *values)


class IdTest(KeyTest):
    """A test of rows to belong to one of some ids; tests beside each other in an OR become one."""

    op: Literal["is", "one_of"]
    value: Texts

    @property
    def ids(self) -> list[str]:
        """The ids as a list."""
        return listed(self.value)

    def merge_key(self, *, any_of: bool) -> Hashable:
        """Return one key for all tests in an OR."""
        return self.key if any_of else super().merge_key(any_of=any_of)

    @classmethod
    def merge(cls, tests: Sequence[Self], *, any_of: bool) -> Self:
        """Return one test of the ids of all tests."""
        if not any_of:  # equal tests
            return tests[0]
        # Each test was validated by itself; together they may have more ids than one may list.
        ids = list(dict.fromkeys(each for test in tests for each in test.ids))
        return tests[0].model_copy(update={"op": "one_of", "value": ids})
