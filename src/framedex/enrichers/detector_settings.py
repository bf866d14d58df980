"""Settings of a detector in ONNX: by arguments, or in a file beside the model."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from framedex.enrichers.yolo_heads import STRIDES, Form
from framedex.errors import InvalidInput
from framedex.regular_files import open_binary

_MANY = 8192  # pixels of a side: no model takes more


def _sides(value: Any) -> Any:
    """Return height and width, where one number stands for both."""
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


_Side = Annotated[int, Field(strict=True, gt=0, le=_MANY, multiple_of=STRIDES[-1])]


class DetectorSettings(BaseModel):
    """Settings of a detector; what is None is found in the model, or has its default.

    Attributes:
        form: of the output; see :mod:`~framedex.enrichers.yolo_heads`.
        size: height and width of the input in pixels, multiples of 32; needed where the model leaves them open.
        names: of the classes, by number; or a file of them: a name a line, or a ``.yaml`` with ``names``. In a file
            beside the model its path is relative to that.
        score: the least confidence of a detection, in (0, 1].
        iou: the intersection over union, in [0, 1], that two boxes of a class may have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    form: Form | None = None
    size: Annotated[tuple[_Side, _Side], BeforeValidator(_sides)] | None = None
    names: Path | tuple[str, ...] | None = None
    score: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    iou: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None

    def over(self, other: "DetectorSettings") -> "DetectorSettings":
        """Return these settings, and the other's where these say nothing."""
        return other.model_copy(update={name: value for name, value in self if value is not None})


def checked(values: Mapping[str, Any], where: str) -> DetectorSettings:
    """Return settings.

    Raises:
        InvalidInput: one is unknown or has a value that cannot be; the message begins with *where*.
    """
    try:
        return DetectorSettings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            there = ", ".join(DetectorSettings.model_fields)
            raise InvalidInput(f"{where}: no setting {name!r}; there are: {there}") from None
        raise InvalidInput(f"{where}: {name} is {values[name]!r}: {first['msg']}") from None


def read_sidecar(model: Path) -> DetectorSettings:
    """Return the settings in ``model.toml`` beside ``model.onnx``; none if there is no such file.

    Raises:
        InvalidInput: the file is no TOML, or a setting cannot be.
    """
    path = model.with_suffix(".toml")
    says = f"the settings beside a model, {os.fspath(path)!r}"
    try:
        with open_binary(path) as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        return DetectorSettings()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{says}, cannot be read: {error}") from None
    found = checked(values, says)
    return found.model_copy(update={"names": model.parent / found.names}) if isinstance(found.names, Path) else found
