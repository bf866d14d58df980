"""Embeddings of real photos: MobileNetV2's features of changed versions of each photo, for the benchmarks of the index.

It runs in the environment of ONNX Runtime. The versions are those of ``photo_versions.py``. Row v × P + p is version v
of photo p of P, so that the first rows hold all photos, and row modulo P is the photo.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from photo_versions import versions as changed_versions

FEATURES = "464"  # of the global average pooling: what the classifier, the last layer, gets
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)
Vectors = npt.NDArray[np.float32]


def write_embeddings(paths: Sequence[Path], versions: int, *, model: Path, target: Path, threads: int) -> None:
    """Write the embeddings of all versions of photos to a NumPy file: float32, unit length, shape (V × P, 1280).

    Args:
        paths: the photos.
        versions: of each.
        model: MobileNetV2 with eight-bit weights, in ONNX.
        target: the file; it is there when it is complete.
        threads: that the network may use.
    """
    network = _Network(model, threads)
    part = target.with_suffix(".part")
    out: Any = None
    for place, path in enumerate(paths):
        features = network.features(np.stack(list(changed_versions(path, versions, seed=place))))
        if out is None:
            shape = (len(paths) * versions, features.shape[1])
            out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
        out[place :: len(paths)] = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert out is not None, "there are photos"
    out.flush()
    part.rename(target)


class _Network:
    """MobileNetV2 without its classifier."""

    def __init__(self, model: Path, threads: int) -> None:
        graph = onnx.load(model)
        constants = {each.name: onnx.numpy_helper.to_array(each) for each in graph.graph.initializer}
        self._scale = np.float32(constants[f"{FEATURES}_scale"])
        self._zero = np.float32(constants[f"{FEATURES}_zero_point"])
        self._name = f"{FEATURES}_quantized"
        graph.graph.output.append(onnx.helper.make_tensor_value_info(self._name, onnx.TensorProto.UINT8, None))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def features(self, pixels: npt.NDArray[np.uint8]) -> Vectors:
        """Return float32, shape (N, 1280), of images of shape (N, 224, 224, 3)."""
        values = ((pixels / np.float32(255) - _MEAN) / _DEVIATION).transpose(0, 3, 1, 2)
        (found,) = self._session.run([self._name], {"input": np.ascontiguousarray(values, dtype=np.float32)})
        return np.asarray((found.reshape(len(pixels), -1).astype(np.float32) - self._zero) * self._scale)
