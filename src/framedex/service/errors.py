"""Errors as responses: the status of each code."""

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from framedex.errors import CODES, CannotDecode, Error, Fault, NotAuthenticated, TooManyAttempts, WorkspaceError

logger = logging.getLogger("framedex.service")

INTERNAL = "Internal server error"
_NO_JSON = "The body is not valid JSON"
_UNREADABLE = "There was an error parsing the body"  # the framework's word for JSON that is too deep, or no UTF-8
_NOT_WRITABLE = "The workspace cannot be written at present"
_STATUSES: Mapping[str, int] = {
    "not_authenticated": 401,
    "rate_limited": 429,
    "gone": 410,
    "not_found": 404,
    "not_indexed": 400,
    "not_retryable": 400,
    "conflict": 409,
    "forbidden": 403,
    "invalid_filter": 422,
    "cannot_decode": 422,
    "invalid": 422,
    "timeout": 503,
    "unavailable": 502,
    "workspace": 503,
    "missing_dependency": 501,
}
"""The status of each code of the library's errors."""
_CODES = {
    400: "invalid", 401: "not_authenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    409: "conflict", 413: "too_large", 415: "cannot_decode", 416: "range_not_satisfiable", 422: "invalid",
    429: "rate_limited", 503: "unavailable",
}  # fmt: skip


class ErrorBody(BaseModel):
    """An error: ``detail`` and ``message`` are the same sentence, ``code`` a short name for programs.

    ``request_id`` stands in the log, too. ``errors`` lists each problem of a request that is not valid. ``fault`` is
    the kind of the reason why an image cannot be decoded.
    """

    detail: str
    message: str
    code: str
    request_id: str
    errors: list[dict[str, Any]] | None = None
    fault: Fault | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request cannot be answered"},
    "5XX": {"model": ErrorBody, "description": "The service cannot answer at present"},
}
"""What the documentation says of errors, of all routes."""


class Refusal(Exception):
    """A response instead of an answer, where the table of errors does not say which.

    Args:
        status: the HTTP status.
        sentence: what is wrong and what would be right.
        code: a short name for programs; by default that of the status.
        headers: further headers of the response.
        fault: the kind of the reason why an image cannot be decoded, if that is what is wrong.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        code: str | None = None,
        *,
        headers: dict[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        super().__init__(sentence)
        self.headers, self.fault = headers, fault
        self.status, self.sentence, self.code = status, sentence, code or _CODES.get(status, "error")


def error_response(
    request: Request, status: int, sentence: str, code: str, *, headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return an error as JSON: ``detail`` and ``message`` are one sentence, ``code`` a short name for programs."""
    request_id = getattr(request.state, "request_id", None) or str(uuid.uuid4())
    body = {**getattr(request.state, "error_fields", {}), "detail": sentence, "message": sentence, "code": code}
    return JSONResponse({**body, "request_id": request_id, **more}, status_code=status, headers=headers)


def add_handlers(app: FastAPI) -> None:
    """Let an application answer errors of all kinds in the form of the interface."""
    app.add_exception_handler(Error, _of_library)
    app.add_exception_handler(Refusal, _of_refusal)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)


async def _of_library(request: Request, error: Exception) -> JSONResponse:
    code = next((code for kind, code in CODES if isinstance(error, kind)), None)
    if code is None:
        logger.error("%s", error, exc_info=error)
        return error_response(request, 500, INTERNAL, "internal")
    status, headers, sentence = _STATUSES[code], {}, str(error)
    if isinstance(error, TooManyAttempts):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, NotAuthenticated) and "authorization" in request.headers:
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    if isinstance(error, WorkspaceError):
        logger.error("%s", error, exc_info=error)
        sentence = _NOT_WRITABLE  # the error names paths of the server
    if code == "invalid":
        status = getattr(request.state, "invalid_status", status)
    more = {"fault": error.fault} if isinstance(error, CannotDecode) else {}
    return error_response(request, status, sentence, code, headers=headers, **more)


async def _of_refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal), "the handler of refusals"
    more = {} if error.fault is None else {"fault": error.fault}
    return error_response(request, error.status, error.sentence, error.code, headers=error.headers, **more)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError), "the handler of invalid requests"
    problems = [{"loc": list(each["loc"]), "msg": str(each["msg"]), "type": each["type"]} for each in error.errors()]
    return error_response(request, 422, _sentence(error.errors()[0]), "invalid", errors=problems)


def _sentence(problem: dict[str, Any]) -> str:
    names = [str(part) for part in problem["loc"][1:]]
    name = ".".join(names)
    if problem["type"] == "missing":
        return f"Field '{name}' is required" if name else "The request needs a body"
    if problem["type"] == "json_invalid":
        return _NO_JSON
    reason = str(problem["msg"]).removeprefix("Value error, ")
    return f"Invalid value for '{name}': {reason}" if name else f"Invalid body: {reason}"


async def _of_framework(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException), "the handler of the framework's errors"
    sentence, status = str(error.detail), error.status_code
    if status == 413:
        sentence = "The request is too large"
    if (status, sentence) == (400, _UNREADABLE):
        status, sentence = 422, _NO_JSON
    code = _CODES.get(status, "error")
    return error_response(request, status, sentence, code, headers=dict(error.headers or {}))
