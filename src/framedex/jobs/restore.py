"""Jobs that restore a snapshot, or clone a state into a new dataset."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from framedex.core.progress import Progress
from framedex.images.thumbnails import remove_thumbnails
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.journal import with_step
from framedex.jobs.lost_files import count_lost_files, lost_words
from framedex.records import SnapshotReason
from framedex.storage import snapshot_rows, table_files, tables
from framedex.storage.generation import Generation, ObjectSummary, Summary
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress


def restore(job: JobContext, snapshot_id: str, generation: Generation, *, progress: TaskProgress) -> Commit:
    """Return the commit that makes the generation of a snapshot the head again. No data moves.

    The table versions of the generation still exist; the next writer continues from them.

    Args:
        job: the dataset.
        snapshot_id: the snapshot.
        generation: the generation of the snapshot.
        progress: of the task.

    The commit raises NotFound if the snapshot was deleted.
    """
    progress("restoring", 0.5)
    head = Media(job.dataset_id, job.head, Table(job.table, job.head.tables[MEDIA]), Sql(), job.roots)
    restored = replace(head, generation=generation, table=Table(job.table, generation.tables[MEDIA]))
    progress.outcome += lost_words(count_lost_files(head, restored))
    make_head = generation_commit(
        job.dataset_id,
        tables=generation.tables,
        n_images=generation.n_images,
        config=generation.embedding_config or job.config,
        summary=with_counters(generation.summary, job.head.summary),
    )

    def commit(connection: Any) -> None:
        snapshot_rows.find_snapshot(
            connection, job.dataset_id, snapshot_id
        )  # files of a deleted snapshot may be removed
        make_head(connection)
        snapshot_rows.set_current(connection, job.dataset_id, snapshot_id)
        remove_thumbnails(job.thumbnails)  # media with the same ids may have had other images
        remove_thumbnails(job.object_thumbnails)

    return with_step(job, commit, "restore", generation.n_images)


def with_counters(restored: Summary, current: Summary) -> Summary:
    """Return the restored summary with the larger of each counter of both, so that a number is never used twice."""
    counted = restored.with_(
        first_free=_larger(current.first_free, restored.first_free),
        next_numbers=_larger(current.next_numbers, restored.next_numbers),
        batches=max(current.batches, restored.batches),
    )
    if current.objects is None and restored.objects is None:
        return counted
    of_current, of_restored = current.objects or ObjectSummary(), restored.objects or ObjectSummary()
    return counted.with_(objects=of_restored.with_(first_free=_larger(of_current.first_free, of_restored.first_free)))


def _larger(current: Mapping[str, int], restored: Mapping[str, int]) -> dict[str, int]:
    return {name: max(current.get(name, 0), restored.get(name, 0)) for name in {*current, *restored}}


def clone(
    source: JobContext,
    generation: Generation,
    *,
    layout: Layout,
    dataset_id: str,
    created_by: str,
    progress: TaskProgress,
) -> Commit:
    """Link the tables of a generation into a new dataset and return the commit; both datasets share the files.

    Args:
        source: the dataset that is cloned.
        generation: its state that is cloned.
        layout: of the workspace.
        dataset_id: the new dataset.
        created_by: the user who clones.
        progress: of the task.
    """
    link_generation(generation, layout=layout, dataset_id=dataset_id, progress=progress.stages(0.1, 0.9))
    progress("syncing", 0.9)
    tables.sync(layout.dataset(dataset_id))
    return generation_commit(
        dataset_id,
        tables=generation.tables,
        n_images=generation.n_images,
        config=generation.embedding_config or source.config,
        summary=generation.summary.with_(namespace=source.namespace),
        roots=source.roots,
        snapshot_by=created_by,
        reason=SnapshotReason.CLONE,
    )


def link_generation(generation: Generation, *, layout: Layout, dataset_id: str, progress: Progress) -> None:
    """Link the tables and the uploaded media of a generation into a new dataset, as hard links.

    Args:
        generation: the generation, of any dataset.
        layout: of the workspace.
        dataset_id: the new dataset; remains of an earlier run are removed.
        progress: called with the stage and the share that is done; raises to stop.
    """
    shutil.rmtree(layout.dataset(dataset_id), ignore_errors=True)
    for done, (name, version) in enumerate(generation.tables.items()):
        progress("linking tables", 0.5 * done / len(generation.tables))
        table_files.link(layout.table(generation.dataset_id, name), version, layout.table(dataset_id, name))
    progress("linking uploaded media", 0.5)
    link_blobs(layout.blobs(generation.dataset_id), layout.blobs(dataset_id), progress)


def link_blobs(source: Path, target: Path, progress: Progress) -> None:
    """Link all uploaded files; links are free, so files that the state does not need are not filtered out."""
    for folder, _, names in os.walk(source):
        target_folder = target / Path(folder).relative_to(source)
        target_folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not name.endswith(".partial"):
                table_files.link_file(Path(folder) / name, target_folder / name)
        progress("linking uploaded media", 0.75)
