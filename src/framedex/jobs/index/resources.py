"""Resources of an index: how much memory it may take, where its temporary files are, and what runs its steps."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from framedex.core.blas_threads import single_threaded_blas
from framedex.core.memory import free_memory
from framedex.executors import Executor, ProcessExecutor, ThreadExecutor
from framedex.jobs.context import JobContext
from framedex.settings import THREADS, Settings

_SHARE = 2  # the part of the free memory that an index takes, as its inverse


@dataclass(frozen=True)
class IndexResources:
    """Resources of an index.

    Attributes:
        settings: limits of memory, threads and processes; the executor.
        spill: the folder of temporary files of the dataset.
    """

    settings: Settings
    spill: Path

    @classmethod
    def of(cls, job: JobContext) -> "IndexResources":
        """Return the resources of a job."""
        return cls(job.settings, job.spill)

    @property
    def memory_bytes(self) -> int:
        """The bytes that the index may take: those of the settings, or a share of what is free."""
        return self.settings.memory_bytes or free_memory() // _SHARE

    @property
    def workers(self) -> int:
        """The number of items that run at the same time."""
        return self.settings.threads if self._has_threads else self.settings.processes

    @property
    def _has_threads(self) -> bool:
        return self.settings.executor == THREADS or os.name != "posix"

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Yield an executor with as many workers; threads multiply matrices on one processor each."""
        if self._has_threads:
            with single_threaded_blas(), ThreadExecutor(self.workers) as threads:
                yield threads
        else:
            with ProcessExecutor(self.workers) as processes:
                yield processes
