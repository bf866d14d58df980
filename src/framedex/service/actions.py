"""The action of each route, which is checked before anything else of a request is read."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property, wraps
from types import UnionType
from typing import Any, TypeVar, get_args
from uuid import UUID

import anyio
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from framedex.access import Action, Actor, Role, TenantSubject
from framedex.core.time_limits import time_limit
from framedex.hub.admin_settings import SERVICE
from framedex.service.errors import PROBLEMS, Refusal
from framedex.service.identity import check_origin, identify
from framedex.service.state import ServiceState

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LIMITER_SIZE = 40
_SEARCHES = frozenset({Action.DATASET_VIEW, Action.DATASET_SEARCH_UPLOAD})
_ATTRIBUTE = "__framedex_needs__"
MAX_JSON_BYTES = 2**20
"""The maximum size of the body of a request whose route names no other."""


def _served(_state: ServiceState) -> str | None:
    return None


@dataclass(frozen=True)
class Needs:
    """The needs of a route, which are checked before its body is read.

    Attributes:
        action: the action that the actor must be allowed; None if nobody need be logged in.
        changes: whether a GET changes something, so that other pages must not cause it.
        heavy: whether the request waits for one of few places.
        signed: whether the signature of a URI stands for the user.
        feature: the setting that must be on, and the sentence if it is off.
        invalid_status: the status for values that the library refuses.
        error_fields: further fields of each error.
        body_limit: the maximum size of the body in bytes, or the setting that has it.
        unless: returns why the deployment does not serve the route; None if it does.
    """

    action: Action | None
    changes: bool = False
    heavy: bool = False
    signed: bool = False
    feature: tuple[str, str] | None = None
    invalid_status: int = 422
    error_fields: tuple[tuple[str, str], ...] = ()
    body_limit: int | str = MAX_JSON_BYTES
    unless: Callable[[ServiceState], str | None] = _served


def needs(
    action: Action | None,
    *,
    changes: bool = False,
    heavy: bool = False,
    signed: bool = False,
    feature: tuple[str, str] | None = None,
    invalid_status: int = 422,
    error_fields: tuple[tuple[str, str], ...] = (),
    body_limit: int | str = MAX_JSON_BYTES,
    unless: Callable[[ServiceState], str | None] = _served,
) -> Callable[[_Endpoint], _Endpoint]:
    """Return a decorator that says what a route needs; see :class:`Needs`.

    The subject follows from the route: the dataset of ``dataset_id`` or the workspace of ``workspace_id`` (in the path,
    else in the query), the task of ``task_id``, the saved view of ``view_id``, the first workspace of the actor, or the
    actor's own account.
    """
    found = Needs(action, changes, heavy, signed, feature, invalid_status, error_fields, body_limit, unless)

    def mark(endpoint: _Endpoint) -> _Endpoint:
        setattr(endpoint, _ATTRIBUTE, found)
        return endpoint

    return mark


def needs_of(endpoint: Callable[..., Any]) -> Needs:
    """Return what a route needs.

    Raises:
        TypeError: the route does not say it.
    """
    found = getattr(endpoint, _ATTRIBUTE, None)
    if not isinstance(found, Needs):
        raise TypeError(f"the route {endpoint.__name__} names no action: decorate it with needs(…)")
    return found


class ActionRoute(APIRoute):
    """A route that checks its action before it reads parameters and the body.

    Answers of plain functions are written as JSON in the thread that makes them. The framework would validate them a
    second time, and write them in the thread of the event loop, where all other requests wait for it.

    Args:
        path: the path.
        endpoint: the function that answers.
        options: further arguments of the framework's route.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, self._writing(endpoint) if _is_written(endpoint, options) else endpoint, **options)

    def _writing(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(endpoint)
        def answer(**arguments: Any) -> Any:
            value = endpoint(**arguments)
            if isinstance(value, Response) or self.response_model is None:
                return value
            content = self._writer_of(value).dump_json(value, by_alias=True)
            return Response(content, status_code=self.status_code or 200, media_type=JSONResponse.media_type)

        return answer

    def _writer_of(self, value: Any) -> TypeAdapter[Any]:
        """Return what writes a value: of several models that of its class, as trying them all takes twice as long."""
        return next((writer for model, writer in self._writers if isinstance(value, model)), self._writer)

    @cached_property
    def _writer(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.response_model)

    @cached_property
    def _writers(self) -> list[tuple[type, TypeAdapter[Any]]]:
        models = get_args(self.response_model) if isinstance(self.response_model, UnionType) else ()
        return [(model, TypeAdapter(model)) for model in models if isinstance(model, type)]

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override] # a coroutine
        """Return the handler of requests."""
        answer, wanted = super().get_route_handler(), needs_of(self.endpoint)

        async def handle(request: Request) -> Response:
            state: ServiceState = request.app.state.service
            request.state.invalid_status, request.state.error_fields = wanted.invalid_status, dict(wanted.error_fields)
            await anyio.to_thread.run_sync(_admit, request, state, wanted, limiter=_limiter(request))
            async with AsyncExitStack() as stack:

                async def take_place() -> None:
                    if wanted.heavy:
                        await stack.enter_async_context(state.heavy)
                        if wanted.action in _SEARCHES:
                            stack.enter_context(time_limit(state.settings.search_timeout_s))

                has_body = self.body_field is not None
                if not has_body:
                    await take_place()
                limit = _limit_of(wanted.body_limit, state)
                return await answer(_limited(request, limit, take_place if has_body else None))

        return handle


def _is_written(endpoint: Callable[..., Any], options: dict[str, Any]) -> bool:
    """Return whether the answers of a function are JSON, and no response that it changes goes with them."""
    kind = options.get("response_class")
    is_json = getattr(kind, "value", kind) is JSONResponse
    takes_response = Response in (each.annotation for each in inspect.signature(endpoint).parameters.values())
    return is_json and not takes_response and not inspect.iscoroutinefunction(endpoint)


def _limit_of(limit: int | str, state: ServiceState) -> int:
    """Return the limit of a body in bytes."""
    if isinstance(limit, int):
        return limit
    owner = state.settings if limit in type(state.settings).model_fields else state.workspace.settings
    return int(getattr(owner, limit))


def _limited(request: Request, limit: int, at_end: Callable[[], Awaitable[None]] | None) -> Request:
    """Return a request whose body ends with an error beyond a limit, or at once if its length is known.

    The framework's own limit would hide a refusal of the request behind that of its body.

    Args:
        request: the request.
        limit: the maximum size of the body in bytes.
        at_end: called once when the body is there as a whole, so that a client that sends it slowly holds no place.
    """
    total, calls = 0, [at_end] if at_end else []

    async def receive() -> Message:
        nonlocal total
        if (length := request.headers.get("content-length", "")).isdigit() and int(length) > limit:
            raise HTTPException(413)
        message = await request.receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise HTTPException(413)
        if message["type"] == "http.request" and not message.get("more_body", False) and calls:
            await calls.pop()()
        return message

    return Request(request.scope, receive, request._send)


def routes(tag: str, *, prefix: str = "/api/v1") -> APIRouter:
    """Return a router of routes with actions, below ``/api/v1`` or another path."""
    return APIRouter(
        prefix=prefix,
        route_class=ActionRoute,
        tags=[tag],
        responses=PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
    )


def _limiter(request: Request) -> anyio.CapacityLimiter:
    """Return the places of checks, which are apart from those of endpoints, so that slow ones hold none of them."""
    state = request.app.state
    if not hasattr(state, "check_limiter"):
        state.check_limiter = anyio.CapacityLimiter(_LIMITER_SIZE)
    limiter: anyio.CapacityLimiter = state.check_limiter
    return limiter


def _admit(request: Request, state: ServiceState, wanted: Needs) -> None:
    """Check a request: who makes it, whether a page of another site does, whether the actor may do it."""
    changes = wanted.changes or request.method not in _SAFE
    if wanted.action is None:
        if changes:
            check_origin(request, state)
        return
    actor = identify(request, state, signed=wanted.signed)
    if changes:
        check_origin(request, state)
    request.state.actor = actor
    if (refusal := wanted.unless(state)) is not None:
        raise Refusal(403, refusal)
    _authorize(request, state, actor, wanted.action)
    if wanted.feature is not None and not getattr(state.workspace.settings, wanted.feature[0]):
        raise Refusal(403, wanted.feature[1])


def _authorize(request: Request, state: ServiceState, actor: Actor, action: Action) -> None:
    kind = action.partition(".")[0]
    dataset_id = request.path_params.get("dataset_id", request.query_params.get("dataset_id"))
    task_id, view_id = request.path_params.get("task_id"), request.path_params.get("view_id")
    if kind == "task" and task_id is not None:
        request.state.task = state.hub.tasks.open(actor, task_id, action)
    elif kind == "view" and view_id is not None:
        request.state.dataset = state.hub.views.open(actor, str(dataset_id), view_id, action)
    elif kind in ("dataset", "view") and dataset_id is not None:
        request.state.opened = state.hub.datasets.open_with_record(actor, dataset_id, action)
        request.state.dataset = request.state.opened.dataset
    elif kind == "tenant":
        state.hub.check(
            actor, action, TenantSubject(_tenant_id(request, state, actor, action), state.settings.ingest_path_role)
        )
    elif kind == "admin":
        state.hub.check(actor, action, SERVICE)
    else:
        state.hub.check(actor, Action.OWN_ACCOUNT if kind in ("dataset", "view", "task", "export") else action)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _tenant_id(request: Request, state: ServiceState, actor: Actor, action: Action) -> str:
    """Return the id of the tenant that a request is about."""
    if action is Action.TENANT_EDIT_ROLES:  # the body names the tenant, and the hub checks the action there
        administered = [tenant_id for tenant_id, role in actor.roles.items() if role is Role.ADMIN]
        return administered[0] if administered else state.hub.tenants.primary(actor) or ""
    named = request.path_params.get("workspace_id")
    if named is None and _is_uuid(request.query_params.get("workspace_id", "")):  # another value is an invalid one
        named = request.query_params["workspace_id"]
    if named is not None and action is Action.TENANT_VIEW:
        return str(named).lower()
    return state.hub.tenants.primary(actor) or ""
