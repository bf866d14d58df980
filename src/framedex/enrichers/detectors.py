"""Detectors by name: a row for each scheme of names. Further rows come from other packages, by entry points."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from framedex.annotations.class_names import read_class_names
from framedex.encoders import check_onnx
from framedex.encoders.onnx_settings import SCHEME as ONNX
from framedex.encoders.onnx_settings import model_path, parse_name
from framedex.enrichers.detector import Detector
from framedex.enrichers.face_cascade import FaceCascade
from framedex.enrichers.models_file import ModelEntry
from framedex.enrichers.onnx_detector import OnnxDetector
from framedex.enrichment_records import EnrichmentType
from framedex.errors import InvalidInput
from framedex.plugins import Contributions


def _unchecked(_entry: ModelEntry) -> None:
    pass


@dataclass(frozen=True)
class DetectorScheme:
    """The detectors whose names begin with one word: ``<scheme>`` or ``<scheme>:…``.

    Attributes:
        name: the word.
        make: returns the loaded detector of a registered model, whose ``detector`` is the whole name.
        check: raises what *make* would, as far as packages and files show it; loads no model.
        model: the entry of a detector that needs no file, which every workspace lists; None for others.

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


_FACES = ModelEntry(
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
        DetectorScheme(FaceCascade.name, lambda _entry: FaceCascade(), model=_FACES),
        DetectorScheme(ONNX, _make_onnx, check=_check_onnx),
    )
}
DETECTOR_PLUGINS = Contributions("framedex.detectors", DetectorScheme, taken=lambda: _BUILT_IN)
"""Schemes of other packages."""


def models_without_files() -> list[ModelEntry]:
    """Return the entries of the detectors that need no file, those that are built in first."""
    schemes = (*_BUILT_IN.values(), *DETECTOR_PLUGINS.rows().values())
    return [scheme.model for scheme in schemes if scheme.model is not None]


def make_detector(entry: ModelEntry) -> Detector:
    """Return a loaded detector.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: its file is not there.
        InvalidInput: its name, its file or a setting cannot be, or its package makes no detector.
    """
    made = _scheme_of(entry).make(entry)
    if not isinstance(made, Detector):
        raise InvalidInput(f"{made!r}, made for {entry.detector!r}, is no detector: it lacks labels or detect()")
    return made


def check_detector(entry: ModelEntry) -> None:
    """Check that a detector can be made here, as far as packages and files say it; raises as :func:`make_detector`."""
    _scheme_of(entry).check(entry)


def _scheme_of(entry: ModelEntry) -> DetectorScheme:
    assert entry.detector is not None, "a model of detections has a detector"
    word = entry.detector.partition(":")[0]
    scheme = _BUILT_IN.get(word) or DETECTOR_PLUGINS.rows().get(word)
    if scheme is None or (":" not in entry.detector and word == ONNX):
        others = ", ".join(sorted((_BUILT_IN.keys() | DETECTOR_PLUGINS.rows().keys()) - {ONNX}))
        raise InvalidInput(f"a detector is {ONNX}:<path of the model>, or {others}; not {entry.detector!r}")
    return scheme
