"""Settings of an ONNX detector, from arguments or a file beside the model."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from framedex.core.regular_files import open_binary
from framedex.enrichers.yolo_heads import STRIDES, Form
from framedex.errors import InvalidInput

_MANY = 8192  # maximum side of an input in pixels


def _sides(value: Any) -> Any:
    """Return (height, width), also for one number that stands for both."""
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


_Side = Annotated[int, Field(strict=True, gt=0, le=_MANY, multiple_of=STRIDES[-1])]


class DetectorSettings(BaseModel):
    """Settings of a detector. None means that the model decides, or the default.

    Attributes:
        form: of the output; see :mod:`~framedex.enrichers.yolo_heads`.
        size: height and width of the input in pixels, multiples of 32; required if the model accepts any size.
        names: class names by number; or a file with one name a line, or a ``.yaml`` file with ``names``. In a settings
            file, a relative path is relative to that file's folder.
        score: the minimum confidence of a detection, in (0, 1].
        iou: the maximum intersection over union of two boxes of a class, in [0, 1].
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    form: Form | None = None
    size: Annotated[tuple[_Side, _Side], BeforeValidator(_sides)] | None = None
    names: Path | tuple[str, ...] | None = None
    score: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    iou: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None

    def over(self, other: "DetectorSettings") -> "DetectorSettings":
        """Return these settings, completed by another's."""
        return other.model_copy(update={name: value for name, value in self if value is not None})


def parse_detector_settings(values: Mapping[str, Any], where: str) -> DetectorSettings:
    """Return validated settings.

    Raises:
        InvalidInput: a setting is unknown, or its value is invalid. The message begins with *where*.
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


def read_detector_sidecar(model: Path) -> DetectorSettings:
    """Return the settings in ``model.toml`` beside ``model.onnx``; empty settings if the file does not exist.

    Raises:
        InvalidInput: the file is not TOML, or a setting is invalid.
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
    settings = parse_detector_settings(values, says)
    return (
        settings.model_copy(update={"names": model.parent / settings.names})
        if isinstance(settings.names, Path)
        else settings
    )
