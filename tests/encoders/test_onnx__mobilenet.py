"""A real network, quantized to eight bits, recognises real photographs."""

from bisect import bisect_left
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from framedex.encoders import OnnxEncoder, decode_side_px
from framedex.media.decode import decode
from tests.image_files import encode

SHARED = Path(__file__).parents[3] / "shared" / "data"
MODEL = SHARED / "models" / "mobilenetv2-12-int8.onnx"
PHOTOS = SHARED / "photos" / "imagenet-sample"

pytestmark = pytest.mark.skipif(not MODEL.is_file(), reason="the shared models are not here")


def vectors(encoder: OnnxEncoder, files: list[bytes]) -> npt.NDArray[np.float32]:
    """Return the vectors of files as ingestion computes them."""
    shown = [decode(each, max_pixels=10**8, detail=decode_side_px(encoder)).pixels for each in files]
    return encoder.encode_images(np.stack([encoder.prepare(each) for each in shown]))


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    """Photos of forty classes, in the order of the classes."""
    return [path.read_bytes() for path in sorted(PHOTOS.iterdir())[::6][:40]]


def test_features__are_what_the_classifier_gets(files: list[bytes]) -> None:
    """The default output is the input of the last layer, dequantized."""
    encoder = OnnxEncoder(MODEL)
    assert encoder.weights is not None
    assert (encoder.dimension, encoder.weights.settings["output"]) == (1280, "472_quantized")
    found = vectors(encoder, files[:5])
    pooled = vectors(OnnxEncoder(MODEL, output="627"), files[:5])
    assert np.einsum("nd,nd->n", found, pooled).min() > 0.999


@pytest.mark.slow
def test_classes__are_recognised(files: list[bytes]) -> None:
    """ImageNet numbers its classes by name, so the classes of sorted photographs mostly ascend."""
    scores = vectors(OnnxEncoder(MODEL, output="output", resize="crop"), files)
    ascending: list[int] = []
    for number in scores.argmax(axis=1).tolist():
        place = bisect_left(ascending, number)
        ascending[place : place + 1] = [number]
    assert len(ascending) >= 0.7 * len(files)  # of random numbers, some 12 of 40 ascend


@pytest.mark.slow
def test_vectors__do_not_depend_on_the_batch(files: list[bytes]) -> None:
    """The vector of a photograph does not depend on its batch."""
    encoder = OnnxEncoder(MODEL)
    whole = vectors(encoder, files[:9])
    np.testing.assert_array_equal(np.concatenate([vectors(encoder, [each]) for each in files[:9]]), whole)


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__are_found(files: list[bytes]) -> None:
    """A compressed and a mirrored copy are nearer to their photograph than all others."""
    encoder = OnnxEncoder(MODEL)
    whole = vectors(encoder, files)
    pixels = [decode(each, max_pixels=10**8, detail=None).pixels for each in files]
    for edited in (
        [encode(each, "JPEG", quality=30) for each in pixels],
        [encode(each[:, ::-1], "JPEG", quality=90) for each in pixels],
    ):
        assert (vectors(encoder, edited) @ whole.T).argmax(axis=1).tolist() == list(range(len(files)))
