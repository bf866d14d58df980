"""Compilation of filters to SQL conditions."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias, assert_never

import pyarrow as pa

from framedex.storage.condition import Condition
from framedex.vql.elements import AnyOf, Element, Filter, Not, is_of_media
from framedex.vql.key_test import KeyTest, SearchTest
from framedex.vql.merging import merged
from framedex.vql.scope import Related, Scope
from framedex.vql.sql_builder import NO_RESULTS, SqlBuilder

SearchResults: TypeAlias = Mapping[SearchTest, pa.Table]
"""The rows that searches returned, by test: tables with the column ``_rowid``, uint64, and any others."""


def compile_filter(vql: Filter, scope: Scope, results: SearchResults = NO_RESULTS) -> Condition:
    """Return the condition that a filter stands for.

    Args:
        vql: a parsed filter.
        scope: what the names in it stand for.
        results: the results of its searches (see :func:`searches`). Thresholds of the tests have been applied.

    Raises:
        InvalidFilter: a custom field does not exist, a test does not suit its type, or the results of a search are
            missing.

    Examples:
        >>> condition = vql.compile_filter(vql.parse(vql.labels("cat")), vql.Scope(columns=["labels"]))
        >>> condition.params
        (['cat'],)
    """
    compiler = _Compiler(scope, results)
    return compiler.query.condition(compiler.all_of(vql, "$"))


class _Compiler:
    """The compiler of one condition."""

    def __init__(self, scope: Scope, results: SearchResults) -> None:
        self.query = SqlBuilder(scope, results)

    def all_of(self, elements: Collection[Element], path: str) -> str:
        return " AND ".join(self.each(elements, path, any_of=False)) or "TRUE"

    def each(self, elements: Collection[Element], path: str, *, any_of: bool) -> list[str]:
        """Return the SQL of elements beside each other; in a filter of objects, one test for all those of media."""
        located = [(element, f"{path}[{index}]") for index, element in merged(elements, any_of=any_of)]
        if self.query.scope.media is None:
            return [self.element(*each) for each in located]
        of_media = [each for each in located if is_of_media(each[0])]
        own = [self.element(*each) for each in located if not is_of_media(each[0])]
        return [*own, *([self.of_media(of_media, self.query.scope.media, any_of=any_of)] if of_media else [])]

    def element(self, element: Element, path: str) -> str:
        match element:
            case KeyTest():
                return element.sql(self.query, f"{path}.{element.key}")
            case AnyOf():
                return "(" + (" OR ".join(self.each(element.elements, f"{path}.any", any_of=True)) or "FALSE") + ")"
            case Not():
                return f"(NOT ({self.negated(element, f'{path}.not')}))"
            case _:
                assert_never(element)

    def negated(self, element: Not, path: str) -> str:
        if isinstance(element.negated, tuple):
            return self.all_of(element.negated, path)
        return self.element(element.negated, path)

    def of_media(self, located: Sequence[tuple[Element, str]], scope: Scope, *, any_of: bool) -> str:
        """Return the test of objects to be in media that pass some elements.

        Args:
            located: the elements, at least one, each with its JSON path.
            scope: of the media.
            any_of: whether the elements are combined with OR; else with AND.
        """
        media = _Compiler(scope, self.query.results)
        text = (" OR " if any_of else " AND ").join(media.element(*each) for each in located)
        statement = "SELECT media_id FROM chosen"
        related = Related(
            of_objects=False, condition=media.query.condition(text), statement=statement, columns=("media_id",)
        )
        return self.query.related("parent_id", related, located[0][1])
