"""Filters to SQL. Values become parameters, never text."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, assert_never

from framedex.records import DUPLICATE_LEVELS, Condition
from framedex.vql.model import (
    UNTAGGED,
    AnyOf,
    Duplicates,
    DuplicatesTest,
    Element,
    Filter,
    Issues,
    IssuesTest,
    Labels,
    LabelsTest,
    Not,
    Tags,
    TagsTest,
    Uniqueness,
)


def duplicate_level(value: float) -> int:
    """Return which of the eight levels serves a similarity: itself, or the next stricter one."""
    return next(place for place, level in enumerate(DUPLICATE_LEVELS) if level >= value)


NO_TAGS: Mapping[str, int] = MappingProxyType({})


def compile_filter(vql: Filter, fields: Collection[str], tags: Mapping[str, int] = NO_TAGS) -> Condition:
    """Return the condition that a filter stands for.

    Args:
        vql: a parsed filter.
        fields: the columns that the table has; a test on a column that it lacks finds nothing.
        tags: numbers of tags by id and by name; other tags find nothing.
    """
    compiler = _Compiler(fields, tags)
    text = compiler.all_of(vql)
    return Condition(text, tuple(compiler.params), frozenset(compiler.columns))


class _Compiler:
    def __init__(self, fields: Collection[str], tags: Mapping[str, int]) -> None:
        self.fields, self.known_tags = fields, tags
        self.params: list[Any] = []
        self.columns: set[str] = set()

    def all_of(self, elements: Collection[Element]) -> str:
        return " AND ".join(self.element(element) for element in elements) or "TRUE"

    def element(self, element: Element) -> str:
        match element:
            case Labels():
                return self.labels(element.labels)
            case Tags():
                return self.tags(element.tags)
            case Issues():
                return self.issues(element.issues)
            case Duplicates():
                return self.duplicates(element.duplicates)
            case Uniqueness():
                return self.test("uniqueness", "uniqueness >= {}::FLOAT", element.uniqueness.value)
            case AnyOf():
                return "(" + (" OR ".join(self.element(each) for each in element.any) or "FALSE") + ")"
            case Not():
                inner = element.negated if isinstance(element.negated, list) else [element.negated]
                return f"(NOT ({self.all_of(inner)}))"
            case _:
                assert_never(element)

    def labels(self, test: LabelsTest) -> str:
        found = self.test("labels", "list_has_any(labels, {}::VARCHAR[])", test.names)
        return f"(NOT {found})" if test.op in ("is_not", "not_one_of") else found

    def tags(self, test: TagsTest) -> str:
        found = self.test("tags", "list_has_any(tags, {}::INTEGER[])", test.numbers(self.known_tags))
        if UNTAGGED not in test.names:
            return found
        return f"({found} OR (NOT {self.test('tags', 'len(tags) > 0')}))"

    def issues(self, test: IssuesTest) -> str:
        column = f"issue_{test.value}"
        limits = (test.confidence_min, test.confidence_max)
        found = self.test(column, f"{column} BETWEEN {{}}::FLOAT AND {{}}::FLOAT", *limits)
        return f"(NOT {found})" if test.mode == "out" else found

    def duplicates(self, test: DuplicatesTest) -> str:
        column = f"duplicate_{duplicate_level(test.value)}"
        return self.test(column, f"{column} IS NOT NULL")

    def test(self, column: str, template: str, *values: Any) -> str:
        """Return a test of a column, with the values where the template has ``{}``; FALSE where the cell is empty."""
        if column not in self.fields:
            return "FALSE"
        self.columns.add(column)
        places = range(len(self.params) + 1, len(self.params) + len(values) + 1)
        self.params.extend(values)
        return f"(({template.format(*(f'${place}' for place in places))}) IS TRUE)"
