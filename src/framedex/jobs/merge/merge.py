"""The merge of two datasets: the tables of one, shared as in a clone, and the rows of the other; no file is read."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.progress import Progress
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import read_decisions
from framedex.jobs.index.finish import finish
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.ingest.origins import used_origins
from framedex.jobs.merge.definitions import MergedDefinitions, declared_by, write_merged_decisions
from framedex.jobs.merge.moved_media import GONE, NEW, MovedMedia, PlacedRoots, find_moved
from framedex.jobs.merge.rows import Moving, filled_columns
from framedex.jobs.objects.objects import ObjectChange, change_objects, object_ids
from framedex.jobs.restore import link_blobs, link_generation
from framedex.records import EmbeddingConfig
from framedex.storage import table_files, tables, videos
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, read_pairs
from framedex.storage.definitions import FIELDS, TAGS
from framedex.storage.generation import Generation, Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.label_decisions import read_label_decisions
from framedex.storage.layout import Layout
from framedex.storage.objects import OBJECTS, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress

_OTHER = "merged"
"""Name of the folder in that of the new dataset with the tables of the second one, while they are read."""
_READ_BATCH = 65_536


@dataclass(frozen=True)
class Sources:
    """The two datasets that are merged.

    Attributes:
        first: the dataset whose tables, ids and index the merged one continues.
        second: the other one.
        are_files: whether their paths are those of files; paths of tables of embeddings are texts.
    """

    first: JobContext
    second: JobContext
    are_files: bool

    @property
    def heads(self) -> tuple[Generation, Generation]:
        """The generations of both."""
        return self.first.head, self.second.head

    @property
    def namespaces(self) -> tuple[str, str]:
        """The dataset ids from which the media ids of both are computed."""
        return self.first.namespace, self.second.namespace


def merge(sources: Sources, *, layout: Layout, dataset_id: str, progress: TaskProgress) -> Commit:
    """Write the tables of a dataset with the media of two others, and return the commit.

    No file is read. Rows, embeddings and copy descriptors of the first dataset are shared with it, those of the second
    one are written again with their ids, places and numbers in the new dataset. Pairs of copies of both stay; copies
    between them are found by their descriptors, and by keypoints only at a reindex.

    Args:
        sources: the datasets, with the same encoder.
        layout: of the workspace.
        dataset_id: the new dataset.
        progress: of the task.

    Raises:
        InvalidInput: custom fields of one name have different types.
    """
    first, second = sources.first, sources.second
    link_generation(first.head, layout=layout, dataset_id=dataset_id, progress=progress.stages(0.0, 0.03))
    other = _link_other(second.head, layout, dataset_id, progress.stages(0.03, 0.05))
    head = first.head.model_copy(update={"summary": first.head.summary.with_(namespace=first.namespace)})
    job = replace(
        first,
        dataset_id=dataset_id,
        head=head,
        table=layout.media(dataset_id),
        thumbnails=layout.thumbnails(dataset_id),
        columns=None,
    )
    moving = _moving(sources, job, other, progress.part("comparing media", 0.05, 0.15))
    merged = _Merged(sources, job, other, moving)
    version, copies = merged.media(progress.part("media", 0.15, 0.3))
    versions = merged.videos() | merged.definitions()
    versions |= write_merged_decisions(job.table, sources.heads, other, moving.identities)
    objects = merged.objects(progress.stages(0.3, 0.5))
    decided = replace(job, cannot_link=[each.media_ids for each in read_decisions(job.table, versions)])
    indexed = index(
        Table(job.table, version),
        job.config.thresholds,
        progress=progress.stages(0.5, 1.0),
        first_free=head.summary.first_free,
        settled=head.summary.settled,
        cannot_link=decided.cannot_link,
        limits=job.limits,
        resources=IndexResources.of(job),
        label_decisions=read_label_decisions(job.table, versions),
        copies=copies,
    )
    others = {**job.kept, **versions}
    summary = merged.summary()
    if objects is not None:
        others, summary = objects.apply(others, summary)
    classes = declared_by(other, second.head.tables)
    shutil.rmtree(other.parent)
    tables.sync(layout.dataset(dataset_id))
    return finish(
        indexed,
        merged.config(),
        dataset_id=dataset_id,
        table=job.table,
        rows=Table(job.table, indexed.version).count(),
        summary=summary,
        partial=True,
        before=first.head.tables,
        others=others,
        classes=classes,
        roots=moving.placed.roots,
        kept_by=job.settings.user if job.settings.dataset_snapshots_enabled else None,
    )


def _link_other(generation: Generation, layout: Layout, dataset_id: str, progress: Progress) -> Path:
    """Link the tables of a generation into a folder of the new dataset; return that of its media table.

    So edits of the second dataset meanwhile, and its clean-up, do not matter.
    """
    folder = layout.dataset(dataset_id) / _OTHER
    for done, (name, version) in enumerate(generation.tables.items()):
        progress("linking tables", done / len(generation.tables))
        source = layout.table(generation.dataset_id, name)
        table_files.link(source, version, folder / source.name)
    link_blobs(layout.blobs(generation.dataset_id), layout.blobs(dataset_id), progress)
    return folder / layout.media(generation.dataset_id).name


def _moving(sources: Sources, job: JobContext, other: Path, progress: Callable[[float], None]) -> Moving:
    """Return the changes of the rows of the second dataset."""
    first, second = sources.first, sources.second
    definitions = MergedDefinitions.of((job.table, other), sources.heads)
    placed = PlacedRoots.of(first.roots, second.roots, are_files=sources.are_files)
    own = Table(job.table, first.head.tables[MEDIA])
    placed = replace(placed, used=used_origins(own))
    identities = find_moved(
        own,
        Table(other, second.head.tables[MEDIA]),
        (first.roots, second.roots),
        placed,
        sources.namespaces,
        progress,
    )
    return Moving(identities, placed, definitions, first.head.summary.batches, sources.namespaces)


@dataclass(frozen=True)
class _Merged:
    """Tables of the merged dataset as they are written.

    Attributes:
        sources: both datasets.
        job: the new dataset, whose head is that of the first one.
        other: folder of the media table of the second one.
        moving: what changes in its rows.
    """

    sources: Sources
    job: JobContext
    other: Path
    moving: Moving

    @property
    def identities(self) -> MovedMedia:
        """The media of the second dataset in the merged one."""
        return self.moving.identities

    def media(self, progress: Callable[[float], None]) -> tuple[int, CopyPairs | None]:
        """Write the media of both; return the version of their table, and the pairs of copies among them."""
        path = self.job.table
        start = tables.roll_back(path, self.job.head.tables[MEDIA])
        assert start is not None, "a head has a media table"
        first = Table(path, tables.fold_edits(Table(path, start)))
        count = first.count()
        second = Table(self.other, self.sources.second.head.tables[MEDIA])
        filled = filled_columns(first, second, self.moving, progress)
        pairs = read_pairs(first, self.job.head.tables)
        version = first.version
        if filled:
            schema = pa.schema([(name, column.type) for name, column in filled.items()])
            version = tables.put_columns(first, _batches(filled, schema), schema)
        is_new = self.identities.same == NEW
        if is_new.any():
            schema, batches = self.moving.media(second)
            version = tables.append(path, batches, schema)
        new_row = np.where(is_new, count + np.cumsum(is_new) - 1, self.identities.same)
        new_row[self.identities.same == GONE] = -1
        others = read_pairs(second, self.sources.second.head.tables)
        if others is not None:
            moved = others.moved(new_row)
            pairs = (pairs or NO_PAIRS).joined(moved.take(_are_new(moved, pairs)))
        return version, pairs

    def videos(self) -> dict[str, int]:
        """Write the videos of both; return the version of their table, by name."""
        heads = self.sources.heads
        second = videos.open_videos(self.other, heads[1].tables)
        if second is None:
            return {}
        begin = videos.roll_back_videos(self.job.table, heads[0].tables.get(videos.VIDEOS))
        path = videos.videos_path(self.job.table)
        existing = IdIndex(Table(path, begin), "video_id") if begin else None
        return {videos.VIDEOS: tables.append(path, self.moving.videos(second, existing), second.schema)}

    def definitions(self) -> dict[str, int]:
        """Write tags and fields of both; return the versions of their tables, by name."""
        return self.moving.definitions.write(self.job.table, self.job.head.tables)

    def objects(self, progress: Progress) -> ObjectChange | None:
        """Write the objects of both; return the change, None if nothing changes."""
        version = self.sources.second.head.tables.get(OBJECTS)
        if version is None:
            return None
        second = Table(objects_path(self.other), version)

        def write(path: Path, _progress: Callable[[float], None]) -> int:
            schema, batches = self.moving.objects(second, object_ids(self.job))
            new = next(batches, None)
            return 0 if new is None else tables.append(path, _chained(new, batches), schema)

        return change_objects(self.job, progress=progress, write=write, rebuild=True)

    def summary(self) -> Summary:
        """Return the summary of the merged dataset, without the values of the index."""
        own, theirs = (head.summary for head in self.sources.heads)
        added = {str(int(number) + own.batches): time for number, time in theirs.added_at.items()}
        merged = own.with_(
            namespace=self.sources.first.namespace,
            batches=own.batches + theirs.batches,
            added_at={**own.added_at, **added},
            next_numbers={**own.next_numbers, **self._next_numbers()},
            skipped=self._skipped(),
            examples={},
        )
        for folder in theirs.folders or ():
            placed = self.moving.placed
            path = f"{placed.prefixes[folder.root]}{folder.path}".rstrip("/")
            merged = merged.with_folder(folder.model_copy(update={"root": placed.numbers[folder.root], "path": path}))
        for number in theirs.roles:
            role = theirs.role_of(int(number))
            if role is not None and str(self.moving.placed.numbers[int(number)]) not in own.roles:
                merged = merged.with_role(self.moving.placed.numbers[int(number)], role)
        return merged

    def _next_numbers(self) -> dict[str, int]:
        numbers = self.moving.definitions.next_numbers
        return {name: numbers[name] for name in (TAGS, FIELDS) if numbers[name]}

    def _skipped(self) -> dict[str, int]:
        counts = {
            "media of both datasets": int(np.count_nonzero(self.identities.same >= 0)),
            "files that the datasets have with different content": self.identities.changed,
        }
        return {reason: count for reason, count in counts.items() if count}

    def config(self) -> EmbeddingConfig:
        """Return the config of the index, which names the copy descriptor if one of the datasets has it."""
        own, theirs = self.sources.first.config, self.sources.second.config
        return own.model_copy(update={"copy_descriptor": own.copy_descriptor or theirs.copy_descriptor})


def _are_new(pairs: CopyPairs, known: CopyPairs | None) -> Any:
    """Return which pairs are not known: bool, shape (P,)."""
    ends = (
        set() if known is None else {frozenset(each) for each in zip(known.a.tolist(), known.b.tolist(), strict=True)}
    )
    found = [frozenset(each) not in ends for each in zip(pairs.a.tolist(), pairs.b.tolist(), strict=True)]
    return np.array(found, dtype=np.bool_)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _batches(columns: dict[str, pa.Array], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    count = len(next(iter(columns.values())))
    for start in range(0, count, _READ_BATCH):
        arrays: Sequence[pa.Array] = [column.slice(start, _READ_BATCH) for column in columns.values()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
