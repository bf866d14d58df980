"""Records of enrichments, as the interface has them: models, and what was applied to a dataset."""

from enum import StrEnum

from pydantic import Field

from framedex.records import Record


class EnrichmentType(StrEnum):
    """What a model adds to the media of a dataset."""

    MULTIMODEL_IMAGE_ENCODING = "MULTIMODEL_IMAGE_ENCODING"
    IMAGE_TAGGING = "IMAGE_TAGGING"
    OBJECT_DETECTION = "OBJECT_DETECTION"
    CAPTION_OBJECTS = "CAPTION_OBJECTS"
    CAPTION_IMAGES = "CAPTION_IMAGES"


class ModelStatus(StrEnum):
    """Whether a model can be applied."""

    ACTIVE = "Active"
    COMING_SOON = "Coming Soon"


class EnrichmentModel(Record):
    """A model that a dataset can be enriched by, as the interface returns it.

    ``dependencies`` are types of enrichment that must be applied before; None for none.
    """

    id: str
    name: str
    type: EnrichmentType
    status: ModelStatus
    vendor: str
    description: str
    dependencies: list[EnrichmentType] | None


class EnrichmentStatus(StrEnum):
    """Whether a dataset was enriched."""

    NEW = "NEW"
    ENRICHED = "ENRICHED"


class AppliedModels(Record):
    """The ids of the models that were applied to a dataset, by type of enrichment."""

    enrichment_models: dict[EnrichmentType, str] = Field(default_factory=dict)


class EnrichmentContext(Record):
    """What a dataset was enriched by, as the interface returns it.

    The id is that of the dataset with these models: it changes with them, and not else.
    """

    enrichment_context_id: str
    status: EnrichmentStatus
    dataset_enrichment_models: AppliedModels
