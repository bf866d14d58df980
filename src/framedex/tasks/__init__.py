"""Tasks and exports: long operations that run in the background, report progress, can be aborted and commit as a whole."""

from framedex.tasks.exports import Exports, ExportTask
from framedex.tasks.progress import DONE, Commit, Job, Progress, TaskProgress
from framedex.tasks.runner import Runner
from framedex.tasks.task import Task

__all__ = ["DONE", "Commit", "ExportTask", "Exports", "Job", "Progress", "Runner", "Task", "TaskProgress"]
