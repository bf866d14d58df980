"""Building the SQL of a condition. Values become parameters, never text."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from framedex.core.path_columns import stored
from framedex.errors import InvalidFilter
from framedex.storage.condition import Condition
from framedex.vql.scope import Related, Scope

MAX_RELATIONS = 100
"""Relations of other rows that a condition may read: the engine plans each of them."""
NO_RESULTS: Mapping[Any, pa.Table] = MappingProxyType({})


class SqlBuilder:
    """The SQL of one condition under construction, with its parameters, columns and relations.

    Args:
        scope: what the names in the filter stand for.
        results: the rows that searches returned, by test.
    """

    def __init__(self, scope: Scope, results: Mapping[Any, pa.Table] = NO_RESULTS) -> None:
        self.scope, self.results = scope, results
        self._params: list[Any] = []
        self._columns: set[str] = set()
        self._names: dict[Hashable, str] = {}
        self._searches: list[Any] = []
        self._relations: dict[str, pa.Table] = {}

    def condition(self, text: str) -> Condition:
        """Return the condition of an SQL expression that was built here."""
        return Condition(
            text,
            tuple(self._params),
            frozenset(self._columns),
            searches=tuple(self._searches),
            relations=dict(self._relations),
        )

    def test(self, column: str | tuple[str, ...], template: str, *values: Any) -> str:
        """Return a test of columns; it is FALSE where the SQL is NULL, and where the table lacks a column.

        Args:
            column: one or several, stored or of :mod:`framedex.core.path_columns`.
            template: SQL over the columns, with ``{}`` in the place of values.
            values: one for each ``{}``.
        """
        columns = {column} if isinstance(column, str) else {*column}
        if not stored(columns) <= set(self.scope.columns):
            return "FALSE"
        self._columns |= columns
        numbers = range(len(self._params) + 1, len(self._params) + len(values) + 1)
        self._params.extend(values)
        return f"(({template.format(*(f'${number}' for number in numbers))}) IS TRUE)"

    def one_of(self, column: str, values: Sequence[Any], sql_type: str) -> str:
        """Return the test of a column to have one of some values."""
        return self.test(column, f"list_contains({{}}::{sql_type}[], {column})", list(values))

    def any_of(self, column: str, values: Sequence[Any], sql_type: str) -> str:
        """Return the test of a column of lists to hold any of some values."""
        # A subquery would look up many values faster, but the planner takes seconds for a few dozens of subqueries.
        text = f"len(list_filter({column}, lambda value: list_contains({{}}::{sql_type}[], value))) > 0"
        return self.test(column, text, list(values))

    def all_of(self, column: str, values: Sequence[Any], sql_type: str) -> str:
        """Return the test of a column of lists to hold all of some values."""
        return self.test(column, f"list_has_all({column}, {{}}::{sql_type}[])", list(values))

    def related(self, column: str, related: Related, path: str) -> str:
        """Return the test of a column to hold the id of one of some media, which a condition on other rows selects.

        Raises:
            InvalidFilter: the condition would read too many relations; at that path.
        """
        key = str(related)
        if key not in self._names and len(self._names) >= MAX_RELATIONS:
            raise InvalidFilter(path, f"a filter may ask of other entities and search in {MAX_RELATIONS} places in all")
        name = self.relation(key, lambda: self.scope.find(related))
        return self.test(column, f"{column} IN (SELECT media_id FROM {name})")

    def relation(self, search: Hashable, find: Callable[[], pa.Table]) -> str:
        """Return the name of the relation of a search, whose rows are read once."""
        if search not in self._names:
            self._names[search] = name = f"found_{len(self._names)}"
            self._searches.append(search)
            self._relations[name] = find()
        return self._names[search]
