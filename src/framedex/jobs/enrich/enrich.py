"""The job that creates an enriched copy of a dataset: shared files, and new columns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.progress import Progress
from framedex.editable_values import find_editable_value
from framedex.encoders import Encoder, weights_of
from framedex.enrichers import Captioner, Detector, Tagger, Tags
from framedex.enrichers.tagging import Codes, ZeroShot
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.labels import judge_labels
from framedex.jobs.edits.rows import read_batches
from framedex.jobs.enrich.columns import write_embeddings, write_model_captions
from framedex.jobs.enrich.objects import ObjectRun
from framedex.jobs.index.columns import label_limits
from framedex.jobs.index.finish import finish
from framedex.jobs.index.index import index
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.standings import Comparison
from framedex.jobs.ingest.image_pass import run_model
from framedex.jobs.ingest.ingest import batch_of
from framedex.jobs.objects.objects import ObjectChange
from framedex.jobs.restore import link_generation
from framedex.records import EmbeddingConfig, EnrichmentType
from framedex.storage import tables
from framedex.storage.classes import write_classes
from framedex.storage.copy_pairs import keep_descriptors, read_pairs
from framedex.storage.generation import Generation, Summary
from framedex.storage.layout import Layout
from framedex.storage.media import Media
from framedex.storage.media_rows import index_columns_of
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table, flat
from framedex.tasks import Commit, TaskProgress

_LABELS = find_editable_value("labels").field


@dataclass(frozen=True)
class EnrichmentPlan:
    """Models to apply to a dataset.

    Attributes:
        models: ids of the requested models, by type.
        encoder: computes new embeddings; None to keep the old ones.
        config: embedding config for these; None to keep the old one.
        tagger: adds labels; None for none.
        captioner: writes captions; None for none.
        replace_captions: whether to replace captions written by people.
        detector: finds objects; None for none.
        object_encoder: computes the embeddings of found objects: the encoder of the new dataset.
        object_captioner: writes captions of objects; None for none.
    """

    models: Mapping[EnrichmentType, str]
    encoder: Encoder | None = None
    config: EmbeddingConfig | None = None
    tagger: Tagger | None = None
    captioner: Captioner | None = None
    replace_captions: bool = False
    detector: Detector | None = None
    object_encoder: Encoder | None = None
    object_captioner: Captioner | None = None

    @property
    def stages(self) -> list[str]:
        """The stages of the enrichment, in order."""
        stages = {
            "encoding images": self.encoder,
            "tagging images": self.tagger,
            "captioning images": self.captioner,
            "encoding objects": self.encoder,
            "finding objects": self.detector,
            "captioning objects": self.object_captioner,
        }
        return [stage for stage, model in stages.items() if model is not None]


def encoded_by(encoder: Encoder, model_id: str) -> EmbeddingConfig:
    """Return the embedding config of a dataset that a model has encoded."""
    return EmbeddingConfig(
        encoder=encoder.name,
        dimension=encoder.dimension,
        thresholds=encoder.thresholds,
        reason=f"enriched by the model {model_id!r}",
        weights=weights_of(encoder),
    )


def enrich(
    source: JobContext, media: Media, plan: EnrichmentPlan, *, layout: Layout, dataset_id: str, progress: TaskProgress
) -> Commit:
    """Write the tables of an enriched dataset and return the commit.

    The source is not changed. Its files are shared, and new columns are files of the new dataset.

    Args:
        source: the dataset that is enriched.
        media: its media, in the same state.
        plan: the models.
        layout: of the workspace.
        dataset_id: the new dataset.
        progress: of the task.
    """
    link_generation(source.head, layout=layout, dataset_id=dataset_id, progress=progress.stages(0.0, 0.02))
    config = source.config
    if plan.config is not None:
        config = plan.config.model_copy(update={"copy_descriptor": source.config.copy_descriptor})
    inherited = source.head.summary.with_(namespace=source.namespace)
    head = source.head.model_copy(update={"summary": inherited})
    job = replace(source, dataset_id=dataset_id, head=head, config=config, table=layout.media(dataset_id))
    run = _Run(job, media, plan, progress)
    summary = inherited.with_(enrichment_models={**applied_to(source.head), **plan.models})
    version = tables.roll_back(job.table, source.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    written, summary = run.media_columns(version, summary)
    if plan.captioner is not None:
        summary = summary.with_(captioned_by=plan.captioner.weights)
    if plan.object_captioner is not None:
        summary = summary.with_(objects_captioned_by=plan.object_captioner.weights)
    user = job.settings.user if job.settings.dataset_snapshots_enabled else None
    last = (1 + run.end) / 2 if plan.encoder is not None else 1.0
    objects = run.objects(progress.stages(run.end, last))
    if plan.encoder is None:
        versions = {**source.head.tables, **written}
        if objects is not None:
            versions, summary = objects.apply(versions, summary)
        tables.sync(layout.dataset(dataset_id))
        versions = write_classes(job.table, source.head.tables, versions)
        return generation_commit(
            dataset_id,
            tables=versions,
            n_images=source.head.n_images,
            config=config,
            summary=summary,
            roots=job.roots,
            snapshot_by=user,
        )
    table = Table(job.table, written[MEDIA])
    copies = read_pairs(table, source.head.tables)
    indexed = index(
        table,
        config.thresholds,
        progress=progress.stages(last, 1.0),
        cannot_link=source.cannot_link,
        limits=source.limits,
        resources=IndexResources.of(job),
        label_decisions=source.label_decisions,
        copies=copies,
        comparison=None if copies is None else Comparison(job),
    )
    tables.sync(layout.dataset(dataset_id))
    others = job.kept
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        config,
        dataset_id=dataset_id,
        table=job.table,
        rows=source.head.n_images,
        summary=summary,
        before=source.head.tables,
        others=others,
        roots=job.roots,
        kept_by=user,
    )


def applied_to(head: Generation) -> dict[EnrichmentType, str]:
    """Return the ids of the models that were applied to a generation, by type."""
    return {EnrichmentType(kind): model_id for kind, model_id in head.summary.enrichment_models.items()}


@dataclass
class _Run:
    """Application of models to the media of a new dataset.

    Attributes:
        job: the new dataset; its head is that of the source.
        media: the media of the source.
        plan: the models.
        progress: of the task.
        end: share of the task that is done after the models.
    """

    job: JobContext
    media: Media
    plan: EnrichmentPlan
    progress: TaskProgress
    end: float = 0.85

    def media_columns(self, version: int, summary: Summary) -> tuple[dict[str, int], Summary]:
        """Write the models' output as columns of the media table; return the tables' versions and the changed summary.

        Args:
            version: newest version of the media table.
            summary: summary of the new generation.
        """
        plan, path = self.plan, self.job.table
        if plan.encoder is not None:
            table = Table(path, version)
            table = Table(path, tables.drop_columns(table, index_columns_of(table.schema.names)))
            progress = self._part("encoding images")
            table = keep_descriptors(table, self.job.head.tables)
            version = write_embeddings(table, self.media, plan.encoder, self.job.settings, progress)
        if plan.tagger is not None:
            version = self.tag(plan.tagger, Table(path, version))
        if plan.captioner is not None:
            progress = self._part("captioning images")
            replaces = plan.replace_captions
            table = Table(path, version)
            version = write_model_captions(
                table, self.media, plan.captioner, self.job.settings, progress, replaces=replaces
            )
        if plan.encoder is None and plan.tagger is not None:  # with new embeddings the index includes it
            judged = judge_labels(Table(path, version), label_limits(self.job.limits), self.job.label_decisions)
            return judged.versions, summary.with_(label_agreement=judged.agreement)
        return {MEDIA: version}, summary

    def objects(self, progress: Progress) -> ObjectChange | None:
        """Write objects and the models' output for them; return the change, None if nothing was written."""
        plan, run = self.plan, ObjectRun(self.job, self.media)
        if plan.encoder is not None:
            run.encode(plan.encoder, self._part("encoding objects"))
        if plan.detector is not None:
            assert plan.object_encoder is not None, "a plan with a detector has one"
            model_id = plan.models[EnrichmentType.OBJECT_DETECTION]
            run.detect(plan.detector, model_id, plan.object_encoder, self._part("finding objects"))
        if plan.object_captioner is not None:
            run.caption(plan.object_captioner, self._part("captioning objects"))
        return run.finish_objects(progress)

    def tag(self, tagger: Tagger, table: Table) -> int:
        """Append tags to the labels of images; return the table's new version."""
        progress = self._part("tagging images")
        if isinstance(tagger, ZeroShot) and self._is_encoded_by(tagger.encoder):
            codes = _codes_from_vectors(tagger, table, progress)
        else:
            codes = self._codes_from_images(tagger, table.count(), progress)
        return put_tags(table, tagger.tags, codes)

    def _is_encoded_by(self, encoder: Encoder) -> bool:
        """Return whether the dataset's embeddings are from an encoder with the same weights."""
        config = self.job.config
        return (config.encoder, config.weights) == (encoder.name, weights_of(encoder))

    def _codes_from_images(self, tagger: Tagger, rows: int, progress: Callable[[float], None]) -> Codes:
        codes = np.full((rows, min(tagger.tags.top_k, len(tagger.tags.names))), -1, np.int32)
        batch = batch_of(tagger.encoder) if isinstance(tagger, ZeroShot) else 32
        done = 0
        for group in run_model(
            self.media,
            tagger,
            lambda batch: tagger.tags.select(tagger.probabilities(batch)),
            batch=batch,
            settings=self.job.settings,
            progress=progress,
        ):
            for position, each in enumerate(group, start=done):
                if each.output is not None:
                    codes[position] = each.output
            done += len(group)
        return codes

    def _part(self, stage: str) -> Callable[[float], None]:
        """Return the progress of a stage; all stages take equal parts of the task."""
        stages = self.plan.stages
        start, length, turn = 0.02, (self.end - 0.02) / len(stages), stages.index(stage)
        return self.progress.part(stage, start + turn * length, start + (turn + 1) * length)


def _codes_from_vectors(tagger: ZeroShot, table: Table, progress: Callable[[float], None]) -> Codes:
    """Return the tags of all rows by their embeddings; rows without an embedding have none."""
    codes = np.full((table.count(), min(tagger.tags.top_k, len(tagger.tags.names))), -1, np.int32)
    dimension, start = tagger.encoder.dimension, 0
    for batch in table.vector_batches("embedding", 0):
        column = batch.column(0)
        has_vector: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
        positions = start + np.flatnonzero(has_vector)
        codes[positions] = tagger.tags.select(tagger.of_vectors(flat(column, dimension)[has_vector]))
        start += len(column)
        progress(start / len(codes))
    return codes


def put_tags(table: Table, tags: Tags, codes: Codes) -> int:
    """Append tags to the labels of media; return the table's new version.

    Args:
        table: the media table, at its newest version.
        tags: all tags.
        codes: int32, shape (rows, K): numbers of each row's tags, -1 for none.
    """
    schema = pa.schema([_LABELS])

    def batches() -> Iterator[pa.RecordBatch]:
        for start, batch_of_labels in read_batches(table, schema):
            labels = batch_of_labels.column(0).to_pylist()
            added = codes[start : start + len(labels)].tolist()
            rows = [
                list(dict.fromkeys([*(old or ()), *(tags.names[code] for code in new if code >= 0)])) or None
                for old, new in zip(labels, added, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([pa.array(rows, _LABELS.type)], schema=schema)

    return tables.put_columns(table, batches(), schema)
