"""ONNX Runtime sessions of detectors: opened, checked and run."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core.regular_files import has_file
from framedex.encoders.onnx_runtime import RunningModel
from framedex.errors import InvalidInput, NotFound


class OnnxSession:
    """A model that takes one image at a time, on one thread. Several threads may call it at the same time.

    Attributes:
        path: the file.
        says: a description of the model, for messages.
        size: height and width of the input, in pixels; None for any size.
        dtype: of the input.
        metadata: the model's metadata, as text.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is not a model that takes one image.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.says = path, f"the model {os.fspath(path)!r}"
        if not has_file(path):
            raise NotFound(f"no model file {os.fspath(path)!r}")
        self._running = RunningModel(path, self.says)
        self.metadata = self._running.metadata
        inputs = self._running.inputs
        sides = self._running.sides if len(inputs) == 1 else []
        if len(sides) != 4 or not (sides[0] in (1, None) and sides[1] in (3, None)):
            shapes = ", ".join(f"{each.name!r} {each.shape}" for each in inputs) or "nothing"
            raise InvalidInput(f"{self.says} takes {shapes}; a detector takes one image, of shape (1, 3, H, W)")
        dtype = self._running.dtype
        if dtype is None:
            raise InvalidInput(f"{self.says} takes {inputs[0].type}; a detector takes float, float16 or uint8")
        self.dtype, self.size = dtype, (sides[2], sides[3])

    def run(self, image: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the outputs for an image by name, float32, without a batch axis of length 1.

        Args:
            image: shape (3, H, W), of the model's dtype.

        Raises:
            InvalidInput: the model cannot be run on it.
        """
        outputs = zip(self._running.outputs, map(np.asarray, self._running.run(image[None])), strict=True)
        return {
            output.name: (each[0] if each.ndim and len(each) == 1 else each).astype(np.float32)
            for output, each in outputs
            if each.dtype.kind in "fiu"
        }
