"""Resources of an index: how much memory it may take, where its temporary files are, and what runs its steps."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from framedex.analysis.products import best_products, multiply_adds_a_second
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.memory import free_memory
from framedex.errors import InvalidInput
from framedex.executors import Executor, open_executor
from framedex.jobs.context import JobContext
from framedex.settings import PROCESSES, THREADS, Settings

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
                f"hardly any clusters; pass force=True (--force) to begin nevertheless, or allow more than {limit:g} "
                "hours (FRAMEDEX_INDEX_HOURS)"
            )

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Yield the executor of the settings, by default processes: an index that does not fit into memory is large.

        On threads, matrices are multiplied by one processor each.
        """
        settings = self.settings
        if settings.executor is None:
            settings = settings.model_copy(update={"executor": PROCESSES})
        on_threads = single_threaded_blas() if settings.executor == THREADS else nullcontext()
        with on_threads, open_executor(settings, memory=self.memory_bytes) as executor:
            yield executor
