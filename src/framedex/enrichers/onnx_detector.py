"""YOLO models in ONNX as detectors, by ONNX Runtime."""

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.class_names import read_class_names
from framedex.arrays import Pixels
from framedex.enrichers.detector import Detections, Floats
from framedex.enrichers.detector_settings import DetectorSettings, checked, read_sidecar
from framedex.enrichers.letterbox import Letterbox
from framedex.enrichers.onnx_session import OnnxSession
from framedex.enrichers.suppression import non_maximum_suppression
from framedex.enrichers.yolo_heads import STRIDES, Form, candidates, classes_of, expected, recognised
from framedex.errors import InvalidInput
from framedex.settings import user_path

_SCORE, _IOU = 0.25, 0.45
_MOST = 300  # detections of a picture
_ROUNDED = 1e-3  # by which probabilities of 16 bits may lie outside of 0 to 1


class OnnxDetector:
    """A detector of the YOLOX, YOLOv5 or YOLOv8 form, which its output's shape tells; see ``yolo_heads``.

    Settings that are not given are those of the file beside the model (``model.toml`` beside ``model.onnx``), else what
    the model says, else the defaults. Pictures are shown whole, with grey bars: in BGR, 0 to 255 and in the upper left
    corner for YOLOX, in RGB, 0 to 1 and centred for the others (0 to 255 where the model takes whole numbers).

    Args:
        path: of the model file.
        names: of the classes, or a file of them: a name a line, or a ``.yaml`` with ``names``. By default the file
            beside the model with its name and the suffix ``.names``, or else what the model itself says.
        form: ``yolox``, ``yolov5`` or ``yolov8``.
        size: height and width of the input in pixels, or one number for both; only needed where the model leaves them
            open.
        score: the least confidence of a detection, in (0, 1]; 0.25 by default.
        iou: the intersection over union that two boxes of a class may have, in [0, 1]; 0.45 by default.

    Attributes:
        name: ``onnx:`` and the path of the model.
        labels: names of the classes, by number.
        form: of the output.
        size: height and width of the input, in pixels.

    Raises:
        NotFound: there is no such model file.
        InvalidInput: it is no detector that we know, there are no names for its classes or another number of them, or a
            setting cannot be.
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
        given = checked({"names": names, "form": form, "size": size, "score": score, "iou": iou}, "OnnxDetector")
        self._session = OnnxSession(model)
        wanted = given.over(read_sidecar(model))
        self.name = f"onnx:{os.fspath(model)}"
        self.size = self._size(wanted)
        self._score = _SCORE if wanted.score is None else wanted.score
        self._iou = _IOU if wanted.iou is None else wanted.iou
        self.form, self._output, classes = self._head(wanted.form)
        self.labels = _labels(self._session, wanted, classes)

    def detect(self, pixels: Pixels) -> Detections:
        """Return the objects in a picture, at most 300, each once.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            InvalidInput: it is no such picture, or the model makes values that cannot be.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise InvalidInput(f"a picture must be uint8 of shape (H, W, 3), not {pixels.dtype} of {pixels.shape}")
        where = Letterbox.of((pixels.shape[0], pixels.shape[1]), self.size, centred=self.form != "yolox")
        output = self._session.run(self._input(where.show(pixels, self.size), self.form))[self._output]
        corners, classes, scores = candidates(self.form, output, self.size, self._score)
        self._check(corners, scores)
        kept = non_maximum_suppression(corners, scores, classes, max_iou=self._iou, max_count=_MOST)
        found = where.back(corners[kept])
        boxes = np.hstack([found[:, :2], found[:, 2:] - found[:, :2]])
        there = (boxes[:, 2:] > 0).all(axis=1)
        return Detections(boxes[there], classes[kept][there], np.clip(scores[kept][there], 0, 1))

    def _size(self, wanted: DetectorSettings) -> tuple[int, int]:
        height, width = self._session.size
        if wanted.size is None:
            if height is None or width is None:
                raise InvalidInput(f"{self._session.says} takes pictures of any size: say which, as size=640")
            if height % STRIDES[-1] or width % STRIDES[-1]:
                raise InvalidInput(
                    f"{self._session.says} takes {height}×{width} pixels; detectors take multiples of 32"
                )
            return height, width
        if any(there not in (None, asked) for there, asked in zip((height, width), wanted.size, strict=True)):
            raise InvalidInput(
                f"{self._session.says} takes pictures of {height}×{width} (height × width), "
                f"not {wanted.size[0]}×{wanted.size[1]}"
            )
        return wanted.size

    def _head(self, wanted: Form | None) -> tuple[Form, str, int]:
        """Return form, name and number of classes of the output that holds the boxes."""
        grey = np.full((*self.size, 3), 114, np.uint8)
        found = self._session.run(self._input(grey, wanted or "yolov8"))
        heads = []
        for name, output in found.items():
            form = wanted or recognised(output.shape, self.size)
            if form is not None and (classes := classes_of(form, output.shape, self.size)):
                heads.append((form, name, classes))
        if len(heads) != 1:
            shapes = ", ".join(f"{name!r} {output.shape}" for name, output in found.items()) or "nothing"
            raise InvalidInput(
                f"{self._session.says} puts out {shapes} for a picture of {self.size[0]}×{self.size[1]}; one output "
                f"must have the shape {expected(self.size)}{f', and {wanted} was asked for' if wanted else ''}"
            )
        return heads[0]

    def _input(self, shown: Pixels, form: Form) -> npt.NDArray[Any]:
        """Return a picture as the model takes it, shape (3, H, W)."""
        channels = shown.transpose(2, 0, 1)
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


def _labels(session: OnnxSession, wanted: DetectorSettings, classes: int) -> tuple[str, ...]:
    names, source = _names(session, wanted)
    if len(names) != classes or set(names) != set(range(classes)):
        raise InvalidInput(
            f"{session.says} knows {classes} classes, and {source} has {len(names)} names; each needs one"
        )
    return tuple(names[number] for number in range(classes))


def _names(session: OnnxSession, wanted: DetectorSettings) -> tuple[Mapping[int, str], str]:
    """Return the names of classes by number, and where they are from."""
    beside = session.path.with_suffix(".names")
    if isinstance(wanted.names, tuple):
        return dict(enumerate(wanted.names)), "what was given"
    path = wanted.names or (beside if beside.is_file() else None)
    if path is not None:
        names = read_class_names(path)
        if names is None:
            raise InvalidInput(f"{os.fspath(path)!r} has no 'names' of classes")
        return names, f"the file {os.fspath(path)!r}"
    if (said := _said(session.metadata.get("names", ""))) is not None:
        return said, "its metadata"
    raise InvalidInput(
        f"{session.says} needs names of its classes: give names=<a file>, or put one beside it as {beside.name!r}"
    )


def _said(text: str) -> dict[int, str] | None:
    """Return the names in a model's metadata, where Ultralytics writes a dictionary in Python's form."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(key, int) for key in found):
        return None
    return {key: str(name) for key, name in found.items()}
