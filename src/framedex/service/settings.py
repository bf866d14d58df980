"""Rules of the service that follow from its settings: addresses, names of hosts, log-ins."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from framedex.hub.alert_targets import AlertTarget, CommandTarget, UrlTarget
from framedex.settings.model import load
from framedex.settings.oidc import OidcSettings, is_loopback
from framedex.settings.registry import definitions
from framedex.settings.service import RunMode, ServiceSettings

__all__ = [
    "OidcSettings",
    "RunMode",
    "ServiceSettings",
    "alert_targets",
    "auth_is_off",
    "host_is_allowed",
    "is_loopback",
    "load_oidc_settings",
    "load_service_settings",
]


def load_service_settings() -> ServiceSettings:
    """Return the settings of the environment.

    Raises:
        InvalidInput: a variable has an invalid value; the message does not show a password.
    """
    return load(ServiceSettings)


def load_oidc_settings() -> OidcSettings:
    """Return the settings of log-in by OpenID Connect, from the environment.

    Raises:
        InvalidInput: a variable has an invalid value; the message does not show the secret.
    """
    return load(OidcSettings)


def auth_is_off(settings: ServiceSettings, host: str) -> bool:
    """Return whether requests need no credentials, if the service listens at an address."""
    return is_loopback(host) if settings.disable_auth is None else settings.disable_auth


def host_is_allowed(settings: ServiceSettings, host: str, *, bound: Sequence[str]) -> bool:
    """Return whether the header ``Host`` of a request names this service, and not a page that rebinds its name.

    Other names than those of this machine could be an attacker's: see DNS rebinding; and they would stand in links of
    answers. Plain addresses cannot be rebound.

    Args:
        settings: the settings.
        host: the name in the header, without the port, in lower case.
        bound: the addresses at which the service listens.
    """
    public = urlsplit(settings.public_url or "").hostname
    if host in (*bound, *settings.allowed_hosts, public) or is_loopback(host):
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return not all(is_loopback(each) for each in bound)


def alert_targets(settings: ServiceSettings) -> list[AlertTarget]:
    """Return the receivers of alerts that the settings name.

    Raises:
        InvalidInput: the command cannot be used.
    """
    found: list[AlertTarget] = []
    if settings.on_alert_command is not None:
        secrets = frozenset(name for each in definitions() if each.is_secret for name in each.names)
        found.append(CommandTarget(settings.on_alert_command, without=secrets))
    if settings.on_alert_url is not None:
        found.append(UrlTarget(settings.on_alert_url, allow_private=settings.on_alert_private))
    return found
