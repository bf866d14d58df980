"""Framedex: to image and video collections what SQLite is to tables.

import framedex

ws = framedex.Workspace("~/framedex")
ds = ws.create_dataset("pets", "~/photos")
"""

from framedex.api.dataset import Dataset
from framedex.api.disk_usage import DiskUsage
from framedex.api.ranked_view import RankedView
from framedex.api.result_pages import DuplicateGroups, ExplorePage
from framedex.api.search_benchmark import SearchBenchmark
from framedex.api.view import View
from framedex.api.workspace import Workspace
from framedex.cleanup.plan import CleanupPlan
from framedex.encoders import Encoder
from framedex.errors import (
    Aborted,
    CannotDecode,
    Conflict,
    Error,
    Forbidden,
    FormatTooNew,
    InvalidEmbedding,
    InvalidFilter,
    InvalidInput,
    MissingDependency,
    NotFound,
    NotIndexed,
    NotRetryable,
    ReadOnly,
    TaskFailed,
    Unavailable,
    WorkspaceError,
)
from framedex.plugin_list import list_plugins
from framedex.tasks import ExportTask, Task

__all__ = [
    "Aborted",
    "CannotDecode",
    "CleanupPlan",
    "Conflict",
    "Dataset",
    "DiskUsage",
    "DuplicateGroups",
    "Encoder",
    "Error",
    "ExplorePage",
    "ExportTask",
    "Forbidden",
    "FormatTooNew",
    "InvalidEmbedding",
    "InvalidFilter",
    "InvalidInput",
    "MissingDependency",
    "NotFound",
    "NotIndexed",
    "NotRetryable",
    "RankedView",
    "ReadOnly",
    "SearchBenchmark",
    "Task",
    "TaskFailed",
    "Unavailable",
    "View",
    "Workspace",
    "WorkspaceError",
    "list_plugins",
]
