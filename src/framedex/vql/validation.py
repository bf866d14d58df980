"""Validation of the JSON of one key, with errors that name the JSON path of the wrong part."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from framedex.core.checks import suggestion
from framedex.errors import InvalidFilter
from framedex.vql.values import shown

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], content: Any, path: str) -> Model:
    """Return the model of some JSON.

    Args:
        model: its class.
        content: the JSON as Python objects.
        path: JSON path of the content.

    Raises:
        InvalidFilter: with the JSON path of the part that is wrong.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _as_filter_error(error, model, content, path) from None


def _as_filter_error(error: ValidationError, model: type[BaseModel], content: Any, path: str) -> InvalidFilter:
    """Return an error about the deepest wrong part, with all alternatives that are allowed there."""
    errors = error.errors(include_url=False)
    locations = [_steps(each["loc"], content, is_missing=_is_missing(each)) for each in errors]
    deepest = max(locations, key=len)
    relevant = [each for each, steps in zip(errors, locations, strict=True) if steps == deepest]
    # The error of one member of a union about the value is worth more than that of another about its type.
    relevant = [each for each in relevant if not each["type"].endswith("_type")] or relevant
    first, place = relevant[0], path + "".join(deepest)
    if first["type"] == "model_type":
        return InvalidFilter(place, f"expected an object with {', '.join(model.model_fields)}; found {shown(content)}")
    if first["type"] == "extra_forbidden":
        names = list(model.model_fields)
        guess = suggestion(first["loc"][-1], names)
        return InvalidFilter(place, f"expected one of {', '.join(names)}; found {shown(first['loc'][-1])}{guess}")
    allowed = _either(each["msg"] for each in relevant)
    return InvalidFilter(place, allowed if _is_missing(first) else f"{allowed}; found {shown(first['input'])}")


def _is_missing(error: Any) -> bool:
    """Return whether an error is about a missing key, or about a default that is not allowed."""
    return error["type"] == "missing" or error["input"] is None


def _either(messages: Iterable[str]) -> str:
    first, *others = dict.fromkeys(each.removeprefix("Value error, ") for each in messages)
    return " or ".join([first, *(each.removeprefix("Input should be ") for each in others)])


def _steps(loc: Sequence[int | str], content: Any, *, is_missing: bool) -> list[str]:
    """Return pydantic's location as steps of a JSON path: it also names the members of unions, which are no steps.

    Args:
        loc: the location.
        content: the validated JSON.
        is_missing: whether the last part of the location is a missing key.
    """
    steps: list[str] = []
    for index, part in enumerate(loc):
        if isinstance(part, int) and isinstance(content, Sequence):
            if part >= len(content):  # a list is too short
                break
            steps.append(f"[{part}]")
            content = content[part]
        elif isinstance(content, Mapping) and (part in content or (is_missing and index == len(loc) - 1)):
            steps.append(f".{part}")
            content = content.get(part)
    return steps
