"""Models are fetched once, held to their hash, added by hand after a check, and chosen by ``auto``."""

import json
import signal
import stat
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from framedex.core.arrays import Vectors
from framedex.encoders import (
    LocalModel,
    OnnxEncoder,
    add_model,
    choose_encoder,
    fetch_model,
    listed_models,
    local_models,
)
from framedex.encoders.registry import automatic
from framedex.errors import Conflict, InvalidInput, NotFound, Unavailable
from framedex.settings import Settings
from tests.environment import Environment
from tests.extras import need
from tests.pauses import wait_until
from tests.processes import finish, start
from tests.publisher import Publisher, publish

need("onnx", "onnx", "onnxruntime")

from tests.encoders.onnx_models import classifier  # noqa: E402 - it imports onnx

FETCH = """
    import sys
    from framedex.encoders import fetch_model
    print(fetch_model("tiny", on_wait=lambda: print("waits", flush=True)).record.sha256)
    """


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    """A publisher of one model in ONNX."""
    with publish(classifier(tmp_path / "original.onnx").read_bytes()) as server:
        yield server


def settings_for(publisher: Publisher, tmp_path: Path, **keys: str) -> Settings:
    """Return settings with a list that has the publisher's model ``tiny``."""
    listed = publisher.list_file(tmp_path / "list.toml", "tiny", **{"kind": "onnx", "file": "tiny.onnx", **keys})
    return Settings(models=tmp_path / "models", model_list=listed)


def vector_of(encoder: OnnxEncoder) -> Vectors:
    """Return the vector of a grey image."""
    return encoder.encode_images(encoder.prepare(np.full((40, 40, 3), 90, np.uint8))[None])


def names(folder: Path) -> list[str]:
    """Return the names in a folder, without locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_list__of_the_package() -> None:
    """Each model that can be fetched has https addresses, a licence, and a hash only with its source."""
    listed = listed_models(Settings())
    assert list(listed) == ["ViT-B-32", "ViT-L-14", "dinov2-base", "dinov2-small"]
    for model in listed.values():
        assert all(address.startswith("https://") for address in model.addresses)
        assert (model.sha256 is None) == (model.sha256_source is None)
        assert model.licence in {"MIT", "Apache-2.0"}


@pytest.mark.slow
@pytest.mark.only_soak
def test_list__has_tags_of_open_clip() -> None:
    """A file of weights has no preparation of images of its own, so the tag has the default one of the model."""
    need("clip", "torch", "open_clip")
    from framedex.encoders.open_clip_loading import load_open_clip

    for model in listed_models(Settings()).values():
        if model.kind == "open_clip":
            described = load_open_clip().get_pretrained_cfg(model.model, model.tag)
            assert described["hf_hub"].rstrip("/") in model.addresses[0]
            assert not described.get("quick_gelu")
            assert described.get("mean") in (None, (0.48145466, 0.4578275, 0.40821073))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "weights"}, "kind"), ({"file": "../tiny.onnx"}, "file"), ({"file": "tiny.pt"}, r"ends with \.onnx"),
        ({"nonsense": "1"}, "nonsense"), ({"sha256": "0" * 64}, "sha256_source"), ({"model": "ViT-B-32"}, "model"),
    ],
)  # fmt: skip
def test_list__that_is_wrong(tmp_path: Path, publisher: Publisher, change: dict[str, str], message: str) -> None:
    """A wrong key is named with its model and file."""
    with pytest.raises(InvalidInput, match=rf"list\.toml', model 'tiny': .*{message}"):
        listed_models(settings_for(publisher, tmp_path, **change))


def test_list__with_other_hosts(tmp_path: Path, publisher: Publisher) -> None:
    """An address that leads to no listed host, or over http to another machine, is refused when the list is read."""
    listed = publisher.list_file(tmp_path / "list.toml", "tiny", file="tiny.onnx", kind="onnx")
    listed.write_text(listed.read_text().replace("127.0.0.1:", "example.org:"))
    with pytest.raises(InvalidInput, match=r"model 'tiny': an address must begin with https"):
        listed_models(Settings(model_list=listed))


def test_fetch__makes_an_encoder(tmp_path: Path, publisher: Publisher) -> None:
    """A fetched model is listed with its hash, and loads by the name of its encoder; it is fetched once."""
    settings = settings_for(publisher, tmp_path)
    model = fetch_model("tiny", settings=settings)
    assert (model.record.sha256, model.record.source) == (publisher.sha256, publisher.url())
    assert names(tmp_path / "models") == ["tiny.json", "tiny.onnx"]
    assert local_models(settings) == [model]
    assert fetch_model("tiny", settings=settings) == model
    assert len(publisher.requests) == 1
    encoder, _ = choose_encoder(model.encoder)
    assert isinstance(encoder, OnnxEncoder)
    assert np.array_equal(vector_of(encoder), vector_of(OnnxEncoder(tmp_path / "original.onnx")))
    assert stat.S_IMODE(model.path.stat().st_mode) == stat.S_IMODE((tmp_path / "original.onnx").stat().st_mode)


def test_fetch__writes_settings(tmp_path: Path, publisher: Publisher) -> None:
    """Settings of the list lie beside the model, where its encoder reads them."""
    settings = settings_for(publisher, tmp_path)
    assert settings.model_list is not None
    text = settings.model_list.read_text() + '\nsettings = { size = 8, output = "features", pool = "first" }\n'
    settings.model_list.write_text(text)
    model = fetch_model("tiny", settings=settings)
    beside = tomllib.loads(model.path.with_suffix(".toml").read_text())
    assert beside == {"size": 8, "output": "features", "pool": "first"}
    assert OnnxEncoder(model.path).dimension == 6


def test_fetch__keeps_the_first_hash(tmp_path: Path, publisher: Publisher) -> None:
    """After the file was deleted, a download with another hash is refused, and both are named."""
    settings = settings_for(publisher, tmp_path)
    first = publisher.sha256
    fetch_model("tiny", settings=settings).path.unlink()
    assert local_models(settings) == []
    publisher.content += b"more"
    with pytest.raises(InvalidInput, match=rf"SHA-256 is {publisher.sha256}, and should be {first}$"):
        fetch_model("tiny", settings=settings)
    assert names(tmp_path / "models") == ["tiny.json"]


def test_fetch__by_a_published_hash(tmp_path: Path, publisher: Publisher) -> None:
    """A hash that the list states holds for the first download, too."""
    settings = settings_for(publisher, tmp_path, sha256="0" * 64, sha256_source="a page")
    with pytest.raises(InvalidInput, match=rf"{publisher.sha256}, and should be {'0' * 64}"):
        fetch_model("tiny", settings=settings)
    assert names(tmp_path / "models") == []


def test_fetch__of_a_file_that_was_changed(tmp_path: Path, publisher: Publisher) -> None:
    """A file on this machine that is no longer the fetched one is not taken for it."""
    settings = settings_for(publisher, tmp_path)
    model = fetch_model("tiny", settings=settings)
    model.path.write_bytes(b"other")
    with pytest.raises(InvalidInput, match=rf"should be {publisher.sha256}; delete it to fetch the model again"):
        fetch_model("tiny", settings=settings)


@pytest.mark.parametrize("file", ["tiny.onnx", "tiny.safetensors", "tiny.bin"])
def test_fetch__of_a_page_of_the_server(tmp_path: Path, publisher: Publisher, file: str) -> None:
    """A page that stands where a model should be is no first download whose hash would hold."""
    publisher.content = b"<!DOCTYPE html><p>Log in first."
    keys = {"kind": "onnx"} if file == "tiny.onnx" else {"kind": "open_clip", "model": "ViT-B-32"}
    with pytest.raises(InvalidInput, match=r"is no \.\w+ file: it begins with b'<!DOCTYPE'"):
        fetch_model("tiny", settings=settings_for(publisher, tmp_path, file=file, **keys))
    assert names(tmp_path / "models") == []


def test_fetch__of_no_listed_model(tmp_path: Path) -> None:
    """The message lists the names."""
    with pytest.raises(NotFound, match=r"no model 'tiny' can be fetched; there are: ViT-B-32, "):
        fetch_model("tiny", settings=Settings(models=tmp_path))


def test_fetch__into_no_folder(tmp_path: Path, publisher: Publisher) -> None:
    """A folder that cannot be made is named."""
    settings = settings_for(publisher, tmp_path)
    (tmp_path / "models").write_text("a file")
    with pytest.raises(Unavailable, match=r"models' cannot be made"):
        fetch_model("tiny", settings=settings)


@pytest.mark.slow
def test_fetch__after_a_kill(tmp_path: Path, publisher: Publisher, environment: Environment) -> None:
    """A process that is killed in the middle leaves a part, which the next one continues."""
    _by_environment(settings_for(publisher, tmp_path), environment)
    publisher.pause = threading.Event()
    process = start(FETCH)
    partial = tmp_path / "models" / "tiny.onnx.partial"
    half = len(publisher.content) // 2
    wait_until(lambda: process.poll() is not None or (partial.exists() and partial.stat().st_size >= half))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    publisher.pause.set()
    publisher.pause = None
    assert finish(start(FETCH)).strip() == publisher.sha256
    assert publisher.requests[-1] == ("/file", f"bytes={half}-")
    assert names(tmp_path / "models") == ["tiny.json", "tiny.onnx"]


@pytest.mark.slow
def test_fetch__by_two_processes(tmp_path: Path, publisher: Publisher, environment: Environment) -> None:
    """One downloads; the other waits and uses the file."""
    _by_environment(settings_for(publisher, tmp_path), environment)
    publisher.pause = threading.Event()
    first = start(FETCH)
    wait_until(lambda: publisher.requests or first.poll() is not None)
    second = start(FETCH)
    assert second.stdout is not None
    assert second.stdout.readline() == "waits\n"
    publisher.pause.set()
    assert finish(first).strip() == finish(second).strip() == publisher.sha256
    assert len(publisher.requests) == 1


def _by_environment(settings: Settings, environment: Environment) -> None:
    environment["FRAMEDEX_MODELS"] = str(settings.models)
    environment["FRAMEDEX_MODEL_LIST"] = str(settings.model_list)


def test_auto__uses_a_fetched_model(tmp_path: Path, publisher: Publisher) -> None:
    """A listed model on this machine is the encoder of `auto`, with the reason; another setting wins."""
    settings = settings_for(publisher, tmp_path)
    assert automatic(settings)[0] == "gist"
    model = fetch_model("tiny", settings=settings)
    assert automatic(settings) == (
        model.encoder,
        "auto: the fetched model tiny is on this machine, and its packages are installed",
    )
    assert automatic(settings.model_copy(update={"encoder": "gist"}))[0] == "gist"
    model.path.unlink()
    assert automatic(settings)[0] == "gist"


def test_auto__ignores_models_of_no_list(tmp_path: Path) -> None:
    """A model that was added by hand under its own name is used by its name alone; other files do no harm."""
    settings = Settings(models=tmp_path / "models")
    add_model(classifier(tmp_path / "mine.onnx"), settings=settings)
    (tmp_path / "models" / "other.json").write_text("[]")
    assert [model.name for model in local_models(settings)] == ["mine"]
    assert automatic(settings)[0] == "gist"


def test_add__copies_a_model(tmp_path: Path) -> None:
    """A model in ONNX is copied with the settings beside it, and listed with its hash."""
    source = classifier(tmp_path / "mine.onnx")
    source.with_suffix(".toml").write_text('output = "features"\n')
    settings = Settings(models=tmp_path / "models")
    model = add_model(source, name="my-model", settings=settings)
    assert names(tmp_path / "models") == ["my-model.json", "my-model.onnx", "my-model.toml"]
    assert model.path.read_bytes() == source.read_bytes()
    assert json.loads((tmp_path / "models" / "my-model.json").read_text())["sha256"] == model.record.sha256
    assert OnnxEncoder(model.path).dimension == 6
    assert add_model(source, name="my-model", settings=settings) == model


def test_add__links_a_model(tmp_path: Path) -> None:
    """A link leads to the file."""
    source = classifier(tmp_path / "mine.onnx")
    model = add_model(source, link=True, settings=Settings(models=tmp_path / "models"))
    assert model.path.readlink() == source


def test_add__recognises_a_listed_model(tmp_path: Path, publisher: Publisher) -> None:
    """A file with the hash of a listed model gets its name and its licence, and is not fetched."""
    settings = settings_for(publisher, tmp_path, sha256=publisher.sha256, sha256_source="a page")
    model = add_model(tmp_path / "original.onnx", settings=settings)
    assert (model.name, model.path.name, model.record.licence) == ("tiny", "tiny.onnx", "MIT")
    assert fetch_model("tiny", settings=settings) == model
    assert publisher.requests == []


@pytest.mark.parametrize(
    ("file", "name", "message"),
    [
        ("broken.onnx", None, "is no ONNX model"),
        ("weights.pt", None, "weights of open_clip get the name of a listed"),
        ("broken.onnx", "ViT-B-32", r"cannot be ViT-B-32, whose file ends with \.safetensors"),
        ("weights.pt", "ViT-B-32", "is another file than ViT-B-32: its SHA-256 is [0-9a-f]{64}, and should be ac4f8c"),
        ("broken.onnx", "../x", "is no name of a model"),
    ],
)  # fmt: skip
def test_add__refuses(tmp_path: Path, file: str, name: str | None, message: str) -> None:
    """A file that is not what it should be is refused, and nothing is left."""
    for each in ("broken.onnx", "weights.pt"):
        (tmp_path / each).write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match=message):
        add_model(tmp_path / file, name=name, settings=Settings(models=tmp_path / "models"))
    assert not (tmp_path / "models").exists() or names(tmp_path / "models") == []


def test_add__refuses_another_file_of_a_name(tmp_path: Path) -> None:
    """A model is not replaced by another; both hashes are named."""
    settings = Settings(models=tmp_path / "models")
    first = add_model(classifier(tmp_path / "a.onnx"), name="mine", settings=settings)
    with pytest.raises(Conflict, match=rf"SHA-256 {first.record.sha256}, and .* has [0-9a-f]{{64}}; give another name"):
        add_model(classifier(tmp_path / "b.onnx", seed=5), name="mine", settings=settings)
    with pytest.raises(NotFound, match=r"no file '.*missing\.onnx'"):
        add_model(tmp_path / "missing.onnx", settings=settings)


@pytest.mark.slow
def test_add__weights_of_open_clip(tmp_path: Path) -> None:
    """Weights that fit their model are added and loaded by the name of the encoder; others are refused."""
    need("clip", "torch", "open_clip")
    from framedex.encoders.open_clip_loading import load_open_clip
    from tests.encoders.clip import TRAINED
    from tests.make_checkpoints import CONFIG

    (tmp_path / "shapes-of-tests.json").write_text(json.dumps(CONFIG["model_cfg"]))
    load_open_clip().add_model_config(tmp_path / "shapes-of-tests.json")
    listed = Publisher(b"").list_file(
        tmp_path / "list.toml", "shapes", file="shapes.bin", kind="open_clip", model="shapes-of-tests", tag="none"
    )
    settings = Settings(models=tmp_path / "models", model_list=listed)
    model = add_model(TRAINED / "open_clip_model.safetensors", name="shapes", settings=settings)
    assert model.path.name == "shapes.safetensors"
    assert model.encoder == f"open_clip:shapes-of-tests/{model.path}"
    assert isinstance(model, LocalModel)
    encoder, reason = choose_encoder("auto", settings)
    assert encoder.name == model.encoder
    assert reason.startswith("auto: the fetched model shapes")
    (tmp_path / "bad.pt").write_bytes(b"nonsense")
    other = Settings(models=tmp_path / "others", model_list=listed)
    with pytest.raises(InvalidInput, match="cannot be loaded as the weights of"):
        add_model(tmp_path / "bad.pt", name="shapes", settings=other)
    assert local_models(other) == []
