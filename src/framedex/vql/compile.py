"""Filters to SQL. Values become parameters, never text."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, assert_never

import pyarrow as pa

from framedex.errors import InvalidFilter
from framedex.records import DUPLICATE_LEVELS, Condition, FieldType
from framedex.vql.leaves import (
    UNTAGGED,
    DuplicatesTest,
    FieldTest,
    FileNameTest,
    FolderTest,
    IssuesTest,
    LabelsTest,
    MediaTest,
    ObjectsTest,
    SearchTest,
    SizeTest,
    TagsTest,
    TextTest,
)
from framedex.vql.merging import merged
from framedex.vql.model import (
    AnyOf,
    Batch,
    Confidence,
    CustomField,
    DateAdded,
    Duplicates,
    Element,
    FileName,
    Filter,
    Folder,
    Issues,
    Labels,
    MediaKind,
    Not,
    Objects,
    Similarity,
    Size,
    Source,
    Tags,
    Text,
    Uniqueness,
    is_of_media,
)
from framedex.vql.scope import FieldQuery, Related, Scope
from framedex.vql.values import listed, order_sql, shown

Found = Mapping[SearchTest, pa.Table]
NOTHING: Found = MappingProxyType({})
MAX_RELATIONS = 100
"""In how many places a filter may be about what is found by others: the engine plans each of them."""
_FILE = "split_part(rtrim(path, '/'), '/', -1)"
_FOLDER = f"left(rtrim(path, '/'), greatest(length(rtrim(path, '/')) - length({_FILE}) - 1, 0))"
_MATCHES = {
    "is": "{place} = {{}}::VARCHAR",
    "contains": "contains(lower({place}), lower({{}}::VARCHAR))",
    "starts": "starts_with(lower({place}), lower({{}}::VARCHAR))",
    "ends": "ends_with(lower({place}), lower({{}}::VARCHAR))",
}


def duplicate_level(value: float) -> int:
    """Return which of the eight levels serves a similarity: itself, or the next stricter one."""
    return next(place for place, level in enumerate(DUPLICATE_LEVELS) if level >= value)


def compile_filter(vql: Filter, scope: Scope, found: Found = NOTHING) -> Condition:
    """Return the condition that a filter stands for.

    Args:
        vql: a parsed filter.
        scope: what the names in it stand for.
        found: the rows that its searches found, by test (see :func:`searches`): tables with the column ``_rowid``,
            uint64, and any others. Thresholds of the tests have been applied.

    Raises:
        InvalidFilter: a custom field is not there, a test does not suit its type, or a search lacks in *found*.
    """
    compiler = _Compiler(scope, found)
    text = compiler.all_of(vql, "$")
    return compiler.condition(text)


class _Compiler:
    """Makes the text of one condition, and gathers what belongs to it."""

    def __init__(self, scope: Scope, found: Found) -> None:
        self.scope, self.found = scope, found
        self.params: list[Any] = []
        self.columns: set[str] = set()
        self.searched: dict[Hashable, str] = {}
        self.searches: list[SearchTest | str] = []
        self.relations: dict[str, pa.Table] = {}

    def condition(self, text: str) -> Condition:
        """Return what was compiled, with its text."""
        return Condition(
            text,
            tuple(self.params),
            frozenset(self.columns),
            searches=tuple(self.searches),
            relations=dict(self.relations),
        )

    def all_of(self, elements: Collection[Element], path: str) -> str:
        return " AND ".join(self.each(elements, path, any_of=False)) or "TRUE"

    def each(self, elements: Collection[Element], path: str, *, any_of: bool) -> list[str]:
        placed = [(element, f"{path}[{place}]") for place, element in merged(elements, any_of=any_of)]
        if self.scope.media is None:
            return [self.element(*each) for each in placed]
        of_media = [each for each in placed if is_of_media(each[0])]
        own = [self.element(*each) for each in placed if not is_of_media(each[0])]
        return [*own, *([self.surroundings(of_media, self.scope.media, any_of=any_of)] if of_media else [])]

    def element(self, element: Element, path: str) -> str:  # noqa: PLR0912 - a case for each key
        match element:
            case Text():
                return self.search(element.text, f"{path}.text")
            case Similarity():
                return self.search(element.similarity, f"{path}.similarity")
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
            case CustomField():
                return self.field(element.field, f"{path}.field")
            case FileName():
                return self.file_name(element.file_name)
            case Folder():
                return self.folder(element.folder)
            case MediaKind():
                return self.media(element.media)
            case Size():
                return self.size(element.size)
            case DateAdded():
                return self.among("batch", self.scope.batches(element.date_added), "INTEGER")
            case Batch():
                return self.among("batch", listed(element.batch.value), "INTEGER")
            case Objects():
                return self.objects(element.objects, f"{path}.objects")
            case Confidence():
                test = element.confidence
                text, values = order_sql("confidence", test.op, test.spans, "DOUBLE")
                return self.test("confidence", text, *values)
            case Source():
                return self.among("source", listed(element.source.value), "VARCHAR")
            case AnyOf():
                return "(" + (" OR ".join(self.each(element.any, f"{path}.any", any_of=True)) or "FALSE") + ")"
            case Not():
                return f"(NOT ({self.negated(element, f'{path}.not')}))"
            case _:
                assert_never(element)

    def negated(self, element: Not, path: str) -> str:
        if isinstance(element.negated, list):
            return self.all_of(element.negated, path)
        return self.element(element.negated, path)

    def surroundings(self, placed: Sequence[tuple[Element, str]], scope: Scope, *, any_of: bool) -> str:
        """Return the test of objects to be in media that pass some elements, which are given with their paths."""
        inner = _Compiler(scope, self.found)
        text = (" OR " if any_of else " AND ").join(inner.element(*each) for each in placed)
        condition = inner.condition(text)
        related = Related(False, condition, "SELECT media_id FROM chosen", ("media_id",))
        return self.related("parent_id", related, placed[0][1])

    def objects(self, test: ObjectsTest, path: str) -> str:
        inner = _Compiler(Scope(("labels", "confidence")), NOTHING)
        parts = [] if test.names is None else [inner.any_of("labels", test.names, "VARCHAR")]
        if test.confidence_min is not None:
            parts.append(inner.test("confidence", "confidence >= {}::DOUBLE", test.confidence_min))
        condition = inner.condition(" AND ".join(parts) or "TRUE")
        statement = f"SELECT parent_id AS media_id FROM chosen GROUP BY parent_id HAVING count(*) >= {test.min_count}"
        return self.related("media_id", Related(True, condition, statement, ("parent_id",)), path)

    def related(self, column: str, related: Related, path: str) -> str:
        """Return the test of a column to name one of some media."""
        key = str(related)
        if key not in self.searched and len(self.searched) >= MAX_RELATIONS:
            raise InvalidFilter(path, f"a filter may ask of other entities and search in {MAX_RELATIONS} places in all")
        name = self.relation(key, key, lambda: self.scope.find(related))
        return self.test(column, f"{column} IN (SELECT media_id FROM {name})")

    def relation(self, key: Hashable, search: SearchTest | str, find: Callable[[], pa.Table]) -> str:
        """Return the name of a relation that is found once."""
        if key not in self.searched:
            self.searched[key] = name = f"found_{len(self.searched)}"
            self.searches.append(search)
            self.relations[name] = find()
        return self.searched[key]

    def search(self, test: SearchTest, path: str) -> str:
        if test not in self.found:
            kind = "text" if isinstance(test, TextTest) else "similarity"
            raise InvalidFilter(path, f"the {kind} search for {shown(test.value)} ({test.op}) has not been carried out")
        name = self.relation(test, test, lambda: self.found[test])
        return f"((_rowid IN (SELECT _rowid FROM {name})) IS TRUE)"

    def labels(self, test: LabelsTest) -> str:
        found = self.any_of("labels", test.names, "VARCHAR")
        return f"(NOT {found})" if test.op in ("is_not", "not_one_of") else found

    def tags(self, test: TagsTest) -> str:
        found = self.any_of("tags", test.numbers(self.scope.tags), "INTEGER")
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

    def file_name(self, test: FileNameTest) -> str:
        return self.test("path", _MATCHES[test.op].format(place=_FILE), test.value)

    def folder(self, test: FolderTest) -> str:
        # A slash at the end of what a path starts with, and before what a folder ends with, keeps names whole.
        match test.op, test.value.rstrip("/"), test.value.strip("/"):
            case ("starts", "", _) | ("ends", _, ""):
                return self.test("path", "path IS NOT NULL")
            case "starts", value, _:
                # What is computed of a folder stands there as with other tests, so that it need not be computed anew.
                return self.test("path", f"starts_with(lower({_FOLDER}) || '/', lower({{}}::VARCHAR))", f"{value}/")
            case "ends", _, value:
                return self.test("path", f"ends_with('/' || lower({_FOLDER}), lower({{}}::VARCHAR))", f"/{value}")
            case op, _, _:
                return self.test("path", _MATCHES[op].format(place=_FOLDER), test.value)

    def media(self, test: MediaTest) -> str:
        # Whatever says nothing of its kind is an image.
        if test.value == "video":
            return self.test("kind", "kind IN ('video', 'video_frame')")
        if test.value != "image":
            return self.test("kind", "kind = {}::VARCHAR", test.value)
        return f"(NOT {self.test('kind', 'kind <> {}::VARCHAR', test.value)})"

    def size(self, test: SizeTest) -> str:
        text, values = order_sql(test.column, test.op, test.spans, "BIGINT")
        return self.test(test.column, text, *values)

    def field(self, test: FieldTest, path: str) -> str:
        query = self.scope.field(test, path)
        column, several = query.known.column, query.known.is_multi
        if query.op == "missing":
            return f"(NOT {self.test(column, f'len({column}) > 0' if several else f'{column} IS NOT NULL')})"
        if query.op == "one_of":
            kind = "DOUBLE" if query.known.type is FieldType.FLOAT else "VARCHAR"
            values: list[Any] = list(query.texts) or [start for start, _ in query.spans]
            return self.any_of(column, values, kind) if several else self.among(column, values, kind)
        text, one = _one_value(query, "value" if several else column)
        return self.test(column, f"len(list_filter({column}, lambda value: {text})) > 0" if several else text, *one)

    def among(self, column: str, values: Sequence[Any], kind: str) -> str:
        """Return the test of a column to have one of some values."""
        return self.test(column, f"list_contains({{}}::{kind}[], {column})", list(values))

    def any_of(self, column: str, values: Sequence[Any], kind: str) -> str:
        """Return the test of a column of lists to hold one of some values."""
        # A subquery would look up many values faster, but the planner takes seconds for a few dozens of subqueries.
        text = f"len(list_filter({column}, lambda value: list_contains({{}}::{kind}[], value))) > 0"
        return self.test(column, text, list(values))

    def test(self, column: str, template: str, *values: Any) -> str:
        """Return a test of a column, with the values where the template has ``{}``; FALSE where the cell is empty."""
        if column not in self.scope.columns:
            return "FALSE"
        self.columns.add(column)
        places = range(len(self.params) + 1, len(self.params) + len(values) + 1)
        self.params.extend(values)
        return f"(({template.format(*(f'${place}' for place in places))}) IS TRUE)"


def _one_value(query: FieldQuery, place: str) -> tuple[str, tuple[Any, ...]]:
    """Return the test of one value of a custom field, with ``{}`` where values go, and these values."""
    match query.known.type:
        case FieldType.FLOAT:
            return order_sql(place, query.op, query.spans, "DOUBLE")
        case FieldType.DATETIME:
            return order_sql(f"epoch_us({place})", query.op, query.spans, "BIGINT")
        case _:
            return _MATCHES[query.op].format(place=place), query.texts
