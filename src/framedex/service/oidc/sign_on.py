"""Log-in and log-out with an identity provider: from the browser's first request to a session of the hub."""

import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from framedex.access import Actor
from framedex.errors import Forbidden, InvalidInput, NotAuthenticated, TooManyAttempts
from framedex.hub import ExternalRules, Hub
from framedex.hub.sessions import NewSession
from framedex.service.oidc.claims import verified_identity
from framedex.service.oidc.provider import OpenIdProvider
from framedex.service.oidc.states import LoginStates, is_browser_secret, local_path, new_browser_secret, state_hash
from framedex.service.oidc.tokens import LEEWAY_S, LOGOUT_S
from framedex.settings.oidc import OidcSettings

_PLACES, _WAIT_S = 8, 0.2
_FIRST_ADMIN = "oidc-first-admin"


@dataclass(frozen=True)
class BegunLogin:
    """A log-in that has begun.

    Attributes:
        url: where the browser goes next, at the provider.
        cookie: the value of the browser's cookie.
    """

    url: str
    cookie: str


class SingleSignOn:
    """Log-in and log-out with an identity provider. Safe to share between threads.

    Up to eight requests wait for the provider at a time, so that a slow one does not hold up the service.

    Args:
        settings: the settings; they are complete.
        hub: the users.
        redirect_uri: where the provider sends browsers back.
        provider: the provider.
        now: returns the present time in seconds since 1970.
    """

    def __init__(
        self,
        settings: OidcSettings,
        hub: Hub,
        redirect_uri: str,
        *,
        provider: OpenIdProvider | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._hub, self._now = settings, hub, now
        self._provider = provider or OpenIdProvider(settings, redirect_uri, now=now)
        self._states = LoginStates(hub.derive)
        self._rules = ExternalRules(
            default_role=settings.oidc_default_role,
            link_by_email=settings.oidc_link_by_email,
            trust_roles=settings.oidc_trust_roles,
        )
        self._places = threading.BoundedSemaphore(_PLACES)
        parts = urlsplit(redirect_uri)
        self.cookie_path = parts.path.rpartition("/")[0] or "/"
        self.is_secure = parts.scheme == "https"
        self._root = parts.path.partition("/api/v1/")[0] + "/"
        self._home = f"{parts.scheme}://{parts.netloc}{self._root}"

    @property
    def takes_access_tokens(self) -> bool:
        """True if access tokens of the provider are accepted as bearer tokens."""
        return self._settings.oidc_bearer_audience is not None

    def prepare(self) -> None:
        """Read the discovery document, so that a mistake in the settings is noticed before the first log-in.

        Raises:
            Unavailable: it cannot be discovered; the message says why.
        """
        self._provider.discover()

    def begin(self, path: str, cookie: str, *, first_admin: str = "") -> BegunLogin:
        """Begin a log-in.

        Args:
            path: where the browser goes after it; anything but a path within the service becomes the first page.
            cookie: the value of the browser's cookie; empty without one.
            first_admin: the secret of the link for the first admin; empty without it.

        Raises:
            Forbidden: the link for the first admin is not valid, or there are users already.
            TooManyAttempts: too many requests wait for the provider.
            Unavailable: the provider cannot be discovered.
        """
        if first_admin and (not self._is_first_admin(first_admin) or self._hub.users.count()):
            raise Forbidden("The link for the first admin is not valid any more")
        browser = cookie.partition(".")[0]
        if not is_browser_secret(browser):
            browser = new_browser_secret()
        target = local_path(path)
        login = self._states.new(browser, self._root if target == "/" else target, now=int(self._now()))
        with self._place():
            url = self._provider.login_url(login)
        return BegunLogin(url, f"{browser}.{first_admin}" if first_admin else browser)

    def finish(
        self, answer: Mapping[str, str], cookie: str, *, ip: str = "", user_agent: str = ""
    ) -> tuple[NewSession, str]:
        """End a log-in with the provider's answer; return the session, and where the browser goes.

        Args:
            answer: the parameters of the answer.
            cookie: the value of the browser's cookie; empty without one.
            ip: the address of the client.
            user_agent: the name of the client's program.

        Raises:
            InvalidInput: the answer is not one to a log-in of this browser, or cannot be trusted.
            Forbidden: the account is disabled.
            TooManyAttempts: too many log-ins of the address have failed, or too many requests wait for the provider.
            Unavailable: the provider cannot be reached.
        """
        browser, _, first_admin = cookie.partition(".")
        with _refusals():
            login = self._states.check(answer.get("state", ""), browser, now=int(self._now()))
            self._hub.external.check_attempts(ip)
            if not self._hub.external.use_once(state_hash(login.state), _time(login.expires)):
                raise InvalidInput("the log-in was ended before; begin again")
            with self._place():
                code = self._provider.check_answer(answer)
                try:
                    claims = self._provider.redeem(code, login)
                except InvalidInput:
                    self._hub.external.count_failure(ip)
                    raise
        session = self._hub.external.log_in(
            verified_identity(claims, self._provider.issuer),
            self._rules,
            ip=ip,
            user_agent=user_agent,
            may_be_first=self._is_first_admin(first_admin),
        )
        return session, login.path

    def first_admin_link(self, url: str) -> str:
        """Return the link with which the first user becomes the admin; it holds until there is a user.

        Args:
            url: of the service.
        """
        return f"{url}/api/v1/oidc/login?first_admin={self._hub.derive(_FIRST_ADMIN)}"

    def _is_first_admin(self, secret: str) -> bool:
        return hmac.compare_digest(secret.encode("utf-8", "replace"), self._hub.derive(_FIRST_ADMIN).encode())

    def logout_url(self) -> str | None:
        """Return the URL at which a browser ends its session at the provider; None if the provider has none.

        Raises:
            TooManyAttempts: too many requests wait for the provider.
            Unavailable: the provider cannot be discovered.
        """
        with self._place():
            return self._provider.logout_url(self._home)

    def end_sessions(self, logout_token: str) -> int:
        """End the sessions that a logout token of the provider names, and return their number.

        Raises:
            InvalidInput: the token cannot be trusted, or was used before.
            TooManyAttempts: too many requests wait for the provider.
            Unavailable: the provider cannot be reached.
        """
        with self._place():
            claims = self._provider.logout_claims(logout_token)
        used = hashlib.sha256(
            f"oidc-logout:{self._provider.issuer} {claims['jti']}".encode("utf-8", "replace")
        ).digest()
        until = _time(int(claims["iat"]) + LOGOUT_S + 2 * LEEWAY_S)
        return self._hub.external.end_sessions(
            self._provider.issuer, subject=claims.get("sub"), session=claims.get("sid"), once=(used, until)
        )

    def actor(self, access_token: str) -> Actor:
        """Return the actor of an access token of the provider, who has logged in here before.

        Raises:
            NotAuthenticated: the token cannot be trusted, or nobody has its identity.
            TooManyAttempts: too many requests wait for the provider.
            Unavailable: the provider cannot be reached.
        """
        try:
            with self._place():
                claims = self._provider.access_claims(access_token)
        except InvalidInput:
            raise NotAuthenticated("Invalid or expired token") from None
        return self._hub.external.actor(self._provider.issuer, claims["sub"])

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold one of the places of requests that wait for the provider."""
        if not self._places.acquire(timeout=_WAIT_S):
            raise TooManyAttempts("Too many requests wait for the identity provider; try again in 1 s", 1)
        try:
            yield
        finally:
            self._places.release()


@contextmanager
def _refusals() -> Iterator[None]:
    """Let refusals begin with the words of the interface."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"Login failed: {error}") from None


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
