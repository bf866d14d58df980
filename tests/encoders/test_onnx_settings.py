"""Settings of a model in a name, in a file beside it, and in code; invalid ones are rejected with the valid form."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders import OnnxEncoder
from framedex.encoders.onnx_settings import (
    OnnxSettings,
    name_of,
    parse_name,
    parse_onnx_settings,
    read_onnx_sidecar,
    sidecar_of,
)
from framedex.errors import InvalidInput
from tests.encoders.onnx_models import classifier

_NUMBERS = st.floats(1e-3, 1e3)
_ANY_SETTINGS = st.builds(
    OnnxSettings,
    size=st.none() | st.tuples(st.integers(1, 8192), st.integers(1, 8192)),
    scale=st.none() | _NUMBERS,
    mean=st.none() | st.tuples(*[st.floats(-1e3, 1e3)] * 3),
    std=st.none() | st.tuples(_NUMBERS, _NUMBERS, _NUMBERS),
    colours=st.none() | st.sampled_from(["rgb", "bgr"]),
    layout=st.none() | st.sampled_from(["nchw", "nhwc"]),
    resize=st.none() | st.sampled_from(["crop", "stretch", "letterbox"]),
    crop=st.none() | st.floats(1e-3, 1),
    fill=st.none() | st.integers(0, 255),
    output=st.none() | st.text(min_size=1, max_size=30),
    pool=st.none() | st.sampled_from(["mean", "first"]),
    thresholds=st.none() | st.sets(st.floats(1e-3, 2), min_size=5, max_size=5).map(lambda cuts: tuple(sorted(cuts))),
)


@pytest.mark.slow
@given(_ANY_SETTINGS)
def test_name__law(wanted: OnnxSettings) -> None:
    """A name restores any settings."""
    path = Path("/models/of mine & yours/50%=half.onnx")
    assert parse_name(name_of(path, wanted)) == (str(path), wanted)


def test_name__as_people_write_it() -> None:
    """Names are readable: numbers with commas, one number for both sides, tensor names with slashes."""
    path, wanted = parse_name("onnx:m.onnx?size=224&mean=0.5,0.5,0.5&output=/features/18/Relu_output_0&scale=255")
    assert path == "m.onnx"
    assert wanted == OnnxSettings(
        size=(224, 224), mean=(0.5, 0.5, 0.5), output="/features/18/Relu_output_0", scale=255.0
    )
    assert name_of(Path("/m.onnx"), wanted) == (
        "onnx:/m.onnx?size=224,224&scale=255&mean=0.5,0.5,0.5&output=/features/18/Relu_output_0"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("onnx", "names no model", id="scheme alone"),
        pytest.param("onnx:", "names no model", id="no path"),
        pytest.param("onnx:?size=3", "names no model", id="settings alone"),
        pytest.param("onnx:m.onnx?size", "<setting>=<value>", id="no value"),
        pytest.param("onnx:m.onnx?size=1&size=2", "same setting twice", id="twice"),
        pytest.param("onnx:m.onnx?sise=224", "no setting 'sise'; there are: size, scale", id="unknown"),
        pytest.param("onnx:m.onnx?size=", "size is ''", id="empty"),
        pytest.param("onnx:m.onnx?size=0", "size is '0'", id="no pixels"),
        pytest.param("onnx:m.onnx?size=1,2,3", "size is '1,2,3'", id="three sides"),
        pytest.param("onnx:m.onnx?size=99999", "size is '99999'", id="too large"),
        pytest.param("onnx:m.onnx?mean=1,2", "mean is '1,2'", id="two colours"),
        pytest.param("onnx:m.onnx?mean=1,2,x", "mean is '1,2,x'", id="no number"),
        pytest.param("onnx:m.onnx?mean=nan,0,0", "mean is 'nan,0,0'", id="not a number"),
        pytest.param("onnx:m.onnx?std=1,0,1", "deviations must be above 0", id="zero deviation"),
        pytest.param("onnx:m.onnx?scale=-1", "scale is '-1'", id="negative scale"),
        pytest.param("onnx:m.onnx?colours=cmyk", "'rgb' or 'bgr'", id="colours"),
        pytest.param("onnx:m.onnx?resize=fit", "'crop', 'stretch' or 'letterbox'", id="resize"),
        pytest.param("onnx:m.onnx?crop=1.5", "crop is '1.5'", id="crop"),
        pytest.param("onnx:m.onnx?fill=256", "fill is '256'", id="fill"),
        pytest.param("onnx:m.onnx?output=", "output is ''", id="output"),
        pytest.param("onnx:m.onnx?thresholds=1,2,3", "thresholds is '1,2,3'", id="three thresholds"),
        pytest.param("onnx:m.onnx?thresholds=0.1,0.3,0.2,0.4,0.5", "five ascending", id="descending"),
        pytest.param("onnx:m.onnx?thresholds=0.1,0.2,0.3,0.4,2.5", "up to 2", id="beyond 2"),
    ],
)
def test_name__that_cannot_be(name: str, message: str) -> None:
    """A malformed name is rejected with its valid form."""
    with pytest.raises(InvalidInput, match=message):
        parse_name(name)


def test_sidecar__says_what_was_not_given(tmp_path: Path) -> None:
    """The file beside the model completes passed settings, which have priority."""
    path = classifier(tmp_path / "small.onnx")
    (tmp_path / "small.toml").write_text(
        "mean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\nresize = 'letterbox'\noutput = 'scores'\n"
        "thresholds = [0.1, 0.2, 0.3, 0.4, 0.5]\n"
    )
    beside, over = OnnxEncoder(path), OnnxEncoder(path, output="features", resize="crop")
    assert beside.name == f"onnx:{path}"
    assert over.name == f"onnx:{path}?resize=crop&output=features"
    assert (beside.dimension, over.dimension) == (4, 6)
    assert beside.thresholds == over.thresholds == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert beside.weights is not None
    assert over.weights is not None
    found = [{key: each.weights.settings[key] for key in ("mean", "resize", "output")} for each in (beside, over)]  # type: ignore[union-attr]  # both were checked
    assert found == [
        {"mean": "0.5,0.5,0.5", "resize": "letterbox", "output": "scores"},
        {"mean": "0.5,0.5,0.5", "resize": "crop", "output": "features"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("sise = 224", "no setting 'sise'; there are: size", id="unknown key"),
        pytest.param("size = [224", "cannot be read", id="no TOML"),
        pytest.param("size = 'large'", "size is 'large'", id="wrong value"),
        pytest.param("[size]\nheight = 3", "size is {'height': 3}", id="table"),
    ],
)
def test_sidecar__that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    """A malformed file of settings is rejected by name, and no key is ignored."""
    path = classifier(tmp_path / "small.onnx")
    sidecar_of(path).write_text(text)
    with pytest.raises(InvalidInput, match=r"small\.toml") as caught:
        OnnxEncoder(path)
    assert message in str(caught.value)


def test_sidecar__that_is_no_file(tmp_path: Path) -> None:
    """A folder with that name, or invalid UTF-8, is rejected."""
    path = classifier(tmp_path / "small.onnx")
    sidecar_of(path).mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_onnx_sidecar(path)
    sidecar_of(path).rmdir()
    sidecar_of(path).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_onnx_sidecar(path)


@pytest.mark.parametrize("values", [{"size": True}, {"size": 2.5}, {"mean": 3}, {"output": 5}, {"crop": "much"}])
def test_code__values_that_cannot_be(values: Any) -> None:
    """Arguments of other types are rejected by name."""
    with pytest.raises(InvalidInput, match=f"OnnxEncoder: {next(iter(values))} is "):
        parse_onnx_settings(values, "OnnxEncoder")
