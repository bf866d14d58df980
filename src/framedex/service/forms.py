"""Small bodies that clients send as JSON or as a form, and how OpenAPI describes forms."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from framedex.service.errors import Refusal

Model = TypeVar("Model", bound=BaseModel)
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a JSON object or of a form; files are left out.

    Raises:
        Refusal: the body is not JSON, or no object.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in _FORMS:
        async with request.form(max_files=50, max_fields=50) as form:
            return {name: value for name, value in form.items() if isinstance(value, str)}
    body = await request.body()
    if not body:
        return {}
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(422, "The body is not valid JSON") from None
    if not isinstance(fields, dict):
        raise Refusal(422, "The body must be a JSON object")
    return fields


def parse_fields(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """Return the fields of a body as a model; empty texts count as missing.

    Raises:
        RequestValidationError: a field is missing or wrong.
    """
    present = {name: value for name, value in fields.items() if value != ""}
    try:
        return model.model_validate(present)
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(problems) from None


def form_body(properties: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Return the part of OpenAPI that describes a form which the route reads by itself."""
    schema = {"type": "object", "properties": dict(properties)}
    return {"requestBody": {"required": required, "content": {"multipart/form-data": {"schema": schema}}}}


def model_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the part of OpenAPI that describes a body which may be JSON or a form."""
    content = {each: {"schema": model.model_json_schema()} for each in ("application/json", *_FORMS)}
    return {"requestBody": {"required": True, "content": content}}


FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
"""The schema of a field with files."""
FILE = {"type": "string", "format": "binary"}
"""The schema of a field with one file."""
