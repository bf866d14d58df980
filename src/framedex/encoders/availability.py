"""Checks whether a model can run on this machine. They inspect packages and files, and load no model."""

from collections.abc import Sequence
from importlib.util import find_spec

from framedex.encoders.onnx_settings import model_path, parse_name
from framedex.encoders.open_clip_files import find_files
from framedex.encoders.open_clip_loading import load_open_clip
from framedex.encoders.open_clip_names import ModelName
from framedex.errors import MissingDependency
from framedex.settings import Settings


def check_onnx(name: str, _settings: Settings | None = None) -> None:
    """Check that an ONNX model can be used on this machine, as an encoder or a classifier.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: the file does not exist.
        InvalidInput: the name is not that of an ONNX model.

    Examples:
        >>> framedex.encoders.check_onnx("onnx:missing.onnx")
        Traceback (most recent call last):
            ...
        framedex.errors.NotFound: no model file '.../missing.onnx'
    """
    path, _ = parse_name(name)
    model_path(path)
    _check_packages(("onnx", "onnxruntime"), "models in ONNX", "onnx")


def check_open_clip(name: str, settings: Settings) -> None:
    """Check that an open_clip model can be used on this machine.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: a file does not exist, or the weights are not on this machine.
        InvalidInput: open_clip has no such model.
    """
    _check_packages(("torch", "open_clip"), "models of open_clip", "clip")
    named = ModelName.parse(name)
    # A folder contains its own description; only the engine can check any other name.
    find_files(named, None if named.model is None else load_open_clip(), allow_download=settings.allow_downloads)


def _check_packages(packages: Sequence[str], models: str, extra: str) -> None:
    if missing := [package for package in packages if find_spec(package) is None]:
        raise MissingDependency(f"{models} need {' and '.join(missing)}: pip install framedex[{extra}]")
