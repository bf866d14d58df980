"""A model file in ONNX Runtime: read, checked, cut at the wanted tensor, and run."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from framedex.encoders.onnx_graph import Graph
from framedex.encoders.onnx_settings import OnnxSettings
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput, MissingDependency, NotFound

Layout = Literal["nchw", "nhwc"]
_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_VALUES = ("tensor(float)", "tensor(float16)", "tensor(double)")
_AT: dict[Layout, tuple[int, int, int]] = {"nchw": (1, 2, 3), "nhwc": (3, 1, 2)}  # axes of colours, rows and columns
_QUIET = 4  # the engine's errors are raised; it need not print them too


@dataclass(frozen=True)
class Shape:
    """What a model takes.

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
    otherwise, and models that are quantized as they run scale by the whole batch. It is no slower: a thread for each
    picture uses the processors better than threads that share one.

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
        self._session = self._start(proto.SerializeToString())
        self.shape = self._input_shape(wanted.layout)
        taken = self._session.get_outputs()[0]
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
        try:
            found = self._session.run(None, {self._session.get_inputs()[0].name: np.ascontiguousarray(batch)})[0]
        except Exception as error:  # the engine's errors have no root of their own
            raise InvalidInput(f"{self._says} cannot be run: {_reason(error)}") from None
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

    def _start(self, content: bytes) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", os.fspath(self.path.parent)
        )
        try:
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the engine's errors have no root of their own
            raise InvalidInput(f"{self._says} cannot be used: {_reason(error)}") from None

    def _input_shape(self, wanted: Layout | None) -> Shape:
        asked = self._session.get_inputs()[0]
        sides = [side if isinstance(side, int) and side > 0 else None for side in asked.shape]
        fits = [each for each in _AT if len(sides) == 4 and sides[_AT[each][0]] in (3, None)]
        # Colours that are told decide; where the model leaves all open, they come first as nearly everywhere.
        told = [each for each in fits if sides[_AT[each][0]] == 3]
        layout = wanted or next(iter(told or fits), None)
        if layout is None or layout not in fits or asked.type not in _TYPES:
            raise InvalidInput(
                f"the input {asked.name!r} of {self._says} is a {asked.type} of shape {asked.shape}; pictures go into "
                f"one of 4 axes with 3 colours{f' as {wanted}' if wanted else ''}, of type float, float16 or uint8"
            )
        _, rows, columns = _AT[layout]
        return Shape(layout, sides[rows], sides[columns], sides[0], _TYPES[asked.type])


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
        raise MissingDependency("models in ONNX need ONNX Runtime: pip install framedex[onnx]") from None
    try:
        proto = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise NotFound(f"the model file {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # protobuf's own class, of a package that we do not name
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model, or a part of one: {_reason(error)}") from None
    if not proto.graph.node or not proto.graph.output:
        raise InvalidInput(f"{os.fspath(path)!r} is no ONNX model: it has no graph")
    return proto


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
