"""An OpenID Connect provider: the authorization code flow with PKCE, and its tokens."""

import base64
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from framedex.errors import InvalidInput, Unavailable
from framedex.service.oidc.fetching import Fetcher
from framedex.service.oidc.keys import SigningKeys
from framedex.service.oidc.metadata import ProviderMetadata, discovery_url, read_metadata
from framedex.service.oidc.states import LoginState
from framedex.service.oidc.tokens import Verifier
from framedex.settings.oidc import OidcSettings

logger = logging.getLogger("framedex.service")

_KEPT_S = 3600.0  # then the discovery document is read again
_STALE_S = 24 * 3600.0  # for so long the former one counts if that fails
_PAUSE_S = 5.0  # after a failure, during which log-ins fail at once
_CODE = re.compile(r"[a-z_]{1,64}")
_PROFILE = ("email", "preferred_username")


@dataclass(frozen=True)
class _Discovered:
    """A provider that was discovered, and what checks its tokens."""

    metadata: ProviderMetadata
    verifier: Verifier
    read_at: float


class OpenIdProvider:
    """An OpenID Connect provider, which is discovered at the first use. Safe to share between threads.

    Args:
        settings: the settings; they are complete.
        redirect_uri: where the provider sends browsers back.
        clock: returns a time in seconds that never goes back.
        now: returns the present time in seconds since 1970.
    """

    def __init__(
        self,
        settings: OidcSettings,
        redirect_uri: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        assert settings.oidc_issuer is not None, "the settings are complete"
        assert settings.oidc_client_id is not None, "the settings are complete"
        self.issuer, self._client_id = settings.oidc_issuer, settings.oidc_client_id
        self._settings, self._redirect_uri, self._clock, self._now = settings, redirect_uri, clock, now
        self._fetcher = Fetcher(timeout_s=settings.oidc_timeout_s)
        self._discovered: _Discovered | None = None
        self._failure: tuple[float, str] | None = None
        self._lock = threading.Lock()

    def discover(self) -> ProviderMetadata:
        """Return what the provider says of itself; it is read at the first call, and again after an hour.

        Raises:
            Unavailable: it cannot be read, or cannot be used; the message says why.
        """
        return self._provider().metadata

    def _provider(self) -> _Discovered:
        """Return the provider; while one thread discovers it, others wait."""
        if (found := self._current()) is not None:
            return found
        with self._lock:
            return self._current() or self._discover()

    def _current(self) -> _Discovered | None:
        """Return the provider if it need not be discovered again yet.

        Raises:
            Unavailable: it could not be discovered a moment ago.
        """
        found, time_s = self._discovered, self._clock()
        has_failed = self._failure is not None and time_s - self._failure[0] < _PAUSE_S
        if found is not None and time_s - found.read_at < (_STALE_S if has_failed else _KEPT_S):
            return found
        if self._failure is not None and has_failed:
            raise Unavailable(self._failure[1])
        return None

    def _discover(self) -> _Discovered:
        """Return the provider after reading its discovery document; for a day the former one counts if that fails."""
        former, time_s = self._discovered, self._clock()
        try:
            metadata = read_metadata(self._fetcher.get(discovery_url(self.issuer)), self.issuer)
        except Unavailable as error:
            self._failure = (self._clock(), str(error))
            if former is None or time_s - former.read_at >= _STALE_S:
                raise
            logger.warning("the identity provider stays as it was: %s", error)
            return former
        if former is not None and former.metadata == metadata:
            verifier = former.verifier
        else:
            keys = SigningKeys(lambda: self._fetcher.get(metadata.jwks_uri), self._clock)
            verifier = Verifier(self.issuer, self._client_id, keys, metadata.algorithms)
        self._discovered, self._failure = _Discovered(metadata, verifier, time_s), None
        return self._discovered

    def login_url(self, login: LoginState) -> str:
        """Return the URL at the provider where a browser logs in.

        Raises:
            Unavailable: the provider cannot be discovered.
        """
        url: str = prepare_grant_uri(
            self.discover().authorization_endpoint,
            client_id=self._client_id,
            response_type="code",
            redirect_uri=self._redirect_uri,
            scope=self._settings.oidc_scopes,
            state=login.state,
            nonce=login.nonce,
            code_challenge=create_s256_code_challenge(login.verifier),
            code_challenge_method="S256",
        )
        return url

    def check_answer(self, answer: Mapping[str, str]) -> str:
        """Return the code in the provider's answer to a log-in.

        Args:
            answer: the parameters of the answer, whose state was checked.

        Raises:
            InvalidInput: the provider refused the log-in, or the answer is that of another provider.
            Unavailable: the provider cannot be discovered.
        """
        issuer = answer.get("iss")
        if issuer != self.issuer and (issuer is not None or self.discover().names_issuer):
            raise InvalidInput("the answer is not one of the identity provider")
        if (error := answer.get("error")) is not None:
            reason = error if _CODE.fullmatch(error) else "an error"
            raise InvalidInput(f"the identity provider answered {reason}")
        if not (code := answer.get("code")):
            raise InvalidInput("the answer has no code")
        return code

    def redeem(self, code: str, login: LoginState) -> dict[str, Any]:
        """Return the claims of the user for whom the provider gave a code.

        They are those of the ID token; the provider's endpoint for users adds an address, a name or roles that are not
        in it.

        Raises:
            InvalidInput: the provider refuses the code, or its tokens cannot be trusted.
            Unavailable: the provider cannot be reached.
        """
        provider = self._provider()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": login.verifier,
        }
        status, answer = self._fetcher.post(provider.metadata.token_endpoint, *self._authenticated(form, provider))
        token, access_token = answer.get("id_token"), answer.get("access_token")
        if status != 200 or not isinstance(token, str):
            error = answer.get("error")
            reason = error if isinstance(error, str) and _CODE.fullmatch(error) else f"status {status}"
            raise InvalidInput(f"the identity provider gave no ID token for the code: {reason}")
        access_token = access_token if isinstance(access_token, str) else None
        claims = provider.verifier.id_token(token, nonce=login.nonce, access_token=access_token, now=int(self._now()))
        return self._with_profile(claims, access_token, provider.metadata)

    def _authenticated(self, form: dict[str, str], provider: _Discovered) -> tuple[dict[str, str], dict[str, str]]:
        """Return a form and headers with which this service proves who it is (RFC 6749, section 2.3.1)."""
        secret = self._settings.oidc_client_secret
        if secret is None:
            return {**form, "client_id": self._client_id}, {}
        if provider.metadata.sends_secret_in_form:
            return {**form, "client_id": self._client_id, "client_secret": secret}, {}
        pair = f"{quote(self._client_id, safe='')}:{quote(secret, safe='')}"
        return form, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def _with_profile(
        self, claims: dict[str, Any], access_token: str | None, metadata: ProviderMetadata
    ) -> dict[str, Any]:
        wanted = (*_PROFILE, "realm_access") if self._settings.oidc_trust_roles else _PROFILE
        if access_token is None or metadata.userinfo_endpoint is None or all(name in claims for name in wanted):
            return claims
        try:
            more = self._fetcher.get(metadata.userinfo_endpoint, token=access_token)
        except Unavailable as error:
            if self._settings.oidc_trust_roles and "realm_access" not in claims:
                raise  # the user must not lose roles by it
            logger.warning("the claims of a user may not be complete: %s", error)
            return claims
        if more.get("sub") != claims["sub"]:
            raise InvalidInput("the identity provider's claims are those of another user")
        return {**more, **claims}

    def access_claims(self, token: str) -> dict[str, Any]:
        """Return the claims of an access token of the provider.

        Raises:
            InvalidInput: such tokens are not accepted, or it cannot be trusted.
            Unavailable: the provider cannot be reached.
        """
        if (audience := self._settings.oidc_bearer_audience) is None:
            raise InvalidInput("access tokens of the identity provider are not accepted")
        return self._provider().verifier.access_token(token, audience=audience, now=int(self._now()))

    def logout_claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a logout token, with which the provider ends sessions.

        Raises:
            InvalidInput: it cannot be trusted.
            Unavailable: the provider cannot be reached.
        """
        return self._provider().verifier.logout_token(token, now=int(self._now()))

    def logout_url(self, return_to: str) -> str | None:
        """Return the URL at the provider where a browser ends its session there; None if there is none.

        Args:
            return_to: the URL to which the provider sends the browser afterwards, if it was registered there.

        Raises:
            Unavailable: the provider cannot be discovered.
        """
        endpoint = self.discover().end_session_endpoint
        if endpoint is None:
            return None
        query = urlencode({"client_id": self._client_id, "post_logout_redirect_uri": return_to})
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}"
