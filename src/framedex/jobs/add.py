"""Jobs of an existing dataset: the addition of media, and the rebuild of the index."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.counts import counted
from framedex.encoders.gist import Gist
from framedex.images.thumbnails import remove_strange_thumbnails, remove_thumbnails
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.journal import with_new_step
from framedex.jobs.index.changed import index_changed, rebuild_index
from framedex.jobs.index.finish import finish, with_time
from framedex.jobs.index.index import WrittenIndex
from framedex.jobs.index.missing_values import add_measure_columns
from framedex.jobs.ingest.content import PRECOMPUTED, Content, FilesInput
from framedex.jobs.ingest.decoding import is_video_item
from framedex.jobs.ingest.gone_files import KnownFiles, look_at_known
from framedex.jobs.ingest.image_ids import write_image_ids
from framedex.jobs.ingest.ingest import Checkpoint, Ingested
from framedex.jobs.ingest.origins import read_origins, write_origins
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.jobs.ingest.reading import (
    declared_classes,
    layout_lines,
    left_out_words,
    lists_of,
    read_content,
    read_content_boxes,
    reading_share,
    resume_checkpoint,
    skipped_inputs,
    source_roots,
    with_problems,
    with_skipped,
    with_source_folder,
    written_facts,
)
from framedex.jobs.ingest.source_facts import WrittenFacts
from framedex.jobs.ingest.uploads import UploadSource
from framedex.jobs.objects.annotated import annotation_writer, media_versions
from framedex.jobs.objects.objects import change_objects, object_ids
from framedex.jobs.replacements import replacement_step
from framedex.jobs.sync import unmarked
from framedex.media.files import below
from framedex.records import EmbeddingConfig
from framedex.storage import tables, videos
from framedex.storage.copy_pairs import copy_schema_of, read_pairs
from framedex.storage.file_index import FileIndex, replaced_rows
from framedex.storage.generation import Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import OF_VIDEOS
from framedex.storage.objects import count_objects
from framedex.storage.schema import BLOBS_ROOT
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import DONE, Commit, TaskProgress


def add(job: JobContext, content: Content, *, auto_reindex: bool, progress: TaskProgress) -> Commit:
    """Append media and return the commit.

    Media that the dataset already has are skipped. If a file has changed, its row is replaced. If nothing is new, the
    commit stores only the counts of skipped files, unless earlier additions still need to be indexed.

    Args:
        job: the dataset.
        content: the media.
        auto_reindex: rebuild the whole index; otherwise new media join existing clusters, and all else stays the same.
        progress: of the task.
    """
    start = tables.roll_back(job.table, job.head.tables[MEDIA])
    assert start is not None, "a head has a media table"
    boxes = read_content_boxes(content, progress)
    end = 0.3 if auto_reindex else reading_share(content)
    placement, roots = _place_roots(job, content, start)
    ingested = _ingested(job, content, start, placement, progress, end)
    placement = replace(placement, names=ingested.names)
    summary = _summary(job, content, ingested, placement, roots, Table(job.table, start).count())
    known = KnownFiles()
    if isinstance(content, FilesInput):
        known = look_at_known(content.source, Table(job.table, start), placement, job.settings)
        summary = summary.with_(skipped=summary.skipped | known.counts)
    if not ingested.rows and not (auto_reindex and job.head.summary.partial):
        progress.outcome = "; ".join([DONE, *known.words(), *_news(content, ingested, 0)])
        versions = {**job.head.tables, MEDIA: unmarked(job.table, start, known.back)}
        return media_stay(job, versions, summary, partial=job.head.summary.partial)
    table, lists, version = Table(job.table, start), lists_of(content, boxes), ingested.version or start
    if ingested.rows:
        version = write_image_ids(Table(job.table, version), lists, first=table.count(), placement=placement)
        version = write_origins(Table(job.table, version), placement.origins, first=table.count())
    facts = WrittenFacts(version)
    if ingested.rows:
        facts = written_facts(
            content, Table(job.table, version), before=job.head.tables, summary=job.head.summary,
            created_by=job.settings.user, first=table.count(), placement=placement,
        )  # fmt: skip
        version, summary = facts.version, facts.applied_to(summary)
        remove_strange_thumbnails(job.thumbnails, IdIndex(table))
        remove_strange_thumbnails(job.object_thumbnails, object_ids(job))
    version = unmarked(job.table, version, known.back)
    gone = _replaced(job, start, version) if ingested.rows else np.zeros(job.head.n_images, dtype=bool)
    step, n_replaced = None, int(np.count_nonzero(gone))
    if n_replaced:
        summary = summary.with_(skipped={**summary.skipped, "changed files, replaced": n_replaced})
        step = replacement_step(job, table, Table(job.table, version), gone)
    ids = _ids_of(table, gone)
    write = None
    if boxes is not None and ingested.rows and isinstance(content, FilesInput):
        versions, first = media_versions(version, ingested.videos), table.count()
        write = annotation_writer(
            boxes,
            job,
            content.encoder,
            versions=versions,
            roots=roots,
            roles_of=summary,
            first=first,
            placement=placement,
        )
    halfway = end if write is None else (1 + end) / 2
    objects = change_objects(
        job, write=write, removed_media=ids, rebuild=auto_reindex, progress=progress.stages(end, halfway)
    )
    indexed = index_changed(
        job.with_added(media_versions(version, ingested.videos), summary),
        table,
        version,
        gone,
        progress.stages(halfway, 1.0),
        rebuild=auto_reindex,
        roots=roots,
    )
    summary = summary.with_(layout=layout_lines(content, boxes, facts))
    others = job.kept | _settled_videos(job.table, ingested) | dict(facts.others)
    of_annotations = with_problems(Summary(), boxes, unmatched=False, content=content)
    progress.outcome = "; ".join(
        [
            _outcome(indexed), *_news(content, ingested, n_replaced), *known.words(), *summary.layout,
            *left_out_words(of_annotations),
        ]
    )  # fmt: skip
    summary = with_problems(summary, boxes, unmatched=False, content=content)
    if objects is not None:
        others, summary = objects.apply(others, summary)
    commit = finish(
        indexed,
        _config(job, indexed),
        dataset_id=job.dataset_id,
        table=job.table,
        rows=job.head.n_images + ingested.rows - int(np.count_nonzero(gone)),
        summary=summary,
        partial=not auto_reindex,
        before=job.head.tables,
        others=others,
        classes=declared_classes(lists),
        roots=roots if ingested.rows else (),
    )
    return with_new_thumbnails(commit if step is None else with_new_step(job, commit, step), job, ids)


def _news(content: Content, ingested: Ingested, replaced: int) -> list[str]:
    """Return what an addition did beside adding, for the message of its task."""
    uploaded = isinstance(content, FilesInput) and isinstance(content.source, UploadSource)
    counts = {
        "replaced, as their files have changed": replaced,
        "there already": ingested.present if uploaded else 0,
        "renamed, as other images have their names": ingested.renamed,
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]


def _ingested(
    job: JobContext, content: Content, start: int, placement: SourcePlacement, progress: TaskProgress, end: float
) -> Ingested:
    """Append new media to version *start* of the media table; resume from the task's checkpoint if there is one."""
    checkpoint = resume_checkpoint(job.table, progress, head=job.head.id)
    begin = add_measure_columns(Table(job.table, checkpoint.version or start)).version
    begin_version, of_videos = _with_frame_columns(job.table, begin, content)
    return read_content(
        content,
        dataset_id=job.namespace,
        table=job.table,
        settings=job.settings,
        progress=progress,
        end=end,
        config=job.config,
        placement=placement,
        existing=_existing_media(content, Table(job.table, begin_version)),
        existing_videos=_existing_videos(job, checkpoint),
        checkpoint=checkpoint,
        head=job.head.id,
        of_videos=of_videos,
        of_copies=copy_schema_of(Table(job.table, begin_version).schema),
    )


def _summary(
    job: JobContext, content: Content, ingested: Ingested, placement: SourcePlacement, roots: Sequence[str], first: int
) -> Summary:
    """Return the summary of the generation after an addition to a table of *first* rows."""
    summary = with_skipped(
        job.head.summary.with_(skipped={}, examples={}), skipped_inputs(content, ingested, job.table, first)
    )
    if isinstance(content, FilesInput) and content.source.role and (ingested.rows or roots == list(job.roots)):
        summary = summary.with_role(placement.root, content.source.role)
    if ingested.rows:
        summary = summary.with_(batches=placement.batch + 1, added_at=with_time(summary.added_at, placement.batch))
    if ingested.rows or roots == list(job.roots):
        summary = with_source_folder(summary, content, placement)
    return summary


def _ids_of(table: Table, mask: npt.NDArray[np.bool_]) -> list[str]:
    """Return the media ids of the rows of a mask: bool, shape (rows,)."""
    if not mask.any():
        return []
    ids: list[str] = table.scan(["media_id"]).read_all().column(0).filter(pa.array(mask)).to_pylist()
    return ids


def with_new_thumbnails(commit: Commit, job: JobContext, ids: Sequence[str]) -> Commit:
    """Return a commit that also removes the thumbnails of replaced media."""
    if not ids:
        return commit

    def commit_and_forget(connection: Any) -> None:
        commit(connection)
        remove_thumbnails(job.thumbnails, ids)
        remove_thumbnails(job.object_thumbnails)  # the crop of an unchanged box may have changed

    return commit_and_forget


def _with_frame_columns(table: Path, version: int, content: Content) -> tuple[int, bool]:
    """Add the columns about frames if videos need them; return the table's version, and whether it has these columns.

    Tables that older versions of Framedex wrote lack these columns until the first video is added.
    """
    has_them = "kind" in Table(table, version).schema.names
    if has_them or not isinstance(content, FilesInput) or not any(map(is_video_item, content.source.items())):
        return version, has_them
    return tables.add_empty_columns(Table(table, version), OF_VIDEOS), True


def _existing_videos(job: JobContext, checkpoint: Checkpoint) -> IdIndex | None:
    """Return an index of existing videos, after removing rows that an interrupted run left in their table."""
    begin = checkpoint.videos or videos.roll_back_videos(job.table, job.head.tables.get(videos.VIDEOS))
    return FileIndex(Table(videos.videos_path(job.table), begin), "video_id") if begin else None


def _settled_videos(table: Path, ingested: Ingested) -> dict[str, int]:
    """Return the version of the table of videos after an addition, by table name; changed videos have their new row."""
    if not ingested.videos:
        return {}
    return {videos.VIDEOS: videos.drop_repeated_videos(Table(videos.videos_path(table), ingested.videos))}


def _existing_media(content: Content, table: Table) -> IdIndex:
    return FileIndex(table) if isinstance(content, FilesInput) else IdIndex(table)


def _replaced(job: JobContext, start: int, end: int) -> npt.NDArray[np.bool_]:
    """Return the mask of old rows that an addition replaces: bool, shape (old rows,).

    A row is replaced if a new row has its id, or if its video was read again.
    """
    rows, start_row = job.head.n_images, 0
    existing, gone = IdIndex(Table(job.table, start)), np.zeros(job.head.n_images, dtype=bool)
    table, changed = Table(job.table, end), set[str]()
    columns = ["media_id", *(["video_id"] if "video_id" in table.schema.names else [])]
    for batch in table.scan(columns):
        added = batch.slice(max(rows - start_row, 0))
        gone |= replaced_rows(existing, added.column(0).to_pylist(), rows)
        if len(columns) > 1:
            changed.update(pc.unique(added.column(1)).drop_null().to_pylist())
        start_row += batch.num_rows
    return gone | _rows_of(table, changed, rows) if changed else gone


def _rows_of(table: Table, video_ids: set[str], rows: int) -> npt.NDArray[np.bool_]:
    """Return the mask of the first rows that belong to some videos: bool, shape (rows,)."""
    video_id_set = pa.array(sorted(video_ids), pa.string())
    masks = [pc.is_in(batch.column(0), value_set=video_id_set) for batch in table.scan(["video_id"])]
    return np.asarray(pa.chunked_array(masks).to_numpy()[:rows], dtype=bool)


def reindex(job: JobContext, *, progress: TaskProgress, measure_images: bool = False) -> Commit:
    """Rebuild the index of all media and return the commit.

    Args:
        job: the context of the job.
        progress: of the task.
        measure_images: read the images of a table of embeddings, which were not read before, and measure them.
    """
    version = tables.roll_back(job.table, job.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    share = _objects_share(job)
    known = read_pairs(Table(job.table, version), job.head.tables)
    indexed = rebuild_index(
        job,
        Table(job.table, version),
        progress.stages(0.0, 1 - share),
        job.head.summary,
        known,
        unread=measure_images and job.config.encoder == PRECOMPUTED,
    )
    progress.outcome = _outcome(indexed)
    others, summary = job.kept, job.head.summary
    if (objects := change_objects(job, rebuild=True, progress=progress.stages(1 - share, 1.0))) is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        _config(job, indexed),
        dataset_id=job.dataset_id,
        table=job.table,
        rows=job.head.n_images,
        summary=summary,
        before=job.head.tables,
        others=others,
    )


def _config(job: JobContext, indexed: WrittenIndex) -> EmbeddingConfig:
    """Return the config of a dataset, which names the copy descriptor if the index has used it."""
    return job.config if indexed.copies is None else job.config.model_copy(update={"copy_descriptor": Gist.name})


def _outcome(indexed: WrittenIndex) -> str:
    """Return the message of a successful task."""
    if not indexed.unread:
        return DONE
    kept = "its row keeps the values it had" if indexed.unread == 1 else "their rows keep the values they had"
    unread = f"{counted(indexed.unread, 'images')} could not be read to be measured; {kept}"
    return f"{DONE}; {unread}{', without a copy descriptor' if indexed.undescribed else ''}"


def _objects_share(job: JobContext) -> float:
    """Return objects as a share of all rows of a dataset, 0 to 1."""
    count = count_objects(job.head)
    return count / max(count + job.head.n_images, 1)


def _place_roots(job: JobContext, content: Content, start: int) -> tuple[SourcePlacement, list[str]]:
    """Return the placement of new media, and all source roots of the dataset after the addition.

    Ids are computed as version *start* of the media table says of files that moved.

    A root of the content is mapped to the existing root that contains it; otherwise it becomes a new root. The uris of
    a table stay unchanged, so a table's root is mapped only to an identical root.
    """
    batch, roots, placements = job.head.summary.batches, list(job.roots), []
    origins = read_origins(Table(job.table, start)) if isinstance(content, FilesInput) else {}
    for root in source_roots(content):
        ways = [
            below(existing, root) if isinstance(content, FilesInput) or existing == root else None for existing in roots
        ]
        number = next((number for number, way in enumerate(ways) if way is not None), len(roots))
        if number == len(roots):
            roots, ways = [*roots, root], [*ways, ""]
        prefix = f"{ways[number]}/" if ways[number] else ""
        placements.append(SourcePlacement(number, prefix, batch, origins=origins))
    uploads = tuple(number for number, root in enumerate(roots) if root == BLOBS_ROOT)
    return replace(placements[0], others=tuple(placements[1:]), uploads=uploads), roots


def nothing_new(job: JobContext, summary: Summary) -> Commit:
    """Return the commit of a job with no new media; only the summary may change."""
    return media_stay(job, job.head.tables, summary, partial=job.head.summary.partial)


def media_stay(job: JobContext, versions: Mapping[str, int], summary: Summary, *, partial: bool) -> Commit:
    """Return the commit of a job that changed neither the media nor their index.

    Args:
        job: the dataset.
        versions: of the tables of the new generation.
        summary: of the new generation.
        partial: whether something is still to be indexed.
    """
    return generation_commit(
        job.dataset_id,
        tables=versions,
        n_images=job.head.n_images,
        config=job.config,
        summary=summary.with_(partial=partial),
    )
