"""Settings of an ONNX model, for its input and its output: by arguments, by its name, or in a file beside it."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from framedex.errors import InvalidInput, NotFound
from framedex.regular_files import open_binary
from framedex.settings import user_path

SCHEME = "onnx"
_MANY = 8192  # pixels of a side: no model takes more
_Colour = tuple[float, float, float]


def _numbers(value: Any) -> Any:
    """Return what a text with commas lists."""
    return value.split(",") if isinstance(value, str) else value


def _sides(value: Any) -> Any:
    """Return height and width, where one number stands for both."""
    sides = _numbers(value)
    if isinstance(sides, list | tuple):
        return tuple(sides) * 2 if len(sides) == 1 else tuple(sides)
    return (sides, sides)


_Side = Annotated[int, Field(gt=0, le=_MANY)]


class OnnxSettings(BaseModel):
    """Settings of an encoder; what is None is found in the model, or has its default.

    Attributes:
        size: height and width of the input in pixels; needed where the model leaves them open.
        scale: what the largest pixel value, 255, becomes before the mean is taken off: 1 or 255, as a rule.
        mean, std: of each colour, in the order of the model's input; values go in as ``(value - mean) / std``.
        colours: the order of the colours in the input.
        layout: the order of the input's axes.
        resize: ``crop`` takes the middle of the picture, ``stretch`` changes its proportions, ``letterbox`` fills up.
        crop: the share of the largest possible middle part that ``crop`` takes, in (0, 1].
        fill: the grey level, 0 to 255, that ``letterbox`` fills up with.
        output: name of the tensor that is the vector, also of one inside of the model.
        pool: what a tensor of several places is reduced by: their mean, or the first token (of transformers).
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
        """Return these settings, and the other's where these say nothing."""
        return OnnxSettings(**(other.given() | self.given()))

    def given(self) -> dict[str, Any]:
        """Return what is set, by name."""
        return self.model_dump(exclude_none=True)

    def as_text(self) -> dict[str, str]:
        """Return what is set, each as it is written in a name."""
        return {name: text_of(value) for name, value in self.given().items()}


def text_of(value: Any) -> str:
    """Return a setting as it is written in a name: numbers as short as they can be read back, lists with commas."""
    if isinstance(value, tuple):
        return ",".join(text_of(each) for each in value)
    return f"{int(value)}" if isinstance(value, float) and value.is_integer() else str(value)


def checked(values: Mapping[str, Any], where: str) -> OnnxSettings:
    """Return settings.

    Raises:
        InvalidInput: one is unknown or has a value that cannot be; the message begins with *where*.
    """
    for name, value in values.items():
        if isinstance(value, bool):  # which would pass for a number
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
    """Return where the settings beside a model file are: ``model.toml`` beside ``model.onnx``."""
    return path.with_suffix(".toml")


def read_sidecar(path: Path) -> OnnxSettings:
    """Return the settings beside a model file; none if there is no such file.

    Raises:
        InvalidInput: the file is no TOML, or a setting cannot be.
    """
    sidecar = sidecar_of(path)
    try:
        with open_binary(sidecar) as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        return OnnxSettings()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the settings beside a model, {os.fspath(sidecar)!r}, cannot be read: {error}") from None
    return checked(values, f"the settings beside a model, {os.fspath(sidecar)!r}")


def model_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a model file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: its path could not be found again in an encoder's name.
    """
    whole = Path(os.path.abspath(user_path(path)))  # noqa: PTH100 - keeps links, unlike resolve
    if not whole.is_file():
        raise NotFound(f"no model file {os.fspath(whole)!r}")
    if "?" in os.fspath(whole):
        raise InvalidInput(f"the path of a model has no '?', behind which settings begin: {os.fspath(whole)!r}")
    return whole


def name_of(path: Path, given: OnnxSettings) -> str:
    """Return the name by which an encoder is found again: ``onnx:<path>?<setting>=<value>&…``."""
    query = urlencode(given.as_text(), safe="/:,")
    return f"{SCHEME}:{os.fspath(path)}" + (f"?{query}" if query else "")


def parse_name(name: str) -> tuple[str, OnnxSettings]:
    """Return the path and the settings of a name.

    Raises:
        InvalidInput: it has no path, a setting without a value, the same setting twice, or one that cannot be.
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
    return path, checked(dict(pairs), repr(name))


def absolute_name(name: str, folder: Path) -> str:
    """Return a name in which a path that is relative to a folder is absolute."""
    path, mark, query = name.partition(":")[2].partition("?")
    return f"{SCHEME}:{folder / user_path(path)}{mark}{query}" if path else name
