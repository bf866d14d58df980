"""Framedex: to image and video collections what SQLite is to tables.

import framedex

ws = framedex.Workspace("~/framedex")
ds = ws.create_dataset("pets", "~/photos")
"""

from framedex.dataset import Dataset
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
    WorkspaceError,
)
from framedex.tasks import Task
from framedex.view import DuplicateGroups, ExplorePage, View
from framedex.workspace import Workspace

__all__ = [
    "Aborted",
    "CannotDecode",
    "Conflict",
    "Dataset",
    "DuplicateGroups",
    "Encoder",
    "Error",
    "ExplorePage",
    "Forbidden",
    "FormatTooNew",
    "InvalidEmbedding",
    "InvalidFilter",
    "InvalidInput",
    "MissingDependency",
    "NotFound",
    "NotIndexed",
    "NotRetryable",
    "ReadOnly",
    "Task",
    "TaskFailed",
    "View",
    "Workspace",
    "WorkspaceError",
]
