"""Threads of this process, for functions that release the interpreter lock most of the time."""

from collections.abc import Callable
from typing import TypeVar

from framedex.executors.base import LocalExecutor

T = TypeVar("T")
R = TypeVar("R")


class ThreadExecutor(LocalExecutor):
    """An executor whose workers are threads of this process, which start when they are needed."""

    def _run(self, function: Callable[[T], R], item: T) -> R:
        return function(item)
