"""The identity in claims that were verified."""

from collections.abc import Mapping
from typing import Any

from framedex.hub.external import VerifiedIdentity

_LONGEST, _MOST_ROLES = 1000, 1000
_TRUE = (True, "true", "True", "1")


def verified_identity(claims: Mapping[str, Any], issuer: str) -> VerifiedIdentity:
    """Return the identity in the claims of an ID token.

    Claims of another type, or longer than any name or address, are left out. Microsoft Entra has ``xms_edov`` in the
    place of ``email_verified``.

    Args:
        claims: the claims, which were verified; ``sub`` is among them.
        issuer: the issuer.
    """
    return VerifiedIdentity(
        issuer,
        claims["sub"],
        username=_text(claims, "preferred_username"),
        email=_text(claims, "email"),
        email_verified=any(claims.get(name) in _TRUE for name in ("email_verified", "xms_edov")),
        first_name=_text(claims, "given_name"),
        last_name=_text(claims, "family_name"),
        roles=_roles(claims.get("realm_access")),
        session=_text(claims, "sid"),
    )


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST else None


def _roles(access: Any) -> frozenset[str]:
    """Return the names of roles in Keycloak's claim."""
    names = access.get("roles") if isinstance(access, dict) else None
    return (
        frozenset(each for each in names[:_MOST_ROLES] if isinstance(each, str))
        if isinstance(names, list)
        else frozenset()
    )
