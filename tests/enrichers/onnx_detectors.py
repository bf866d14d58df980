"""Small ONNX detectors for tests, whose output does not depend on the image."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper, save

from framedex.enrichers.yolo_heads import Form, count_cells

SIDE = 32
SIZE = (SIDE, SIDE)
GRIDS = count_cells(SIZE)


def head(
    form: Form, rows: Mapping[int, Sequence[float]], classes: int, size: tuple[int, int] = SIZE
) -> npt.NDArray[Any]:
    """Return an output of a form: zeros except for some rows (for yolov8: columns)."""
    places = count_cells(size) * (3 if form == "yolov5" else 1)
    output = np.zeros((places, classes + (4 if form == "yolov8" else 5)), np.float32)
    for place, values in rows.items():
        output[place, : len(values)] = values
    return output.T if form == "yolov8" else output


def saying(
    path: Path,
    *outputs: npt.NDArray[Any],
    shape: Sequence[int | str] = (1, 3, SIDE, SIDE),
    kind: int = TensorProto.FLOAT,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a model that returns arrays, each with a batch axis."""
    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        *(helper.make_node("Add", [f"given{n}", "nothing"], [f"output{n}"]) for n in range(len(outputs))),
    ]
    given = [(f"given{n}", np.asarray(each, np.float32)[None]) for n, each in enumerate(outputs)]
    arrays = [("zero", np.zeros((), np.float32)), *given]
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name) for name, array in arrays
    ]
    return _save(path, nodes, constants, [f"output{n}" for n in range(len(outputs))], shape, kind, metadata or {})


def seeing(path: Path, form: Form, scale: float, kind: int = TensorProto.FLOAT) -> Path:
    """Write a detector of one box whose three class probabilities are the means of the channels, times *scale*."""
    sides = [0.0, 0.0] if form == "yolox" else [8.0, 8.0]
    first = [1.0, 1.0, *sides] if form == "yolox" else [16.0, 16.0, *sides]
    given = head(form, {0: [*first, *([] if form == "yolov8" else [1.0])]}, 3)
    given = given.T if form == "yolov8" else given
    chances = np.zeros((3, given.shape[1]), np.float32)
    chances[range(3), range(-3, 0)] = scale
    mask = np.zeros((1, len(given), 1), np.float32)
    mask[0, 0] = 1
    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("GlobalAveragePool", ["numbers"], ["pooled"]),
        helper.make_node("Reshape", ["pooled", "row"], ["means"]),
        helper.make_node("MatMul", ["means", "chances"], ["spread"]),
        helper.make_node("Mul", ["spread", "mask"], ["seen"]),
        helper.make_node("Add", ["seen", "given"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["output"], perm=[0, 2, 1] if form == "yolov8" else [0, 1, 2]),
    ]
    constants = [
        numpy_helper.from_array(np.array([1, 1, 3], np.int64), "row"),
        numpy_helper.from_array(chances, "chances"),
        numpy_helper.from_array(mask, "mask"),
        numpy_helper.from_array(given[None], "given"),
    ]
    return _save(path, nodes, constants, ["output"], (1, 3, SIDE, SIDE), kind, {})


def _save(
    path: Path,
    nodes: list[Any],
    constants: list[Any],
    outputs: list[str],
    shape: Sequence[int | str],
    kind: int,
    metadata: Mapping[str, str],
) -> Path:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("input", kind, list(shape))],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    save(model, path)
    return path
