"""Settings of an ONNX model's input and output, from arguments, its name, or a file beside it."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from framedex.core.regular_files import has_file, open_binary
from framedex.errors import InvalidInput, NotFound
from framedex.settings import user_path

SCHEME = "onnx"
_MANY = 8192  # maximum side of an input in pixels
_Colour = tuple[float, float, float]


def _numbers(value: Any) -> Any:
    """Return the values of a text with commas, and any other value unchanged."""
    return value.split(",") if isinstance(value, str) else value


def _sides(value: Any) -> Any:
    """Return (height, width), also for one number that stands for both."""
    sides = _numbers(value)
    if isinstance(sides, list | tuple):
        return tuple(sides) * 2 if len(sides) == 1 else tuple(sides)
    return (sides, sides)


_Side = Annotated[int, Field(gt=0, le=_MANY)]


class OnnxSettings(BaseModel):
    """Settings of an encoder. None means that the model decides, or the default.

    Attributes:
        size: height and width of the input in pixels; required if the model accepts any size.
        scale: the largest pixel value, 255, becomes this value before the mean is subtracted; usually 1 or 255.
        mean, std: of each colour, in the order of the model's input; the input is ``(value - mean) / std``.
        colours: the order of the colours in the input.
        layout: the order of the input's axes.
        resize: ``crop`` keeps the centre of the image, ``stretch`` changes its proportions, ``letterbox`` adds bars.
        crop: the fraction of the largest possible centred part that ``crop`` keeps, in (0, 1].
        fill: the grey level, 0 to 255, of the bars that ``letterbox`` adds.
        output: name of the vector's tensor, which may be inside the model.
        pool: the reduction of a tensor with several positions: their mean, or the first token (of transformers).
        thresholds: five ascending cosine distances of the cluster levels.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    size: Annotated[tuple[_Side, _Side], BeforeValidator(_sides)] | None = None
    scale: float | None = Field(default=None, gt=0)
    mean: Annotated[_Colour, BeforeValidator(_numbers)] | None = None
    std: Annotated[_Colour, BeforeValidator(_numbers)] | None = None
    colours: Literal["rgb", "bgr"] | None = None
    layout: Literal["nchw", "nhwc"] | None = None
    resize: Literal["crop", "stretch", "letterbox"] | None = None
    crop: float | None = Field(default=None, gt=0, le=1)
    fill: int | None = Field(default=None, ge=0, le=255)
    output: str | None = Field(default=None, min_length=1)
    pool: Literal["mean", "first"] | None = None
    thresholds: Annotated[tuple[float, float, float, float, float], BeforeValidator(_numbers)] | None = None

    @field_validator("std")
    @classmethod
    def _divides(cls, value: _Colour | None) -> _Colour | None:
        if value is not None and min(value) <= 0:
            raise ValueError("deviations must be above 0")
        return value

    @field_validator("thresholds")
    @classmethod
    def _ascends(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and not (list(value) == sorted(set(value)) and value[0] > 0 and value[-1] <= 2):
            raise ValueError("thresholds must be five ascending cosine distances above 0, up to 2")
        return value

    def over(self, other: "OnnxSettings") -> "OnnxSettings":
        """Return these settings, completed by another's."""
        return OnnxSettings(**(other.as_dict() | self.as_dict()))

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        return self.model_dump(exclude_none=True)

    def as_text(self) -> dict[str, str]:
        """Return the settings that are not None, as they are written in a name."""
        return {name: setting_text(value) for name, value in self.as_dict().items()}


def setting_text(value: Any) -> str:
    """Return a setting as it is written in a name: shortest digits that restore a number, commas in lists."""
    if isinstance(value, tuple):
        return ",".join(setting_text(each) for each in value)
    return f"{int(value)}" if isinstance(value, float) and value.is_integer() else str(value)


def parse_onnx_settings(values: Mapping[str, Any], where: str) -> OnnxSettings:
    """Return validated settings.

    Raises:
        InvalidInput: a setting is unknown, or its value is invalid. The message begins with *where*.
    """
    for name, value in values.items():
        if isinstance(value, bool):  # bool is a subclass of int
            raise InvalidInput(f"{where}: {name} is {value!r}: no setting is true or false")
    try:
        return OnnxSettings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise InvalidInput(
                f"{where}: no setting {name!r}; there are: {', '.join(OnnxSettings.model_fields)}"
            ) from None
        raise InvalidInput(f"{where}: {name} is {values[name]!r}: {first['msg']}") from None


def sidecar_of(path: Path) -> Path:
    """Return the path of the settings beside a model file: ``model.toml`` beside ``model.onnx``."""
    return path.with_suffix(".toml")


def read_onnx_sidecar(path: Path) -> OnnxSettings:
    """Return the settings beside a model file; empty settings if the file does not exist.

    Raises:
        InvalidInput: the file is not TOML, or a setting is invalid.
    """
    sidecar = sidecar_of(path)
    try:
        with open_binary(sidecar) as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        return OnnxSettings()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the settings beside a model, {os.fspath(sidecar)!r}, cannot be read: {error}") from None
    return parse_onnx_settings(values, f"the settings beside a model, {os.fspath(sidecar)!r}")


def model_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a model file.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the path contains a '?', which separates settings in an encoder's name.
    """
    whole = Path(os.path.abspath(user_path(path)))  # noqa: PTH100 - does not follow links, unlike resolve
    if not has_file(whole):
        raise NotFound(f"no model file {os.fspath(whole)!r}")
    if "?" in os.fspath(whole):
        raise InvalidInput(f"the path of a model has no '?', behind which settings begin: {os.fspath(whole)!r}")
    return whole


def name_of(path: Path, settings: OnnxSettings) -> str:
    """Return the encoder's name, from which it can be loaded again: ``onnx:<path>?<setting>=<value>&…``."""
    query = urlencode(settings.as_text(), safe="/:,")
    return f"{SCHEME}:{os.fspath(path)}" + (f"?{query}" if query else "")


def parse_name(name: str) -> tuple[str, OnnxSettings]:
    """Return the path and the settings of a name.

    Raises:
        InvalidInput: the name has no path, a setting without a value, a repeated setting, or an invalid one.
    """
    scheme, _, rest = name.partition(":")
    path, _, query = rest.partition("?")
    if scheme != SCHEME or not path:
        raise InvalidInput(f"{name!r} names no model: it is onnx:<path of a file>[?<setting>=<value>&…]")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise InvalidInput(f"{name!r}: what follows '?' must be <setting>=<value>, joined by '&'") from None
    if len(dict(pairs)) < len(pairs):
        raise InvalidInput(f"{name!r} says the same setting twice")
    return path, parse_onnx_settings(dict(pairs), repr(name))


def absolute_onnx_name(name: str, folder: Path) -> str:
    """Return a name whose path is absolute; a relative path is relative to the folder."""
    path, mark, query = name.partition(":")[2].partition("?")
    return f"{SCHEME}:{folder / user_path(path)}{mark}{query}" if path else name
