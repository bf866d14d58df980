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
    FormatTooNew,
    InvalidEmbedding,
    InvalidFilter,
    InvalidInput,
    MissingDependency,
    NotFound,
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
    "FormatTooNew",
    "InvalidEmbedding",
    "InvalidFilter",
    "InvalidInput",
    "MissingDependency",
    "NotFound",
    "ReadOnly",
    "Task",
    "TaskFailed",
    "View",
    "Workspace",
    "WorkspaceError",
]
