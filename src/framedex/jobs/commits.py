"""The commit at the end of a job."""

from collections.abc import Mapping, Sequence
from typing import Any

from framedex.records import EmbeddingConfig, SnapshotReason
from framedex.storage import datasets, snapshot_rows
from framedex.storage.generation import Summary
from framedex.tasks import Commit


def generation_commit(
    dataset_id: str,
    *,
    tables: Mapping[str, int],
    n_images: int,
    config: EmbeddingConfig,
    summary: Summary,
    roots: Sequence[str] = (),
    snapshot_by: str | None = None,
    reason: SnapshotReason = SnapshotReason.CREATION,
) -> Commit:
    """Return the commit that makes a new generation the head of a dataset.

    Args:
        dataset_id: the dataset.
        tables: versions by table name.
        n_images: number of media, frames included.
        config: the configuration of the index.
        summary: of the generation; it decides the status of the dataset.
        roots: source roots, by number; empty if they stay.
        snapshot_by: the user who takes a snapshot of the generation; None for no snapshot.
        reason: of the snapshot.
    """

    def commit(connection: Any) -> None:
        if roots:
            datasets.put_roots(connection, dataset_id, roots)
        generation = datasets.commit_generation(
            connection, dataset_id, tables=dict(tables), n_images=n_images, config=config, summary=summary
        )
        if snapshot_by is not None:
            snapshot_rows.insert_snapshot(connection, generation, created_by=snapshot_by, reason=reason)

    return commit
