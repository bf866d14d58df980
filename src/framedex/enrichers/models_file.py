"""Registered models: one table for each in ``models.toml`` of the workspace; see docs/enrichment.md."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from framedex.core.regular_files import open_binary
from framedex.encoders import absolute_name
from framedex.encoders.onnx_classifier import Values
from framedex.enrichers.captioner import MAX_TOKENS
from framedex.enrichers.yolo_heads import Form
from framedex.errors import InvalidInput
from framedex.records import EnrichmentType
from framedex.settings import user_path

_Text = Annotated[str, Field(min_length=1)]
_NEEDS: dict[EnrichmentType, tuple[tuple[str, ...], ...]] = {
    EnrichmentType.MULTIMODEL_IMAGE_ENCODING: (("encoder",),),
    EnrichmentType.IMAGE_TAGGING: (("encoder", "vocabulary"), ("classifier", "labels")),
    EnrichmentType.OBJECT_DETECTION: (("detector",),),
    EnrichmentType.CAPTION_IMAGES: (("captioner",),),
    EnrichmentType.CAPTION_OBJECTS: (("captioner",),),
}
_MAY: dict[tuple[str, ...], tuple[str, ...]] = {
    ("encoder",): (),
    ("encoder", "vocabulary"): ("threshold", "top_k"),
    ("classifier", "labels"): ("threshold", "top_k", "values"),
    ("detector",): ("names", "form", "size", "score", "iou"),
    ("captioner",): ("prompt", "max_tokens", "replace"),
}
_ANY = ("id", "type", "name", "vendor", "description", "dependencies")


class ModelEntry(BaseModel):
    """A registered model.

    Attributes:
        id: the name of its table.
        type: the type of its results.
        name: for users; by default the id.
        vendor: the model's author.
        description: of the model.
        dependencies: types that must be applied before.
        encoder: the name of an encoder of images and texts.
        vocabulary: file with the tags of the encoder.
        classifier: the name of an ONNX model, ``onnx:<path>``.
        labels: file with the class names of the classifier, one a line.
        values: the classifier's kind of output.
        threshold: the minimum probability of a tag, 0 to 1.
        top_k: the maximum number of tags of an image.
        detector: the name of an ONNX model that detects objects, ``onnx:<path>``, or ``faces``.
        names: file with the class names of the detector.
        form, size, score, iou: as for :class:`framedex.enrichers.OnnxDetector`.
        captioner: the folder of a model that writes captions.
        prompt: the captioner's prompt; None for its default.
        max_tokens: the maximum length of a caption.
        replace: whether captions of users are replaced.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    id: str
    type: Annotated[EnrichmentType, Field(strict=False)]
    name: _Text
    vendor: str = "local"
    description: str = ""
    dependencies: Annotated[list[Annotated[EnrichmentType, Field(strict=False)]], Field(min_length=1)] | None = None
    encoder: _Text | None = None
    vocabulary: _Text | None = None
    classifier: _Text | None = None
    labels: _Text | None = None
    values: Values = "probabilities"
    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    top_k: Annotated[int, Field(ge=1, le=1000)] = 3
    detector: _Text | None = None
    names: _Text | None = None
    form: Form | None = None
    size: Annotated[int, Field(ge=32, le=8192, multiple_of=32)] | None = None
    score: Annotated[float, Field(gt=0, le=1, strict=False)] | None = None
    iou: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    captioner: _Text | None = None
    prompt: _Text | None = None
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = MAX_TOKENS
    replace: bool = False

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "ModelEntry":
        ways = _NEEDS[self.type]
        keys = self.model_fields_set - set(_ANY)
        fitting = [way for way in ways if keys & set(way)] or list(ways)
        if len(fitting) > 1 or not set(fitting[0]) <= keys:
            raise ValueError(f"{self.type} needs {' or '.join(' and '.join(way) for way in ways)}")
        if others := sorted(keys - {*fitting[0], *_MAY[fitting[0]]}):
            raise ValueError(f"{others[0]} does not go with {' and '.join(fitting[0])}")
        if self.dependencies and self.type in self.dependencies:
            raise ValueError(f"{self.type} cannot depend on itself")
        return self

    def model(self, folder: Path) -> "ModelEntry":
        """Return the entry with absolute paths; relative ones are relative to the folder."""
        changes: dict[str, Any] = {
            key: absolute_name(name, folder)
            for key in ("encoder", "classifier", "detector")
            if (name := getattr(self, key))
        }
        changes |= {
            key: str(folder / user_path(path))
            for key in ("vocabulary", "labels", "names", "captioner")
            if (path := getattr(self, key))
        }
        return self.model_copy(update=changes)


def read_models(path: Path) -> list[ModelEntry]:
    """Return the registered models in the order of the file; an empty list if the file does not exist.

    Raises:
        InvalidInput: the file is not TOML, or a model in it is invalid. The message names the file, model and key.
    """
    try:
        with open_binary(path) as file:
            tables = tomllib.load(file)
    except FileNotFoundError:
        return []
    except RecursionError:
        raise InvalidInput(f"the list of models {os.fspath(path)!r} cannot be read: it is nested too deep") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the list of models {os.fspath(path)!r} cannot be read: {error}") from None
    return [_entry(path, identifier, value).model(path.parent) for identifier, value in tables.items()]


def _entry(path: Path, identifier: str, value: Any) -> ModelEntry:
    location = f"{os.fspath(path)!r}, model {identifier!r}"
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{location}: a model is a table, [{identifier}], not {value!r}")
    if not identifier:
        raise InvalidInput(f"{location}: the name of the table is the id of the model, and must not be empty")
    if "id" in value:
        raise InvalidInput(f"{location}: no key 'id': the name of the table is the id")
    try:
        return ModelEntry.model_validate({"name": identifier, **value, "id": identifier})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    if not first["loc"]:
        raise InvalidInput(f"{location}: {first['msg'].removeprefix('Value error, ')}")
    key = str(first["loc"][0])
    match first["type"]:
        case "extra_forbidden":
            keys = ", ".join(name for name in ModelEntry.model_fields if name != "id")
            raise InvalidInput(f"{location}: no key {key!r}; there are: {keys}")
        case "missing":
            raise InvalidInput(f"{location}: the key {key!r} is missing")
        case _:
            raise InvalidInput(f"{location}: {key} is {first['input']!r}: {first['msg']}")
