"""The filter language: a JSON array of one-key objects, combined with AND.

The functions that have the names of keys make the same filters as expressions: ``issues("blur") & ~labels("cat")``.
"""

from framedex.vql.builders import (
    batch,
    date_added,
    duplicates,
    field,
    file_name,
    folder,
    issues,
    labels,
    media,
    similarity,
    size,
    tags,
    text,
    uniqueness,
)
from framedex.vql.compile import Found, compile_filter
from framedex.vql.evaluate import evaluate
from framedex.vql.expression import Expression
from framedex.vql.leaves import UNTAGGED, SearchTest, SimilarityTest, TextTest
from framedex.vql.model import Filter, json_schema, leading_searches, searches
from framedex.vql.parsing import parse
from framedex.vql.scope import KnownField, Scope

__all__ = [
    "UNTAGGED",
    "Expression",
    "Filter",
    "Found",
    "KnownField",
    "Scope",
    "SearchTest",
    "SimilarityTest",
    "TextTest",
    "batch",
    "compile_filter",
    "date_added",
    "duplicates",
    "evaluate",
    "field",
    "file_name",
    "folder",
    "issues",
    "json_schema",
    "labels",
    "leading_searches",
    "media",
    "parse",
    "searches",
    "similarity",
    "size",
    "tags",
    "text",
    "uniqueness",
]
