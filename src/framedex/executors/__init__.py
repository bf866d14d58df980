"""Executors, which run a function on many items at the same time: on threads, or in processes."""

from framedex.executors.base import Executor, ResultLost
from framedex.executors.processes import ProcessExecutor
from framedex.executors.threads import ThreadExecutor

__all__ = ["Executor", "ProcessExecutor", "ResultLost", "ThreadExecutor"]
