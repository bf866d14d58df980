"""Log-in and log-out with an identity provider, by OpenID Connect."""

import logging
from typing import Annotated

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from framedex.access import Action
from framedex.errors import Error
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.parameters import Service, SignOn
from framedex.service.state import COOKIE

router = routes("oidc")
logger = logging.getLogger("framedex.service")

LOGIN_COOKIE = "OIDC_STATE"
"""The name of the cookie that ties a log-in to the browser in which it began."""
_LIFE_S = 600
_Text = Annotated[str | None, Query(max_length=8192)]


class LoginOptions(BaseModel):
    """The ways in which users can log in."""

    enabled: bool
    password: bool


class ProviderLogout(BaseModel):
    """An ended session, and the URL at which the browser ends that at the provider; null if there is none."""

    message: str
    logout_url: str | None


@router.get("/oidc")
@needs(None)
def oidc_options(service: Service) -> LoginOptions:
    """Return whether users log in with the identity provider, with a password, or both."""
    has_log_ins = not service.auth_off
    return LoginOptions(
        enabled=has_log_ins and service.sign_on is not None, password=has_log_ins and service.takes_passwords
    )


@router.get("/oidc/login", status_code=302, response_class=RedirectResponse)
@needs(None)
def oidc_login(
    request: Request,
    sign_on: SignOn,
    path: Annotated[str, Query(alias="next")] = "/",
    first_admin: Annotated[str, Query(max_length=100)] = "",
) -> RedirectResponse:
    """Send the browser to the identity provider, which sends it back to `callback`, and that to `next`."""
    begun = sign_on.begin(path, request.cookies.get(LOGIN_COOKIE, ""), first_admin=first_admin)
    response = RedirectResponse(begun.url, 302)
    response.set_cookie(
        LOGIN_COOKIE, begun.cookie, max_age=_LIFE_S, path=sign_on.cookie_path, secure=sign_on.is_secure,
        httponly=True, samesite="lax",
    )  # fmt: skip
    return response


@router.get("/oidc/callback", status_code=302, response_class=RedirectResponse)
@needs(None, invalid_status=400)
def oidc_callback(
    request: Request,
    service: Service,
    sign_on: SignOn,
    state: _Text = None,
    code: _Text = None,
    iss: _Text = None,
    error: _Text = None,
) -> RedirectResponse:
    """End the log-in with the answer of the identity provider, and begin a session."""
    given = {"state": state, "code": code, "iss": iss, "error": error}
    answer = {name: value for name, value in given.items() if value is not None}
    cookie, agent = request.cookies.get(LOGIN_COOKIE, ""), request.headers.get("user-agent", "")
    session, path = sign_on.finish(answer, cookie, ip=service.client_ip(request), user_agent=agent)
    response = RedirectResponse(path, 302)
    service.set_cookie(request, response, session.token)
    response.delete_cookie(LOGIN_COOKIE, path=sign_on.cookie_path, secure=sign_on.is_secure, httponly=True)
    return response


@router.post("/oidc/logout")
@needs(Action.OWN_ACCOUNT)
def oidc_logout(service: Service, request: Request, response: Response, sign_on: SignOn) -> ProviderLogout:
    """End the session, and return the URL at which the browser ends that at the identity provider."""
    if (token := request.cookies.get(COOKIE)) is None or "authorization" in request.headers:
        raise Refusal(401, "Not authenticated")
    service.hub.sessions.log_out(token)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    url = None
    try:
        url = sign_on.logout_url()
    except Error as error:  # the session here has ended in any case
        logger.warning("the session at the identity provider may go on: %s", error)
    return ProviderLogout(message="Logged out successfully", logout_url=url)


@router.post("/oidc/backchannel_logout")
@needs(None, invalid_status=400)
def oidc_backchannel_logout(sign_on: SignOn, logout_token: Annotated[str, Form()] = "") -> dict[str, int]:
    """End sessions that the identity provider names in a logout token; return their number."""
    return {"ended": sign_on.end_sessions(logout_token)}
