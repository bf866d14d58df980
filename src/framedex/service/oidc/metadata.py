"""The discovery document of a provider, in which it describes itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framedex.errors import Unavailable
from framedex.settings.oidc import is_safe_url

ALGORITHMS = ("RS256", "ES256", "PS256", "RS384", "ES384", "PS384", "RS512", "ES512", "PS512")
"""The algorithms of signatures that are accepted: with public keys, so that nobody but the provider can sign."""


@dataclass(frozen=True)
class ProviderMetadata:
    """The parts of a discovery document that a log-in needs.

    Attributes:
        issuer: the issuer.
        authorization_endpoint: where browsers log in.
        token_endpoint: where codes are redeemed.
        jwks_uri: the public keys.
        userinfo_endpoint: further claims of a user; None if there is none.
        end_session_endpoint: where browsers log out; None if there is none.
        algorithms: those of :data:`ALGORITHMS` with which ID tokens are signed.
        sends_secret_in_form: whether the client's secret belongs in the form and not in a header.
        names_issuer: whether the answer to a log-in names the issuer (RFC 9207).
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    algorithms: tuple[str, ...]
    sends_secret_in_form: bool
    names_issuer: bool


def discovery_url(issuer: str) -> str:
    """Return the URL of the discovery document of an issuer."""
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def read_metadata(document: Mapping[str, Any], issuer: str) -> ProviderMetadata:
    """Return the metadata in a discovery document.

    Args:
        document: the document.
        issuer: the issuer of the settings, which must be the one in the document.

    Raises:
        Unavailable: the document cannot be used; the message says why.
    """
    found = document.get("issuer")
    if found != issuer:
        raise Unavailable(f"the identity provider calls itself {found!r:.200}, but OIDC_ISSUER is {issuer!r}")
    offered = document.get("id_token_signing_alg_values_supported", ["RS256"])
    algorithms = tuple(each for each in ALGORITHMS if isinstance(offered, list) and each in offered)
    if not algorithms:
        raise Unavailable(f"the identity provider signs with {offered!r:.200}; {', '.join(ALGORITHMS)} can be checked")
    methods = document.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise Unavailable(f"the identity provider needs PKCE with S256, but supports {methods!r:.200}")
    auth = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return ProviderMetadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint"),
        token_endpoint=_endpoint(document, "token_endpoint"),
        jwks_uri=_endpoint(document, "jwks_uri"),
        userinfo_endpoint=_optional(document, "userinfo_endpoint"),
        end_session_endpoint=_optional(document, "end_session_endpoint"),
        algorithms=algorithms,
        sends_secret_in_form=isinstance(auth, list)
        and "client_secret_post" in auth
        and "client_secret_basic" not in auth,
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _endpoint(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not is_safe_url(value):
        raise Unavailable(f"the identity provider's {name} is {value!r:.200}; it must be a URL with https")
    return value


def _optional(document: Mapping[str, Any], name: str) -> str | None:
    return None if document.get(name) is None else _endpoint(document, name)
