"""Enrichment: models, what was applied, and the creation of an enriched copy."""

from typing import Annotated

from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.errors import InvalidInput, NotFound
from framedex.records import EnrichmentContext, EnrichmentModel
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.server_paths import without_folders

router = routes("enrichment")


class EnrichmentContextModel(EnrichmentContext):
    """The enrichment of a dataset; both ids are the same, as clients read either."""

    context_id: str


class EnrichmentProgress(BaseModel):
    """The state of the newest enrichment of a dataset, or the one that made it; NEW if there was none."""

    status: str
    progress: int


class EnrichmentRequest(BaseModel):
    """The ids of the models to apply, by type of enrichment."""

    enrichment_models: Annotated[dict[str, str], Field(min_length=1)]


class EnrichedDataset(BaseModel):
    """The id of the enriched copy, in both words of clients."""

    dataset_id: str
    id: str


@router.get("/enrichment/{dataset_id}/list_models")
@needs(Action.DATASET_VIEW)
def list_enrichment_models(dataset: OpenedDataset, dataset_id: str) -> list[EnrichmentModel]:
    """Return the registered models; the description of one that cannot be applied says why."""
    return [
        model.model_copy(update={"description": without_folders(model.description)}) for model in dataset.list_models()
    ]


@router.get("/enrichment/{dataset_id}/context")
@needs(Action.DATASET_VIEW)
def get_enrichment_context(dataset: OpenedDataset, dataset_id: str) -> EnrichmentContextModel:
    """Return the models that were applied to a dataset."""
    context = dataset.enrichment_context()
    return EnrichmentContextModel(**dict(context), context_id=context.enrichment_context_id)


@router.get("/enrichment/{dataset_id}/{enrichment_context_id}/status")
@needs(Action.DATASET_VIEW)
def get_enrichment_status(dataset: OpenedDataset, dataset_id: str, enrichment_context_id: str) -> EnrichmentProgress:
    """Return the progress of the newest enrichment of a dataset, in percent."""
    task = dataset.last_enrichment
    if task is None:
        return EnrichmentProgress(status="NEW", progress=0)
    return EnrichmentProgress(status=task.status, progress=task.progress_percentage or 0)


@router.post("/dataset/{dataset_id}/enrich_dataset")
@needs(Action.DATASET_ENRICH, heavy=True)
def enrich_dataset(
    service: Service, actor: CurrentActor, dataset: OpenedDataset, dataset_id: str, body: EnrichmentRequest
) -> EnrichedDataset:
    """Create a copy of a dataset with the results of models; its task runs on after the answer."""
    try:
        copy = service.hub.copies.enrich(actor, dataset.id, body.enrichment_models)
    except (NotFound, InvalidInput) as error:  # about a model: the dataset was found before
        raise Refusal(422, without_folders(str(error))) from None
    return EnrichedDataset(dataset_id=copy.id, id=copy.id)
