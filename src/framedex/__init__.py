"""Framedex: to image and video collections what SQLite is to tables.

import framedex

ws = framedex.Workspace("~/framedex")
ds = ws.create_dataset("pets", "~/photos")
"""

import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from framedex.errors import (
    Aborted,
    CannotDecode,
    Conflict,
    EmptyResultWarning,
    Error,
    Forbidden,
    FormatTooNew,
    Gone,
    InvalidEmbedding,
    InvalidFilter,
    InvalidInput,
    MissingDependency,
    NotAuthenticated,
    NotFound,
    NotIndexed,
    NotRetryable,
    OutOfRange,
    ReadOnly,
    TaskFailed,
    TimedOut,
    TooManyAttempts,
    Unavailable,
    WorkspaceError,
)

if TYPE_CHECKING:
    from framedex import encoders as encoders
    from framedex import vql as vql
    from framedex.api.dataset import Dataset
    from framedex.api.dataset.uploads import UploadTransaction
    from framedex.api.disk_usage import DiskUsage
    from framedex.api.evaluation import Evaluation
    from framedex.api.histogram import Histogram
    from framedex.api.issue_table import IssueTable
    from framedex.api.label_issues import LabelIssues
    from framedex.api.label_suggestions import LabelSuggestions
    from framedex.api.object_issues import ObjectIssues
    from framedex.api.overlap import Overlap
    from framedex.api.result_pages import DuplicateGroups, ExplorePage
    from framedex.api.saved_view import SavedView, Trend
    from framedex.api.search_benchmark import SearchBenchmark
    from framedex.api.view import Basket, DiverseView, RankedView, View
    from framedex.api.workspace import Workspace
    from framedex.cleanup.plan import CleanupPlan
    from framedex.client.client import Client
    from framedex.encoders import Encoder
    from framedex.operations.plugin_list import list_plugins
    from framedex.tasks import ExportTask, Task

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "Basket",
    "CannotDecode",
    "CleanupPlan",
    "Client",
    "Conflict",
    "Dataset",
    "DiskUsage",
    "DiverseView",
    "DuplicateGroups",
    "EmptyResultWarning",
    "Encoder",
    "Error",
    "Evaluation",
    "ExplorePage",
    "ExportTask",
    "Forbidden",
    "FormatTooNew",
    "Gone",
    "Histogram",
    "InvalidEmbedding",
    "InvalidFilter",
    "InvalidInput",
    "IssueTable",
    "LabelIssues",
    "LabelSuggestions",
    "MissingDependency",
    "NotAuthenticated",
    "NotFound",
    "NotIndexed",
    "NotRetryable",
    "ObjectIssues",
    "OutOfRange",
    "Overlap",
    "RankedView",
    "ReadOnly",
    "SavedView",
    "SearchBenchmark",
    "Task",
    "TaskFailed",
    "TimedOut",
    "TooManyAttempts",
    "Trend",
    "Unavailable",
    "UploadTransaction",
    "View",
    "Workspace",
    "WorkspaceError",
    "list_plugins",
]

_MODULES = {
    "Basket": "framedex.api.view",
    "CleanupPlan": "framedex.cleanup.plan",
    "Client": "framedex.client.client",
    "Dataset": "framedex.api.dataset",
    "DiskUsage": "framedex.api.disk_usage",
    "DiverseView": "framedex.api.view",
    "DuplicateGroups": "framedex.api.result_pages",
    "Encoder": "framedex.encoders",
    "Evaluation": "framedex.api.evaluation",
    "ExplorePage": "framedex.api.result_pages",
    "ExportTask": "framedex.tasks",
    "Histogram": "framedex.api.histogram",
    "IssueTable": "framedex.api.issue_table",
    "LabelIssues": "framedex.api.label_issues",
    "LabelSuggestions": "framedex.api.label_suggestions",
    "ObjectIssues": "framedex.api.object_issues",
    "Overlap": "framedex.api.overlap",
    "RankedView": "framedex.api.view",
    "SavedView": "framedex.api.saved_view",
    "SearchBenchmark": "framedex.api.search_benchmark",
    "Task": "framedex.tasks",
    "Trend": "framedex.api.saved_view",
    "UploadTransaction": "framedex.api.dataset.uploads",
    "View": "framedex.api.view",
    "Workspace": "framedex.api.workspace",
    "list_plugins": "framedex.operations.plugin_list",
}
"""The modules of the classes. They are imported at the first use, so that importing the package loads no engine."""

if os.environ.get("FRAMEDEX_LOG"):  # in workers and helpers, too
    with suppress(InvalidInput):  # an error of the command line, or of the first workspace
        import_module("framedex.core.logs").show_environment_log()


if not TYPE_CHECKING:  # type checkers would accept every name otherwise

    def __getattr__(name: str) -> Any:
        if name in ("encoders", "vql"):
            return import_module(f"framedex.{name}")
        if (module := _MODULES.get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(module), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
