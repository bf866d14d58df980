"""Bearer tokens: JSON Web Tokens that clients sign with their API secret."""

from datetime import datetime

import jwt

from framedex.access import Actor
from framedex.errors import NotAuthenticated
from framedex.hub.credentials import Credentials

_ALGORITHM = "HS256"
_ISSUER = "sdk"
_LEEWAY_S = 60
_LONGEST = 8192
_REFUSED = "Invalid or expired token"
_CLAIMS = ("sub", "iss", "exp", "iat")
_TIMES = ("exp", "iat")


def actor_of_token(token: str, credentials: Credentials, *, now: datetime, max_life_s: int) -> Actor:
    """Return the actor of a token after checking it.

    The algorithm is always HS256, and the key is looked up by ``kid`` alone: what a header says about either beside
    that is refused.

    Args:
        token: the encoded token.
        credentials: the API keys.
        now: the present time in UTC.
        max_life_s: the longest time between ``iat`` and ``exp`` in seconds.

    Raises:
        NotAuthenticated: the token is not valid; the reason is not told.
    """
    try:
        if len(token) > _LONGEST:
            raise NotAuthenticated(_REFUSED)
        header = jwt.get_unverified_header(token)
        key = header.get("kid")
        if header.get("alg") != _ALGORITHM or not isinstance(key, str) or set(header) - {"alg", "kid", "typ"}:
            raise NotAuthenticated(_REFUSED)
        options = {"require": list(_CLAIMS), "verify_exp": False, "verify_iat": False, "verify_aud": False}
        claims = jwt.decode(
            token,
            credentials.secret_of(key),
            algorithms=[_ALGORITHM],
            issuer=_ISSUER,
            options=options,  # type: ignore[arg-type]
        )
    except (jwt.PyJWTError, ValueError, UnicodeError):
        raise NotAuthenticated(_REFUSED) from None
    _check_claims(claims, key, now=int(now.timestamp()), max_life_s=max_life_s)
    return credentials.actor(key)


def is_own_token(token: str) -> bool:
    """Return whether a token is meant for this module by its algorithm; nothing of it is checked."""
    try:
        return len(token) <= _LONGEST and jwt.get_unverified_header(token).get("alg") == _ALGORITHM
    except (jwt.PyJWTError, ValueError, UnicodeError):
        return False


def _check_claims(claims: dict[str, object], key: str, *, now: int, max_life_s: int) -> None:
    issued, expires = (claims[name] for name in ("iat", "exp"))
    if type(issued) is not int or type(expires) is not int or claims["sub"] != key:
        raise NotAuthenticated(_REFUSED)
    if expires <= now - _LEEWAY_S or issued > now + _LEEWAY_S or not 0 < expires - issued <= max_life_s:
        raise NotAuthenticated(_REFUSED)
