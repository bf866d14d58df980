"""Registered models, with whether they can run on this machine."""

from pathlib import Path

from framedex.encoders import check_multimodal, check_onnx
from framedex.enrichers.captioner_files import check_packages, find_captioner
from framedex.enrichers.detectors import check_detector
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.vocabulary import read_lines, read_vocabulary
from framedex.enrichment_records import EnrichmentModel, ModelStatus
from framedex.errors import Error
from framedex.settings import Settings


def describe(entry: ModelEntry, settings: Settings, *, unfit: str | None = None) -> EnrichmentModel:
    """Return a model as the interface shows it: Active, or Coming Soon with what is missing in the description.

    Args:
        entry: the model.
        settings: whether weights may be fetched.
        unfit: why it does not fit the dataset; None if it does.
    """
    missing = _missing(entry, settings) or unfit
    return EnrichmentModel(
        id=entry.id,
        name=entry.name,
        type=entry.type,
        status=ModelStatus.ACTIVE if missing is None else ModelStatus.COMING_SOON,
        vendor=entry.vendor,
        description=" - ".join(filter(None, [entry.description, missing and f"not available: {missing}"])),
        dependencies=entry.dependencies,
    )


def _missing(entry: ModelEntry, settings: Settings) -> str | None:
    """Return what keeps a model from running on this machine; None for nothing."""
    try:
        if entry.encoder is not None:
            check_multimodal(entry.encoder, settings)
        if entry.classifier is not None:
            check_onnx(entry.classifier)
        if entry.vocabulary is not None:
            read_vocabulary(Path(entry.vocabulary))
        if entry.detector is not None:
            check_detector(entry)
        if entry.captioner is not None:
            check_packages()
            find_captioner(Path(entry.captioner))
        if entry.labels is not None:
            read_lines(Path(entry.labels))
    except Error as error:
        return str(error)
    return None
