"""Executors, which run a function on many items at the same time: on threads, in processes, or on a cluster."""

from framedex.executors.base import POLL_S, Executor, ResultLost
from framedex.executors.opening import open_executor
from framedex.executors.processes import ProcessExecutor
from framedex.executors.ray import RayExecutor
from framedex.executors.threads import ThreadExecutor

__all__ = ["POLL_S", "Executor", "ProcessExecutor", "RayExecutor", "ResultLost", "ThreadExecutor", "open_executor"]
