"""Files that are not models with one image as input are rejected, with the error and the valid form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from framedex import Workspace
from framedex.encoders import OnnxEncoder, choose_encoder
from framedex.errors import InvalidInput, MissingDependency, NotFound
from tests.encoders.onnx_models import classifier, constant, passing, save_model, single
from tests.image_files import encode, photo
from tests.processes import run


def test_file__is_not_there(tmp_path: Path) -> None:
    """A path without a file is rejected, by name and in code; so is a folder."""
    missing = tmp_path / "missing.onnx"
    for made in (lambda: OnnxEncoder(missing), lambda: choose_encoder(f"onnx:{missing}")):
        with pytest.raises(NotFound, match=r"no model file '.*missing\.onnx'"):
            made()
    with pytest.raises(NotFound, match="no model file"):
        OnnxEncoder(tmp_path)


def test_file__cannot_be_named(tmp_path: Path) -> None:
    """A path that could not be separated from settings is rejected."""
    path = classifier(tmp_path / "small.onnx").rename(tmp_path / "what?.onnx")
    with pytest.raises(InvalidInput, match=r"no '\?'"):
        OnnxEncoder(path)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda _: b"hello, world", id="text"),
        pytest.param(lambda _: encode(photo(1)), id="image"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data[:-1], id="all but a byte"),
        pytest.param(lambda data: data[len(data) // 3 :], id="without its beginning"),
        pytest.param(lambda data: data[:100] + bytes(100) + data[200:], id="zeros in it"),
    ],
)
def test_file__is_no_model(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Damaged and other files are rejected by name, with our own error."""
    path = classifier(tmp_path / "small.onnx")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=r"small\.onnx"):
        OnnxEncoder(path)


def test_file__keeps_weights_elsewhere(tmp_path: Path) -> None:
    """A model with external weights needs their file."""
    from onnx import load, save

    classifier(tmp_path / "inside.onnx")
    path = tmp_path / "outside.onnx"
    save(load(tmp_path / "inside.onnx"), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(NotFound, match=r"keeps weights in 'w\.bin'"):
        OnnxEncoder(path)


def test_output__is_not_there(tmp_path: Path) -> None:
    """An unknown tensor is rejected with the most similar and the last names."""
    path = classifier(tmp_path / "small.onnx")
    with pytest.raises(InvalidInput) as caught:
        OnnxEncoder(path, output="feature")
    assert "no tensor 'feature'; the nearest names are features" in str(caught.value)
    assert "the last ones are active, pooled, features, scores, output" in str(caught.value)
    with pytest.raises(InvalidInput, match="no tensor 'input'"):
        OnnxEncoder(path, output="input")


def test_output__has_to_be_chosen(tmp_path: Path) -> None:
    """A model with several outputs needs a choice."""
    nodes = [helper.make_node("Flatten", ["input"], ["one"]), helper.make_node("Neg", ["one"], ["two"])]
    path = save_model(tmp_path / "two.onnx", nodes, outputs=("one", "two"))
    with pytest.raises(InvalidInput, match="has 2 outputs; say which is the vector: output=one or output=two"):
        OnnxEncoder(path)
    assert OnnxEncoder(path, output="two").dimension == 192


def test_output__is_no_vector(tmp_path: Path) -> None:
    """Integers, one number for all images, and too many axes are rejected."""
    index = single(tmp_path / "index.onnx", "ArgMax", axis=1)
    with pytest.raises(InvalidInput, match=r"holds tensor\(int64\)"):
        OnnxEncoder(index)
    total = single(tmp_path / "total.onnx", "ReduceSum", keepdims=0)
    with pytest.raises(InvalidInput, match="first axis of a vector counts the images"):
        OnnxEncoder(total)
    axes = single(tmp_path / "axes.onnx", "Unsqueeze", ("input", "axes"), [constant("axes", [4], "int64")])
    with pytest.raises(InvalidInput, match=r"shape \(3, 8, 8, 1\) an image"):
        OnnxEncoder(axes)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(("n", 4, 8, 8), id="four colours"),
        pytest.param(("n", 1, 8, 8), id="grey"),
        pytest.param(("n", 3, 8), id="three axes"),
        pytest.param(("n", "text"), id="no image"),
    ],
)
def test_input__is_no_image(tmp_path: Path, shape: Any) -> None:
    """Models of audio, text and grey images are rejected with their input's shape."""
    with pytest.raises(InvalidInput, match=r"the input 'input' of the model .* 4 axes with 3 colours"):
        OnnxEncoder(passing(tmp_path / "m.onnx", shape=shape))


def test_input__of_another_type(tmp_path: Path) -> None:
    """Models with integer input are rejected."""
    path = passing(tmp_path / "m.onnx", kind=TensorProto.INT64)
    with pytest.raises(InvalidInput, match=r"tensor\(int64\).*float, float16 or uint8"):
        OnnxEncoder(path)


def test_input__several(tmp_path: Path) -> None:
    """A model with several inputs is rejected with their names."""
    inputs: Any = [("image", 1, ("n", 3, 8, 8)), ("mask", 1, ("n", 3, 8, 8))]
    path = save_model(tmp_path / "m.onnx", [helper.make_node("Add", ["image", "mask"], ["output"])], inputs=inputs)
    with pytest.raises(InvalidInput, match=r"takes 2 inputs \(image, mask\)"):
        OnnxEncoder(path)


def test_settings__that_do_not_suit_the_model(tmp_path: Path) -> None:
    """A missing size, another size or layout than the model's, and a mean for uint8 input are rejected."""
    open_size = passing(tmp_path / "open.onnx", shape=("n", 3, "h", "w"))
    with pytest.raises(InvalidInput, match="any size: say which, as size=224"):
        OnnxEncoder(open_size)
    fixed = passing(tmp_path / "fixed.onnx", shape=("n", 3, 8, "w"))
    with pytest.raises(InvalidInput, match=r"8×None \(height × width\), not 9×9"):
        OnnxEncoder(fixed, size=9)
    with pytest.raises(InvalidInput, match="3 colours as nhwc"):
        OnnxEncoder(passing(tmp_path / "first.onnx"), layout="nhwc")
    whole = passing(tmp_path / "bytes.onnx", kind=TensorProto.UINT8)
    with pytest.raises(InvalidInput, match="no scale, mean or std"):
        OnnxEncoder(whole, mean=(1, 1, 1))


def test_size__that_the_model_cannot_run(tmp_path: Path) -> None:
    """A size that the layers do not accept is rejected at once, not within a dataset."""
    shape = constant("shape", [-1, 48], "int64")
    nodes = [helper.make_node("Reshape", ["input", "shape"], ["output"])]
    path = save_model(tmp_path / "m.onnx", nodes, [shape], inputs=[("input", 1, ("n", 3, "h", "w"))])
    assert OnnxEncoder(path, size=4).dimension == 48
    with pytest.raises(InvalidInput, match="cannot be run"):
        OnnxEncoder(path, size=5)


def test_operators__unknown(tmp_path: Path) -> None:
    """A model with an operator that the engine does not support is rejected."""
    with pytest.raises(InvalidInput, match=r"is no ONNX model that can be used: .*Imagined"):
        OnnxEncoder(single(tmp_path / "m.onnx", "Imagined"))


@pytest.mark.slow
def test_engine__is_not_installed(tmp_path: Path) -> None:
    """Without ONNX Runtime, the message names the package to install."""
    out = run(
        """
        import sys
        from framedex.encoders import choose_encoder
        from framedex.errors import MissingDependency
        for engine in ("onnxruntime", "onnx"):
            sys.modules[engine] = None
            try:
                choose_encoder("onnx:" + sys.argv[1])
            except MissingDependency as error:
                print(error)
            del sys.modules[engine]
        """,
        classifier(tmp_path / "small.onnx"),
    )
    assert out.splitlines() == ["models in ONNX need ONNX Runtime: pip install framedex[onnx]"] * 2
    assert issubclass(MissingDependency, ImportError)


def test_dataset__of_a_wrong_model(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A dataset is not created if its encoder cannot be loaded."""
    with pytest.raises(NotFound, match="no model file"):
        workspace.create_dataset("pets", folder, f"onnx:{tmp_path}/missing.onnx")
    assert workspace.datasets() == []
