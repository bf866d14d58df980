"""Tasks and exports: long operations in the background that can be watched, aborted, and committed as a whole."""

from framedex.tasks.exports import Exports, ExportTask
from framedex.tasks.progress import DONE, Commit, Job, Progress, TaskProgress
from framedex.tasks.runner import Runner
from framedex.tasks.task import Task, start_task

__all__ = ["DONE", "Commit", "ExportTask", "Exports", "Job", "Progress", "Runner", "Task", "TaskProgress", "start_task"]
