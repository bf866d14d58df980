"""The filter language: a JSON array of one-key objects, combined with AND.

For each key there is a function of its name, which returns an expression: ``issues("blur") & ~labels("cat")``.
"""

from framedex.vql import registry
from framedex.vql.compile import SearchResults, compile_filter
from framedex.vql.elements import Filter, leading_searches, searches, to_json
from framedex.vql.expression import Expression
from framedex.vql.key_test import SearchTest
from framedex.vql.keys.duplicates import duplicate_level, group_column
from framedex.vql.keys.map_region import MapRegionTest
from framedex.vql.keys.similarity import SimilarityTest
from framedex.vql.keys.tags import BASKET, UNTAGGED
from framedex.vql.keys.text import TextTest
from framedex.vql.parsing import parse
from framedex.vql.registry import *  # noqa: F403 - the function of each key
from framedex.vql.schema import json_schema
from framedex.vql.scope import CustomField, Related, Scope

__all__ = [
    "BASKET",
    "UNTAGGED",
    "CustomField",
    "Expression",
    "Filter",
    "MapRegionTest",
    "Related",
    "Scope",
    "SearchResults",
    "SearchTest",
    "SimilarityTest",
    "TextTest",
    "compile_filter",
    "duplicate_level",
    "group_column",
    "json_schema",
    "leading_searches",
    "parse",
    "searches",
    "to_json",
]
__all__ += registry.__all__
