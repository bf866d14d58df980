"""The feature tensor of a classifier is found in its graph, and any tensor can become the only output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, load

from framedex.encoders import OnnxEncoder
from framedex.encoders.onnx_graph import OnnxGraph
from tests.encoders.onnx_models import classifier, constant, save_model, weights
from tests.encoders.test_onnx import unit, vectors
from tests.image_files import photo

FLAT = helper.make_node("Flatten", ["input"], ["features"])
MATRIX = constant("matrix", weights(192, 4))
BIAS = constant("bias", weights(4))


def taken(path: Path) -> str:
    """Return the tensor that is the default vector of a model."""
    encoder = OnnxEncoder(path)
    assert encoder.weights is not None
    return encoder.weights.settings["output"]


def model(path: Path, *nodes: Any, constants: Any = (MATRIX, BIAS)) -> Path:
    """Write a model whose first node computes ``features`` of the image."""
    return save_model(path, [FLAT, *nodes], constants)


GEMM = helper.make_node("Gemm", ["features", "matrix", "bias"], ["output"])
PLAIN_GEMM = helper.make_node("Gemm", ["features", "matrix"], ["output"])
PRODUCT = helper.make_node("MatMul", ["features", "matrix"], ["product"])
SUM = helper.make_node("Add", ["product", "bias"], ["output"])
SUM_TURNED = helper.make_node("Add", ["bias", "product"], ["output"])


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([GEMM], id="layer"),
        pytest.param([PRODUCT, SUM], id="product and bias"),
        pytest.param([PRODUCT, SUM_TURNED], id="bias and product"),
        pytest.param(
            [
                helper.make_node("Gemm", ["features", "matrix", "bias"], ["scores"]),
                helper.make_node("Softmax", ["scores"], ["shares"], axis=1),
                helper.make_node("Identity", ["shares"], ["output"]),
            ],
            id="softmax",
        ),
    ],
)
def test_features__of_classifiers(tmp_path: Path, nodes: Any) -> None:
    """The input of the last layer is the vector, for any form of the layer."""
    assert taken(model(tmp_path / "m.onnx", *nodes)) == "features"


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([PLAIN_GEMM], id="projection without bias"),
        pytest.param([PRODUCT, helper.make_node("Identity", ["product"], ["output"])], id="product without bias"),
        pytest.param(
            [
                helper.make_node("Gemm", ["features", "matrix", "bias"], ["projected"]),
                helper.make_node("LpNormalization", ["projected"], ["output"], axis=1),
            ],
            id="normalised",
        ),
        pytest.param([helper.make_node("Relu", ["features"], ["output"])], id="no layer at all"),
        pytest.param([PRODUCT, helper.make_node("Add", ["product", "product"], ["output"])], id="sum of what it made"),
    ],
)
def test_features__of_other_models(tmp_path: Path, nodes: Any) -> None:
    """A model that ends like models of embeddings keeps its output."""
    assert taken(model(tmp_path / "m.onnx", *nodes)) == "output"


def test_features__of_a_convolution_at_the_end(tmp_path: Path) -> None:
    """A 1×1 convolution at the end is a last layer, too; its input is averaged over the single pixel."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["input"], ["pooled"]),
        helper.make_node("Conv", ["pooled", "kernels", "bias"], ["maps"]),
        helper.make_node("Flatten", ["maps"], ["output"]),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, [constant("kernels", weights(4, 3, 1, 1)), BIAS])
    assert taken(path) == "pooled"
    assert OnnxEncoder(path).dimension == 3


def test_features__of_a_model_quantized_as_it_runs(tmp_path: Path) -> None:
    """For a dynamically quantized layer, the values before quantization are the vector."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["features"], ["whole", "step", "zero"]),
        helper.make_node("MatMulInteger", ["whole", "whole_matrix", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["step", "matrix_step"], ["steps"]),
        helper.make_node("Mul", ["numbers", "steps"], ["scores"]),
        helper.make_node("Add", ["scores", "bias"], ["output"]),
    ]
    whole = np.random.default_rng(0).integers(-9, 9, (192, 4))
    constants = [constant("whole_matrix", whole, np.int8), constant("matrix_step", 0.1), BIAS]
    assert taken(model(tmp_path / "m.onnx", *nodes, constants=constants)) == "features"


def quantized(path: Path, zero: int) -> Path:
    """Write a classifier of eight-bit integers; its features are ``whole``, with a zero point."""
    nodes = [
        helper.make_node("QuantizeLinear", ["features", "step", "zero"], ["whole"]),
        helper.make_node("Identity", ["whole"], ["same"]),
        helper.make_node(
            "QLinearMatMul",
            ["same", "step", "zero", "matrix", "one", "none", "one", "zero"],
            ["sums"],
        ),
        helper.make_node(
            "QLinearAdd",
            ["sums", "one", "zero", "bias", "one", "none", "one", "zero"],
            ["scores"],
            domain="com.microsoft",
        ),
        helper.make_node("DequantizeLinear", ["scores", "one", "zero"], ["output"]),
    ]
    constants = [
        constant("step", 0.02),
        constant("one", 1.0),
        constant("zero", zero, np.uint8),
        constant("none", 0, np.uint8),
        constant("matrix", np.ones((192, 4)), np.uint8),
        constant("bias", [1, 2, 3, 4], np.uint8),
    ]
    return model(path, *nodes, constants=constants)


@pytest.mark.parametrize("output", [None, "whole", "same"])
def test_features__of_a_quantized_model(tmp_path: Path, output: str | None) -> None:
    """Integers are dequantized by scale and zero point, within one quantization step."""
    encoder = OnnxEncoder(quantized(tmp_path / "m.onnx", 128), output=output)
    assert encoder.weights is not None
    assert encoder.weights.settings["output"] == (output or "same")
    exact = OnnxEncoder(tmp_path / "m.onnx", output="features")
    assert (vectors(encoder, photo(1)) @ vectors(exact, photo(1)).T).item() > 0.9999


def test_end__leaves_out_what_is_not_needed(tmp_path: Path) -> None:
    """Layers behind the tensor are neither loaded nor run."""
    proto = load(classifier(tmp_path / "m.onnx"))
    graph = OnnxGraph(proto.graph)
    graph.end_at("pooled")
    assert [node.op_type for node in proto.graph.node] == ["Conv", "Relu", "GlobalAveragePool"]
    assert graph.outputs == ["pooled"]


def test_end__keeps_what_inner_graphs_read(tmp_path: Path) -> None:
    """A tensor that only a branch reads is kept."""
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["outer"], [name])], name, [], [helper.make_empty_tensor_value_info(name)]
        )
        for op, name in (("Neg", "left"), ("Abs", "right"))
    ]
    nodes = [
        helper.make_node("Neg", ["features"], ["outer"]),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Relu", ["chosen"], ["output"]),
    ]
    path = model(tmp_path / "m.onnx", *nodes, constants=[constant("yes", True, np.bool_)])
    encoder = OnnxEncoder(path, output="chosen", scale=255)
    pixels = encoder.prepare(photo(4)).transpose(2, 0, 1)
    np.testing.assert_allclose(vectors(encoder, photo(4))[0], unit(pixels), atol=1e-6)
