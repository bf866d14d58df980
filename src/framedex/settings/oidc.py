"""Settings of log-in by an OpenID Connect provider."""

from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from framedex.access import Role
from framedex.errors import InvalidInput
from framedex.settings.model import EnvironmentSettings, Group, by_interface_name, define


def is_loopback(host: str) -> bool:
    """Return whether an address to listen at, or the name in a URL, is one that only this machine reaches."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_safe_url(url: str) -> bool:
    """Return whether a URL is absolute and uses https, or plain http on a loopback address."""
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        return False
    host = parts.hostname or ""
    is_plain = url.isascii() and url.isprintable() and " " not in url
    return is_complete and is_plain and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _safe_url(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value) if is_safe_url(value) else None
    if parts is None or parts.query or parts.fragment:
        raise ValueError("it must be a URL with https, or with http on this machine, without a query")
    return value


def _given(value: Any) -> Any:
    """Return a value, and None for an empty text: a variable that is set to nothing."""
    return None if isinstance(value, str) and not value.strip() else value


def _default_role(role: Role) -> Role:
    if role is Role.ADMIN:
        raise ValueError("it must be viewer or editor; an admin makes somebody else an admin")
    return role


_Text = Annotated[str | None, BeforeValidator(_given)]
_Url = Annotated[str | None, AfterValidator(_safe_url), BeforeValidator(_given)]


class OidcSettings(EnvironmentSettings):
    """Settings of log-in by an OpenID Connect provider, from the environment or from code.

    ``docs/settings.md`` has the meaning of each field, as does its description.
    """

    oidc_issuer: _Url = define(
        Group.OIDC,
        "issuer of the provider, exactly as in its tokens; it turns log-in by OpenID Connect on",
        default_text="off",
        default=None,
        validation_alias=by_interface_name("OIDC_ISSUER"),
    )
    oidc_client_id: _Text = define(
        Group.OIDC,
        "id of the service at the provider",
        default_text="none",
        default=None,
        validation_alias=by_interface_name("OIDC_CLIENT_ID"),
    )
    oidc_client_secret: _Text = define(
        Group.OIDC,
        "secret of the service at the provider; none for a public client",
        default_text="none",
        default=None,
        is_secret=True,
        repr=False,
        validation_alias=by_interface_name("OIDC_CLIENT_SECRET"),
    )
    oidc_redirect_uri: _Url = define(
        Group.OIDC,
        "URL of `/api/v1/oidc/callback` as browsers reach it",
        default_text="below `FRAMEDEX_PUBLIC_URL`",
        default=None,
        validation_alias=by_interface_name("OIDC_REDIRECT_URI"),
    )
    oidc_scopes: str = define(
        Group.OIDC,
        "scopes to ask for, separated by blanks; `openid` is among them",
        default="openid profile email",
        validation_alias=by_interface_name("OIDC_SCOPES"),
        pattern=r"^([!-~]+ )*openid( [!-~]+)*$",
    )
    oidc_default_role: Annotated[Role, AfterValidator(_default_role)] = define(
        Group.OIDC,
        "role of new users in the default workspace of users: `viewer` or `editor`",
        default=Role.VIEWER,
        validation_alias=by_interface_name("OIDC_DEFAULT_ROLE"),
    )
    oidc_link_by_email: bool = define(
        Group.OIDC,
        "whether the first log-in opens the present account with the e-mail address, if the provider verified it",
        default=False,
        validation_alias=by_interface_name("OIDC_LINK_BY_EMAIL"),
    )
    oidc_trust_roles: bool = define(
        Group.OIDC,
        "whether each log-in gives the user the roles in the claim `realm_access.roles`, and takes the others",
        default=False,
        validation_alias=by_interface_name("OIDC_TRUST_ROLES"),
    )
    oidc_bearer_audience: _Text = define(
        Group.OIDC,
        "audience of the provider's access tokens that are accepted as bearer tokens",
        default_text="none is accepted",
        default=None,
        validation_alias=by_interface_name("OIDC_BEARER_AUDIENCE"),
    )
    oidc_only: bool = define(
        Group.OIDC,
        "whether log-in by password is off",
        default=False,
        validation_alias=by_interface_name("OIDC_ONLY"),
    )
    oidc_timeout_s: float = define(
        Group.OIDC,
        "seconds for one request to the provider, all of it, up to 60",
        default=10.0,
        gt=0,
        le=60,
        validation_alias=by_interface_name("OIDC_TIMEOUT_S"),
    )

    @classmethod
    def off(cls) -> "OidcSettings":
        """Return settings with which it is off, whatever the environment says."""
        return cls.model_construct()

    def is_complete(self) -> bool:
        """Return whether log-in by OpenID Connect is on.

        Raises:
            InvalidInput: a setting is missing that others need.
        """
        if self.oidc_issuer is None:
            needy = [name for name, is_set in (
                ("OIDC_CLIENT_ID", self.oidc_client_id is not None),
                ("OIDC_BEARER_AUDIENCE", self.oidc_bearer_audience is not None),
                ("OIDC_ONLY", self.oidc_only),
            ) if is_set]  # fmt: skip
            if needy:
                raise InvalidInput(f"{needy[0]} needs OIDC_ISSUER, which is not set")
            return False
        if self.oidc_client_id is None:
            raise InvalidInput("OIDC_ISSUER needs OIDC_CLIENT_ID, which is not set")
        return True
