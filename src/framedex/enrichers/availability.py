"""Registered models and their availability on this machine."""

from pathlib import Path

from framedex.encoders import check_multimodal, check_onnx
from framedex.enrichers.captioner_files import check_packages, find_captioner
from framedex.enrichers.detectors import check_detector
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.vocabulary import read_lines, read_vocabulary
from framedex.errors import Error
from framedex.records import EnrichmentModel, ModelStatus
from framedex.settings import Settings


def describe_model(entry: ModelEntry, settings: Settings, *, unfit: str | None = None) -> EnrichmentModel:
    """Return a model as the interface shows it: Active, or Coming Soon with the missing part in the description.

    Args:
        entry: the model.
        settings: whether weights may be downloaded.
        unfit: the reason why the model does not fit the dataset; None if it fits.
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
    """Return the reason why a model cannot run on this machine; None if it can."""
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
