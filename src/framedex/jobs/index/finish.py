"""The end of a job that writes an index: what later additions need of it, and the commit that makes it the head."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.analysis.cluster_means import ClusterSums
from framedex.arrays import Vectors
from framedex.jobs.index.index import WrittenIndex
from framedex.records import DatasetStatus, EmbeddingConfig, Generation, SnapshotReason
from framedex.storage import datasets, snapshot_rows, tables, videos
from framedex.storage.objects import OBJECTS, TABLES
from framedex.storage.table_names import CELLS, MEANS, MEDIA
from framedex.storage.tables import Table
from framedex.tasks import Commit


def finish(
    indexed: WrittenIndex,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    table: Path,
    rows: int,
    status: DatasetStatus,
    summary: Mapping[str, Any],
    others: Mapping[str, int] | None = None,
    roots: Sequence[str] = (),
    kept_by: str | None = None,
) -> Commit:
    """Write what is left to write, wait until all is on the disk, and return the commit.

    Args:
        indexed: the index that was written.
        config: how the media were encoded and grouped.
        dataset_id: the dataset.
        table: folder of its media table.
        rows: media in it.
        status: of the dataset from then on.
        summary: what else is stored with the generation.
        others: versions of further tables of the generation.
        roots: source roots, by number; empty if they are as before.
        kept_by: who a snapshot of this first index is made by; None for no snapshot.
    """
    versions = {**(others or {}), MEDIA: indexed.version}
    versions |= write_rest(indexed, table)
    tables.sync(table)
    counts = _count_videos(table, versions)

    def commit(connection: Any) -> None:
        if roots:
            datasets.put_roots(connection, dataset_id, roots)
        generation = datasets.commit_generation(
            connection,
            dataset_id,
            tables=versions,
            n_images=rows,
            status=status,
            config=config,
            summary={**summary, **indexed.summary, **counts, "partial": status is DatasetStatus.PARTIAL_INDEX},
        )
        if kept_by is not None:
            reason = SnapshotReason.CREATION
            snapshot_rows.insert_snapshot(connection, generation, created_by=kept_by, reason=reason)

    return commit


def _count_videos(table: Path, versions: Mapping[str, int]) -> dict[str, int]:
    """Return how many videos a generation has, and how many rows of the media table are theirs; sync their table."""
    found = videos.open_videos(table, versions)
    if found is None:
        return {"n_videos": 0, "n_of_videos": 0}
    tables.sync(found.path)
    return {"n_videos": found.count(), "n_of_videos": videos.media_of_videos(Table(table, versions[MEDIA]))}


def with_time(times: Mapping[str, str], batch: int) -> dict[str, str]:
    """Return when batches were added, by number, with one that is added now; times are ISO 8601, in UTC."""
    return {**times, str(batch): datetime.now(UTC).isoformat()}


def write_rest(indexed: WrittenIndex, table: Path) -> dict[str, int]:
    """Write the cells and the sums of clusters, where there are any; return the tables' versions.

    Args:
        indexed: the index that was written.
        table: folder of the media table, or of that of objects.
    """
    versions = {}
    if indexed.graph.cells is not None:
        versions[CELLS] = _replace(_path(table, CELLS), {"centroid": _lists(indexed.graph.cells.centroids)})
    if (sums := indexed.sums) is not None and len(sums.keys):
        columns = {"key": pa.array(sums.keys), "weight": pa.array(sums.weights), "sum": _lists(sums.sums)}
        versions[MEANS] = _replace(_path(table, MEANS), columns)
    return versions


def _path(table: Path, name: str) -> Path:
    return table.with_name(f"{TABLES[name] if table.stem == OBJECTS else name}.lance")


def _lists(vectors: Vectors) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _replace(path: Path, columns: dict[str, pa.Array]) -> int:
    batch = pa.RecordBatch.from_pydict(columns)
    version = tables.replace(path, [batch], batch.schema)
    tables.sync(path)
    return version


def read_cells(table: Path, versions: Mapping[str, int]) -> Vectors | None:
    """Return the centroids that a generation's index was found by: float32, shape (C, D); None without cells."""
    if CELLS not in versions:
        return None
    return Table(_path(table, CELLS), versions[CELLS]).vectors("centroid")[1]


def read_sums(table: Path, head: Generation) -> ClusterSums | None:
    """Return the sums of clusters that were kept with a generation's index; None if there are none."""
    if MEANS not in head.tables:
        return None
    kept = Table(_path(table, MEANS), head.tables[MEANS])
    held = kept.scan(["key", "weight"]).read_all()
    keys, weights = (held.column(name).to_numpy() for name in ("key", "weight"))
    return ClusterSums(keys, weights, kept.vectors("sum")[1])
