"""Settings of the service, from environment variables."""

import os
from collections.abc import Sequence
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from framedex.access import Role
from framedex.errors import InvalidInput

_PREFIX = "FRAMEDEX_"


class RunMode(StrEnum):
    """Kind of deployment: on machines of the user, or as a hosted platform."""

    ONPREM = "ONPREM"
    CLOUD = "CLOUD"


def _texts(value: Any) -> Any:
    """Return the parts of a text that are separated by commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _base_url(value: str | None) -> str | None:
    """Return an absolute http URL without a slash at the end."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"it must be a URL such as https://images.example.com/framedex, not {value!r}")
    return value.rstrip("/")


def _named(name: str) -> AliasChoices:
    """Return the names of a setting that the interface names: with our prefix, or without."""
    return AliasChoices(f"{_PREFIX}{name}", name, name.lower())


_Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_texts)]


class ServiceSettings(BaseSettings):
    """Settings of the service.

    Attributes:
        run_mode: ONPREM or CLOUD. In CLOUD, folders of the server are no sources, and there is no user management.
        disable_auth: whether every request acts as the local user; None for: only if the address is a loopback one.
        public_url: the URL under which clients reach the service, if a proxy stands before it; a path is allowed.
        allowed_hosts: further names in the header ``Host`` that are accepted, separated by commas.
        cors_origins: origins whose pages may call the service, separated by commas; none by default.
        trusted_proxies: addresses of proxies whose headers ``X-Forwarded-For`` and ``X-Forwarded-Proto`` count.
        max_token_s: the longest life of a bearer token in seconds.
        relative_uris: whether URIs of files in answers are relative to the server, for old notebooks.
        ingest_path_role: the least role with which members create datasets from folders of the server.
        s3_allowed_roles: the ARNs of roles that users may assume to read from buckets, separated by commas.
        multi_workspace: whether there are several workspaces of users (tenants), each with one admin or more.
        max_query_bytes: the maximum size of an image that is searched for.
        max_metadata_bytes: the maximum size of the values of one custom field.
        export_days: the number of days for which exports are kept.
        heavy_requests: the maximum number of searches, uploads and other heavy requests at the same time.
        admin_password: at the first start without users, the password of a new user ``admin``.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore")

    run_mode: RunMode = Field(default=RunMode.ONPREM, validation_alias=_named("RUN_MODE"))
    disable_auth: bool | None = Field(default=None, validation_alias=_named("DISABLE_AUTH"))
    public_url: Annotated[str | None, AfterValidator(_base_url)] = None
    allowed_hosts: _Texts = ()
    cors_origins: _Texts = ()
    trusted_proxies: _Texts = ()
    max_token_s: int = Field(default=86_400, ge=60)
    relative_uris: bool = False
    ingest_path_role: Role = Role.ADMIN
    s3_allowed_roles: _Texts = ()
    multi_workspace: bool = False
    max_query_bytes: int = Field(default=64 * 2**20, gt=0)
    max_metadata_bytes: int = Field(default=256 * 2**20, gt=0)
    export_days: float = Field(default=7.0, gt=0)
    heavy_requests: int = Field(default_factory=lambda: 2 * (os.cpu_count() or 1), gt=0, le=256)
    admin_password: str | None = Field(default=None, repr=False)


def load_service_settings() -> ServiceSettings:
    """Return the settings of the environment.

    Raises:
        InvalidInput: a variable has an invalid value; the message does not show a password.
    """
    try:
        return ServiceSettings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper()
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise InvalidInput(f"{_PREFIX}{name.removeprefix(_PREFIX)} cannot be used: {reason}") from None


def is_loopback(host: str) -> bool:
    """Return whether an address to listen at, or the name in a URL, is one that only this machine reaches."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def auth_is_off(settings: ServiceSettings, host: str) -> bool:
    """Return whether requests need no credentials, if the service listens at an address."""
    return is_loopback(host) if settings.disable_auth is None else settings.disable_auth


def host_is_allowed(settings: ServiceSettings, host: str, *, bound: Sequence[str], auth_off: bool) -> bool:
    """Return whether the header ``Host`` of a request names this service, and not a page that rebinds its name.

    Without log-ins, other names than those of this machine could be an attacker's: see DNS rebinding. Plain addresses
    cannot be rebound.

    Args:
        settings: the settings.
        host: the name in the header, without the port, in lower case.
        bound: the addresses at which the service listens.
        auth_off: whether requests need no credentials.
    """
    public = urlsplit(settings.public_url or "").hostname
    if host in (*bound, *settings.allowed_hosts, public) or is_loopback(host):
        return True
    if not auth_off:
        return public is None and not settings.allowed_hosts
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return not all(is_loopback(each) for each in bound)
