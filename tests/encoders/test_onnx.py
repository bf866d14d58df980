"""ONNX models as encoders: their inputs, their vectors, and reproducibility."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

from framedex.encoders import Encoder, OnnxEncoder, TextEncoder, Weighted, choose_encoder
from framedex.errors import InvalidEmbedding
from tests.encoders.onnx_models import classifier, constant, passing, save_model, single, weights
from tests.image_files import BLACK, WHITE, Pixels, flat, photo
from tests.processes import run


def vectors(encoder: Encoder, *images: Pixels) -> npt.NDArray[np.float32]:
    """Return the vectors of images."""
    return encoder.encode_images(np.stack([encoder.prepare(each) for each in images]))


def unit(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return values as a vector of length 1."""
    flat_values = np.asarray(values, np.float64).ravel()
    return np.asarray(flat_values / np.linalg.norm(flat_values))


def test_encoder__is_one(tmp_path: Path) -> None:
    """It satisfies the protocol of image encoders and states its weights; it does not encode texts."""
    encoder = OnnxEncoder(classifier(tmp_path / "small.onnx"))
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, Weighted)
    assert not isinstance(encoder, TextEncoder)
    assert len(encoder.thresholds) == 5
    assert list(encoder.thresholds) == sorted(set(encoder.thresholds))
    assert (encoder.dimension, encoder.min_side_px) == (6, 8)


def test_vectors__shape_type_and_length(tmp_path: Path) -> None:
    """Vectors are float32 in C order, of unit length, for any number of images, including zero."""
    encoder = OnnxEncoder(classifier(tmp_path / "small.onnx"))
    found = vectors(encoder, *(photo(seed) for seed in range(5)))
    assert found.shape == (5, 6)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert encoder.encode_images(np.empty((0, 8, 8, 3), np.uint8)).shape == (0, 6)


@pytest.mark.slow
def test_vectors__do_not_depend_on_the_batch_or_threads(tmp_path: Path) -> None:
    """The vector of an image does not depend on its batch, so copies have equal vectors."""
    encoder = OnnxEncoder(classifier(tmp_path / "small.onnx"))
    images = [photo(seed) for seed in range(33)]
    whole = vectors(encoder, *images)
    for size in (1, 2, 7, 32):
        parts = [vectors(encoder, *images[start : start + size]) for start in range(0, 33, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda image: vectors(encoder, image)[0], images))
    np.testing.assert_array_equal(np.stack(alone), whole)


def test_vectors__of_a_model_that_scales_by_the_batch(tmp_path: Path) -> None:
    """A dynamically quantized model gives a dark image the same vector alone and beside a bright one."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["input"], ["whole", "step", "zero"]),
        helper.make_node("DequantizeLinear", ["whole", "step", "zero"], ["numbers"]),
        helper.make_node("Flatten", ["numbers"], ["output"]),
    ]
    encoder = OnnxEncoder(save_model(tmp_path / "dynamic.onnx", nodes), scale=255)
    dark, bright = flat((1, 2, 3)), flat(WHITE)
    np.testing.assert_array_equal(vectors(encoder, dark, bright)[0], vectors(encoder, dark)[0])


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        pytest.param(("n", 3, 2, 2), (2, 0, 1), id="colours first"),
        pytest.param(("n", 2, 2, 3), (0, 1, 2), id="colours last"),
    ],
)
@pytest.mark.parametrize("colours", ["rgb", "bgr"])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_input__values(tmp_path: Path, shape: Any, order: Any, colours: Any, kind: int) -> None:
    """Values are scaled, and mean and std are applied by colour in the model's order."""
    path = passing(tmp_path / "passing.onnx", shape=shape, kind=kind)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.25, 2.0)
    encoder = OnnxEncoder(path, mean=mean, std=std, colours=colours)
    image = np.random.default_rng(0).integers(0, 256, (2, 2, 3)).astype(np.uint8)
    ordered = image[:, :, ::-1] if colours == "bgr" else image
    expected = ((ordered / 255 - mean) / std).transpose(order)
    np.testing.assert_allclose(vectors(encoder, image)[0], unit(expected), atol=2e-3 if kind != 1 else 1e-6)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, lambda x: (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], id="ImageNet"),
        pytest.param(
            {"colours": "bgr"},
            lambda x: ((x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225])[:, :, ::-1],
            id="ImageNet, blue first",
        ),
        pytest.param({"scale": 255}, lambda x: x, id="pixels"),
        pytest.param({"scale": 255, "mean": (127.5,) * 3}, lambda x: x - 127.5, id="centred pixels"),
        pytest.param({"scale": 2, "mean": (1, 1, 1)}, lambda x: x / 127.5 - 1, id="-1 to 1"),
    ],
)
def test_input__range(tmp_path: Path, given: Any, expected: Any) -> None:
    """The defaults are those of ImageNet for values up to 1, and without effect for other ranges."""
    encoder = OnnxEncoder(passing(tmp_path / "passing.onnx", shape=("n", 2, 2, 3)), **given)
    image = np.random.default_rng(1).integers(0, 256, (2, 2, 3)).astype(np.uint8)
    np.testing.assert_allclose(vectors(encoder, image)[0], unit(expected(image)), atol=1e-6)


def test_input__whole_numbers(tmp_path: Path) -> None:
    """A model with uint8 input gets the pixels unchanged."""
    encoder = OnnxEncoder(passing(tmp_path / "bytes.onnx", shape=("n", 2, 2, 3), kind=TensorProto.UINT8))
    image = np.random.default_rng(2).integers(0, 256, (2, 2, 3)).astype(np.uint8)
    np.testing.assert_allclose(vectors(encoder, image)[0], unit(image), atol=1e-6)


@pytest.mark.parametrize("batch", [1, 3, "n", ""])
def test_input__batches_of_a_fixed_size(tmp_path: Path, batch: Any) -> None:
    """Models with a fixed batch size give the same vectors as those with any batch size."""
    any_number = OnnxEncoder(passing(tmp_path / "any.onnx"))
    fixed = OnnxEncoder(passing(tmp_path / "fixed.onnx", shape=(batch, 3, 2, 2)))
    images = [photo(seed) for seed in range(4)]
    np.testing.assert_array_equal(vectors(fixed, *images), vectors(any_number, *images))


def test_input__open_size(tmp_path: Path) -> None:
    """A model that accepts any size needs one: a number, or height and width."""
    path = passing(tmp_path / "open.onnx", shape=("n", 3, "h", "w"))
    assert OnnxEncoder(path, size=4).dimension == 48
    wide = OnnxEncoder(path, size=(2, 5))
    assert wide.prepare(photo(0)).shape == (2, 5, 3)
    assert wide.dimension == 30


def test_output__by_name(tmp_path: Path) -> None:
    """Any tensor can be the vector: class scores, an inner tensor, or one with positions, which is averaged."""
    path = classifier(tmp_path / "small.onnx")
    lengths = {name: OnnxEncoder(path, output=name).dimension for name in ("output", "scores", "features", "active")}
    assert lengths == {"output": 4, "scores": 4, "features": 6, "active": 6}
    image = photo(3)
    averaged, pooled = (vectors(OnnxEncoder(path, output=name), image) for name in ("active", "features"))
    np.testing.assert_allclose(averaged, pooled, atol=1e-6)


def test_output__tokens(tmp_path: Path) -> None:
    """Tokens are averaged, or the first one is the vector."""
    shape = constant("shape", [0, 4, 3], np.int64)
    path = single(tmp_path / "tokens.onnx", "Reshape", ("input", "shape"), [shape])
    path = save_model(
        path,
        [helper.make_node("Reshape", ["input", "shape"], ["output"])],
        [shape],
        inputs=[("input", TensorProto.FLOAT, ("n", 2, 2, 3))],
    )
    image = np.random.default_rng(3).integers(0, 256, (2, 2, 3)).astype(np.uint8)
    tokens = image.reshape(4, 3).astype(np.float64)
    mean, first = OnnxEncoder(path, scale=255), OnnxEncoder(path, scale=255, pool="first")
    np.testing.assert_allclose(vectors(mean, image)[0], unit(tokens.mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(vectors(first, image)[0], unit(tokens[0]), atol=1e-6)


def test_output__nothing_found(tmp_path: Path) -> None:
    """Images without any activation have vectors that are similar to each other and not to others."""
    encoder = OnnxEncoder(passing(tmp_path / "passing.onnx"), scale=255)
    one, other, grey = vectors(encoder, flat(BLACK), flat(BLACK, width=9), flat((9, 9, 9)))
    np.testing.assert_array_equal(one, other)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-6)
    assert one @ grey < 0


def test_output__not_finite(tmp_path: Path) -> None:
    """Values that are not finite are rejected with the name of the encoder."""
    encoder = OnnxEncoder(single(tmp_path / "log.onnx", "Log"), scale=1, mean=(0, 0, 0), std=(1, 1, 1))
    with pytest.raises(InvalidEmbedding, match=r"log\.onnx.*not finite"):
        vectors(encoder, flat(BLACK))


@pytest.mark.slow
def test_name__leads_to_the_same_encoder(tmp_path: Path) -> None:
    """The name contains all passed settings, so another process computes the same vectors from the name."""
    path = classifier(tmp_path / "a small & odd=name.onnx")
    encoder = OnnxEncoder(path, mean=(0.1, 0.5, 1 / 3), std=(1, 2, 3), colours="bgr", resize="crop", output="scores")
    again, _ = choose_encoder(encoder.name)
    assert isinstance(again, OnnxEncoder)
    assert (again.name, again.weights, again.thresholds) == (encoder.name, encoder.weights, encoder.thresholds)
    out = run(
        """
        import sys
        from framedex.encoders import choose_encoder
        from tests.encoders.test_onnx import vectors
        from tests.image_files import photo
        print(vectors(choose_encoder(sys.argv[1])[0], photo(1)).tobytes().hex())
        """,
        encoder.name,
    )
    assert bytes.fromhex(out) == vectors(encoder, photo(1)).tobytes()


def test_name__is_absolute(tmp_path: Path) -> None:
    """A relative path becomes absolute, so that the name is valid in any folder."""
    classifier(tmp_path / "small.onnx")
    with chdir(tmp_path):
        encoder, _ = choose_encoder("onnx:small.onnx?resize=crop")
    assert encoder.name == f"onnx:{tmp_path}/small.onnx?resize=crop"
    assert choose_encoder(encoder.name)[0] is encoder


def test_encoder__is_read_once(tmp_path: Path) -> None:
    """A name returns the cached encoder until one of its files changes."""
    path = classifier(tmp_path / "small.onnx")
    before, _ = choose_encoder(f"onnx:{path}")
    assert choose_encoder(f"onnx:{path}")[0] is before
    path.with_suffix(".toml").write_text("resize = 'crop'\n")
    beside, _ = choose_encoder(f"onnx:{path}")
    assert beside is not before
    classifier(path, seed=9)
    assert choose_encoder(f"onnx:{path}")[0] is not beside


def test_weights_in_files_beside_the_model(tmp_path: Path) -> None:
    """External weights beside the model are read, and their hash is stated."""
    from onnx import load
    from onnx import save as save_onnx

    inside = OnnxEncoder(classifier(tmp_path / "inside.onnx"))
    outside_path = tmp_path / "outside.onnx"
    save_onnx(
        load(tmp_path / "inside.onnx"), outside_path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    outside = OnnxEncoder(outside_path)
    np.testing.assert_array_equal(vectors(outside, photo(1)), vectors(inside, photo(1)))
    assert outside.weights is not None
    assert len(outside.weights.settings["w.bin"]) == 64
    assert tmp_path / "w.bin" in outside.files


@pytest.mark.slow
def test_engine__loads_late(tmp_path: Path) -> None:
    """The engine is loaded by the first encoder, not by the module."""
    out = run(
        """
        import sys
        import framedex.encoders
        before = [name for name in ("onnx", "onnxruntime") if name in sys.modules]
        framedex.encoders.OnnxEncoder(sys.argv[1])
        print(before, "onnxruntime" in sys.modules)
        """,
        classifier(tmp_path / "small.onnx"),
    )
    assert out.split() == ["[]", "True"]


def test_dimension__is_bounded(tmp_path: Path) -> None:
    """A feature map is too long for a vector; the error asks for another output."""
    path = single(tmp_path / "flat.onnx", "Flatten")
    assert OnnxEncoder(path).dimension == 192
    wide = passing(tmp_path / "wide.onnx", shape=("n", 3, "h", "w"))
    with pytest.raises(ValueError, match=r"30000 values an image; a vector has at most 16384"):
        OnnxEncoder(wide, size=100)


def test_thresholds__given(tmp_path: Path) -> None:
    """The thresholds of clusters can be passed."""
    cuts = (0.01, 0.02, 0.03, 0.04, 0.5)
    assert OnnxEncoder(classifier(tmp_path / "small.onnx"), thresholds=cuts).thresholds == cuts


def test_weights__of_a_matrix_alone(tmp_path: Path) -> None:
    """A projection without bias is an embedding: its result is the vector."""
    nodes = [
        helper.make_node("Flatten", ["input"], ["values"]),
        helper.make_node("MatMul", ["values", "matrix"], ["output"]),
    ]
    path = save_model(tmp_path / "projection.onnx", nodes, [constant("matrix", weights(192, 5))])
    assert OnnxEncoder(path).dimension == 5
