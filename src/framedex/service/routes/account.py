"""Health, documentation of the own account, log-in, and API credentials."""

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import BaseModel, StringConstraints

from framedex.access import Action
from framedex.hub.passwords import LONGEST, SHORTEST
from framedex.records import ApiCredentials, Profile
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.parameters import CurrentActor, Service
from framedex.service.state import COOKIE

router = routes("account")

_Text = Annotated[str, StringConstraints(max_length=2000)]


class Message(BaseModel):
    """An answer that says what was done."""

    message: str


class LoginRequest(BaseModel):
    """The name and the password of a user."""

    username: _Text
    password: _Text


class LoginResult(BaseModel):
    """The user who is logged in."""

    user_id: str
    username: str
    must_change_password: bool


class PasswordChange(BaseModel):
    """The present password and the next one."""

    current_password: _Text
    password: Annotated[str, StringConstraints(min_length=SHORTEST, max_length=LONGEST)]


@router.get("/healthcheck")
@needs(None)
def healthcheck(service: Service, response: Response) -> dict[str, str]:
    """Return whether the service runs."""
    is_healthy = not service.stopping.is_set() and service.can_read()
    response.status_code = 200 if is_healthy else 503
    return {"status": "healthy" if is_healthy else "unhealthy"}


@router.get("/ready")
@needs(None)
def ready(service: Service, response: Response) -> dict[str, Any]:
    """Return whether the service takes work that changes something: it has started, and its disk can be written."""
    problem = service.write_problem()
    response.status_code = 200 if problem is None else 503
    return {"ready": problem is None, "reason": problem}


@router.get("/metrics", response_class=Response)
@needs(Action.ADMIN_SETTINGS)
def metrics(request: Request) -> Response:
    """Return counts and times of requests in Prometheus' text format."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/me")
@needs(Action.OWN_ACCOUNT)
def me(service: Service, actor: CurrentActor) -> Profile:
    """Return the account of the user."""
    return service.hub.profile(actor)


@router.post("/login")
@needs(None)
def login(service: Service, request: Request, response: Response, body: LoginRequest) -> LoginResult:
    """Begin a session of the user with a name and a password; the cookie is its secret."""
    if service.auth_off:
        raise Refusal(403, "Authentication is disabled")
    if not service.takes_passwords:
        raise Refusal(403, "Local login is disabled")
    session = service.hub.sessions.log_in(
        body.username, body.password, ip=service.client_ip(request), user_agent=request.headers.get("user-agent", "")
    )
    service.set_cookie(request, response, session.token)
    return LoginResult(
        user_id=session.user_id, username=session.username, must_change_password=session.must_change_password
    )


@router.post("/logout")
@needs(Action.OWN_ACCOUNT)
def logout(service: Service, request: Request, response: Response) -> Message:
    """End the session."""
    if (token := request.cookies.get(COOKIE)) is None or service.auth_off:
        raise Refusal(401, "Not authenticated")
    service.hub.sessions.log_out(token)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    return Message(message="Logged out successfully")


@router.post("/password")
@needs(Action.OWN_PASSWORD, invalid_status=400)
def change_password(
    service: Service, actor: CurrentActor, request: Request, response: Response, body: PasswordChange
) -> Message:
    """Change the password; all other sessions end."""
    session = service.hub.sessions.change_password(
        actor, body.current_password, body.password, ip=service.client_ip(request)
    )
    service.set_cookie(request, response, session.token)
    return Message(message="Password changed successfully")


@router.get("/api_credentials")
@needs(Action.OWN_CREDENTIALS, changes=True)
def api_credentials(service: Service, actor: CurrentActor) -> ApiCredentials:
    """Return the API key of the user; the first call makes it, and alone shows its secret."""
    return service.hub.credentials.get(actor)


@router.post("/api_credentials/rotate")
@needs(Action.OWN_CREDENTIALS)
def rotate_api_credentials(service: Service, actor: CurrentActor) -> ApiCredentials:
    """Return the API key of the user with a new secret; the former one stops at once."""
    return service.hub.credentials.rotate(actor)


@router.delete("/api_credentials")
@needs(Action.OWN_CREDENTIALS)
def revoke_api_credentials(service: Service, actor: CurrentActor) -> Message:
    """Revoke the API key of the user."""
    service.hub.credentials.revoke(actor)
    return Message(message="API credentials revoked")
