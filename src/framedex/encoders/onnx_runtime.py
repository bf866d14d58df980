"""ONNX Runtime sessions, for encoders and detectors."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.errors import InvalidInput, MissingDependency

MISSING = "models in ONNX need ONNX Runtime: pip install framedex[onnx]"
_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_QUIET = 4  # errors are raised, so the engine need not print them, too


class RunningModel:
    """A loaded model that runs on the CPU, on one thread. Several threads may call it at the same time.

    One thread for each image uses the processors better than several threads for one image.

    Args:
        model: the model's file or its content.
        says: a description of the model, for messages.
        beside: the folder of external weight files, if the content is passed.

    Attributes:
        inputs, outputs: the engine's descriptions, with ``name``, ``type`` and ``shape``.
        metadata: the model's metadata, as text.

    Raises:
        InvalidInput: the engine cannot load the model.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, model: Path | bytes, says: str, *, beside: Path | None = None) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingDependency(MISSING) from None
        self._says = says
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        if beside is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.fspath(beside))
        content = model if isinstance(model, bytes) else os.fspath(model)
        try:
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the engine's errors have no common base class
            raise InvalidInput(f"{says} is no ONNX model that can be used: {reason_of(error)}") from None
        self.inputs: Sequence[Any] = self._session.get_inputs()
        self.outputs: Sequence[Any] = self._session.get_outputs()
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        self._names = [each.name for each in self.outputs]

    @property
    def sides(self) -> list[int | None]:
        """The lengths of the first input's axes; None for any length."""
        return [side if isinstance(side, int) and side > 0 else None for side in self.inputs[0].shape]

    @property
    def dtype(self) -> type[np.generic] | None:
        """The dtype of the first input; None unless it is float, float16 or uint8."""
        return _TYPES.get(self.inputs[0].type)

    def run(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the outputs for the first input's values, in order.

        Raises:
            InvalidInput: the model cannot be run on them.
        """
        try:
            return list(self._session.run(self._names, {self.inputs[0].name: np.ascontiguousarray(values)}))
        except Exception as error:  # the engine's errors have no common base class
            raise InvalidInput(f"{self._says} cannot be run: {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """Return an engine error's message as one line of limited length."""
    return " ".join(str(error).split())[:300]
