"""Names of open_clip models: ``open_clip:<model>/<pretrained tag or file>``, ``open_clip:<folder>``."""

import os
from dataclasses import dataclass
from pathlib import Path

from framedex.core.regular_files import has_file
from framedex.errors import InvalidInput
from framedex.settings import user_path

SCHEME = "open_clip"
CONFIG = "open_clip_config.json"
CHECKPOINTS = (".safetensors", ".pt", ".pth", ".bin")
"""The suffixes of files with weights."""
_RANDOM = "?random"


@dataclass(frozen=True)
class ModelName:
    """A model and its weights.

    Attributes:
        model: a model of open_clip; None for a folder.
        tag: one of the model's pretrained tags.
        path: the absolute path of the folder, or of a weights file for the model.
        random: whether the weights are random, for measurements of speed.
    """

    model: str | None = None
    tag: str | None = None
    path: Path | None = None
    random: bool = False

    @classmethod
    def parse(cls, name: str) -> "ModelName":
        """Return the model and weights of a name.

        A text is a folder if it is a path, or a folder with a configuration of open_clip. Otherwise the part before the
        first slash is the model. Relative paths become absolute, so the name is valid in any working directory.

        Raises:
            InvalidInput: the name is empty, or has no weights.
        """
        scheme, _, rest = name.partition(":")
        if scheme != SCHEME or not rest or rest == _RANDOM:
            raise InvalidInput(f"{name!r} names no model: give {_FORMS}")
        if rest.endswith(_RANDOM):
            return cls.of(rest.removesuffix(_RANDOM), random=True)
        path = user_path(rest)
        if path.is_absolute() or rest.startswith(".") or has_file(path / CONFIG):
            return cls.of(path)
        model, _, weights = rest.partition("/")
        return cls.of(model, weights or None)

    @classmethod
    def of(
        cls, model: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None, *, random: bool = False
    ) -> "ModelName":
        """Return the name of a model of open_clip with its weights, or of a folder with both.

        Raises:
            InvalidInput: the weights are missing, or are passed for a folder.
        """
        path = user_path(model)
        if isinstance(model, os.PathLike) or path.is_absolute() or has_file(path / CONFIG):
            if weights is not None or random:
                raise InvalidInput(f"the folder {os.fspath(model)!r} has its own weights; no others can be given")
            return cls(path=_absolute(path))
        if random == (weights is not None):
            raise InvalidInput(
                f"the open_clip model {model!r} needs weights: give {_FORMS}; "
                f"{f'{SCHEME}:{model}{_RANDOM}'!r} has random weights, for measurements of speed"
            )
        if weights is None:
            return cls(str(model), random=True)
        if _is_file_name(weights):
            return cls(str(model), path=_absolute(user_path(weights)))
        return cls(str(model), tag=str(weights))

    def __str__(self) -> str:
        """Return the full name, which :meth:`parse` accepts in any working directory."""
        if self.model is None:
            return f"{SCHEME}:{self.path}"
        if self.random:
            return f"{SCHEME}:{self.model}{_RANDOM}"
        return f"{SCHEME}:{self.model}/{self.tag or self.path}"


_FORMS = (
    f"{SCHEME}:<model>/<pretrained tag>, {SCHEME}:<model>/<file with weights>, "
    f"or {SCHEME}:<folder with {CONFIG} and weights>"
)


def _is_file_name(weights: str | os.PathLike[str]) -> bool:
    path = user_path(weights)
    return isinstance(weights, os.PathLike) or path.suffix in CHECKPOINTS or path.is_absolute() or has_file(path)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - does not follow links, unlike resolve


def absolute_open_clip_name(name: str, folder: Path) -> str:
    """Return a name whose path is absolute, relative to the folder; names of models and tags do not change."""
    rest = name.partition(":")[2]
    if rest and (rest.startswith(".") or has_file(folder / user_path(rest) / CONFIG)):
        return f"{SCHEME}:{os.path.normpath(folder / user_path(rest))}"
    model, _, weights = rest.partition("/")
    if weights.endswith(CHECKPOINTS) and not user_path(rest).is_absolute():
        return f"{SCHEME}:{model}/{folder / user_path(weights)}"
    return name
