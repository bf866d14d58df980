"""Framedex: to image and video collections what SQLite is to tables.

import framedex

ws = framedex.Workspace("~/framedex")
ds = ws.create_dataset("pets", "~/photos")
"""

from framedex.benchmarking import SearchBenchmark
from framedex.cleanup import CleanupPlan
from framedex.dataset import Dataset
from framedex.disk_usage import DiskUsage
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
from framedex.ranked_view import RankedView
from framedex.result_pages import DuplicateGroups, ExplorePage
from framedex.tasks import ExportTask, Task
from framedex.view import View
from framedex.workspace import Workspace

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
]
