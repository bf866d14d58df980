"""ONNX classifiers: models whose output has one value for each class."""

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
    """A model that returns the probability of each of its classes for an image.

    :class:`OnnxEncoder` describes how images are prepared, and the settings. The output is the model's own unless
    another tensor is named.

    Args:
        name: ``onnx:<path>[?<setting>=<value>&…]``.
        values: the kind of output: ``probabilities``, or ``logits``, to which the softmax is applied.

    Attributes:
        name: the same name, with an absolute path.
        classes: the number of classes.
        min_side_px: the shorter side, in pixels, of decoded images.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the name is malformed, or the file is not a model with one image as input.
        MissingDependency: ONNX Runtime is not installed.

    Examples:
        >>> classifier = framedex.encoders.OnnxClassifier("onnx:classifier.onnx", "probabilities")
        >>> pixels = classifier.prepare(ds.read(ds.media_id("cat-1.jpg")))
        >>> classifier.classes, classifier.probabilities(pixels[None]).shape
        (4, (1, 4))
    """

    def __init__(self, name: str, values: Values) -> None:
        path, settings = parse_name(name)
        whole = model_path(path)
        output = settings.output or final_output(whole)
        self._model = OnnxEncoder.by_name(name_of(whole, settings.model_copy(update={"output": output})))
        self._is_logits = values == "logits"
        self.name, self.classes, self.min_side_px = (
            name_of(whole, settings),
            self._model.dimension,
            self._model.min_side_px,
        )

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return an image in the model's size: uint8, shape (height, width, 3), RGB."""
        return self._model.prepare(pixels)

    def probabilities(self, batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Return float64, shape (N, classes), in [0, 1].

        Args:
            batch: N results of :meth:`prepare`, stacked along the first axis.

        Raises:
            InvalidInput: the output has another form.
        """
        with ThreadPoolExecutor(min(available_cpus(), len(batch)), thread_name_prefix="framedex-onnx") as pool:
            outputs = np.stack(list(pool.map(self._model.values, batch)))
        if self._is_logits:
            outputs = np.exp(outputs - outputs.max(axis=1, keepdims=True))
            outputs /= outputs.sum(axis=1, keepdims=True)
        if not np.isfinite(outputs).all() or outputs.min() < -1e-6 or outputs.max() > 1 + 1e-6:
            raise InvalidInput(
                f"the classifier {self.name!r} gives out values from {outputs.min():.3g} to {outputs.max():.3g}, which "
                'are no probabilities; where these are logits, say values = "logits"'
            )
        return np.clip(outputs, 0, 1)
