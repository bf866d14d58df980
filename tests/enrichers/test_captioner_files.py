"""Files of a captioner's folder, checked without loading a model."""

import json
from pathlib import Path

import pytest

from framedex.enrichers.captioner_files import find_captioner
from framedex.errors import InvalidInput, NotFound

HEADER = json.dumps({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})
SAFE = len(HEADER).to_bytes(8, "little") + HEADER.encode() + bytes(8)
FILES = {
    "config.json": b'{"model_type": "blip"}',
    "preprocessor_config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": SAFE,
    "README.md": b"a model",
}
CHAT = {"config.json": b'{"model_type": "seer"}', "chat_template.jinja": b"{{ messages }}"}
PARTS = {"model.safetensors.index.json": b'{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}'}


def filled(folder: Path, *without: str) -> Path:
    for name, content in FILES.items():
        if name not in without:
            (folder / name).write_bytes(content)
    return folder


def more(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_find__a_whole_folder(tmp_path: Path) -> None:
    """The weights and all files that describe the model are found."""
    found = find_captioner(filled(tmp_path))
    assert (found.kind, found.chats) == ("blip", False)
    assert [path.name for path in found.checkpoints] == ["model.safetensors"]
    assert [path.name for path in found.beside] == ["config.json", "preprocessor_config.json", "tokenizer.json"]
    weights = found.weights({"prompt": "x"})
    assert weights.path == str(tmp_path / "model.safetensors")
    assert weights.settings.keys() == {"prompt", *(f"sha256 of {path.name}" for path in found.beside)}


def test_find__weights_in_parts(tmp_path: Path) -> None:
    """All weight files of an index belong to the model."""
    folder = more(filled(tmp_path, "model.safetensors"), {**PARTS, "1.safetensors": SAFE})
    with pytest.raises(NotFound, match=r"lacks '2.safetensors'"):
        find_captioner(folder)
    found = find_captioner(more(folder, {"2.safetensors": SAFE}))
    assert [path.name for path in found.checkpoints] == ["1.safetensors", "2.safetensors"]
    assert "sha256 of 2.safetensors" in found.weights({}).settings


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer_config.json", "processor_config.json"])
def test_find__models_with_a_chat_template(tmp_path: Path, name: str) -> None:
    """Models with a chat template, in any file, are prompted in a conversation."""
    more(filled(tmp_path), {"config.json": CHAT["config.json"]})
    with pytest.raises(InvalidInput, match="the type 'seer': captions are written by"):
        find_captioner(tmp_path)
    found = find_captioner(more(tmp_path, {name: b'{"chat_template": "{{ messages }}"}'}))
    assert (found.kind, found.chats) == ("seer", True)


@pytest.mark.parametrize("name", [name for name in FILES if name != "README.md"])
def test_find__what_is_missing(tmp_path: Path, name: str) -> None:
    """Each missing file is named."""
    with pytest.raises(NotFound) as caught:
        find_captioner(filled(tmp_path, name))
    assert name in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config.json": b"{"}, "is no JSON"),
        ({"config.json": b"\xff"}, "is no JSON"),
        ({"config.json": b"[1]"}, "is a JSON object"),
        ({"config.json": b"{}"}, "names no 'model_type'"),
        ({"model.safetensors": SAFE[:-1]}, "were cut off or changed"),
        ({"model.safetensors": SAFE + b"x"}, "were cut off or changed"),
        ({"model.safetensors": SAFE[:20]}, "no file of safetensors, or one that was cut off"),
        ({"model.safetensors": b""}, "no file of safetensors"),
        ({"model.safetensors": b"\x02" + bytes(7) + b"{}"}, "no file of safetensors"),
        ({"model.safetensors": b"\x02" + bytes(7) + b"[]"}, "no file of safetensors"),
    ],
)
def test_find__damaged_files(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    """A truncated or malformed file is named by its path."""
    with pytest.raises(InvalidInput, match=message) as caught:
        find_captioner(more(filled(tmp_path), files))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("named", [b'"../x.safetensors"', b"3"])
def test_find__parts_elsewhere(tmp_path: Path, named: bytes) -> None:
    """An index lists files in its own folder only."""
    index = {"model.safetensors.index.json": b'{"weight_map": {"a": ' + named + b"}}"}
    with pytest.raises(InvalidInput, match=r"weight_map|in the same folder"):
        find_captioner(more(filled(tmp_path, "model.safetensors"), index))
