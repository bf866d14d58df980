"""ONNX models of the YOLO family as detectors, run by ONNX Runtime."""

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.class_names import read_class_names
from framedex.core.arrays import Pixels
from framedex.core.counts import counted
from framedex.core.regular_files import has_file
from framedex.enrichers.detector import Detections, Floats
from framedex.enrichers.detector_settings import DetectorSettings, parse_detector_settings, read_detector_sidecar
from framedex.enrichers.letterbox import Letterbox
from framedex.enrichers.onnx_session import OnnxSession
from framedex.enrichers.suppression import non_maximum_suppression
from framedex.enrichers.yolo_heads import STRIDES, Form, candidates, count_classes, expected_shapes, recognise_form
from framedex.errors import InvalidInput
from framedex.settings import user_path

_SCORE, _IOU = 0.25, 0.45
_MAX_DETECTIONS = 300  # detections in an image
_ROUNDED = 1e-3  # tolerance for 16-bit probabilities outside of 0 to 1


class OnnxDetector:
    """A detector of the form YOLOX, YOLOv5 or YOLOv8, recognised by its output's shape; see ``yolo_heads``.

    A setting that is not passed comes from the file beside the model (``model.toml`` beside ``model.onnx``), else from
    the model, else it has its default. The model gets the whole image with grey bars: for YOLOX in BGR, 0 to 255 and in
    the upper left corner; for the others in RGB, 0 to 1 (0 to 255 if the input has integers) and centred.

    Args:
        path: of the model file.
        names: class names, or a file with one name a line, or a ``.yaml`` file with ``names``. By default the file
            beside the model with its name and the suffix ``.names``, else the model's metadata.
        form: ``yolox``, ``yolov5`` or ``yolov8``.
        size: height and width of the input in pixels, or one number for both. It is required only if the model accepts
            any size.
        score: the minimum confidence of a detection, in (0, 1]; 0.25 by default.
        iou: the maximum intersection over union of two boxes of a class, in [0, 1]; 0.45 by default.

    Attributes:
        name: ``onnx:`` and the path of the model.
        labels: class names, by number.
        form: of the output.
        size: height and width of the input, in pixels.

    Raises:
        NotFound: the model file does not exist.
        InvalidInput: the file is not a supported detector, the number of class names differs from the model's, or a
            setting is invalid.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        names: str | os.PathLike[str] | Sequence[str] | None = None,
        form: Form | None = None,
        size: int | tuple[int, int] | None = None,
        score: float | None = None,
        iou: float | None = None,
    ) -> None:
        model = Path(os.path.abspath(user_path(path)))  # noqa: PTH100 - keeps links, unlike resolve
        if names is not None:
            names = user_path(names) if isinstance(names, str | os.PathLike) else tuple(names)
        arguments = parse_detector_settings(
            {"names": names, "form": form, "size": size, "score": score, "iou": iou}, "OnnxDetector"
        )
        self._session = OnnxSession(model)
        settings = arguments.over(read_detector_sidecar(model))
        self.name = f"onnx:{os.fspath(model)}"
        self.size = self._size(settings)
        self._score = _SCORE if settings.score is None else settings.score
        self._iou = _IOU if settings.iou is None else settings.iou
        self.form, self._output, classes = self._head(settings.form)
        self.labels = _labels(self._session, settings, classes)

    def detect(self, pixels: Pixels) -> Detections:
        """Return the distinct objects in an image, at most 300.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            InvalidInput: the image has another shape or dtype, or the model returns invalid values.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise InvalidInput(f"an image must be uint8 of shape (H, W, 3), not {pixels.dtype} of {pixels.shape}")
        letterbox = Letterbox.of((pixels.shape[0], pixels.shape[1]), self.size, centred=self.form != "yolox")
        output = self._session.run(self._input(letterbox.show(pixels, self.size), self.form))[self._output]
        corners, classes, scores = candidates(self.form, output, self.size, self._score)
        self._check(corners, scores)
        positions = non_maximum_suppression(corners, scores, classes, max_iou=self._iou, max_count=_MAX_DETECTIONS)
        corners_ = letterbox.back(corners[positions])
        boxes = np.hstack([corners_[:, :2], corners_[:, 2:] - corners_[:, :2]])
        there = (boxes[:, 2:] > 0).all(axis=1)
        return Detections(boxes[there], classes[positions][there], np.clip(scores[positions][there], 0, 1))

    def _size(self, settings: DetectorSettings) -> tuple[int, int]:
        height, width = self._session.size
        if settings.size is None:
            if height is None or width is None:
                raise InvalidInput(f"{self._session.says} takes images of any size: say which, as size=640")
            if height % STRIDES[-1] or width % STRIDES[-1]:
                raise InvalidInput(
                    f"{self._session.says} takes {height}×{width} pixels; detectors take multiples of 32"
                )
            return height, width
        if any(there not in (None, requested) for there, requested in zip((height, width), settings.size, strict=True)):
            raise InvalidInput(
                f"{self._session.says} takes images of {height}×{width} (height × width), "
                f"not {settings.size[0]}×{settings.size[1]}"
            )
        return settings.size

    def _head(self, form_: Form | None) -> tuple[Form, str, int]:
        """Return form, name and number of classes of the output with the boxes."""
        grey = np.full((*self.size, 3), 114, np.uint8)
        outputs = self._session.run(self._input(grey, form_ or "yolov8"))
        heads = []
        for name, output in outputs.items():
            form = form_ or recognise_form(output.shape, self.size)
            if form is not None and (classes := count_classes(form, output.shape, self.size)):
                heads.append((form, name, classes))
        if len(heads) != 1:
            shapes = ", ".join(f"{name!r} {output.shape}" for name, output in outputs.items()) or "nothing"
            raise InvalidInput(
                f"{self._session.says} puts out {shapes} for an image of {self.size[0]}×{self.size[1]}; one output "
                f"must have the shape {expected_shapes(self.size)}{f', and {form_} was asked for' if form_ else ''}"
            )
        return heads[0]

    def _input(self, pixels: Pixels, form: Form) -> npt.NDArray[Any]:
        """Return an image as the model's input, shape (3, H, W)."""
        channels = pixels.transpose(2, 0, 1)
        if form == "yolox":
            return channels[::-1].astype(self._session.dtype)
        if self._session.dtype is np.uint8:
            return channels
        return (channels * np.float32(1 / 255)).astype(self._session.dtype)

    def _check(self, corners: Floats, scores: Floats) -> None:
        if not (np.isfinite(corners).all() and ((scores >= -_ROUNDED) & (scores <= 1 + _ROUNDED)).all()):
            raise InvalidInput(
                f"{self._session.says} makes boxes that are not finite, or scores outside of 0 to 1: its output is "
                f"not of the form {self.form}, or lacks its sigmoid"
            )


def _labels(session: OnnxSession, settings: DetectorSettings, classes: int) -> tuple[str, ...]:
    names, source = _names(session, settings)
    if len(names) != classes or set(names) != set(range(classes)):
        raise InvalidInput(
            f"{session.says} knows {counted(classes, 'classes')}, and {source} has {counted(len(names), 'names')}; "
            "each needs one"
        )
    return tuple(names[number] for number in range(classes))


def _names(session: OnnxSession, settings: DetectorSettings) -> tuple[Mapping[int, str], str]:
    """Return class names by number, and a description of their source."""
    beside = session.path.with_suffix(".names")
    if isinstance(settings.names, tuple):
        return dict(enumerate(settings.names)), "what was given"
    path = settings.names or (beside if has_file(beside) else None)
    if path is not None:
        names = read_class_names(path)
        if names is None:
            raise InvalidInput(f"{os.fspath(path)!r} has no 'names' of classes")
        return names, f"the file {os.fspath(path)!r}"
    if (names_ := _names_in_metadata(session.metadata.get("names", ""))) is not None:
        return names_, "its metadata"
    raise InvalidInput(
        f"{session.says} needs names of its classes: give names=<a file>, or put one beside it as {beside.name!r}"
    )


def _names_in_metadata(text: str) -> dict[int, str] | None:
    """Return the names in a model's metadata, where Ultralytics writes a Python dictionary; None for other text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(isinstance(key, int) for key in value):
        return None
    return {key: str(name) for key, name in value.items()}
