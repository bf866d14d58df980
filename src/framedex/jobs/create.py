"""The job that creates a dataset: ingest, index, commit."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from framedex.encoders import FETCHED
from framedex.jobs.context import JobContext
from framedex.jobs.index.copies import found_copies
from framedex.jobs.index.finish import finish, with_time
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.standings import Comparison
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.image_ids import write_image_ids
from framedex.jobs.ingest.ingest import Checkpoint
from framedex.jobs.ingest.placement import FIRST_PLACEMENT
from framedex.jobs.ingest.reading import (
    checkpoint_saver,
    declared_classes,
    layout_lines,
    left_out_words,
    lists_of,
    new_copy_columns,
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
from framedex.jobs.objects.annotated import annotation_writer, media_versions
from framedex.jobs.objects.objects import change_objects
from framedex.storage import datasets, tables
from framedex.storage.copy_pairs import CopyPairs
from framedex.storage.generation import Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.objects import objects_path
from framedex.storage.table_versions import Table
from framedex.storage.videos import VIDEOS, media_of_videos, videos_path
from framedex.tasks import Commit, TaskProgress

_WITH_BOXES = 0.7
"""Share of the reading time for images; the rest is for reading images with bounding boxes again."""


def create(content: Content, job: JobContext, *, progress: TaskProgress) -> Commit:
    """Build the tables of a dataset and return the commit that makes them its head.

    Args:
        content: the media.
        job: the context of the new dataset.
        progress: of the task.
    """
    table, roots = job.table, source_roots(content)
    early = partial(_early_commit, job, roots)
    checkpoint = _resume(table, progress)
    if checkpoint.rows:
        checkpoint_saver(progress, head=None, early=early)(checkpoint)
    boxes = read_content_boxes(content, progress)
    end = reading_share(content)
    read_end = end * _WITH_BOXES if boxes else end
    ingested = read_content(
        content,
        dataset_id=job.dataset_id,
        table=table,
        settings=job.settings,
        progress=progress,
        end=read_end,
        config=job.config,
        existing=IdIndex(Table(table, checkpoint.version)) if checkpoint.rows else None,
        existing_videos=IdIndex(Table(videos_path(table), checkpoint.videos), "video_id")
        if checkpoint.videos
        else None,
        checkpoint=checkpoint,
        of_copies=new_copy_columns(content),
        early=early,
    )
    lists, version = lists_of(content, boxes), ingested.version
    placement = replace(FIRST_PLACEMENT, names=ingested.names) if ingested.names else None
    if ingested.rows:
        version = write_image_ids(Table(table, version), lists, placement=placement)
    facts = WrittenFacts(version)
    if ingested.rows:
        facts = written_facts(
            content,
            Table(table, version),
            before={},
            summary=Summary(),
            created_by=job.settings.user,
            placement=placement,
        )
        version = facts.version
    versions = media_versions(version, ingested.videos)
    objects = None
    if boxes is not None and isinstance(content, FilesInput):
        write = annotation_writer(
            boxes,
            job,
            content.encoder,
            versions=versions,
            roots=roots,
            roles_of=job.head.summary,
            placement=placement,
        )
        objects = change_objects(job, write=write, progress=progress.stages(read_end, end))
    indexing = end
    copying: AbstractContextManager[CopyPairs | None] = nullcontext()
    if isinstance(content, FilesInput):
        indexing = (1 + end) / 2
        copying = found_copies(
            job.with_added(versions, job.head.summary),
            Table(table, version),
            roots=roots,
            progress=progress.stages(end, indexing),
        )
    with copying as copies:
        indexed = index(
            Table(table, version),
            job.config.thresholds,
            copies=copies,
            comparison=None if copies is None else Comparison(job.with_added(versions, job.head.summary), roots),
            resources=IndexResources.of(job),
            progress=progress.stages(indexing, 1.0),
        )
    summary = Summary(batches=1, added_at=with_time({}, 0))
    summary = with_skipped(summary, skipped_inputs(content, ingested, table))
    summary = facts.applied_to(with_problems(summary, boxes, unmatched=True, content=content))
    summary = with_source_folder(summary.with_(folders=[], layout=layout_lines(content, boxes, facts)), content)
    chosen = [job.config.reason] if job.config.reason.startswith(FETCHED) else []  # without paths: others see it
    progress.outcome = "; ".join([progress.outcome, *chosen, *summary.layout, *left_out_words(summary)])
    others = {**({VIDEOS: ingested.videos} if ingested.videos else {}), **facts.others}
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        job.config,
        dataset_id=job.dataset_id,
        table=table,
        rows=ingested.rows,
        summary=summary,
        others=others,
        classes=declared_classes(lists),
        roots=roots,
        kept_by=job.settings.user if job.settings.dataset_snapshots_enabled else None,
    )


def _early_commit(job: JobContext, roots: Sequence[str], checkpoint: Checkpoint) -> Commit | None:
    """Return the commit that shows the rows up to a checkpoint, without an index; None for no rows."""
    if not checkpoint.rows:
        return None
    versions = media_versions(checkpoint.version, checkpoint.videos)
    n_of_videos = media_of_videos(Table(job.table, checkpoint.version))
    summary = Summary(early=True, n_videos=checkpoint.video_rows, n_of_videos=n_of_videos, added_at=with_time({}, 0))
    return lambda connection: datasets.commit_early(
        connection, job.dataset_id, tables=versions, n_images=checkpoint.rows, summary=summary, roots=roots
    )


def _resume(table: Path, progress: TaskProgress) -> Checkpoint:
    """Return the checkpoint of an earlier run of the task; remove all tables and rows beyond it."""
    checkpoint = resume_checkpoint(table, progress, head=None)
    if not checkpoint.rows:
        tables.roll_back(table, None)
    if not checkpoint.videos:
        tables.roll_back(videos_path(table), None)
    tables.roll_back(objects_path(table), None)
    return checkpoint
