"""ONNX model files: read, checked, reduced to one output tensor, and run by ONNX Runtime."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from framedex.core.counts import counted
from framedex.core.regular_files import regular
from framedex.encoders.onnx_graph import OnnxGraph
from framedex.encoders.onnx_runtime import MISSING, RunningModel, reason_of
from framedex.encoders.onnx_settings import OnnxSettings
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput, MissingDependency, NotFound

Layout = Literal["nchw", "nhwc"]
_VALUES = ("tensor(float)", "tensor(float16)", "tensor(double)")
_AT: dict[Layout, tuple[int, int, int]] = {"nchw": (1, 2, 3), "nhwc": (3, 1, 2)}  # axes of colours, rows and columns


@dataclass(frozen=True)
class Shape:
    """The input of a model.

    Attributes:
        layout: order of the axes.
        height, width: in pixels; None for any number.
        batch: the number of images at a time; None for any number.
        dtype: of the values.
    """

    layout: Layout
    height: int | None
    width: int | None
    batch: int | None
    dtype: type[np.generic]


class OnnxModel:
    """A model that takes one image at a time, on one thread. Several threads may call it at the same time.

    One image at a time makes a vector independent of its batch. Matrix products of other sizes round differently, and
    dynamically quantized models compute their scale from the whole batch. Single images are not slower.

    Attributes:
        path: the file.
        output: the name of the output tensor.
        shape: the model's input.
        files: external weight files by name, with their paths.

    Raises:
        InvalidInput: the file is not a model, or does not take one image.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, path: Path, settings: OnnxSettings) -> None:
        self.path = path
        proto = _read(path)
        graph = OnnxGraph(proto.graph)
        self._says = f"the model {os.fspath(path)!r}"
        if len(graph.inputs) != 1:
            raise InvalidInput(
                f"{self._says} takes {counted(len(graph.inputs), 'inputs')} ({', '.join(graph.inputs)}); "
                "an encoder of images has one"
            )
        self.files = {name: path.parent / name for name in graph.outside()}
        for name, file in self.files.items():
            if not file.is_file():
                raise NotFound(f"{self._says} keeps weights in {name!r}, which is not beside it")
        self.output = self._output_name(graph, settings.output)
        graph.end_at(self.output)
        self._running = RunningModel(proto.SerializeToString(), self._says, beside=path.parent)
        self.shape = self._input_shape(settings.layout)
        output = self._running.outputs[0]
        if output.type not in _VALUES:
            raise InvalidInput(f"tensor {self.output!r} of {self._says} holds {output.type}; a vector has real numbers")

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the external weight files, by name."""
        return {name: sha256_of(file) for name, file in self.files.items()}

    def run(self, image: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the output tensor for an image, without the batch axis.

        Args:
            image: with the shape and dtype of the input, without the batch axis.

        Raises:
            InvalidInput: the model cannot be run on it.
        """
        batch = np.broadcast_to(image, (self.shape.batch or 1, *image.shape))
        output = self._running.run(batch)[0]
        if not output.ndim or len(output) != len(batch):
            raise InvalidInput(
                f"tensor {self.output!r} of {self._says} has the shape {output.shape} for "
                f"{counted(len(batch), 'images')}; the first axis of a vector counts the images"
            )
        return np.asarray(output[0])

    def _output_name(self, graph: OnnxGraph, name: str | None) -> str:
        if name is None:
            if len(graph.outputs) != 1:
                raise InvalidInput(
                    f"{self._says} has {counted(len(graph.outputs), 'outputs')}; say which is the vector: "
                    f"output={' or output='.join(graph.outputs)}"
                )
            name = graph.features() or graph.outputs[0]
        graph.check_tensor(name, self._says)
        return name

    def _input_shape(self, requested: Layout | None) -> Shape:
        input_, sides, dtype = self._running.inputs[0], self._running.sides, self._running.dtype
        fits = [each for each in _AT if len(sides) == 4 and sides[_AT[each][0]] in (3, None)]
        # An axis of 3 colours decides the layout. If the model accepts any shape, the colours come first (NCHW).
        with_colours = [each for each in fits if sides[_AT[each][0]] == 3]
        layout = requested or next(iter(with_colours or fits), None)
        if layout is None or layout not in fits or dtype is None:
            raise InvalidInput(
                f"the input {input_.name!r} of {self._says} is a {input_.type} of shape {input_.shape}; images go "
                f"into one of 4 axes with 3 colours{f' as {requested}' if requested else ''}, of type float, float16 "
                "or uint8"
            )
        _, rows, columns = _AT[layout]
        return Shape(layout, sides[rows], sides[columns], sides[0], dtype)


def final_output(path: Path) -> str:
    """Return the name of a model's only output.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not a model, or it has several outputs.
        MissingDependency: ONNX Runtime is not installed.
    """
    outputs = OnnxGraph(_read(path).graph).outputs
    if len(outputs) != 1:
        raise InvalidInput(
            f"the model {os.fspath(path)!r} has {counted(len(outputs), 'outputs')}; say which: "
            f"output={' or output='.join(outputs)}"
        )
    return outputs[0]


def _read(path: Path) -> Any:
    """Return an ``onnx.ModelProto`` without external weights."""
    try:
        import onnx
        import onnxruntime  # noqa: F401 - one error for both missing packages
    except ImportError:
        raise MissingDependency(MISSING) from None
    try:
        proto = onnx.load(str(regular(path)), load_external_data=False)
    except OSError as error:
        raise NotFound(f"the model file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # protobuf's class; protobuf is not a direct dependency
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model, or a part of one: {reason_of(error)}") from None
    if not proto.graph.node or not proto.graph.output:
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model: it has no graph")
    return proto
