"""Long operations: run in the background, watched, aborted, committed whole."""

from framedex.tasks.runner import Commit, Report, Runner, Task

__all__ = ["Commit", "Report", "Runner", "Task"]
