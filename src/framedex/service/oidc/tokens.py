"""Tokens of a provider: signatures and claims, checked before anything in a token counts."""

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry
from joserfc.jwt import ClaimsOption, JWTClaimsRegistry

from framedex.errors import InvalidInput
from framedex.service.oidc.keys import SigningKeys

LONGEST = 64 * 2**10
"""The maximum number of characters of a token."""
LEEWAY_S = 60
"""The number of seconds by which clocks may differ."""
LOGOUT_S = 600
"""The number of seconds after which a logout token is too old."""
_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_NO_ACCESS_TOKENS = ("ID", "Refresh", "Offline", "Logout")  # Keycloak's claim "typ"


class InvalidToken(InvalidInput):
    """A token that cannot be trusted; the message says why, without parts of the token."""


@dataclass(frozen=True)
class Verifier:
    """Checks of the tokens of one provider.

    Attributes:
        issuer: the issuer.
        client_id: the id of this service at the provider.
        keys: the provider's keys.
        algorithms: the algorithms that are accepted.
    """

    issuer: str
    client_id: str
    keys: SigningKeys
    algorithms: Collection[str]

    def id_token(self, token: str, *, nonce: str, access_token: str | None, now: int) -> dict[str, Any]:
        """Return the claims of an ID token.

        Args:
            token: the token.
            nonce: the nonce of the log-in.
            access_token: the access token beside it, if there is one.
            now: the present time in seconds since 1970.

        Raises:
            InvalidToken: it cannot be trusted.
            Unavailable: the keys cannot be read.
        """
        header, claims = self._verified(token, wait=True)
        checked = CodeIDToken(
            claims,
            header,
            {"iss": {"essential": True, "value": self.issuer}, "aud": {"essential": True, "value": self.client_id}},
            {"nonce": nonce, "client_id": self.client_id, "access_token": access_token},
        )
        try:
            checked.validate(now, LEEWAY_S)
        except JoseError as error:
            raise InvalidToken(f"the ID token is not valid: {_reason(error)}") from None
        except (TypeError, ValueError, AttributeError):  # a claim of another type
            raise InvalidToken("the ID token is not valid") from None
        _check_subject(claims)
        return claims

    def access_token(self, token: str, *, audience: str, now: int) -> dict[str, Any]:
        """Return the claims of an access token.

        Args:
            token: the token, which must be a JSON Web Token.
            audience: the audience that it must name.
            now: the present time in seconds since 1970.

        Raises:
            InvalidToken: it cannot be trusted, or is another kind of token.
            Unavailable: the keys cannot be read.
        """
        _, claims = self._verified(token, wait=False)
        self._check(claims, audience, ("sub", "exp", "iat"), now)
        if "events" in claims or "at_hash" in claims or claims.get("typ") in _NO_ACCESS_TOKENS:
            raise InvalidToken("the token is no access token")
        _check_subject(claims)
        return claims

    def logout_token(self, token: str, *, now: int) -> dict[str, Any]:
        """Return the claims of a logout token, with which the provider ends sessions.

        Args:
            token: the token.
            now: the present time in seconds since 1970.

        Raises:
            InvalidToken: it cannot be trusted, or is another kind of token.
            Unavailable: the keys cannot be read.
        """
        _, claims = self._verified(token, wait=False)
        self._check(claims, self.client_id, ("iat", "jti", "events"), now)
        events = claims["events"]
        if not isinstance(events, dict) or not isinstance(events.get(_EVENT), dict):
            raise InvalidToken("the token is no logout token: events")
        if "nonce" in claims:
            raise InvalidToken("the token is no logout token: nonce")
        if now - claims["iat"] > LOGOUT_S + LEEWAY_S:
            raise InvalidToken("the logout token is too old")
        named = [claims[name] for name in ("sub", "sid") if name in claims]
        if not named or not all(isinstance(each, str) and each for each in named):
            raise InvalidToken("the logout token names neither a user nor a session")
        return claims

    def _check(self, claims: dict[str, Any], audience: str, essential: Sequence[str], now: int) -> None:
        options: dict[str, ClaimsOption] = {name: {"essential": True} for name in essential}
        options |= {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": audience},
        }
        registry = JWTClaimsRegistry(now, LEEWAY_S, **options)
        try:
            registry.validate(claims)
        except JoseError as error:
            raise InvalidToken(f"the token is not valid: {_reason(error)}") from None

    def _verified(self, token: str, *, wait: bool) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Return the header and the claims of a token whose signature is right."""
        header = _header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            raise InvalidToken(f"the token is signed with {algorithm!r:.40}, not with {', '.join(self.algorithms)}")
        if not isinstance(key_id, str | None):
            raise InvalidToken("the token names no key of the provider")
        if "crit" in header or "b64" in header:
            raise InvalidToken("the token has a header that cannot be used")
        registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        registry.max_header_length = LONGEST  # some providers send the certificates of the key along
        for key in self.keys.find(key_id, algorithm, wait=wait):
            try:
                found = jwt.decode(token, key, registry=registry)
            except (JoseError, ValueError, TypeError, RecursionError):
                continue
            return found.header, found.claims
        raise InvalidToken("the signature of the token is not one of the provider")


def _header(token: str) -> dict[str, Any]:
    """Return the header of a token, which nobody has checked."""
    try:
        if len(token) > LONGEST or not token.isascii() or token.count(".") != 2:
            raise ValueError
        part = token.partition(".")[0]
        header = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise InvalidToken("it is no token")
    return header


def _check_subject(claims: Mapping[str, Any]) -> None:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise InvalidToken("the token names no user")


def _reason(error: JoseError) -> str:
    """Return why a claim was refused, without its value."""
    return error.description or error.error
