"""The index of a table of which rows were added and replaced: anew, or as far as these touch it."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from framedex.jobs.context import JobContext
from framedex.jobs.index.added import index_added
from framedex.jobs.index.finish import read_cells, read_sums
from framedex.jobs.index.index import WrittenIndex, index
from framedex.jobs.index.measures import fill_measures
from framedex.jobs.index.removed import index_removed
from framedex.jobs.index.replaced_rows import inherit_edits
from framedex.progress import Progress
from framedex.storage import tables
from framedex.storage.generation import IndexSummary
from framedex.storage.tables import Table

_MEASURING = 0.02  # of the whole; nothing is left to measure in all but the first index by a newer version


def index_changed(
    job: JobContext, before: Table, version: int, gone: npt.NDArray[np.bool_], progress: Progress, *, anew: bool
) -> WrittenIndex:
    """Delete replaced rows and index the others, anew or as far as the added ones touch them.

    Args:
        job: what the job started from.
        before: the media table as it was.
        version: of the table with the added rows.
        gone: bool, shape (rows before,): the replaced ones.
        progress: called with the stage and the share that is done.
        anew: all rows.
    """
    table, summary = Table(job.table, version), job.head.summary
    centroids, sums = read_cells(job.table, job.head.tables), read_sums(job.table, job.head)
    if gone.any():
        everything = np.append(gone, np.zeros(table.count() - len(gone), dtype=bool))
        table = Table(job.table, tables.delete_rows(table, everything))
        table = Table(job.table, inherit_edits(before, table, gone))
        if not anew:
            # What was replaced leaves the index first; then the rows that took its place join it like all others.
            left = index_removed(
                before,
                table,
                gone,
                summary,
                centroids=centroids,
                sums=sums,
                progress=progress,
                cannot_link=job.cannot_link,
            )
            table, summary, sums = Table(job.table, left.version), summary.with_index(left.summary), left.sums
        summary = summary.with_(settled=int(np.count_nonzero(~gone[: job.head.summary.settled])))
    if anew:
        return rebuild_index(job, table, progress, summary)
    return index_added(
        table,
        job.config.thresholds,
        summary,
        centroids=centroids,
        sums=sums,
        progress=progress,
        cannot_link=job.cannot_link,
    )


def rebuild_index(job: JobContext, table: Table, progress: Progress, summary: IndexSummary) -> WrittenIndex:
    """Index all rows of a table anew; *summary* is that of its last index.

    Measures that the table lacks, because it was made before there were as many, are taken from the images first.
    """
    table, unread = fill_measures(job, table, lambda stage, share: progress(stage, _MEASURING * share))
    indexed = index(
        table,
        job.config.thresholds,
        progress=lambda stage, share: progress(stage, _MEASURING + (1 - _MEASURING) * share),
        first_free=summary.first_free,
        settled=summary.settled,
        cannot_link=job.cannot_link,
    )
    return replace(indexed, unread=unread)
