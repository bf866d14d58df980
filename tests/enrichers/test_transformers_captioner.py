"""Captioners of transformers: their captions, and folders that are rejected."""

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from framedex.encoders.weights import sha256_of
from framedex.enrichers import TransformersCaptioner
from framedex.errors import InvalidInput, NotFound
from tests.enrichers.captioners import TRAINED, write_tiny
from tests.environment import Environment
from tests.make_captioner import exact
from tests.shapes import Scene, draw

Pixels = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def trained() -> TransformersCaptioner:
    return TransformersCaptioner(TRAINED, device="cpu")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A read-only folder of a small model with random weights, by type."""
    home = tmp_path_factory.mktemp("tiny")
    return lambda kind: home / kind if (home / kind).exists() else write_tiny(home / kind, kind)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the trained folder, which tests may change."""
    return Path(shutil.copytree(TRAINED, tmp_path / "captioner"))


def images(count: int = 3) -> list[Pixels]:
    rng = np.random.default_rng(2)
    return [rng.integers(0, 255, (40 + 3 * number, 60, 3), np.uint8) for number in range(count)]


@pytest.mark.slow
@pytest.mark.only_soak
def test_captions__of_images_that_are_new(trained: TransformersCaptioner) -> None:
    """Nine of ten captions of images outside of the training set are correct in every word."""
    right = exact(trained)
    assert len(right) == 288
    assert np.mean(right) >= 0.9


@pytest.mark.slow
@pytest.mark.only_soak
def test_captions__batches_make_no_difference(trained: TransformersCaptioner) -> None:
    """The caption of an image does not depend on its batch, and is reproducible."""
    rng = np.random.default_rng(6)
    scenes = [Scene("red", "circle", "white", "large"), Scene("blue", "star", "black", "small")] * 2
    prepared = np.stack([trained.prepare(draw(scene, rng)) for scene in scenes])
    alone = [trained.captions(each[None])[0] for each in prepared]
    few = TransformersCaptioner(TRAINED, device="cpu", batch=3)
    assert alone == trained.captions(prepared) == few.captions(prepared) == few.captions(prepared)
    assert trained.captions(prepared[:0]) == []


@pytest.mark.slow
def test_captions__without_chance(copied: Path, trained: TransformersCaptioner) -> None:
    """Settings of a folder for sampling and beams are ignored."""
    said = json.loads((copied / "generation_config.json").read_text())
    dice = {"do_sample": True, "temperature": 9.0, "top_k": 20, "top_p": 0.9, "num_beams": 3, "length_penalty": 2.0}
    (copied / "generation_config.json").write_text(json.dumps({**said, **dice}))
    prepared = np.stack([trained.prepare(each) for each in images()])
    assert TransformersCaptioner(copied, device="cpu").captions(prepared) == trained.captions(prepared)


@pytest.mark.slow
def test_captions__begin_with_the_prompt() -> None:
    """A prompt is the beginning of a caption; the image decides the rest."""
    scene = Scene("red", "star", "black", "large")
    asked, misled = (TransformersCaptioner(TRAINED, prompt, device="cpu") for prompt in ("a large red", "a small"))
    shown = asked.prepare(draw(scene, np.random.default_rng(3)))[None]
    assert asked.captions(shown) == [scene.caption]
    assert misled.captions(shown)[0].startswith("a small ")


@pytest.mark.slow
@pytest.mark.only_soak
def test_captions__end_after_so_many_tokens(trained: TransformersCaptioner) -> None:
    """A caption has at most the requested number of tokens, or the model's maximum."""
    shown = trained.prepare(draw(Scene("red", "star", "black", "large"), np.random.default_rng(3)))
    short = TransformersCaptioner(TRAINED, max_tokens=3, device="cpu")
    assert short.captions(shown[None]) == [" ".join(trained.captions(shown[None])[0].split()[:3])]
    assert TransformersCaptioner(TRAINED, max_tokens=4000, device="cpu").captions(shown[None])


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 9000), (9000, 2), (700, 500)])
def test_captions__of_any_shape(trained: TransformersCaptioner, shape: tuple[int, int]) -> None:
    """Parts of images of any size are prepared to one shape."""
    prepared = trained.prepare(np.full((*shape, 3), 200, np.uint8))
    assert (prepared.shape, str(prepared.dtype)) == ((3, 64, 64), "float32")
    assert trained.captions(prepared[None])[0]


def test_captioner__says_what_it_depends_on(trained: TransformersCaptioner) -> None:
    """Weights are stated by hash, as are all other files of the folder, and the prompt."""
    assert trained.weights.path == str(TRAINED / "model.safetensors") == f"{trained.name}/model.safetensors"
    assert trained.weights.sha256 == sha256_of(TRAINED / "model.safetensors")
    assert trained.weights.settings["sha256 of tokenizer.json"] == sha256_of(TRAINED / "tokenizer.json")
    other = TransformersCaptioner(TRAINED, "a", 9, device="cpu").weights
    assert other.sha256 == trained.weights.sha256
    assert (other.settings["prompt"], other.settings["max_tokens"]) == ("a", "9")
    assert (trained.min_side_px, trained.batch) == (128, 8)


@pytest.mark.parametrize("kind", ["blip", "git"])
def test_continuing__blip_and_git(tiny: Callable[[str], Path], kind: str) -> None:
    """Models of these types caption alone, and continue a prompt."""
    asked = TransformersCaptioner(tiny(kind), "a red", max_tokens=4, device="cpu", batch=2)
    prepared = np.stack([asked.prepare(each) for each in images()])
    assert (prepared.shape, asked.min_side_px) == ((3, 3, 32, 32), 64)
    assert all(text.startswith("a red") and len(text.split()) <= 6 for text in asked.captions(prepared))
    alone = TransformersCaptioner(tiny(kind), max_tokens=4, device="cpu").captions(prepared)
    assert all(len(text.split()) <= 4 for text in alone)


@pytest.mark.slow
def test_answering__a_model_with_a_chat_template(tiny: Callable[[str], Path]) -> None:
    """Such a model gets the prompt for each image, and its answer, without the prompt, is the caption."""
    answering = TransformersCaptioner(tiny("llava"), "what is red", max_tokens=4, device="cpu", batch=2)
    prepared = np.stack([answering.prepare(each) for each in images()])
    said = answering.captions(prepared)
    assert said == [answering.captions(each[None])[0] for each in prepared]
    assert all(0 < len(text.split()) <= 4 for text in said)
    large = answering.prepare(np.zeros((1600, 3000, 3), np.uint8))
    assert large[0].size == (1440, 768)
    other = TransformersCaptioner(tiny("llava"), max_tokens=4, device="cpu")
    assert (other.batch, other.min_side_px) == (2, 768)
    assert other.weights.settings["prompt"] == "Describe this picture in one sentence."
    assert other.captions(prepared) != said


def test_files__of_code_are_not_read(copied: Path) -> None:
    """A weights file that would run code is rejected, and no code runs."""
    import torch

    (copied / "model.safetensors").unlink()
    torch.save({"encoder": Harm(copied / "ran")}, copied / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match="cannot be used"):
        TransformersCaptioner(copied, device="cpu")
    assert not (copied / "ran").exists()


class Harm:
    """A class whose unpickling creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.slow
def test_files__tensors_in_bin(copied: Path, trained: TransformersCaptioner) -> None:
    """Weights as .bin give the same captions as those in .safetensors."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    shown = trained.prepare(images()[0])[None]
    assert TransformersCaptioner(copied, device="cpu").captions(shown) == trained.captions(shown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "nonesuch"}, "model of the type 'nonesuch': captions are written by"),
        ({"model_type": None}, "names no 'model_type'"),
        ({"encoder": {"model_type": "nonesuch"}}, "cannot be used"),
        ({"model_type": "blip"}, "cannot be used|do not fit"),
    ],
)
def test_files__a_configuration_of_something_else(copied: Path, change: dict[str, object], message: str) -> None:
    """A folder whose configuration is not a captioner, or does not fit its weights, is rejected."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(InvalidInput, match=message):
        TransformersCaptioner(copied, device="cpu")


def test_files__weights_that_lack_something(copied: Path) -> None:
    """Missing weights are an error, and are not made up."""
    from safetensors.torch import load_file, save_file

    held = load_file(copied / "model.safetensors")
    gone = sorted(name for name in held if "attention" in name)[0]
    del held[gone]
    save_file(held, copied / "model.safetensors", {"format": "pt"})
    with pytest.raises(InvalidInput, match=f"they lack {gone}"):
        TransformersCaptioner(copied, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json", "tokenizer.json"])
def test_files__that_are_no_json(copied: Path, name: str) -> None:
    """A truncated file is named, or the part that needs it."""
    (copied / name).write_bytes((copied / name).read_bytes()[:40])
    with pytest.raises(InvalidInput, match=str(copied)):
        TransformersCaptioner(copied, device="cpu")


@pytest.mark.slow
@pytest.mark.only_soak
def test_captioner__needs_no_network(
    tiny: Callable[[str], Path], environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is used, even if no variable forbids it."""
    asked: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _socket, address: asked.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_args, **_named: asked.append(host))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        environment.pop(name, None)
    for folder in (TRAINED, tiny("blip"), tiny("llava")):
        TransformersCaptioner(folder, device="cpu")
    assert not asked


def test_captioner__bad_arguments(tmp_path: Path) -> None:
    """Invalid arguments are rejected before anything is loaded."""
    with pytest.raises(InvalidInput, match="a whole number from 1"):
        TransformersCaptioner(TRAINED, max_tokens=0)
    with pytest.raises(InvalidInput, match="a whole number from 1"):
        TransformersCaptioner(TRAINED, batch=0)
    with pytest.raises(InvalidInput, match="is no device"):
        TransformersCaptioner(TRAINED, device="abacus")
    with pytest.raises(NotFound, match="no folder"):
        TransformersCaptioner(tmp_path / "gone")
