"""Whether a model can be made on this machine, as far as packages and files show it: no model is loaded."""

from collections.abc import Sequence
from importlib.util import find_spec

from framedex.encoders.onnx_settings import model_path, parse_name
from framedex.encoders.open_clip_files import find_files
from framedex.encoders.open_clip_loading import load_engine
from framedex.encoders.open_clip_names import ModelName
from framedex.errors import MissingDependency
from framedex.settings import Settings


def check_onnx(name: str, _settings: Settings | None = None) -> None:
    """Check that a model in ONNX can be made here: an encoder or a classifier.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: the file is not there.
        InvalidInput: the name is not one of a model in ONNX.
    """
    path, _ = parse_name(name)
    model_path(path)
    _check_packages(("onnx", "onnxruntime"), "models in ONNX", "onnx")


def check_open_clip(name: str, settings: Settings) -> None:
    """Check that an open_clip model can be made here.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: a file is not there, or weights are not on this machine.
        InvalidInput: there is no such model.
    """
    _check_packages(("torch", "open_clip"), "models of open_clip", "clip")
    named = ModelName.parse(name)
    # A folder says by itself what it holds; for all else the engine must be asked.
    find_files(named, None if named.model is None else load_engine(), allow_download=settings.allow_downloads)


def _check_packages(packages: Sequence[str], models: str, extra: str) -> None:
    if missing := [package for package in packages if find_spec(package) is None]:
        raise MissingDependency(f"{models} need {' and '.join(missing)}: pip install framedex[{extra}]")
