"""Index update after rows were added and replaced, or a rebuild of the index."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from framedex.core.progress import Progress
from framedex.jobs.context import JobContext
from framedex.jobs.index.added import index_added
from framedex.jobs.index.copies import found_copies, with_known
from framedex.jobs.index.finish import read_cells, read_sums
from framedex.jobs.index.index import WrittenIndex, index
from framedex.jobs.index.missing_values import complete_rows
from framedex.jobs.index.removed import index_removed
from framedex.jobs.index.replaced_rows import inherit_edits
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.standings import Comparison
from framedex.storage import tables
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, read_pairs
from framedex.storage.generation import IndexSummary
from framedex.storage.table_versions import Table

_COPIES = 0.3  # share of the progress
_MEASURING = 0.02  # share of the progress; only the first rebuild by a newer version has images to measure
_READING = 0.5  # the same where images are read for the first time


def index_changed(
    job: JobContext,
    before: Table,
    version: int,
    replaced: npt.NDArray[np.bool_],
    progress: Progress,
    *,
    rebuild: bool,
    roots: Sequence[str] | None = None,
) -> WrittenIndex:
    """Delete replaced rows, then update or rebuild the index.

    Args:
        job: the context of the job.
        before: the media table before the change.
        version: version of the table with the added rows.
        replaced: bool, shape (rows before,): true for replaced rows.
        progress: called with the stage and the completed share.
        rebuild: True rebuilds the index of all rows; False updates the affected rows only.
        roots: source roots by number, with those of added rows; by default those of the job.
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
                label_decisions=job.label_decisions,
                copies=read_pairs(before, job.head.tables),
            )
            table, summary, sums = Table(job.table, removed.version), summary.with_index(removed.summary), removed.sums
        summary = summary.with_(settled=int(np.count_nonzero(~replaced[: job.head.summary.settled])))
    kept = read_pairs(table, job.head.tables)
    if kept is not None and replaced.any():
        kept = kept.take((kept.a < len(replaced) - replaced.sum()) & (kept.b < len(replaced) - replaced.sum()))
    if rebuild:
        return rebuild_index(job, table, progress, summary, kept, roots)
    indexed = int(np.count_nonzero(~replaced)) if replaced.any() else before.count()
    with found_copies(
        job, table, added=indexed, roots=roots, progress=lambda stage, share: progress(stage, _COPIES * share)
    ) as found:
        return index_added(
            table,
            job.config.thresholds,
            summary,
            centroids=centroids,
            sums=sums,
            progress=lambda stage, share: progress(stage, _COPIES + (1 - _COPIES) * share),
            cannot_link=job.cannot_link,
            limits=job.limits,
            label_decisions=job.label_decisions,
            copies=None if kept is None else kept.joined(found or NO_PAIRS),
            comparison=None if found is None else Comparison(job, roots),
        )


def rebuild_index(
    job: JobContext,
    table: Table,
    progress: Progress,
    summary: IndexSummary,
    known: CopyPairs | None,
    roots: Sequence[str] | None = None,
    *,
    unread: bool = False,
) -> WrittenIndex:
    """Rebuild the index of all rows of a table; *summary* is the summary of its last index.

    Pairs of copies that are *known* stay, also where their images are gone.

    Edited values that lie beside the files of their columns are written into them. Measures and copy descriptors that
    an older version of the program did not compute are taken from the images first; with *unread* also those of images
    that were never read.
    """
    table = Table(table.path, tables.fold_edits(table))
    known = None if known is None else known.verified()
    measuring = _READING if unread else _MEASURING
    completed = complete_rows(
        job, table, lambda stage, share: progress(stage, measuring * share), roots=roots, unread=unread
    )
    table = completed.table
    start = measuring + _COPIES
    with found_copies(
        job,
        table,
        known=known,
        roots=roots,
        progress=lambda stage, share: progress(stage, measuring + _COPIES * share),
    ) as found:
        indexed = index(
            table,
            job.config.thresholds,
            copies=None if found is None else with_known(found, known),
            comparison=None if found is None else Comparison(job, roots),
            progress=lambda stage, share: progress(stage, start + (1 - start) * share),
            first_free=summary.first_free,
            settled=summary.settled,
            cannot_link=job.cannot_link,
            limits=job.limits,
            resources=IndexResources.of(job),
            label_decisions=job.label_decisions,
        )
    return replace(indexed, unread=completed.unread, undescribed=completed.undescribed)
