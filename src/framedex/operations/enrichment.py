"""Enrichment of a dataset: the registered models, the applied models, and the start of the task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framedex.core.ids import context_id
from framedex.encoders import TextEncoder, choose_encoder
from framedex.enrichers import (
    ModelEntry,
    describe_model,
    make_captioner,
    make_detector,
    make_tagger,
    models_without_files,
    read_models,
)
from framedex.errors import Conflict, InvalidInput, NotFound
from framedex.jobs.enrich.enrich import EnrichmentPlan, applied_to, encoded_by, enrich
from framedex.jobs.ingest.content import encoder_for_images
from framedex.jobs.ingest.image_pass import has_files
from framedex.operations.context import Context, open_media
from framedex.operations.names import Operation
from framedex.operations.starting import check_available, delete_if_stopped, insert_copy, load_job_context
from framedex.records import (
    AppliedModels,
    DatasetStatus,
    EnrichmentContext,
    EnrichmentModel,
    EnrichmentStatus,
    EnrichmentType,
    ModelStatus,
    TaskType,
)
from framedex.storage import datasets
from framedex.storage.leases import unleased
from framedex.storage.media import Media
from framedex.storage.objects import count_objects
from framedex.tasks import Commit, Job, Task, TaskProgress, start_task

_DETECT = EnrichmentType.OBJECT_DETECTION
_NO_FILES = "the media of this dataset are neither local files nor objects in a bucket"


def list_models(context: Context, dataset_id: str) -> list[EnrichmentModel]:
    """Return the registered models; see :meth:`framedex.Dataset.list_models`."""
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, dataset_id)
        head = datasets.head(connection, dataset_id)
    entries = _entries(context)
    if head is None:
        return [describe_model(entry, context.settings, unfit="the dataset is not indexed yet") for entry in entries]
    media = open_media(context, dataset_id)
    has_images = has_files(media)
    return [
        describe_model(each, context.settings, unfit=_unfit(each, media, has_images=has_images)) for each in entries
    ]


def _entries(context: Context) -> list[ModelEntry]:
    """Return the registered models, and models without files whose id is not registered."""
    registered = read_models(context.layout.models)
    taken = {entry.id for entry in registered}
    return [*registered, *(entry for entry in models_without_files() if entry.id not in taken)]


def _unfit(entry: ModelEntry, media: Media, *, has_images: bool) -> str | None:
    """Return the reason why a model cannot be applied to a dataset; None if it can."""
    config = media.generation.embedding_config
    needs_no_files = entry.vocabulary is not None and config is not None and config.encoder == entry.encoder
    return None if has_images or needs_no_files else _NO_FILES


def read_context(context: Context, dataset_id: str) -> EnrichmentContext:
    """Return the models that were applied to a dataset; see :meth:`framedex.Dataset.enrichment_context`."""
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, dataset_id)
        head = datasets.head(connection, dataset_id)
    models = {} if head is None else applied_to(head)
    return EnrichmentContext(
        enrichment_context_id=context_id(dataset_id, {str(kind): model_id for kind, model_id in models.items()}),
        status=EnrichmentStatus.ENRICHED if models else EnrichmentStatus.NEW,
        dataset_enrichment_models=AppliedModels(enrichment_models=models),
    )


def start_enrichment(context: Context, dataset_id: str, models: Any) -> tuple[str, Task]:
    """Start the creation of an enriched dataset; return its id and the task. See :meth:`framedex.Dataset.enrich`."""
    requested = _parse_models(models)
    context.runner.settle()
    with context.catalog.write() as connection:  # before loading the models, which can take long
        check_available(connection, dataset_id, Operation.ENRICH, (DatasetStatus.READY,))
    plan = _plan(context, dataset_id, requested)
    with unleased(context.catalog, dataset_id, Operation.ENRICH) as connection:
        source = check_available(connection, dataset_id, Operation.ENRICH, (DatasetStatus.READY,))
        new_id, user = insert_copy(connection, context, source, "enriched"), context.settings.user
        config = {"operation": Operation.ENRICH, "source": dataset_id, "enrichment_models": requested}
        record = datasets.find_dataset(connection, new_id)
        task_id = context.runner.insert(connection, record, TaskType.ENRICHMENT, config, created_by=user)
        datasets.update_dataset(connection, dataset_id, status=DatasetStatus.READ_ONLY)
    with delete_if_stopped(context, new_id, task_id):
        return new_id, start_task(context.runner, task_id, new_id, _job(context, new_id, dataset_id, plan))


def enrichment_job(context: Context, new_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job of an enrichment, for a retry.

    Raises:
        NotFound: the source dataset, or a model, does not exist any more.
        InvalidInput: a model cannot be applied any more.
    """
    source = config["source"]
    with context.catalog.read() as connection:
        datasets.find_dataset(connection, source)
    requested = {EnrichmentType(kind): model_id for kind, model_id in config["enrichment_models"].items()}
    return _job(context, new_id, source, _plan(context, source, requested))


def _job(context: Context, new_id: str, source: str, plan: EnrichmentPlan) -> Job:
    def run(progress: TaskProgress) -> Commit:
        # Read the head now: a retried task uses the dataset's current state.
        job, media = load_job_context(context, source), open_media(context, source)
        return enrich(job, media, plan, layout=context.layout, dataset_id=new_id, progress=progress)

    return run


def _parse_models(models: Any) -> dict[EnrichmentType, str]:
    """Return the requested models by type.

    Raises:
        InvalidInput: the argument is not a mapping of types to model ids, or is empty.
    """
    known = ", ".join(EnrichmentType)
    if not isinstance(models, Mapping) or not models:
        raise InvalidInput(f"enrichment takes ids of models by type, one at least; types are {known}; not {models!r}")
    for kind, model_id in models.items():
        if kind not in list(EnrichmentType):
            raise InvalidInput(f"no type of enrichment {kind!r}; there are: {known}")
        if not isinstance(model_id, str):
            raise InvalidInput(f"the model of {kind} is given by its id, a text, not {model_id!r}")
    return {EnrichmentType(kind): model_id for kind, model_id in models.items()}


def _plan(context: Context, dataset_id: str, requested: Mapping[EnrichmentType, str]) -> EnrichmentPlan:
    """Load the requested models and return the plan.

    Raises:
        NotFound: there is no such model.
        InvalidInput: a model has another type, is not Active, or cannot be loaded.
        Conflict: a model depends on a type that was not applied.
    """
    entries = _entries(context)
    models_by_id = {model.id: model for model in list_models(context, dataset_id)}
    for kind, model_id in requested.items():
        _check_applicable(models_by_id, kind, model_id)
    _check_dependencies(context, dataset_id, [models_by_id[each] for each in requested.values()])
    entry_of_type = {entry.type: entry for entry in entries if requested.get(entry.type) == entry.id}
    plan = EnrichmentPlan(dict(requested))
    if (entry := entry_of_type.get(EnrichmentType.MULTIMODEL_IMAGE_ENCODING)) is not None:
        assert entry.encoder is not None, "a model of encodings has an encoder"
        encoder, _ = choose_encoder(entry.encoder, context.settings)
        if not isinstance(encoder, TextEncoder):
            raise InvalidInput(f"the encoder {encoder.name!r} of the model {entry.id!r} knows images only")
        plan = EnrichmentPlan(plan.models, encoder, encoded_by(encoder, entry.id))
    if (entry := entry_of_type.get(EnrichmentType.IMAGE_TAGGING)) is not None:
        plan = EnrichmentPlan(plan.models, plan.encoder, plan.config, make_tagger(entry, context.settings))
    if (entry := entry_of_type.get(EnrichmentType.CAPTION_IMAGES)) is not None:
        plan = replace(plan, captioner=make_captioner(entry), replace_captions=entry.replace)
    return _with_objects(context, dataset_id, plan, entry_of_type)


def _with_objects(
    context: Context, dataset_id: str, plan: EnrichmentPlan, entry_of_type: Mapping[EnrichmentType, ModelEntry]
) -> EnrichmentPlan:
    """Return a plan with the models for objects.

    Raises:
        InvalidInput: found objects cannot be encoded, because the dataset has precomputed embeddings.
        Conflict: objects are to be captioned, and the dataset has none.
    """
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    assert head is not None, "the dataset is READY"
    if (entry := entry_of_type.get(EnrichmentType.OBJECT_DETECTION)) is not None:
        encoder = plan.encoder
        if encoder is None:
            assert head.embedding_config is not None, "an indexed dataset has one"
            encoder = encoder_for_images(head.embedding_config, context.settings)
        plan = replace(plan, detector=make_detector(entry), object_encoder=encoder)
    if (entry := entry_of_type.get(EnrichmentType.CAPTION_OBJECTS)) is not None:
        if plan.detector is None and not count_objects(head):
            raise Conflict(
                f"the model {entry.id!r} captions objects; there are none: {_DETECT} has to be applied first"
            )
        plan = replace(plan, object_captioner=make_captioner(entry))
    return plan


def _check_applicable(models_by_id: Mapping[str, EnrichmentModel], kind: EnrichmentType, model_id: str) -> None:
    if (model := models_by_id.get(model_id)) is None:
        known = ", ".join(map(repr, models_by_id)) or "none"
        raise NotFound(f"no model {model_id!r}; there are: {known}; models.toml in the workspace's folder lists them")
    if model.type is not kind:
        raise InvalidInput(f"the model {model_id!r} is of the type {model.type}, not {kind}")
    if model.status is not ModelStatus.ACTIVE:
        raise InvalidInput(f"the model {model_id!r} is {model.status}: {model.description}")


def _check_dependencies(context: Context, dataset_id: str, models: Sequence[EnrichmentModel]) -> None:
    applied = {*read_context(context, dataset_id).dataset_enrichment_models.enrichment_models}
    applied |= {model.type for model in models}
    for model in models:
        if missing := [kind for kind in model.dependencies or () if kind not in applied]:
            raise Conflict(f"the model {model.id!r} needs {' and '.join(missing)} to be applied first")
