"""Detectors by what ``models.toml`` says of them, and the one that is built in."""

from pathlib import Path

from framedex.encoders import check_classifier
from framedex.encoders.onnx_settings import SCHEME, model_path, parse_name
from framedex.enrichers.detector import Detector
from framedex.enrichers.face_cascade import FaceCascade, check_scikit_image
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.onnx_detector import OnnxDetector
from framedex.enrichment_records import EnrichmentType
from framedex.errors import InvalidInput
from framedex.media.class_names import read_class_names

FACES = ModelEntry(
    id=FaceCascade.name,
    type=EnrichmentType.OBJECT_DETECTION,
    name="Faces",
    vendor="scikit-image",
    description="finds faces that look into the camera; quick and coarse",
    detector=FaceCascade.name,
)
"""The detector that needs no file."""


def make_detector(entry: ModelEntry) -> Detector:
    """Return a loaded detector.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: its file is not there.
        InvalidInput: its name, its file or a setting cannot be.
    """
    assert entry.detector is not None, "a model of detections has a detector"
    if entry.detector == FACES.detector:
        return FaceCascade()
    path = model_path(_path(entry.detector))
    return OnnxDetector(path, names=entry.names, form=entry.form, size=entry.size, score=entry.score, iou=entry.iou)


def check_detector(entry: ModelEntry) -> None:
    """Check that a detector can be made here, as far as packages and files say it; raises as :func:`make_detector`."""
    assert entry.detector is not None, "a model of detections has a detector"
    if entry.detector == FACES.detector:
        check_scikit_image()
        return
    _path(entry.detector)
    check_classifier(entry.detector)
    if entry.names is not None and not read_class_names(Path(entry.names)):
        raise InvalidInput(f"{entry.names!r} has no names of classes")


def _path(name: str) -> str:
    if not name.startswith(f"{SCHEME}:"):
        raise InvalidInput(f"a detector is {SCHEME}:<path of the model>, or {FACES.detector}; not {name!r}")
    path, _ = parse_name(name)
    if "?" in name:
        raise InvalidInput(f"settings of a detector are keys of their own, as score = 0.5; not a part of {name!r}")
    return path
