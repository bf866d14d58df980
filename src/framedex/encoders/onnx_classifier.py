"""Classifiers in ONNX: a model whose output has a value for each of its classes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import numpy.typing as npt

from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.onnx_model import final_output
from framedex.encoders.onnx_settings import model_path, name_of, parse_name
from framedex.errors import InvalidInput
from framedex.settings import available_cpus

Values = Literal["probabilities", "logits"]


class OnnxClassifier:
    """A model that says of a picture how probable each of its classes is.

    Pictures are prepared as :class:`OnnxEncoder` does it, by the same settings; the output is the model's own unless
    another tensor is named.

    Args:
        name: ``onnx:<path>[?<setting>=<value>&…]``.
        values: what the model gives out: ``probabilities``, or ``logits``, of which the softmax is taken.

    Attributes:
        name: the same name, with an absolute path.
        classes: how many classes there are.
        min_side_px: pixels of the shorter side that pictures are read with.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the name cannot be read, or it is no model that takes one picture.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, name: str, values: Values) -> None:
        path, given = parse_name(name)
        whole = model_path(path)
        output = given.output or final_output(whole)
        self._model = OnnxEncoder.by_name(name_of(whole, given.model_copy(update={"output": output})))
        self._is_logits = values == "logits"
        self.name, self.classes, self.min_side_px = (
            name_of(whole, given),
            self._model.dimension,
            self._model.min_side_px,
        )

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a picture in the model's size: uint8, shape (height, width, 3), RGB."""
        return self._model.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Return float64, shape (N, classes), in [0, 1].

        Args:
            batch: N results of :meth:`prepare`, stacked along the first axis.

        Raises:
            InvalidInput: the model gives out something else.
        """
        with ThreadPoolExecutor(min(available_cpus(), len(batch)), thread_name_prefix="framedex-onnx") as pool:
            found = np.stack(list(pool.map(self._model.values, batch)))
        if self._is_logits:
            found = np.exp(found - found.max(axis=1, keepdims=True))
            found /= found.sum(axis=1, keepdims=True)
        if not np.isfinite(found).all() or found.min() < -1e-6 or found.max() > 1 + 1e-6:
            raise InvalidInput(
                f"the classifier {self.name!r} gives out values from {found.min():.3g} to {found.max():.3g}, which are "
                'no probabilities; where these are logits, say values = "logits"'
            )
        return np.clip(found, 0, 1)
