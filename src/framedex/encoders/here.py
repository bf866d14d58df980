"""Whether an encoder can be made on this machine, and what its name means beside a file: nothing is loaded for that."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from framedex.encoders.base import TextEncoder
from framedex.encoders.onnx_settings import SCHEME as ONNX
from framedex.encoders.onnx_settings import model_path, parse_name
from framedex.encoders.open_clip_files import find_files
from framedex.encoders.open_clip_loading import load_engine
from framedex.encoders.open_clip_names import CHECKPOINTS, CONFIG, ModelName
from framedex.encoders.open_clip_names import SCHEME as OPEN_CLIP
from framedex.encoders.registry import choose_encoder
from framedex.errors import InvalidInput, MissingDependency
from framedex.settings import Settings, user_path


def beside(name: str, folder: Path) -> str:
    """Return the name of an encoder in which paths that are relative to a folder are absolute."""
    scheme, _, rest = name.partition(":")
    if scheme == ONNX and rest:
        path, mark, settings = rest.partition("?")
        return f"{ONNX}:{folder / user_path(path)}{mark}{settings}"
    if scheme == OPEN_CLIP and rest:
        if rest.startswith(".") or (folder / user_path(rest) / CONFIG).is_file():
            return f"{OPEN_CLIP}:{os.path.normpath(folder / user_path(rest))}"
        model, _, weights = rest.partition("/")
        if weights.endswith(CHECKPOINTS) and not user_path(rest).is_absolute():
            return f"{OPEN_CLIP}:{model}/{folder / user_path(weights)}"
    return name


def check_multimodal(name: str, settings: Settings) -> None:
    """Check that an encoder of pictures and texts can be made here: by packages and files, as far as these say it.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: a file is not there, or weights are not on this machine.
        InvalidInput: no encoder has that name, or it knows no texts.
    """
    scheme = name.partition(":")[0]
    if scheme == ONNX:
        raise InvalidInput(f"the encoder {name!r} knows pictures only; one of pictures and texts is needed")
    if scheme != OPEN_CLIP:
        if not isinstance(choose_encoder(name, settings)[0], TextEncoder):
            raise InvalidInput(f"the encoder {name!r} knows pictures only; one of pictures and texts is needed")
        return
    _check_packages(("torch", "open_clip"), "models of open_clip", "clip")
    named = ModelName.parse(name)
    # A folder says by itself what it holds; for all else the engine must be asked.
    find_files(named, None if named.model is None else load_engine(), allow_download=settings.allow_downloads)


def check_classifier(name: str) -> None:
    """Check that a classifier of pictures can be made here, likewise.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: the file is not there.
        InvalidInput: the name is not one of a model in ONNX.
    """
    path, _ = parse_name(name)
    model_path(path)
    _check_packages(("onnx", "onnxruntime"), "models in ONNX", "onnx")


def _check_packages(packages: Sequence[str], what: str, extra: str) -> None:
    if missing := [package for package in packages if find_spec(package) is None]:
        raise MissingDependency(f"{what} need {' and '.join(missing)}: pip install framedex[{extra}]")
