"""A model file in ONNX Runtime: read, checked, cut at the wanted tensor, and run."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from framedex.encoders.onnx_graph import Graph
from framedex.encoders.onnx_runtime import MISSING, RunningModel, reason_of
from framedex.encoders.onnx_settings import OnnxSettings
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput, MissingDependency, NotFound
from framedex.regular_files import regular

Layout = Literal["nchw", "nhwc"]
_VALUES = ("tensor(float)", "tensor(float16)", "tensor(double)")
_AT: dict[Layout, tuple[int, int, int]] = {"nchw": (1, 2, 3), "nhwc": (3, 1, 2)}  # axes of colours, rows and columns


@dataclass(frozen=True)
class Shape:
    """The input of a model.

    Attributes:
        layout: order of the axes.
        height, width: in pixels; None where any will do.
        batch: how many pictures at a time; None where any number will do.
        dtype: of the values.
    """

    layout: Layout
    height: int | None
    width: int | None
    batch: int | None
    dtype: type[np.generic]


class OnnxModel:
    """A model that takes one picture at a time, on one thread; several threads may call it at once.

    One picture at a time makes its vector the same in whichever batch it comes: products of other sizes are rounded
    otherwise, and models that are quantized as they run scale by the whole batch. It is no slower.

    Attributes:
        path: the file.
        output: the tensor that is taken.
        shape: what it takes.
        files: further files with weights, by name, with their paths.

    Raises:
        InvalidInput: the file is no model, or none that takes one picture.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(self, path: Path, wanted: OnnxSettings) -> None:
        self.path = path
        proto = _read(path)
        graph = Graph(proto.graph)
        self._says = f"the model {os.fspath(path)!r}"
        if len(graph.inputs) != 1:
            raise InvalidInput(
                f"{self._says} takes {len(graph.inputs)} inputs ({', '.join(graph.inputs)}); "
                "an encoder of pictures has one"
            )
        self.files = {name: path.parent / name for name in graph.outside()}
        for name, file in self.files.items():
            if not file.is_file():
                raise NotFound(f"{self._says} keeps weights in {name!r}, which is not beside it")
        self.output = self._chosen(graph, wanted.output)
        graph.end_at(self.output)
        self._running = RunningModel(proto.SerializeToString(), self._says, beside=path.parent)
        self.shape = self._input_shape(wanted.layout)
        taken = self._running.outputs[0]
        if taken.type not in _VALUES:
            raise InvalidInput(f"tensor {self.output!r} of {self._says} holds {taken.type}; a vector has real numbers")

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the further files, by name."""
        return {name: sha256_of(file) for name, file in self.files.items()}

    def run(self, picture: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what the model makes of a picture: the tensor's values without the axis of the batch.

        Args:
            picture: with the shape and dtype that the model takes, without the axis of the batch.

        Raises:
            InvalidInput: the model cannot be run on it.
        """
        batch = np.broadcast_to(picture, (self.shape.batch or 1, *picture.shape))
        found = self._running.run(batch)[0]
        if not found.ndim or len(found) != len(batch):
            raise InvalidInput(
                f"tensor {self.output!r} of {self._says} has the shape {found.shape} for {len(batch)} pictures; "
                "the first axis of a vector counts the pictures"
            )
        return np.asarray(found[0])

    def _chosen(self, graph: Graph, name: str | None) -> str:
        if name is None:
            if len(graph.outputs) != 1:
                raise InvalidInput(
                    f"{self._says} has {len(graph.outputs)} outputs; say which is the vector: "
                    f"output={' or output='.join(graph.outputs)}"
                )
            name = graph.features() or graph.outputs[0]
        graph.check_tensor(name, self._says)
        return name

    def _input_shape(self, wanted: Layout | None) -> Shape:
        asked, sides, dtype = self._running.inputs[0], self._running.sides, self._running.dtype
        fits = [each for each in _AT if len(sides) == 4 and sides[_AT[each][0]] in (3, None)]
        # Colours that are told decide; where the model leaves all open, they come first as nearly everywhere.
        told = [each for each in fits if sides[_AT[each][0]] == 3]
        layout = wanted or next(iter(told or fits), None)
        if layout is None or layout not in fits or dtype is None:
            raise InvalidInput(
                f"the input {asked.name!r} of {self._says} is a {asked.type} of shape {asked.shape}; pictures go into "
                f"one of 4 axes with 3 colours{f' as {wanted}' if wanted else ''}, of type float, float16 or uint8"
            )
        _, rows, columns = _AT[layout]
        return Shape(layout, sides[rows], sides[columns], sides[0], dtype)


def final_output(path: Path) -> str:
    """Return the name of what a model gives out.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file is no model, or it has several outputs.
        MissingDependency: ONNX Runtime is not installed.
    """
    outputs = Graph(_read(path).graph).outputs
    if len(outputs) != 1:
        raise InvalidInput(
            f"the model {os.fspath(path)!r} has {len(outputs)} outputs; say which: output={' or output='.join(outputs)}"
        )
    return outputs[0]


def _read(path: Path) -> Any:
    """Return an ``onnx.ModelProto`` without weights that are in other files."""
    try:
        import onnx
        import onnxruntime  # noqa: F401 - both are needed, so that both are asked for at once
    except ImportError:
        raise MissingDependency(MISSING) from None
    try:
        proto = onnx.load(str(regular(path)), load_external_data=False)
    except OSError as error:
        raise NotFound(f"the model file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # protobuf's own class, of a package that we do not name
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model, or a part of one: {reason_of(error)}") from None
    if not proto.graph.node or not proto.graph.output:
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model: it has no graph")
    return proto
