"""Weights are read from their stated location, fit the model, and are never made up."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from framedex.encoders import OpenClipEncoder, choose_encoder
from framedex.encoders.open_clip_files import find_files
from framedex.encoders.open_clip_loading import load_open_clip
from framedex.encoders.open_clip_names import ModelName
from framedex.encoders.registry import CLIP, CLIP_ON_HUB
from framedex.errors import InvalidInput, MissingDependency, NotFound, Unavailable
from framedex.settings import Settings
from tests.encoders.clip import random_state, write_folder
from tests.environment import Environment
from tests.make_checkpoints import CONFIG
from tests.processes import run


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """Weights that fit the small configuration."""
    return random_state()


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("name", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin", "mine.pt", "mine.pth"])
def test_weights__of_a_folder(tmp_path: Path, state: dict[str, Any], name: str) -> None:
    """A folder with a configuration and a weights file is a model; the hashes of both are stated."""
    folder = write_folder(tmp_path / "model", state, name)
    encoder = OpenClipEncoder(folder)
    assert encoder.name == f"open_clip:{folder}"
    assert encoder.weights is not None
    assert encoder.weights.path == str(folder / name)
    assert len(encoder.weights.sha256) == 64
    assert "sha256 of open_clip_config.json" in encoder.weights.settings
    assert encoder.files == (folder / name, folder / "open_clip_config.json")


def test_weights__usual_name_goes_first(tmp_path: Path, state: dict[str, Any]) -> None:
    """Of several files, the one with the hub's name is read."""
    folder = write_folder(tmp_path, state)
    (folder / "another.safetensors").write_bytes(b"no weights")
    assert OpenClipEncoder(folder).files[0].name == "open_clip_model.safetensors"


def test_weights__several_files(tmp_path: Path, state: dict[str, Any]) -> None:
    """Several files without a preferred name are rejected."""
    folder = write_folder(tmp_path, state, "first.pt")
    (folder / "second.pt").write_bytes(b"no weights")
    with pytest.raises(InvalidInput, match=r"several files with weights, first\.pt, second\.pt; call the right one"):
        OpenClipEncoder(folder)


def test_weights__none_in_the_folder(tmp_path: Path) -> None:
    """A configuration without weights is rejected, not completed by random ones."""
    (tmp_path / "open_clip_config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(NotFound, match=r"no weights in .*\.safetensors, \.pt, \.pth, \.bin"):
        OpenClipEncoder(tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"model_cfg": {"embed_dim": 4}}', '{"model_cfg": 3}'])
def test_config__that_is_none(tmp_path: Path, content: str | None) -> None:
    """A missing or damaged configuration is named, with the required content."""
    if content is not None:
        (tmp_path / "open_clip_config.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"open_clip_config\.json' is no configuration .* vision_cfg and text_cfg"):
        OpenClipEncoder(tmp_path)


def test_config__that_makes_no_model(tmp_path: Path, state: dict[str, Any]) -> None:
    """open_clip's error for an invalid configuration is passed on."""
    folder = write_folder(tmp_path, state)
    wrong = {"model_cfg": CONFIG["model_cfg"] | {"vision_cfg": {"depth": 4}}}
    (folder / "open_clip_config.json").write_text(json.dumps(wrong))
    with pytest.raises(InvalidInput, match=r"open_clip cannot build open_clip:/.*depth"):
        OpenClipEncoder(folder)


@pytest.mark.parametrize("name", ["open_clip_model.safetensors", "model.pth"])
@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda _: b"", lambda _: b"not a model" * 9])
def test_weights__damaged(tmp_path: Path, state: dict[str, Any], name: str, damage: Any) -> None:
    """A truncated, empty or wrong file is rejected by its path."""
    path = write_folder(tmp_path, state, name) / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=rf"{name}' cannot be loaded as the weights of"):
        OpenClipEncoder(tmp_path)


class Code:
    """A pickle that would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


@pytest.mark.slow
def test_weights__with_code(in_tmp_path: Path, state: dict[str, Any]) -> None:
    """A file that would run code is rejected, and no code runs."""
    write_folder(in_tmp_path, state, "model.pth")
    (in_tmp_path / "model.pth").write_bytes(pickle.dumps({"state_dict": Code()}))
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        OpenClipEncoder(in_tmp_path)
    assert not Path("ran").exists()


def test_weights__that_lack_some(tmp_path: Path, state: dict[str, Any]) -> None:
    """The first of the missing weights are named."""
    lacking = {name: value for name, value in state.items() if not name.startswith("visual.layer1")}
    with pytest.raises(InvalidInput, match=r"do not fit .*it lacks visual\.layer1\.0\.[^,]+, .+ and \d+ more$"):
        OpenClipEncoder(write_folder(tmp_path, lacking))


def test_weights__that_have_others(tmp_path: Path, state: dict[str, Any]) -> None:
    """Weights that the model does not have are named."""
    more = state | {"head.weight": state["text_projection"].clone()}
    with pytest.raises(InvalidInput, match=r"do not fit .*the model has no head\.weight$"):
        OpenClipEncoder(write_folder(tmp_path, more))


def test_weights__of_another_shape(tmp_path: Path, state: dict[str, Any]) -> None:
    """Weights of another shape are named."""
    other = state | {"ln_final.weight": state["ln_final.weight"][:8].clone()}
    with pytest.raises(InvalidInput, match=r"do not fit .*size mismatch for ln_final\.weight"):
        OpenClipEncoder(write_folder(tmp_path, other))


@pytest.mark.slow
@pytest.mark.only_soak
def test_weights__of_another_model(tmp_path: Path, state: dict[str, Any]) -> None:
    """A file for another model is rejected."""
    write_folder(tmp_path, state)
    with pytest.raises(InvalidInput, match=r"cannot be loaded as the weights of|do not fit"):
        OpenClipEncoder("RN50", tmp_path / "open_clip_model.safetensors")


def test_model__unknown() -> None:
    """For an unknown model, the most similar names are listed."""
    with pytest.raises(InvalidInput, match="no model 'ViT-B-23'; the nearest are ViT-B-32"):
        OpenClipEncoder("ViT-B-23", "openai")


def test_tag__unknown() -> None:
    """For an unknown tag, the model's tags are listed."""
    with pytest.raises(InvalidInput, match="no weights 'mine' for RN101; there are: openai, yfcc15m; or name a file"):
        OpenClipEncoder("RN101", "mine")


def test_tag__not_on_this_machine() -> None:
    """Without permission nothing is downloaded; the message lists the searched locations and the alternatives."""
    with pytest.raises(NotFound, match=r"'openai' of RN50 .*looked for .*FRAMEDEX_ALLOW_DOWNLOADS=1.*RN50/<file>"):
        choose_encoder("open_clip:RN50/openai")


def test_file__that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(NotFound, match=r"no file '.*nothing\.pt' with weights for RN50"):
        OpenClipEncoder("RN50", tmp_path / "nothing.pt")
    with pytest.raises(NotFound, match=r"no folder '.*nothing'"):
        OpenClipEncoder(tmp_path / "nothing")


class Offline:
    """An engine with or without a network."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.asked = path, 0

    def list_models(self) -> list[str]:
        return ["Tiny"]

    def get_pretrained_cfg(self, _model: str, _tag: str) -> Mapping[str, Any]:
        return {"hf_hub": "nobody/nothing/", "mean": (0.5, 0.5, 0.5)}

    def download_pretrained(self, _config: dict[str, Any]) -> str:
        self.asked += 1
        if self.path is None:
            raise OSError("no route to host")
        return str(self.path)


def test_download__only_with_leave(tmp_path: Path) -> None:
    """The network is used only with permission; a failure raises our own error."""
    name, engine = ModelName("Tiny", tag="best"), Offline(None)
    with pytest.raises(NotFound, match="not on this machine"):
        find_files(name, engine, allow_download=False)
    assert engine.asked == 0
    with pytest.raises(Unavailable, match="'best' of Tiny could not be fetched: no route to host"):
        find_files(name, engine, allow_download=True)
    assert find_files(name, Offline(tmp_path), allow_download=True).checkpoint == tmp_path


@pytest.mark.slow
def test_auto__weights_in_the_cache(tmp_path: Path, environment: Environment) -> None:
    """`auto` is CLIP if its weights are in the cache of the hub; the check loads no engine."""
    load_open_clip()
    repository = tmp_path / f"models--{CLIP_ON_HUB.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    (repository / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (repository / "snapshots" / ("0" * 40) / "open_clip_model.safetensors").write_bytes(b"x")
    code = """
        import sys
        from framedex.encoders.registry import automatic
        from framedex.settings import Settings
        print(*automatic(Settings()), "torch" in sys.modules)
        """
    environment["HF_HUB_CACHE"] = str(tmp_path)
    assert run(code).startswith(f"{CLIP} auto: open_clip is installed and the weights are on this machine False")
    environment["HF_HUB_CACHE"] = str(tmp_path / "empty")
    assert run(code).startswith(
        "gist auto: the weights of open_clip:ViT-B-32/laion2b_s34b_b79k are not on this machine"
    )


def test_auto__by_setting() -> None:
    """A setting selects the encoder of `auto`."""
    encoder, reason = choose_encoder("auto", Settings(encoder="gist"))
    assert (encoder.name, reason) == ("gist", "auto: FRAMEDEX_ENCODER names it")


def test_auto__is_where_open_clip_has_it() -> None:
    """The default weights are searched where open_clip stores them."""
    named = ModelName.parse(CLIP)
    assert load_open_clip().get_pretrained_cfg(named.model, named.tag)["hf_hub"] == f"{CLIP_ON_HUB}/"


@pytest.mark.slow
def test_engine__not_installed() -> None:
    """Without the packages, the message names the extra to install."""
    code = """
        import sys
        sys.modules["open_clip"] = None
        from framedex import MissingDependency
        from framedex.encoders import choose_encoder
        try:
            choose_encoder("open_clip:ViT-B-32/openai")
        except MissingDependency as error:
            print(error)
        """
    assert "pip install 'framedex[clip]'" in run(code)
    assert issubclass(MissingDependency, ImportError)
