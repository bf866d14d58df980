"""The executor that the settings name."""

import logging
import os

from framedex.core.memory import usable_memory
from framedex.executors.base import Executor
from framedex.executors.processes import ProcessExecutor
from framedex.executors.ray import RayExecutor
from framedex.executors.threads import ThreadExecutor
from framedex.settings import PROCESSES, RAY, THREADS, Settings, is_ray

_LOG = logging.getLogger(__name__)
_HAS_POSIX = os.name == "posix"


def open_executor(
    settings: Settings, workers: int | None = None, *, memory: int | None = None, is_little: bool = False
) -> Executor:
    """Return the executor that settings name, a context manager; threads if they name none.

    Args:
        settings: name the executor, and have the numbers of threads and processes.
        workers: the number of workers in place of that of the settings; not of a cluster that is there already.
        memory: the bytes that items which say what they need may take together; by default half of the memory of this
            machine. On a cluster that is there already, its own limit counts.
        is_little: whether the work takes less time than the start of processes or of a cluster; threads do it then.

    Raises:
        MissingDependency: Ray is to be used, and is not installed.
        Unavailable: the cluster cannot be reached, or not be started.
    """
    chosen = THREADS if is_little else settings.executor or THREADS
    if memory is None:
        memory = usable_memory() // 2
    if chosen != THREADS and not _HAS_POSIX:
        _LOG.warning(
            "work is done on threads, not by the executor %r: this system starts processes in another way", chosen
        )
        chosen = THREADS
    if is_ray(chosen):
        return RayExecutor(None if chosen == RAY else chosen, workers=workers or settings.processes, memory=memory)
    if chosen == PROCESSES:
        return ProcessExecutor(workers or settings.processes, memory=memory)
    return ThreadExecutor(workers or settings.threads, memory=memory)
