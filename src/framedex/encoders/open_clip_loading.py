"""Loading of open_clip models: import of the engine, construction, and checked weights."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from framedex.encoders.open_clip_files import ModelFiles
from framedex.encoders.open_clip_names import ModelName
from framedex.encoders.torch_vision import import_torchvision
from framedex.errors import InvalidInput, MissingDependency, NotFound

_LOADING = RLock()
"""Held while process-wide state changes: imports, the hub's offline switch, log filters."""
_MAX_NAMES = 3  # maximum number of names in a message
_SEED = 0  # of random weights, so that all processes have the same ones


def load_open_clip() -> Any:
    """Return the module ``open_clip``.

    Raises:
        MissingDependency: a package is not installed.
    """
    with _LOADING:
        try:
            import_torchvision()
            import open_clip
        except ImportError as error:
            raise MissingDependency(
                f"models of open_clip need packages that are not installed ({error}): pip install 'framedex[clip]'"
            ) from None
        return open_clip


def build_model(name: ModelName, files: ModelFiles, engine: Any, *, allow_download: bool) -> Any:
    """Return a model for inference, on the CPU, with its weights.

    Args:
        name: of the model.
        files: its weights.
        engine: the module ``open_clip``.
        allow_download: whether open_clip may download configurations of parts of the model from the hub.

    Raises:
        InvalidInput: the configuration is invalid, or the weights do not fit it or cannot be read.
    """
    import torch

    says = files.pretrained
    with _LOADING, _quietly(), _network(allowed=allow_download), torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        try:
            model = engine.create_model(
                name.model or f"local-dir:{name.path}",
                load_weights=False,
                pretrained_text=False,
                force_quick_gelu=bool(says.get("quick_gelu")),
                force_preprocess_cfg={key: says[key] for key in _PREPROCESS if key in says},
            )
        except Exception as error:  # open_clip does not validate a configuration; errors arise anywhere
            raise InvalidInput(f"open_clip cannot build {name}: {type(error).__name__}: {error}") from None
        if files.checkpoint is not None:
            _load_weights(model, files.checkpoint, name, engine)
    return model.eval().requires_grad_(False)


_PREPROCESS = ("mean", "std", "interpolation", "resize_mode", "fill_color")


def _load_weights(model: Any, path: Path, name: ModelName, engine: Any) -> None:
    try:
        keys = engine.load_checkpoint(model, str(path), strict=False, weights_only=True)
    except Exception as error:  # readers raise errors of many types on damaged files
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        mismatches = [line for line in lines if line.startswith("size mismatch for ")]
        if mismatches:
            raise InvalidInput(f"the weights {str(path)!r} do not fit {name}: {_some(mismatches, '; ')}") from None
        reason = f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
        raise InvalidInput(f"{str(path)!r} cannot be loaded as the weights of {name} ({reason})") from None
    missing, unexpected = getattr(keys, "missing_keys", ()), getattr(keys, "unexpected_keys", ())
    if missing or unexpected:
        lacks = f"it lacks {_some(missing)}" if missing else ""
        extra = f"the model has no {_some(unexpected)}" if unexpected else ""
        raise InvalidInput(
            f"the weights {str(path)!r} do not fit {name}: {'; '.join(part for part in (lacks, extra) if part)}"
        )


def _some(names: Sequence[str], separator: str = ", ") -> str:
    shown, rest = separator.join(names[:_MAX_NAMES]), len(names) - _MAX_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown


def load_tokenizer(name: ModelName, engine: Any, *, allow_download: bool) -> Any:
    """Return the tokenizer of a model, which turns texts into its input.

    Raises:
        MissingDependency: the model's tokenizer needs a package that is not installed.
        NotFound: its files are not on this machine, or are not those of a tokenizer.
    """
    with _LOADING, _quietly(), _network(allowed=allow_download):
        try:
            return engine.get_tokenizer(name.model or f"local-dir:{name.path}")
        except ImportError as error:
            raise MissingDependency(
                f"the tokenizer of {name} needs a package that is not installed: {error}; "
                "most of them need: pip install transformers sentencepiece"
            ) from None
        except Exception as error:  # tokenizer readers raise errors of many types
            raise NotFound(f"the tokenizer of {name} cannot be loaded: {type(error).__name__}: {error}") from None


@contextmanager
def _network(*, allowed: bool) -> Iterator[None]:
    """Allow the hub's client to use the network, or only its cache."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not allowed
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress open_clip's setup of logging, and its warning about weights that are loaded a moment later."""
    root, nowhere = logging.getLogger(), logging.NullHandler()
    root.addHandler(nowhere)  # logging.info() installs handlers if there are none
    root.addFilter(_is_not_of_open_clip)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_open_clip)
        root.removeHandler(nowhere)


def _is_not_of_open_clip(record: logging.LogRecord) -> bool:
    return "open_clip" not in Path(record.pathname).parts
