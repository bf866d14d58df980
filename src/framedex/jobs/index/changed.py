"""Index update after rows were added and replaced, or a rebuild of the index."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from framedex.core.progress import Progress
from framedex.jobs.context import JobContext
from framedex.jobs.index.added import index_added
from framedex.jobs.index.finish import read_cells, read_sums
from framedex.jobs.index.index import WrittenIndex, index
from framedex.jobs.index.measures import fill_measures
from framedex.jobs.index.removed import index_removed
from framedex.jobs.index.replaced_rows import inherit_edits
from framedex.storage import tables
from framedex.storage.generation import IndexSummary
from framedex.storage.tables import Table

_MEASURING = 0.02  # share of the progress; only the first rebuild by a newer version has images to measure


def index_changed(
    job: JobContext, before: Table, version: int, replaced: npt.NDArray[np.bool_], progress: Progress, *, rebuild: bool
) -> WrittenIndex:
    """Delete replaced rows, then update or rebuild the index.

    Args:
        job: the context of the job.
        before: the media table before the change.
        version: version of the table with the added rows.
        replaced: bool, shape (rows before,): true for replaced rows.
        progress: called with the stage and the completed share.
        rebuild: True rebuilds the index of all rows; False updates the affected rows only.
    """
    table, summary = Table(job.table, version), job.head.summary
    centroids, sums = read_cells(job.table, job.head.tables), read_sums(job.table, job.head)
    if replaced.any():
        mask = np.append(replaced, np.zeros(table.count() - len(replaced), dtype=bool))
        table = Table(job.table, tables.delete_rows(table, mask))
        table = Table(job.table, inherit_edits(before, table, replaced))
        if not rebuild:
            # Replaced rows are removed from the index first; then the new rows are added like all others.
            removed = index_removed(
                before,
                table,
                replaced,
                summary,
                centroids=centroids,
                sums=sums,
                progress=progress,
                cannot_link=job.cannot_link,
                limits=job.limits,
            )
            table, summary, sums = Table(job.table, removed.version), summary.with_index(removed.summary), removed.sums
        summary = summary.with_(settled=int(np.count_nonzero(~replaced[: job.head.summary.settled])))
    if rebuild:
        return rebuild_index(job, table, progress, summary)
    return index_added(
        table,
        job.config.thresholds,
        summary,
        centroids=centroids,
        sums=sums,
        progress=progress,
        cannot_link=job.cannot_link,
        limits=job.limits,
    )


def rebuild_index(job: JobContext, table: Table, progress: Progress, summary: IndexSummary) -> WrittenIndex:
    """Rebuild the index of all rows of a table; *summary* is the summary of its last index.

    Measures that an older version of the program did not compute are measured on the images first.
    """
    table, unread = fill_measures(job, table, lambda stage, share: progress(stage, _MEASURING * share))
    indexed = index(
        table,
        job.config.thresholds,
        progress=lambda stage, share: progress(stage, _MEASURING + (1 - _MEASURING) * share),
        first_free=summary.first_free,
        settled=summary.settled,
        cannot_link=job.cannot_link,
        limits=job.limits,
    )
    return replace(indexed, unread=unread)
