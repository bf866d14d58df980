"""Registry of detectors: one row for each scheme of names. Plugins add rows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from framedex.annotations.class_names import read_class_names
from framedex.encoders import check_onnx
from framedex.encoders.onnx_settings import SCHEME as ONNX
from framedex.encoders.onnx_settings import model_path, parse_name
from framedex.enrichers.detector import Detector
from framedex.enrichers.face_cascade import FaceCascade, check_scikit_image
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.onnx_detector import OnnxDetector
from framedex.errors import InvalidInput
from framedex.plugins import Contributions
from framedex.records import EnrichmentType


def _unchecked(_entry: ModelEntry) -> None:
    pass


@dataclass(frozen=True)
class DetectorScheme:
    """The detectors whose names begin with one word: ``<scheme>`` or ``<scheme>:…``.

    Attributes:
        name: the word.
        make: returns the loaded detector of a registered model, whose ``detector`` is the full name.
        check: raises the errors of *make* that packages and files show, without loading a model.
        model: the entry of a detector without files, which every workspace lists; None for others.

    Raises:
        InvalidInput: the word cannot be a scheme, or the model is not one of its detectors.
    """

    name: str
    make: Callable[[ModelEntry], Detector]
    check: Callable[[ModelEntry], None] = _unchecked
    model: ModelEntry | None = None

    def __post_init__(self) -> None:
        """Check the word and the model."""
        if not isinstance(self.name, str) or not self.name or ":" in self.name:
            raise InvalidInput(f"{self.name!r} cannot name a detector: it must be a word without ':'")
        if self.model is not None and (self.model.detector or "").partition(":")[0] != self.name:
            raise InvalidInput(f"the model {self.model.id!r} must have a detector {self.name!r}")


def _make_onnx(entry: ModelEntry) -> Detector:
    path = model_path(_onnx_path(entry))
    return OnnxDetector(path, names=entry.names, form=entry.form, size=entry.size, score=entry.score, iou=entry.iou)


def _check_onnx(entry: ModelEntry) -> None:
    _onnx_path(entry)
    assert entry.detector is not None, "a model of detections has a detector"
    check_onnx(entry.detector)
    if entry.names is not None and not read_class_names(Path(entry.names)):
        raise InvalidInput(f"{entry.names!r} has no names of classes")


def _onnx_path(entry: ModelEntry) -> str:
    assert entry.detector is not None, "a model of detections has a detector"
    path, _ = parse_name(entry.detector)
    if "?" in entry.detector:
        raise InvalidInput(
            f"settings of a detector are keys of their own, as score = 0.5; not a part of {entry.detector!r}"
        )
    return path


FACES = ModelEntry(
    id=FaceCascade.name,
    type=EnrichmentType.OBJECT_DETECTION,
    name="Faces",
    vendor="scikit-image",
    description="finds faces that look into the camera; quick and coarse",
    detector=FaceCascade.name,
)
_BUILT_IN = {
    scheme.name: scheme
    for scheme in (
        DetectorScheme(
            FaceCascade.name, lambda _entry: FaceCascade(), check=lambda _entry: check_scikit_image(), model=FACES
        ),
        DetectorScheme(ONNX, _make_onnx, check=_check_onnx),
    )
}
DETECTOR_PLUGINS = Contributions("framedex.detectors", DetectorScheme, taken=lambda: _BUILT_IN)
"""Schemes of plugins."""


def models_without_files() -> list[ModelEntry]:
    """Return the entries of the detectors without files, built-in ones first."""
    schemes = (*_BUILT_IN.values(), *DETECTOR_PLUGINS.rows().values())
    return [scheme.model for scheme in schemes if scheme.model is not None]


def make_detector(entry: ModelEntry) -> Detector:
    """Return a loaded detector.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: its file does not exist.
        InvalidInput: its name, its file or a setting is invalid, or its plugin returns no detector.
    """
    detector = _scheme_of(entry).make(entry)
    if not isinstance(detector, Detector):
        raise InvalidInput(f"{detector!r}, made for {entry.detector!r}, is no detector: it lacks labels or detect()")
    return detector


def check_detector(entry: ModelEntry) -> None:
    """Check a detector's packages and files without loading it; raise the errors of :func:`make_detector`."""
    _scheme_of(entry).check(entry)


def _scheme_of(entry: ModelEntry) -> DetectorScheme:
    assert entry.detector is not None, "a model of detections has a detector"
    word = entry.detector.partition(":")[0]
    scheme = _BUILT_IN.get(word) or DETECTOR_PLUGINS.rows().get(word)
    if scheme is None or (":" not in entry.detector and word == ONNX):
        others = ", ".join(sorted((_BUILT_IN.keys() | DETECTOR_PLUGINS.rows().keys()) - {ONNX}))
        raise InvalidInput(f"a detector is {ONNX}:<path of the model>, or {others}; not {entry.detector!r}")
    return scheme
