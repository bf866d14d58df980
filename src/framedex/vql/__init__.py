"""The filter language: a JSON array of one-key objects, combined with AND."""

from framedex.vql.compile import compile_filter
from framedex.vql.evaluate import evaluate
from framedex.vql.model import UNTAGGED, Filter, json_schema, parse

__all__ = ["UNTAGGED", "Filter", "compile_filter", "evaluate", "json_schema", "parse"]
