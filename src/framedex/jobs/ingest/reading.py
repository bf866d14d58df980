"""Reading of a job's input into the media table, its checkpoints, and the summary of skipped inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.problems import Problems, joined_problems
from framedex.annotations.source_lists import SourceClass, SourceLists
from framedex.annotations.sources import read_box_index
from framedex.core.printable import escaped
from framedex.core.skipped import EXAMPLES, Skipped
from framedex.encoders.copy_descriptor import DIMENSION, is_copy_descriptor
from framedex.errors import NotFound, WorkspaceError
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.ingest import NO_CHECKPOINT, Checkpoint, Ingested, SaveCheckpoint, ingest
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.jobs.ingest.source_facts import WrittenFacts, write_facts
from framedex.jobs.ingest.vectors import ingest_vectors
from framedex.media.frame_sampling import Sampling
from framedex.media.remote_sources import RemoteSource
from framedex.media.sources import FolderSource
from framedex.records import EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.generation import SourceFolder, Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import N_PAGES, copy_schema, text_of_path
from framedex.storage.table_versions import Table
from framedex.storage.videos import videos_path
from framedex.tasks import Commit, TaskProgress

FURTHER_PAGES = "further pages or frames of images, whose first one is read"


def read_content_boxes(content: Content, progress: TaskProgress) -> BoxIndex | None:
    """Return the bounding boxes that come with the images of a content; None if it has no file with boxes."""
    if not isinstance(content, FilesInput) or not content.boxes:
        return None
    return read_box_index(content.boxes, lambda count: progress(f"reading boxes: {count:,}", 0.0))


def lists_of(content: Content, boxes: BoxIndex | None) -> list[SourceLists]:
    """Return the class lists and ids of images in the annotation files of a content, those of labels first."""
    lists = [content.annotations.lists] if isinstance(content, FilesInput) else []
    return lists if boxes is None else [*lists, boxes.lists]


def declared_classes(lists: Sequence[SourceLists]) -> list[SourceClass]:
    """Return the classes of some lists, one after the other."""
    return [each for part in lists for each in part.classes]


def resume_checkpoint(table: Path, progress: TaskProgress, *, head: str | None) -> Checkpoint:
    """Return the checkpoint of an earlier run of the task, and roll the tables of media and videos back to it.

    Args:
        table: folder of the media table.
        progress: of the task.
        head: id of the generation that the task starts from; the earlier run must have started from the same one.

    Returns:
        The checkpoint; ``NO_CHECKPOINT`` if there is none that can be used.
    """
    state = progress.resume
    if not state or state.get("head") != head or not state.get("rows"):
        return NO_CHECKPOINT
    of_videos = state.get("videos", 0)
    try:
        Table(table, state["version"])
        if of_videos:
            Table(videos_path(table), of_videos)
    except (NotFound, WorkspaceError):  # it was cleaned up or damaged, or another task has written since
        return NO_CHECKPOINT
    version = tables.roll_back(table, state["version"])
    assert version is not None, "a version of a table leads to one"
    if of_videos:
        of_videos = tables.roll_back(videos_path(table), of_videos)
    return Checkpoint(version, state["rows"], of_videos, state.get("video_rows", 0))


CommitEarly = Callable[[Checkpoint], Commit | None]
"""Returns what shows the rows up to a checkpoint; None for nothing."""


def checkpoint_saver(
    progress: TaskProgress, *, head: str | None, early: CommitEarly = lambda _checkpoint: None
) -> SaveCheckpoint:
    """Return a function that stores checkpoints for :func:`resume_checkpoint`, and shows the rows up to them."""
    return lambda checkpoint: progress.save({"head": head, **asdict(checkpoint)}, early(checkpoint))


def reading_share(content: Content) -> float:
    """Return the share of reading in a job's time, 0 to 1: large for images, small for vectors."""
    return 0.9 if isinstance(content, FilesInput) else 0.2


def with_source_folder(summary: Summary, content: Content, placement: SourcePlacement = FIRST_PLACEMENT) -> Summary:
    """Return a summary that names the folder of a content if the content is a whole folder or prefix of a bucket."""
    if not isinstance(content, FilesInput):
        return summary
    source = content.source
    is_whole = isinstance(source, FolderSource) or (
        isinstance(source, RemoteSource) and source.uri.rstrip("/") == source.root
    )
    path = placement.prefix.rstrip("/")
    if not is_whole or text_of_path(path)[1] is not None:  # a name that is no UTF-8 cannot be stored in JSON
        return summary
    chosen = (content.config or {}).get("class_folders")
    interpolate = any(each.interpolate for each in content.boxes)
    folder = SourceFolder(root=placement.root, path=path, class_folders=chosen, interpolate=interpolate)
    return summary.with_folder(folder)


def source_roots(content: Content) -> list[str]:
    """Return the source roots of a content; only uploads can have more than one."""
    return [content.source.root, *content.source.other_roots] if isinstance(content, FilesInput) else [content.root]


def read_content(
    content: Content,
    *,
    dataset_id: str,
    table: Path,
    settings: Settings,
    progress: TaskProgress,
    end: float,
    config: EmbeddingConfig,
    placement: SourcePlacement = FIRST_PLACEMENT,
    existing: IdIndex | None = None,
    existing_videos: IdIndex | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    head: str | None = None,
    of_videos: bool = True,
    of_copies: pa.Schema | None = None,
    early: CommitEarly = lambda _checkpoint: None,
) -> Ingested:
    """Append the rows of a content to the media table; its progress takes the job from 0 to *end*.

    Args:
        content: the media.
        dataset_id: the dataset.
        table: folder of its media table.
        settings: limits.
        progress: of the task.
        end: share of the task that is done after reading.
        config: embedding config of the dataset, with the sampling of video frames and the range of values.
        placement: source root and batch of the media.
        existing: media that the dataset has already.
        existing_videos: videos that the dataset has already.
        checkpoint: rows that an earlier run of the task wrote; see :func:`resume_checkpoint`.
        head: id of the generation that the task starts from.
        of_videos: whether the media table has, or will have, the columns about frames.
        of_copies: the columns of the media table for finding copies; None if it has none.
        early: shows the rows that were read so far.
    """
    save_checkpoint = checkpoint_saver(progress, head=head, early=early)
    if isinstance(content, FilesInput):
        return ingest(
            content.source,
            content.annotations,
            content.encoder,
            table=table,
            dataset_id=dataset_id,
            settings=settings,
            progress=progress.part("reading images", 0.0, end),
            placement=placement,
            existing=existing,
            existing_videos=existing_videos,
            checkpoint=checkpoint,
            save_checkpoint=save_checkpoint,
            sampling=Sampling(config.frames_per_second, config.scene_changes),
            display_range=config.display_range,
            of_videos=of_videos,
            of_copies=of_copies,
        )
    return ingest_vectors(
        content,
        table=table,
        dataset_id=dataset_id,
        progress=progress.part("reading vectors", 0.0, end),
        placement=placement,
        existing=existing,
        checkpoint=checkpoint,
        save_checkpoint=save_checkpoint,
        of_videos=of_videos,
    )


def new_copy_columns(content: Content) -> pa.Schema | None:
    """Return the columns for finding copies that a new media table gets; None without images."""
    if not isinstance(content, FilesInput):
        return None
    return copy_schema(DIMENSION, is_embedding=is_copy_descriptor(content.encoder.name))


def with_problems(
    summary: Summary, boxes: BoxIndex | None, *, unmatched: bool, content: Content | None = None
) -> Summary:
    """Return a generation's summary with the problems of annotations, and the count of boxes without an image.

    Args:
        summary: of the generation; it gets further reasons.
        boxes: the boxes that were read; None for none.
        unmatched: whether to count images that are named by annotations but missing.
        content: the content, for problems of its labels; None for none.
    """
    of_labels = content.annotations.problems if isinstance(content, FilesInput) else Problems()
    skipped = joined_problems(of_labels, _problems_of(boxes))
    if boxes is not None and unmatched:
        skipped.count("images with boxes that are not there", boxes.unmatched, boxes.unmatched_names())
    return with_skipped(summary, skipped)


def with_skipped(summary: Summary, skipped: Skipped) -> Summary:
    """Return a generation's summary with further inputs that were left out."""
    return summary.with_(skipped={**summary.skipped, **+skipped}, examples={**summary.examples, **skipped.examples})


def left_out_words(summary: Summary) -> list[str]:
    """Return what a summary counts as left out, in a line for the message of a task; an empty list for nothing."""
    counts = ", ".join(f"{count:,} {reason}" for reason, count in summary.skipped.items())
    return [f"left out: {counts}"] if counts else []


def layout_lines(content: Content, boxes: BoxIndex | None, facts: WrittenFacts) -> list[str]:
    """Return what was recognised of a source, and what was not, in a line each; names have odd bytes escaped."""
    recognised = content.lines(_problems_of(boxes)) if isinstance(content, FilesInput) else []
    return [escaped(line) for line in (*recognised, *facts.notes)]


def _problems_of(boxes: BoxIndex | None) -> Problems:
    return Problems() if boxes is None else boxes.problems


def written_facts(
    content: Content,
    table: Table,
    *,
    before: Mapping[str, int],
    summary: Summary,
    created_by: str,
    first: int = 0,
    placement: SourcePlacement | None = None,
) -> WrittenFacts:
    """Write the tags and custom fields of new media, as far as a content has them; see :func:`write_facts`."""
    if not isinstance(content, FilesInput) or not content.annotations.has_facts:
        return WrittenFacts(table.version)
    return write_facts(
        table,
        content.annotations.facts_of,
        before=before,
        summary=summary,
        created_by=created_by,
        first=first,
        placement=placement,
    )


def _count_pages(skipped: Skipped, table: Table, first: int) -> None:
    """Count the pages and frames of new images that are not read: all but the first of each file."""
    pages = table.scan([N_PAGES.name]).read_all().column(0)[first:].fill_null(1).to_numpy()
    several = np.flatnonzero(pages > 1)
    if len(several):
        shown = several[:EXAMPLES]
        paths = table.take_positions(shown + first, "path").to_pylist()
        examples = (f"{path} has {count:,}" for path, count in zip(paths, pages[shown].tolist(), strict=True))
        skipped.count(FURTHER_PAGES, int((pages[several] - 1).sum()), examples)


def skipped_inputs(content: Content, ingested: Ingested, table: Path, first: int = 0) -> Skipped:
    """Return what was left out of the files of a content, and what its annotations name in vain.

    Args:
        content: the content.
        ingested: the result of its ingestion.
        table: folder of the media table.
        first: the number of rows that the table had before.
    """
    skipped = Skipped()
    if isinstance(content, FilesInput):
        skipped = Skipped(content.source.skipped, content.source.skipped.examples)
        skipped.count("annotations without an image", ingested.unmatched, content.annotations.unmatched_names())
    skipped.count("media that are there already", ingested.present)
    skipped.count("files without their annotation, because several have their name", ingested.ambiguous)
    if ingested.rows:
        _count_pages(skipped, Table(table, ingested.version), first)
    return skipped
