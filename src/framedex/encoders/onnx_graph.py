"""Graphs of ONNX models: choice of the feature tensor, and reduction to the part that computes it."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from framedex.errors import InvalidInput

# Operators that may follow a classifier's last learned layer, and keep the order of the values.
_AFTER_SCORES = {
    "Cast", "Clip", "DequantizeLinear", "Dropout", "Flatten", "Identity", "LogSoftmax", "QuantizeLinear", "Reshape",
    "QLinearSigmoid", "QLinearSoftmax", "Sigmoid", "Softmax", "Squeeze",
}  # fmt: skip
_SUMS = {"Add": (0, 1), "QLinearAdd": (0, 3)}  # positions of their two terms
# Layers with learned weights: positions of the weights, and of the bias if they have one.
_LAYERS = {
    "Gemm": (1, 2), "Conv": (1, 2), "MatMul": (1, None), "QLinearMatMul": (3, None), "QLinearConv": (3, 8),
    "QGemm": (3, 6), "MatMulInteger": (1, None), "ConvInteger": (1, None),
}  # fmt: skip
_TO_INTEGERS = {"QuantizeLinear", "DynamicQuantizeLinear"}
_MAX_NAMES = 5  # names in a message


class OnnxGraph:
    """A graph, read from its outputs backwards.

    Args:
        proto: an ``onnx.GraphProto``.
    """

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.makers: dict[str, Any] = {name: node for node in proto.node for name in node.output if name}
        self._constants = {each.name for each in proto.initializer} | {
            each.values.name for each in proto.sparse_initializer
        }

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs, without the weights that old models list among them."""
        return [each.name for each in self.proto.input if each.name not in self._constants]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [each.name for each in self.proto.output]

    def features(self) -> str | None:
        """Return the feature tensor of a classifier, which is the input of its last layer; None for other models.

        A model counts as a classifier if its output comes from a layer with weights and a bias, and only a softmax or
        reshapes follow. Models of embeddings end in another way: with a normalisation, a projection without bias, or an
        average.
        """
        name, has_bias = self.outputs[0], False
        while (node := self.makers.get(name)) is not None:
            if node.op_type in _LAYERS:
                return self._features_before(node, has_bias)
            step = self._term(node) if node.op_type in _SUMS and not has_bias else self._before(node)
            if step is None:
                return None
            has_bias = has_bias or node.op_type in _SUMS
            name = step
        return None

    def _features_before(self, layer: Any, has_bias: bool) -> str | None:
        weights, bias = _LAYERS[layer.op_type]
        has_bias = has_bias or (bias is not None and len(layer.input) > bias and layer.input[bias] != "")
        if not has_bias or not self._is_constant(layer.input[weights]):
            return None
        name: str = layer.input[0]
        maker = self.makers.get(name)
        return str(maker.input[0]) if maker is not None and maker.op_type in _TO_INTEGERS else name

    def _before(self, node: Any) -> str | None:
        """Return the tensor that a node only reshapes or rescales; None for other nodes."""
        if node.op_type in _AFTER_SCORES:
            return str(node.input[0])
        if node.op_type == "Mul":  # dequantization of a product, by the scales of both factors
            for name in node.input:
                maker = self.makers.get(name)
                if maker is not None and maker.op_type == "Cast":
                    return str(name)
        return None

    def _term(self, node: Any) -> str | None:
        """Return the non-constant term of a sum with a constant; None for other nodes."""
        first, second = (node.input[position] for position in _SUMS[node.op_type])
        if self._is_constant(second):
            return str(first)
        return str(second) if self._is_constant(first) else None

    def _is_constant(self, name: str) -> bool:
        maker = self.makers.get(name)
        if maker is None:
            return name in self._constants
        return maker.op_type == "Constant" or (
            maker.op_type in ("DequantizeLinear", "Identity", "Transpose", "Cast") and self._is_constant(maker.input[0])
        )

    def outside(self) -> list[str]:
        """Return the names of the external weight files beside the model."""
        names = {
            entry.value
            for tensor in self.proto.initializer
            for entry in tensor.external_data
            if entry.key == "location"
        }
        return sorted(names)

    def check_tensor(self, name: str, owner: str) -> None:
        """Check that a tensor exists.

        Args:
            name: of the tensor.
            owner: a description of the model, for the message.

        Raises:
            InvalidInput: it does not exist. The message lists the most similar names and the last tensors.
        """
        if name in self.makers:
            return
        names = list(self.makers)
        near = get_close_matches(name, names, _MAX_NAMES)
        raise InvalidInput(
            f"{owner} has no tensor {name!r}; "
            + (f"the nearest names are {', '.join(near)}; " if near else "")
            + f"the last ones are {', '.join(names[-_MAX_NAMES:])}"
        )

    def scale_of(self, name: str) -> tuple[str, str] | None:
        """Return the scale and zero point that dequantize a quantized tensor; None for other tensors."""
        for node in self.proto.node:
            if node.op_type == "DequantizeLinear" or node.op_type.startswith(("QLinear", "QGemm")):
                for position, each in enumerate(node.input):
                    if each == name and len(node.input) > position + 2:
                        return node.input[position + 1], node.input[position + 2]
        maker = self.makers[name]
        if maker.op_type == "QuantizeLinear" and len(maker.input) > 2:
            return maker.input[1], maker.input[2]
        return None

    def end_at(self, name: str) -> None:
        """Make a tensor the only output, dequantized if necessary, and remove all nodes that it does not depend on."""
        from onnx import helper

        if (scale := self.scale_of(name)) is not None:
            free = f"{name}_as_numbers"
            while free in self.makers:
                free += "_"
            node = helper.make_node("DequantizeLinear", [name, *scale], [free])
            self.proto.node.append(node)
            self.makers[free] = self.proto.node[-1]
            name = free
        del self.proto.output[:]
        # Without type and shape, because the engine infers them.
        self.proto.output.append(helper.make_empty_tensor_value_info(name))
        needed = self._needed(name)
        nodes = [node for node in self.proto.node if any(each in needed for each in node.output)]
        del self.proto.node[:]
        self.proto.node.extend(nodes)

    def _needed(self, name: str) -> set[str]:
        needed, waiting = set(), [name]
        while waiting:
            each = waiting.pop()
            if each not in needed and each in self.makers:
                needed.add(each)
                waiting.extend(_read_by(self.makers[each]))
        return needed


def _read_by(node: Any) -> Iterator[str]:
    """Yield the tensors that a node and its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                yield from _read_by(inner)
            yield from (each.name for each in graph.output)
