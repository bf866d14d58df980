"""Models that can be fetched: the list in ``models.toml`` of this package, and that of the setting ``model_list``."""

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from framedex.core.downloads import check_remote
from framedex.core.regular_files import open_binary
from framedex.encoders.onnx_settings import parse_onnx_settings
from framedex.encoders.open_clip_names import CHECKPOINTS
from framedex.errors import Forbidden, InvalidInput, NotFound
from framedex.settings import Settings, user_path

Kind = Literal["open_clip", "onnx"]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The pattern of names of models, which are names of files, too."""
SUFFIXES: dict[Kind, tuple[str, ...]] = {"open_clip": CHECKPOINTS, "onnx": (".onnx",)}
_Text = Annotated[str, Field(min_length=1)]
_BUILT_IN = Path(__file__).with_name("models.toml")


class ListedModel(BaseModel):
    """A model that can be fetched.

    Attributes:
        name: the name of its table.
        kind: the engine that loads it.
        model, tag: of open_clip.
        settings: of an ONNX model, as in a file beside it.
        about: one line for users.
        file: the name of the file on this machine.
        addresses: of the file on the publisher's host.
        hosts: to which the addresses may lead and be redirected; ``*.`` stands for any part in front.
        size_bytes: None if it is not published.
        size_text: the size in words where it is not published to the byte.
        sha256: None if no published source states it.
        sha256_source: the source that states it.
        licence: of the weights.
        page: of the publisher.

    Examples:
        >>> [each.name for each in framedex.encoders.listed_models(ws.settings).values() if each.kind == "onnx"]
        ['dinov2-base', 'dinov2-small']
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    kind: Kind
    model: str | None = None
    tag: str | None = None
    settings: dict[str, Any] = {}
    about: _Text
    file: Annotated[str, Field(pattern=f"^{NAME}$")]
    addresses: Annotated[list[_Text], Field(min_length=1)]
    hosts: Annotated[list[_Text], Field(min_length=1)]
    size_bytes: Annotated[int, Field(gt=0)] | None = None
    size_text: str = "not published"
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    sha256_source: str | None = None
    licence: _Text
    page: _Text

    @model_validator(mode="after")
    def _fits(self) -> "ListedModel":
        if not self.file.endswith(SUFFIXES[self.kind]):
            raise ValueError(f"the file of a model of {self.kind} ends with {', '.join(SUFFIXES[self.kind])}")
        if (self.kind == "open_clip") != (self.model is not None):
            raise ValueError("model names the model of open_clip, and is left out for others")
        if (self.sha256 is None) != (self.sha256_source is None):
            raise ValueError("sha256 and sha256_source go together")
        for address in self.addresses:
            check_remote(address, self.hosts)
        parse_onnx_settings(self.settings, "settings")
        return self

    @property
    def size(self) -> str:
        """The size in words."""
        return self.size_text if self.size_bytes is None else f"{self.size_bytes / 1e6:,.0f} MB"


def listed_models(settings: Settings) -> dict[str, ListedModel]:
    """Return the models that can be fetched, by name, in the order in which ``auto`` prefers them.

    Raises:
        InvalidInput: the list that the settings name cannot be read, or has an invalid table.

    Examples:
        >>> list(framedex.encoders.listed_models(ws.settings))
        ['ViT-B-32', 'ViT-L-14', 'dinov2-base', 'dinov2-small']
    """
    if settings.model_list is None:
        return _built_in()
    return {**_built_in(), **_read(user_path(settings.model_list))}


def listed_model(name: str, settings: Settings) -> ListedModel:
    """Return one of the models that can be fetched.

    Raises:
        NotFound: there is no such model; the message lists them.
        InvalidInput: the list cannot be read.

    Examples:
        >>> framedex.encoders.listed_model("dinov2-small", ws.settings).licence
        'Apache-2.0'
    """
    models = listed_models(settings)
    if name not in models:
        raise NotFound(f"no model {name!r} can be fetched; there are: {', '.join(models)}")
    return models[name]


@cache
def _built_in() -> dict[str, ListedModel]:
    return _read(_BUILT_IN)


def _read(path: Path) -> dict[str, ListedModel]:
    says = f"the list of models {os.fspath(path)!r}"
    try:
        with open_binary(path) as file:
            tables = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{says} cannot be read: {error}") from None
    return {name: _model(name, table, says) for name, table in tables.items()}


def _model(name: str, table: Any, says: str) -> ListedModel:
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{says}: a model is a table, [{name}], not {table!r}")
    try:
        return ListedModel.model_validate({**table, "name": name})
    except Forbidden as error:
        raise InvalidInput(f"{says}, model {name!r}: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = f"{first['loc'][0]}: " if first["loc"] else ""
        raise InvalidInput(f"{says}, model {name!r}: {key}{first['msg'].removeprefix('Value error, ')}") from None
