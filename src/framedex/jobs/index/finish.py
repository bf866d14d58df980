"""Last step of a job that writes an index: the cells and sums for later updates, and the commit of the generation."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from framedex.analysis.cluster_means import ClusterSums
from framedex.annotations.source_lists import SourceClass
from framedex.core.arrays import Vectors
from framedex.jobs.commits import generation_commit
from framedex.jobs.index.index import WrittenIndex
from framedex.records import EmbeddingConfig
from framedex.storage import tables, videos
from framedex.storage.classes import write_classes
from framedex.storage.copy_pairs import write_pairs
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_statistics import write_label_statistics
from framedex.storage.objects import OBJECTS, TABLES
from framedex.storage.table_names import CELLS, COPIES, LABEL_STATISTICS, MEANS, MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit


def finish(
    indexed: WrittenIndex,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    table: Path,
    rows: int,
    summary: Summary,
    partial: bool = False,
    before: Mapping[str, int] | None = None,
    others: Mapping[str, int] | None = None,
    classes: Sequence[SourceClass] = (),
    roots: Sequence[str] = (),
    kept_by: str | None = None,
) -> Commit:
    """Write the remaining tables, sync all tables to the disk, and return the commit.

    Args:
        indexed: the index as written.
        config: encoder and thresholds of the dataset.
        dataset_id: the dataset.
        table: folder of its media table.
        rows: the number of media in it.
        summary: summary of the generation, without the values of the index.
        partial: True if rows were added to the index since its last rebuild.
        before: versions of the tables of the previous generation; None for a new dataset.
        others: versions of further tables of the generation.
        classes: classes in the lists of new annotation files.
        roots: source roots, by number; empty if unchanged.
        kept_by: creator of a snapshot of this first index; None for no snapshot.
    """
    versions = {**(others or {}), MEDIA: indexed.version}
    versions |= write_rest(indexed, table)
    tables.sync(table)
    versions = write_classes(table, before or {}, versions, classes)
    return generation_commit(
        dataset_id,
        tables=versions,
        n_images=rows,
        config=config,
        summary=summary.with_index(indexed.summary).with_(**_count_videos(table, versions), partial=partial),
        roots=roots,
        snapshot_by=kept_by,
    )


def _count_videos(table: Path, versions: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of videos and of their rows in the media table; sync the table of videos."""
    video_table = videos.open_videos(table, versions)
    if video_table is None:
        return {"n_videos": 0, "n_of_videos": 0}
    tables.sync(video_table.path)
    return {"n_videos": video_table.count(), "n_of_videos": videos.media_of_videos(Table(table, versions[MEDIA]))}


def with_time(times: Mapping[str, str], batch: int) -> dict[str, str]:
    """Return the times of additions by batch number, with the current time for a new batch; ISO 8601, in UTC."""
    return {**times, str(batch): datetime.now(UTC).isoformat()}


def write_rest(indexed: WrittenIndex, table: Path) -> dict[str, int]:
    """Write the other tables of an index, as far as it has them; return their versions.

    Args:
        indexed: the index as written.
        table: folder of the media table or the table of objects.
    """
    versions = {}
    if indexed.cells is not None:
        versions[CELLS] = _replace(_path(table, CELLS), {"centroid": _lists(indexed.cells.centroids)})
    if (sums := indexed.sums) is not None and len(sums.keys):
        columns = {"key": pa.array(sums.keys), "weight": pa.array(sums.weights), "sum": _lists(sums.sums)}
        versions[MEANS] = _replace(_path(table, MEANS), columns)
    if indexed.copies is not None:
        versions[COPIES] = write_pairs(indexed.copies, Table(table, indexed.version))
    if indexed.label_statistics is not None and table.stem == MEDIA:  # labels of objects are not edited
        names, statistics = indexed.label_statistics
        versions[LABEL_STATISTICS] = write_label_statistics(table, names, statistics.typical, statistics.limit)
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
    """Read the centroids of the cells of a generation's index: float32, shape (C, D); None without cells."""
    if CELLS not in versions:
        return None
    return Table(_path(table, CELLS), versions[CELLS]).vectors("centroid")[1]


def means_path(table: Path) -> Path:
    """Return the folder of the table of cluster sums that belongs to a table of media or objects."""
    return _path(table, MEANS)


def read_sums(table: Path, head: Generation) -> ClusterSums | None:
    """Read the cluster sums that are stored with a generation's index; None without sums."""
    if MEANS not in head.tables:
        return None
    stored = Table(_path(table, MEANS), head.tables[MEANS])
    read = stored.scan(["key", "weight"]).read_all()
    keys, weights = (read.column(name).to_numpy() for name in ("key", "weight"))
    return ClusterSums(keys, weights, stored.vectors("sum")[1])
