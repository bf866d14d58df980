"""The filter language: a JSON array of one-key objects, combined with AND.

The functions that have the names of keys make the same filters as expressions: ``issues("blur") & ~labels("cat")``.
"""

from framedex.vql.builders import (
    batch,
    confidence,
    date_added,
    duplicates,
    field,
    file_name,
    folder,
    issues,
    labels,
    media,
    objects,
    similarity,
    size,
    source,
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
from framedex.vql.scope import KnownField, Related, Scope

__all__ = [
    "UNTAGGED",
    "Expression",
    "Filter",
    "Found",
    "KnownField",
    "Related",
    "Scope",
    "SearchTest",
    "SimilarityTest",
    "TextTest",
    "batch",
    "compile_filter",
    "confidence",
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
    "objects",
    "parse",
    "searches",
    "similarity",
    "size",
    "source",
    "tags",
    "text",
    "uniqueness",
]
