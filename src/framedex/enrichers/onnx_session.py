"""A detector's model file in ONNX Runtime: opened, checked and run."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.errors import InvalidInput, MissingDependency, NotFound

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_QUIET = 4  # the engine's errors are raised; it need not print them too


class OnnxSession:
    """A model that takes one picture at a time, on one thread; several threads may call it at once.

    Attributes:
        path: the file.
        says: the model in words, for messages.
        size: height and width that it takes, in pixels; None where any will do.
        dtype: of the input.
        metadata: what the file says of itself, as text.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no model that takes one picture.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.says = path, f"the model {os.fspath(path)!r}"
        if not path.is_file():
            raise NotFound(f"no model file {os.fspath(path)!r}")
        self._session = self._start()
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        inputs = self._session.get_inputs()
        sides = [side if isinstance(side, int) and side > 0 else None for side in inputs[0].shape]
        if len(inputs) != 1 or len(sides) != 4 or not (sides[0] in (1, None) and sides[1] in (3, None)):
            shapes = ", ".join(f"{each.name!r} {each.shape}" for each in inputs)
            raise InvalidInput(f"{self.says} takes {shapes}; a detector takes one picture, of shape (1, 3, H, W)")
        if inputs[0].type not in _TYPES:
            raise InvalidInput(f"{self.says} takes {inputs[0].type}; a detector takes float, float16 or uint8")
        self._input, self.dtype = inputs[0].name, _TYPES[inputs[0].type]
        self.size = sides[2], sides[3]

    def _start(self) -> Any:
        try:
            import onnxruntime
        except ImportError:
            raise MissingDependency("models in ONNX need ONNX Runtime: pip install framedex[onnx]") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        try:
            return onnxruntime.InferenceSession(os.fspath(self.path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the engine's errors have no root of their own
            raise InvalidInput(f"{self.says} is no ONNX model that can be used: {_reason(error)}") from None

    def run(self, picture: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the outputs for a picture by name, float32, without the axis of the batch where that is 1.

        Args:
            picture: shape (3, H, W), of the model's dtype.

        Raises:
            InvalidInput: the model cannot be run on it.
        """
        names = [each.name for each in self._session.get_outputs()]
        try:
            found = self._session.run(names, {self._input: np.ascontiguousarray(picture[None])})
        except Exception as error:  # the engine's errors have no root of their own
            raise InvalidInput(f"{self.says} cannot be run: {_reason(error)}") from None
        arrays = (np.asarray(each) for each in found)
        return {
            name: (each[0] if each.ndim and len(each) == 1 else each).astype(np.float32)
            for name, each in zip(names, arrays, strict=True)
            if each.dtype.kind in "fiu"
        }


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
