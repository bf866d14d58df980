"""Small ONNX models for tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper, save

SIDE = 8
_OPSETS = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]


def constant(name: str, values: npt.ArrayLike, dtype: Any = np.float32) -> Any:
    """Return constant weights."""
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def weights(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return reproducible weights of a shape."""
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def save_model(
    path: Path,
    nodes: Sequence[Any],
    constants: Sequence[Any] = (),
    *,
    inputs: Sequence[tuple[str, int, Sequence[int | str]]] = (("input", TensorProto.FLOAT, ("n", 3, SIDE, SIDE)),),
    outputs: Sequence[str] = ("output",),
) -> Path:
    """Write a model and return its path; the engine infers the shapes of the outputs."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, kind, list(shape)) for name, kind, shape in inputs],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        list(constants),
    )
    save(helper.make_model(graph, opset_imports=_OPSETS, ir_version=8), path)
    return path


def classifier(path: Path, *, seed: int = 0) -> Path:
    """Write a classifier: convolution, spatial average (``features``, 6 values), layer (``scores``), softmax."""
    nodes = [
        helper.make_node("Conv", ["input", "kernels", "offsets"], ["maps"]),
        helper.make_node("Relu", ["maps"], ["active"]),
        helper.make_node("GlobalAveragePool", ["active"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "matrix", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["output"], axis=1),
    ]
    constants = [
        constant("kernels", weights(6, 3, 3, 3, seed=seed)),
        constant("offsets", np.ones(6)),
        constant("matrix", weights(6, 4, seed=seed + 1)),
        constant("bias", weights(4, seed=seed + 2)),
    ]
    return save_model(path, nodes, constants)


def passing(path: Path, *, shape: Sequence[int | str] = ("n", 3, 2, 2), kind: int = TensorProto.FLOAT) -> Path:
    """Write a model whose vector is its input, value by value, as float32."""
    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["output"]),
    ]
    return save_model(path, nodes, inputs=[("input", kind, shape)])


def single(
    path: Path, op: str, inputs: Sequence[str] = ("input",), constants: Sequence[Any] = (), **settings: Any
) -> Path:
    """Write a model with one node."""
    return save_model(path, [helper.make_node(op, list(inputs), ["output"], **settings)], constants)
