"""The actor of a request, and the check that no page of another site makes it."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import Request

from framedex.access import Actor, local_actor
from framedex.errors import NotAuthenticated
from framedex.service.errors import Refusal
from framedex.service.state import COOKIE, ServiceState
from framedex.service.tokens import actor_of_token, is_own_token

_BEARER = "bearer"


def identify(request: Request, state: ServiceState, *, signed: bool = False, is_use: bool = True) -> Actor:
    """Return the actor of a request: by the token, else by the session, else by the signature of the URI.

    The first that is there counts; none stands in for another that is not valid.

    Args:
        request: the request.
        state: the running service.
        signed: whether the signature of the URI stands for the user.
        is_use: whether a session counts as used, so that it lives on.

    Raises:
        NotAuthenticated: there are no valid credentials.
    """
    if state.auth_off:
        return local_actor(state.workspace.user)
    if (header := request.headers.get("authorization")) is not None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != _BEARER:
            raise NotAuthenticated("Invalid or expired token")
        token = token.strip()
        if state.sign_on is not None and state.sign_on.takes_access_tokens and not is_own_token(token):
            return state.sign_on.actor(token)
        return actor_of_token(
            token, state.hub.credentials, now=datetime.now(UTC), max_life_s=state.settings.max_token_s
        )
    if (cookie := request.cookies.get(COOKIE)) is not None:
        return state.hub.sessions.actor(cookie, is_use=is_use)
    if signed and "sig" in request.query_params:
        query = request.query_params
        user_id = state.uris.user_of(
            request.url.path,
            user_id=query.get("user", ""),
            expires=query.get("exp", ""),
            signature=query.get("sig", ""),
        )
        return state.hub.sessions.actor_of_user(user_id)
    raise NotAuthenticated("Not authenticated")


def check_origin(request: Request, state: ServiceState) -> None:
    """Check that no page of another site makes a request that changes something.

    Browsers say it in ``Sec-Fetch-Site``, ``Origin`` or ``Referer``. Other clients, such as ``curl``, need no header. A
    browser says nothing as it follows a link to a service without TLS from a page that hides its address; then it asks
    for a page, which is nothing that changes something.

    Args:
        request: the request.
        state: the running service.

    Raises:
        Refusal: another site makes it.
    """
    site = request.headers.get("sec-fetch-site")
    source = request.headers.get("origin") or request.headers.get("referer")
    if site is not None:
        is_own = site in ("same-origin", "none")
    elif source is not None:
        is_own = _origin_of(source) in own_origins(request, state)
    else:
        is_own = COOKIE not in request.cookies or "text/html" not in request.headers.get("accept", "")
    if not is_own and _origin_of(source or "") not in state.settings.cors_origins:
        raise Refusal(403, "Cross-site request refused", "forbidden")


def own_origins(request: Request, state: ServiceState) -> set[str]:
    """Return the origins of pages of this service."""
    public = state.settings.public_url
    own = {f"{request.url.scheme}://{request.headers.get('host', '')}".lower()}
    return own | ({_origin_of(public)} if public else set())


def _origin_of(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}".lower()
