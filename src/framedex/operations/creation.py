"""Creation of a dataset: its embedding config, and the job with the config from which any process can retry it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from framedex.encoders import Encoder, choose_encoder, weights_of
from framedex.errors import Error
from framedex.jobs.context import JobContext
from framedex.jobs.create import create
from framedex.jobs.ingest.content import (
    PRECOMPUTED,
    Content,
    FilesInput,
    check_thresholds,
    open_content,
    source_to_store,
    store_images,
)
from framedex.jobs.ingest.vectors import THRESHOLDS
from framedex.media.display_range import checked_range
from framedex.media.frame_sampling import Sampling
from framedex.operations.context import Context
from framedex.operations.names import Operation
from framedex.operations.starting import delete_dataset
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.render.progress import progress_bar
from framedex.storage import datasets
from framedex.tasks import Job


@contextmanager
def opened_source(
    context: Context, name: str, source: Any, encoder: str | Encoder, class_folders: bool | None
) -> Iterator[tuple[Content, str | None]]:
    """Yield the content of a source for a new dataset, and the id of a draft that holds it; None for no draft.

    Images that the program holds, and those of an archive, are stored in a draft, which is deleted if the block raises.

    Raises:
        InvalidInput: the source or the encoder cannot be used.
    """
    settings = context.settings
    if (images := source_to_store(source, settings)) is None:
        yield open_content(source, encoder, settings, class_folders=class_folders), None
        return
    choose_encoder(encoder, settings)  # what cannot be indexed is not stored first
    with context.catalog.write() as connection:
        draft = datasets.insert_dataset(
            connection, name, owned_by=settings.user, namespace=context.namespace, status=DatasetStatus.DRAFT,
            creator_id=context.creator_id,
        )  # fmt: skip
    try:
        with progress_bar("Reading") as progress:
            content = store_images(
                images,
                draft,
                encoder,
                layout=context.layout,
                settings=settings,
                progress=lambda share: progress("images", share) if progress else None,
                class_folders=class_folders,
            )
        yield content, draft
    except BaseException:
        with suppress(Error):
            delete_dataset(context, draft)
        raise


def new_embedding_config(
    content: Content,
    thresholds: Sequence[float] | None,
    sampling: Sampling,
    display_range: Sequence[float] | None = None,
) -> EmbeddingConfig:
    """Return the embedding config of a new dataset.

    Args:
        content: the media.
        thresholds: five ascending cosine distances; None for those of the encoder.
        sampling: of frames of videos.
        display_range: the values that are shown black and white in images of more than 8 bits; None for those of each.

    Raises:
        InvalidInput: the thresholds or the range cannot be used.
    """
    if isinstance(content, FilesInput):
        encoder = content.encoder
        name, dimension, defaults, reason = encoder.name, encoder.dimension, encoder.thresholds, content.reason
        weights = weights_of(encoder)
    else:
        name, dimension, defaults, reason = PRECOMPUTED, content.dimension, THRESHOLDS, "the table brings embeddings"
        weights = None
    cuts = check_thresholds(defaults if thresholds is None else thresholds)
    return EmbeddingConfig(
        encoder=name,
        dimension=dimension,
        thresholds=cuts,
        reason=reason,
        weights=weights,
        frames_per_second=sampling.frames_per_second,
        scene_changes=sampling.scene_changes,
        display_range=checked_range(display_range),
        copy_descriptor="gist" if isinstance(content, FilesInput) else None,
    )


def creation_config(content: Content, embedding: EmbeddingConfig, *, force: bool = False) -> dict[str, Any] | None:
    """Return the config of a task that creates a dataset; None if only this process can run the task."""
    if content.config is None:
        return None
    return {
        "operation": Operation.CREATE,
        "content": content.config,
        "embedding_config": embedding.model_dump(mode="json"),
        "force": force,
    }


def creation_job(
    context: Context, dataset_id: str, content: Content, embedding: EmbeddingConfig, *, force: bool = False
) -> Job:
    """Return the job of a task that creates a dataset; with *force* it may take any time."""
    layout = context.layout
    thumbnails = layout.thumbnails(dataset_id)
    job = JobContext.for_new_dataset(dataset_id, embedding, layout.media(dataset_id), thumbnails, context.settings)
    return lambda progress: create(content, job.forced() if force else job, progress=progress)
