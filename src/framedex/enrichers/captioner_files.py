"""Folders of transformers models that write captions: their files, checked without loading a model."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from framedex.core.counts import counted
from framedex.core.regular_files import has_folder, open_binary, read_text
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput, MissingDependency, NotFound
from framedex.records import Weights

CONTINUING = ("vision-encoder-decoder", "blip", "git")
"""Types of models that caption without a question. A prompt is the beginning of the caption."""
PACKAGES = ("torch", "transformers")

_CONFIG = "config.json"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_IMAGE_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_WORDS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_CHAT = ("chat_template.jinja", "chat_template.json")
_TEMPLATE_FILES = ("processor_config.json", "tokenizer_config.json")  # files that may contain a chat template, too
_DESCRIBING = (".json", ".jinja", ".txt", ".model")
_HEADER_BYTES = 8  # at the start of a safetensors file: the length of its header


@dataclass(frozen=True)
class CaptionerFiles:
    """The files of a captioner.

    Attributes:
        folder: absolute.
        kind: the ``model_type`` of its configuration.
        chats: whether it is prompted in a conversation, with the chat template of the folder.
        checkpoints: weight files.
        beside: further files that describe the model: configuration, tokenizer, preparation of images.
    """

    folder: Path
    kind: str
    chats: bool
    checkpoints: tuple[Path, ...]
    beside: tuple[Path, ...]

    def weights(self, prompts: Mapping[str, str]) -> Weights:
        """Return the description of all that captions depend on: hashes of the files, and the prompt."""
        first, *others = self.checkpoints
        hashes = {f"sha256 of {path.name}": sha256_of(path) for path in (*others, *self.beside)}
        return Weights(path=os.fspath(first), sha256=sha256_of(first), settings={**prompts, **hashes})


def check_packages() -> None:
    """Check that the packages for captioners are installed.

    Raises:
        MissingDependency: a package is not installed.
    """
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        raise MissingDependency(
            f"models that write captions need {' and '.join(missing)}: pip install 'framedex[caption]'"
        )


def find_captioner(folder: Path) -> CaptionerFiles:
    """Return the files of a captioner's folder.

    Args:
        folder: absolute.

    Raises:
        NotFound: the folder does not exist, or lacks a file.
        InvalidInput: the folder has a model of another kind, or a file is malformed or truncated.
    """
    if not has_folder(folder):
        raise NotFound(f"no folder {os.fspath(folder)!r} with a model that writes captions")
    config = folder / _CONFIG
    _need(folder, (_CONFIG,), "configuration")
    kind = _json(config).get("model_type")
    if not isinstance(kind, str):
        raise InvalidInput(f"{os.fspath(config)!r} names no 'model_type', so it is no configuration of transformers")
    chats = kind not in CONTINUING and _has_chat_template(folder)
    if kind not in CONTINUING and not chats:
        raise InvalidInput(
            f"{os.fspath(folder)!r} has a model of the type {kind!r}: captions are written by models of the types "
            f"{', '.join(CONTINUING)}, and by those of images and texts that have a chat template"
        )
    _need(folder, _IMAGE_PROCESSORS, "description of how images are prepared")
    _need(folder, _WORDS, "tokenizer")
    beside = sorted(path for path in folder.iterdir() if path.suffix in _DESCRIBING and path.is_file())
    return CaptionerFiles(folder, kind, chats, _checkpoints(folder), tuple(beside))


def _need(folder: Path, names: tuple[str, ...], what: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"{os.fspath(folder)!r} has no {what}: no file {' or '.join(names)}")


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{os.fspath(path)!r} is no JSON that can be read: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{os.fspath(path)!r} is a JSON object in models of transformers, not {content!r:.60}")
    return content


def _has_chat_template(folder: Path) -> bool:
    if any((folder / name).is_file() for name in _CHAT):
        return True
    return any((folder / name).is_file() and _json(folder / name).get("chat_template") for name in _TEMPLATE_FILES)


def _checkpoints(folder: Path) -> tuple[Path, ...]:
    file = _need(folder, _WEIGHTS, "weights")
    parts = (file,) if file.suffix != ".json" else tuple(_parts(file))
    for part in parts:
        if not part.is_file():
            raise NotFound(f"{os.fspath(folder)!r} lacks {part.name!r}, a part of the weights that {file.name} names")
        if part.suffix == ".safetensors":
            _check_whole(part)
    return parts


def _parts(index: Path) -> list[Path]:
    named = _json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise InvalidInput(f"{os.fspath(index)!r} has no 'weight_map' with the files of the weights")
    names = sorted(set(named.values()))
    if outside := [name for name in names if Path(name).name != name]:
        raise InvalidInput(f"{os.fspath(index)!r} names {outside[0]!r}; the weights are in the same folder")
    return [index.parent / name for name in names]


def _check_whole(path: Path) -> None:
    """Check that a safetensors file has the size that its header states."""
    try:
        with open_binary(path) as file:
            header = int.from_bytes(file.read(_HEADER_BYTES), "little")
            size = os.fstat(file.fileno()).st_size
            tensors = json.loads(file.read(header)) if header <= size else {}
        ends = [each["data_offsets"][1] for name, each in tensors.items() if name != "__metadata__"]
    except OSError as error:
        raise NotFound(f"the weights {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        ends = []
    if not ends:
        raise InvalidInput(f"the weights {os.fspath(path)!r} are no file of safetensors, or one that was cut off")
    if (expected := _HEADER_BYTES + header + max(ends)) != size:
        raise InvalidInput(
            f"the weights {os.fspath(path)!r} were cut off or changed: they have {counted(size, 'bytes')} "
            f"instead of {expected:,}"
        )
