"""Locations of the weights of open_clip models: a file, a folder, the local cache, or, with permission, the hub."""

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framedex.core.regular_files import has_file, has_folder, read_text
from framedex.encoders.open_clip_names import CHECKPOINTS, CONFIG, SCHEME, ModelName
from framedex.errors import InvalidInput, NotFound, Unavailable

_PREFERRED = ("open_clip_model", "open_clip_pytorch_model", "model", "pytorch_model")
_HUB_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
_ALLOW = "FRAMEDEX_ALLOW_DOWNLOADS=1, or allow_download=True in code, fetches them"


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model.

    Attributes:
        checkpoint: the weights; None for random ones.
        beside: further files that describe the model.
        pretrained: open_clip's configuration of a pretrained tag, such as the preparation of images.
    """

    checkpoint: Path | None
    beside: tuple[Path, ...] = ()
    pretrained: Mapping[str, Any] = field(default_factory=dict)


def find_files(name: ModelName, engine: Any, *, allow_download: bool) -> ModelFiles:
    """Return the files of a model.

    Args:
        name: of the model.
        engine: the module ``open_clip``.
        allow_download: whether weights that are not on this machine may be downloaded.

    Raises:
        InvalidInput: open_clip has no such model or tag, or the folder has no configuration or no weights.
        NotFound: the folder or file does not exist, or the weights are not in the local cache.
        Unavailable: the weights could not be downloaded.
    """
    if name.model is None:
        assert name.path is not None
        return _in_folder(name.path)
    models = engine.list_models()
    if name.model not in models:
        near = difflib.get_close_matches(name.model, models, n=3, cutoff=0.4)
        hint = f"the nearest are {', '.join(near)}" if near else "open_clip.list_models() lists them"
        folder = Path(name.model, name.tag or "")
        raise InvalidInput(f"open_clip has no model {name.model!r}; {hint}; and there is no folder {str(folder)!r}")
    if name.path is not None and not has_file(name.path):
        raise NotFound(f"no file {str(name.path)!r} with weights for {name.model}")
    if name.tag is None:
        return ModelFiles(name.path)
    pretrained = engine.get_pretrained_cfg(name.model, name.tag)
    if not pretrained:
        tags = ", ".join(engine.list_pretrained_tags_by_model(name.model)) or "none"
        raise InvalidInput(f"open_clip has no weights {name.tag!r} for {name.model}; there are: {tags}; or name a file")
    return ModelFiles(_of_tag(name, pretrained, engine, allow_download=allow_download), pretrained=pretrained)


def _in_folder(folder: Path) -> ModelFiles:
    if not has_folder(folder):
        raise NotFound(f"no folder {str(folder)!r}, so {f'{SCHEME}:{folder}'!r} names no model")
    config = folder / CONFIG
    try:
        content = json.loads(read_text(config))
        model = content["model_cfg"]
        for part in ("embed_dim", "vision_cfg", "text_cfg"):
            model[part]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{str(config)!r} is no configuration of open_clip ({type(error).__name__}: {error}): it is JSON, and has "
            "model_cfg with embed_dim, vision_cfg and text_cfg"
        ) from None
    checkpoints = sorted(path for path in folder.iterdir() if path.suffix in CHECKPOINTS)
    checkpoints.sort(
        key=lambda path: (_PREFERRED.index(path.stem) if path.stem in _PREFERRED else 9, path.suffix != ".safetensors")
    )
    if not checkpoints:
        raise NotFound(f"no weights in {str(folder)!r}: it has no file that ends with {', '.join(CHECKPOINTS)}")
    if len(checkpoints) > 1 and checkpoints[0].stem not in _PREFERRED:
        raise InvalidInput(
            f"{str(folder)!r} has several files with weights, {', '.join(path.name for path in checkpoints)}; "
            f"call the right one {_HUB_NAMES[0]}"
        )
    tokenizer = folder / "tokenizer.json"
    return ModelFiles(checkpoints[0], (config, tokenizer) if tokenizer.is_file() else (config,))


def _of_tag(name: ModelName, pretrained: Mapping[str, Any], engine: Any, *, allow_download: bool) -> Path:
    searched: list[str] = []
    repository, _, file_name = pretrained.get("hf_hub", "").rpartition("/")
    if repository:
        checkpoint = cached_on_hub(repository, _names_on_hub(file_name))
        searched.append(f"{repository} in {_hub_cache()!r}")
    else:
        path = Path("~/.cache/clip").expanduser() / os.path.basename(pretrained.get("url", ""))  # noqa: PTH119 - a URL
        checkpoint = path if path.is_file() else None
        searched.append(repr(str(path)))
    if checkpoint is not None:
        return checkpoint
    if not allow_download:
        raise NotFound(
            f"the weights {name.tag!r} of {name.model} are not on this machine; looked for {', '.join(searched)}. "
            f"{_ALLOW}; or give a file: {SCHEME}:{name.model}/<file>; `framedex models` lists those of this machine"
        )
    try:
        return Path(engine.download_pretrained(dict(pretrained)))
    except Exception as error:  # the network and the hub's client raise errors of many types
        raise Unavailable(f"the weights {name.tag!r} of {name.model} could not be fetched: {error}") from None


def _names_on_hub(file_name: str) -> tuple[str, ...]:
    """Return the possible names of a weights file, in the order of open_clip 3.3: safetensors before the given name."""
    if not file_name:
        return _HUB_NAMES
    safe = Path(file_name).with_suffix(".safetensors").name
    return (safe, file_name)


def cached_on_hub(repository: str, names: tuple[str, ...] = _HUB_NAMES) -> Path | None:
    """Return the first of some files of a repository that is in the hub's local cache, or None."""
    from huggingface_hub import try_to_load_from_cache

    for name in names:
        path = try_to_load_from_cache(repository, name)
        if isinstance(path, str):
            return Path(path)
    return None


def _hub_cache() -> str:
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)
