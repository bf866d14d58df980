"""Models of open_clip as encoders: reproducible vectors of images and texts."""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from framedex.encoders import Encoder, OpenClipEncoder, TextEncoder, Weighted, choose_encoder
from framedex.encoders.devices import choose_device
from framedex.encoders.open_clip_loading import load_open_clip
from framedex.errors import InvalidInput
from framedex.media.decode import decode
from tests.encoders.clip import TRAINED
from tests.image_files import encode, photo
from tests.laws import rest_slow
from tests.make_checkpoints import find_all
from tests.processes import run
from tests.shapes import HELD_OUT, SEEN

PHOTOS = Path(__file__).parents[3] / "shared" / "data" / "photos" / "imagenet-sample"


@pytest.fixture(scope="module")
def encoder() -> OpenClipEncoder:
    """The trained model."""
    return OpenClipEncoder(TRAINED, device="cpu")


@pytest.fixture(scope="module")
def large() -> OpenClipEncoder:
    """The usual model for CPUs, with random weights."""
    return OpenClipEncoder("ViT-B-32", random_weights=True, device="cpu")


@pytest.mark.slow
def test_encoder__is_one_of_images_and_texts(encoder: OpenClipEncoder) -> None:
    """It satisfies both protocols, and its name loads it again."""
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, TextEncoder)
    assert isinstance(encoder, Weighted)
    assert encoder.name == f"open_clip:{TRAINED}"
    again, reason = choose_encoder(encoder.name)
    assert (again.name, again.dimension, reason) == (encoder.name, 64, "chosen by name")


@pytest.mark.slow
@pytest.mark.only_soak
def test_recall__of_pairs_that_are_new(encoder: OpenClipEncoder) -> None:
    """Texts find new images, including new pairs of colour and shape; see tests/make_checkpoints.py."""
    assert np.mean(find_all(encoder, SEEN)) >= 0.95
    assert np.mean(find_all(encoder, HELD_OUT)) >= 0.9


def test_vectors__have_unit_length(encoder: OpenClipEncoder) -> None:
    """Vectors are float32 of unit length, one row each; an empty input gives no rows."""
    images = np.stack([encoder.prepare(photo(seed)) for seed in range(3)])
    for vectors in (encoder.encode_images(images), encoder.encode_texts(["a red circle", "anything", ""])):
        assert vectors.dtype == np.float32
        assert vectors.shape == (3, 64)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert encoder.encode_images(images[:0]).shape == encoder.encode_texts([]).shape == (0, 64)


def test_vectors__do_not_depend_on_the_batch(encoder: OpenClipEncoder) -> None:
    """Vectors of images and texts do not depend on their batch."""
    images = np.stack([encoder.prepare(photo(seed)) for seed in range(encoder.batch + 3)])
    texts = [f"a red circle and {number} more" for number in range(len(images))]
    together, said = encoder.encode_images(images), encoder.encode_texts(texts)
    for place in (0, encoder.batch - 1, encoder.batch, len(images) - 1):
        np.testing.assert_allclose(together[place], encoder.encode_images(images[place : place + 1])[0], atol=1e-5)
        np.testing.assert_allclose(said[place], encoder.encode_texts(texts[place : place + 1])[0], atol=1e-5)


@pytest.mark.slow
def test_vectors__on_several_threads(encoder: OpenClipEncoder) -> None:
    """Threads that encode at the same time get the same vectors as a single thread."""
    pixels = [photo(seed) for seed in range(24)]

    def vectors(place: int) -> npt.NDArray[np.float32]:
        image = encoder.encode_images(encoder.prepare(pixels[place])[None])
        return np.concatenate([image, encoder.encode_texts([f"an image of {place} stars"])])

    alone = [vectors(place) for place in range(len(pixels))]
    with ThreadPoolExecutor(8) as pool:
        for one, other in zip(alone, pool.map(vectors, range(len(pixels))), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_texts__longer_than_the_model_reads(encoder: OpenClipEncoder) -> None:
    """Long texts are cut off; case and spaces do not matter."""
    long, longer = "red " * 40, "red " * 4000
    vectors = encoder.encode_texts([long, longer, "A  Red\nCircle ", "a red circle"])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)
    np.testing.assert_allclose(vectors[2], vectors[3], atol=1e-5)


def test_texts__that_are_none(encoder: OpenClipEncoder) -> None:
    """A value that is not a text is named in the error."""
    with pytest.raises(InvalidInput, match="texts are str, not int: 7"):
        encoder.encode_texts(["a", 7])  # type: ignore[list-item] # that is the point


@pytest.mark.slow
def test_random__is_asked_for_by_name() -> None:
    """Random weights are equal in all processes, are visible in the name, and have no stated weights."""
    code = """
        from framedex.encoders import choose_encoder
        encoder, _ = choose_encoder("open_clip:ViT-S-32-alt?random")
        print(encoder.name, encoder.weights, encoder.encode_texts(["a red circle"])[0, :4].round(5).tolist())
        """
    mine = OpenClipEncoder("ViT-S-32-alt", random_weights=True, device="cpu")
    values = mine.encode_texts(["a red circle"])[0, :4].round(5).tolist()
    assert run(code) == f"open_clip:ViT-S-32-alt?random None {values}\n"


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("which", rest_slow(["trained", "large"], 1))
def test_photos__as_by_open_clip(which: str, request: pytest.FixtureRequest) -> None:
    """Vectors of photographs decoded in reduced size have a cosine of at least 0.999 with those of open_clip."""
    encoder: OpenClipEncoder = request.getfixturevalue("encoder" if which == "trained" else "large")
    paths = sorted(PHOTOS.glob("*.JPEG"))[:6]
    if not paths:
        pytest.skip("no photographs here")
    files = [enlarged(path) for path in paths[:2]] + [path.read_bytes() for path in paths]
    check_agreement(encoder, files)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("which", ["trained", "large"])
def test_images__as_by_open_clip(which: str, request: pytest.FixtureRequest) -> None:
    """The same holds for large, grainy JPEG images, which decoding reduces most."""
    encoder: OpenClipEncoder = request.getfixturevalue("encoder" if which == "trained" else "large")
    check_agreement(encoder, [encode(photo(seed, width=1600, height=1200), "JPEG", quality=92) for seed in range(3)])


def enlarged(path: Path) -> bytes:
    """Return a photograph in the size of a camera image."""
    with Image.open(path) as image:
        return encode(
            image.convert("RGB").resize((image.width * 4, image.height * 4), Image.Resampling.LANCZOS), "JPEG"
        )


def check_agreement(encoder: OpenClipEncoder, files: Sequence[bytes]) -> None:
    """Compare our preparation of images with open_clip's transform of the full image by Pillow."""
    import io

    from open_clip.transform import PreprocessCfg, image_transform_v2

    transform = image_transform_v2(PreprocessCfg(**encoder._model.visual.preprocess_cfg), is_train=False)
    ours, theirs = [], []
    for data in files:
        decoded = decode(data, max_pixels=10**9, detail=max(encoder.min_side_px, 128))
        ours.append(encoder.encode_images(encoder.prepare(decoded.pixels)[None])[0])
        with Image.open(io.BytesIO(data)) as image:
            features = encoder._model.encode_image(transform(image.convert("RGB"))[None], normalize=True)
        theirs.append(features[0].numpy())
    assert (np.array(ours) * np.array(theirs)).sum(axis=1).min() >= 0.999


@pytest.mark.slow
def test_weights__that_change_are_read_anew(tmp_path: Path) -> None:
    """An encoder is loaded once by its name, and again when its configuration has changed."""
    folder = tmp_path / "model"
    shutil.copytree(TRAINED, folder)
    first, _ = choose_encoder(f"open_clip:{folder}")
    assert choose_encoder(f"open_clip:{folder}")[0] is first
    config = folder / "open_clip_config.json"
    config.write_text(config.read_text().replace('"bicubic"', '"bilinear"'))
    again, _ = choose_encoder(f"open_clip:{folder}")
    assert again is not first


def test_thresholds__may_be_given(encoder: OpenClipEncoder) -> None:
    """Cluster thresholds are the defaults or the user's five distances."""
    assert len(encoder.thresholds) == 5
    given = (0.1, 0.2, 0.3, 0.4, 0.5)
    assert OpenClipEncoder(TRAINED, thresholds=given).thresholds == given


@pytest.mark.slow
def test_half_precision__is_near(encoder: OpenClipEncoder) -> None:
    """Half precision changes vectors little, and they stay float32."""
    images = np.stack([encoder.prepare(photo(seed)) for seed in range(4)])
    half = OpenClipEncoder(TRAINED, device="cpu", precision="bfloat16").encode_images(images)
    assert half.dtype == np.float32
    assert (half * encoder.encode_images(images)).sum(axis=1).min() >= 0.99


def test_device__here() -> None:
    """On the CPU the default precision is float32."""
    assert choose_device("cpu").precision == "float32"
    assert choose_device("cpu", "bfloat16").precision == "bfloat16"
    assert choose_device().kind in {"cpu", "cuda", "mps"}


@pytest.mark.parametrize("device", ["", "gpu", "cpu:1", "cuda:x", "cuda:", "cuda:4096", "tpu"])
def test_device__that_is_not_here(device: str) -> None:
    """An unavailable device is rejected."""
    with pytest.raises(InvalidInput, match="no device"):
        choose_device(device)


def test_precision__that_is_none() -> None:
    """An unknown precision is rejected."""
    with pytest.raises(InvalidInput, match="'int8' is no precision; there are: auto, float32, float16, bfloat16"):
        choose_device("cpu", "int8")


@pytest.mark.slow
@pytest.mark.only_soak
def test_engine__leaves_logging_alone() -> None:
    """Loading a model does not configure logging, and prints nothing."""
    code = """
        import logging, sys
        from framedex.encoders import OpenClipEncoder
        OpenClipEncoder(sys.argv[1])
        print(logging.getLogger().handlers, logging.getLogger().filters)
        """
    assert run(code, TRAINED) == "[] []\n"


def test_engine__is_loaded() -> None:
    """The loading function returns the same module each time."""
    assert load_open_clip() is load_open_clip()
