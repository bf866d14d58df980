"""Records of enrichments: models, and the models that were applied to a dataset."""

from enum import StrEnum

from pydantic import Field

from framedex.records.base import Record


class EnrichmentType(StrEnum):
    """Kind of information that a model adds to the media of a dataset."""

    MULTIMODEL_IMAGE_ENCODING = "MULTIMODEL_IMAGE_ENCODING"
    IMAGE_TAGGING = "IMAGE_TAGGING"
    OBJECT_DETECTION = "OBJECT_DETECTION"
    CAPTION_OBJECTS = "CAPTION_OBJECTS"
    CAPTION_IMAGES = "CAPTION_IMAGES"


class ModelStatus(StrEnum):
    """Availability of a model."""

    ACTIVE = "Active"
    COMING_SOON = "Coming Soon"


class EnrichmentModel(Record):
    """A model that can enrich a dataset, as the interface returns it.

    ``dependencies`` are the types of enrichment that must be applied before; None if there are no such types.
    """

    id: str
    name: str
    type: EnrichmentType
    status: ModelStatus
    vendor: str
    description: str
    dependencies: list[EnrichmentType] | None


class EnrichmentStatus(StrEnum):
    """Enrichment state of a dataset."""

    NEW = "NEW"
    ENRICHED = "ENRICHED"


class AppliedModels(Record):
    """The ids of the models that were applied to a dataset, by type of enrichment."""

    enrichment_models: dict[EnrichmentType, str] = Field(default_factory=dict)


class EnrichmentContext(Record):
    """The enrichment of a dataset, as the interface returns it.

    The id stands for the dataset with these models: it changes if and only if the models change.
    """

    enrichment_context_id: str
    status: EnrichmentStatus
    dataset_enrichment_models: AppliedModels
