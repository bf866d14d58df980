"""The filter language: a JSON array of one-key objects, combined with AND."""

from framedex.vql.compile import Sql, compile_filter
from framedex.vql.evaluate import evaluate
from framedex.vql.model import Filter, json_schema, parse

__all__ = ["Filter", "Sql", "compile_filter", "evaluate", "json_schema", "parse"]
