"""The jobs that bring a snapshot back, and that make a dataset of one."""

import os
import shutil
from pathlib import Path
from typing import Any

from framedex.images.thumbnails import remove_thumbnails
from framedex.jobs.context import JobContext
from framedex.progress import Progress
from framedex.records import DatasetStatus, Generation, SnapshotReason
from framedex.storage import datasets, snapshot_rows, tables
from framedex.storage.layout import Layout
from framedex.storage.objects import OBJECTS
from framedex.tasks import Commit, TaskProgress

_COUNTERS = ("first_free", "batches")


def restore(job: JobContext, snapshot_id: str, kept: Generation, *, progress: TaskProgress) -> Commit:
    """Return the commit that makes a kept generation the head again. No data moves.

    The versions of the tables that it names are still there; whoever writes next goes on from them.

    Args:
        job: the dataset.
        snapshot_id: the snapshot.
        kept: what it keeps.
        progress: of the task.

    The commit raises NotFound if the snapshot is gone.
    """
    progress("restoring", 0.5)
    config = kept.embedding_config or job.config

    def commit(connection: Any) -> None:
        snapshot_rows.find_snapshot(
            connection, job.dataset_id, snapshot_id
        )  # what is deleted may be gone from the disk
        datasets.commit_generation(
            connection,
            job.dataset_id,
            tables=kept.tables,
            n_images=kept.n_images,
            status=DatasetStatus.PARTIAL_INDEX if kept.summary.get("partial") else DatasetStatus.READY,
            config=config,
            summary={**kept.summary, **_counted_on(job.head.summary, kept.summary)},
        )
        snapshot_rows.set_current(connection, job.dataset_id, snapshot_id)
        remove_thumbnails(job.thumbnails)  # media of the same ids may have been other pictures then
        remove_thumbnails(job.object_thumbnails)

    return commit


def _counted_on(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Return the counters of numbers that were used, whichever state they were used in: ids are never used twice."""
    counted: dict[str, Any] = {
        "first_free": _larger(now, then),
        "batches": max(now.get("batches", 1), then.get("batches", 1)),
    }
    if OBJECTS in now or OBJECTS in then:
        of_now, of_then = now.get(OBJECTS, {}), then.get(OBJECTS, {})
        counted[OBJECTS] = {**of_then, "first_free": _larger(of_now, of_then)}
    return counted


def _larger(now: dict[str, Any], then: dict[str, Any]) -> dict[str, int]:
    used, before = now.get("first_free", {}), then.get("first_free", {})
    return {name: max(used.get(name, 0), before.get(name, 0)) for name in {*used, *before}}


def clone(
    source: JobContext, kept: Generation, *, layout: Layout, dataset_id: str, created_by: str, progress: TaskProgress
) -> Commit:
    """Make the tables of a new dataset of a kept generation and return the commit; both share their files.

    Args:
        source: the dataset that is cloned.
        kept: what its snapshot keeps.
        layout: of the workspace.
        dataset_id: the new dataset.
        created_by: who clones.
        progress: of the task.
    """
    link_generation(kept, layout=layout, dataset_id=dataset_id, progress=progress.stages(0.1, 0.9))
    progress("syncing", 0.9)
    tables.sync(layout.dataset(dataset_id))
    summary = {**kept.summary, "namespace": source.namespace}
    config = kept.embedding_config or source.config

    def commit(connection: Any) -> None:
        datasets.put_roots(connection, dataset_id, source.roots)
        generation = datasets.commit_generation(
            connection,
            dataset_id,
            tables=kept.tables,
            n_images=kept.n_images,
            status=DatasetStatus.PARTIAL_INDEX if kept.summary.get("partial") else DatasetStatus.READY,
            config=config,
            summary=summary,
        )
        snapshot_rows.insert_snapshot(connection, generation, created_by=created_by, reason=SnapshotReason.CLONE)

    return commit


def link_generation(kept: Generation, *, layout: Layout, dataset_id: str, progress: Progress) -> None:
    """Give the tables and the uploaded media of a generation to a new dataset, by second names of their files.

    Args:
        kept: the generation, of any dataset.
        layout: of the workspace.
        dataset_id: the new dataset; what an earlier run left of it is removed.
        progress: called with the stage and the share that is done; raises to stop.
    """
    shutil.rmtree(layout.dataset(dataset_id), ignore_errors=True)
    for done, (name, version) in enumerate(kept.tables.items()):
        progress("linking tables", 0.5 * done / len(kept.tables))
        tables.link(layout.table(kept.dataset_id, name), version, layout.table(dataset_id, name))
    progress("linking uploaded media", 0.5)
    _link_blobs(layout.blobs(kept.dataset_id), layout.blobs(dataset_id), progress)


def _link_blobs(source: Path, target: Path, progress: Progress) -> None:
    """Link all uploaded files; which of them a snapshot needs is not worth finding out, for a link costs nothing."""
    for folder, _, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not name.endswith(".partial"):
                tables.link_file(Path(folder) / name, place / name)
        progress("linking uploaded media", 0.75)
