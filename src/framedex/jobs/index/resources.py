"""Resources of an index: how much memory it may take, where its temporary files are, and what runs its steps."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from framedex.analysis.products import best_products, multiply_adds_a_second
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.memory import free_memory
from framedex.errors import InvalidInput
from framedex.executors import Executor, ProcessExecutor, ThreadExecutor
from framedex.jobs.context import JobContext
from framedex.settings import THREADS, Settings

_CHECKED = 1e12  # multiply-adds for each hour of the limit, below which nothing is measured
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

    def check_cost(self, multiply_adds: float, dimension: int) -> None:
        """Check that a search will not take longer than the limit of the settings.

        Args:
            multiply_adds: the number of multiply-adds that it takes.
            dimension: of the vectors.

        Raises:
            InvalidInput: it will; the message has the hours.
        """
        limit = self.settings.index_hours
        if multiply_adds < _CHECKED * limit:
            return
        hours = multiply_adds / multiply_adds_a_second(best_products(), dimension) / 3600
        if hours > limit:
            raise InvalidInput(
                f"the search of neighbours takes about {hours:,.1f} hours on this machine, as these vectors form "
                f"hardly any clusters; pass force=True to begin nevertheless, or allow more than {limit:g} hours "
                "(FRAMEDEX_INDEX_HOURS)"
            )

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Yield an executor with as many workers; threads multiply matrices on one processor each."""
        if self._has_threads:
            with single_threaded_blas(), ThreadExecutor(self.workers) as threads:
                yield threads
        else:
            with ProcessExecutor(self.workers) as processes:
                yield processes
