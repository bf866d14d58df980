"""Settings of the service, which serves a workspace over HTTP."""

import os
from enum import StrEnum
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from framedex.access import Role
from framedex.settings.model import EnvironmentSettings, Group, by_interface_name, comma_separated, define


class RunMode(StrEnum):
    """Kind of deployment: on machines of the user, or as a hosted platform."""

    ONPREM = "ONPREM"
    CLOUD = "CLOUD"


def _http_parts(value: str) -> SplitResult | None:
    """Return the parts of an http URL with a host, and without a name of a user and a fragment; None for another."""
    try:
        parts = urlsplit(value)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_complete and parts.username is None and not parts.fragment else None


def _base_url(value: str | None) -> str | None:
    """Return an absolute http URL without a slash at the end."""
    if value is None:
        return None
    parts = _http_parts(value)
    if parts is None or parts.query:
        raise ValueError(f"it must be a URL such as https://images.example.com/framedex, not {value!r}")
    return value.rstrip("/")


def _target_url(value: str | None) -> str | None:
    """Return an http URL with a host, and without a name of a user."""
    if value is not None and _http_parts(value) is None:
        raise ValueError("it must be a URL such as https://hooks.example.com/alerts")
    return value


_Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(comma_separated)]


class ServiceSettings(EnvironmentSettings):
    """Settings of the service, from the environment or from code.

    ``docs/settings.md`` has the meaning of each field, as does its description.
    """

    run_mode: RunMode = define(
        Group.SERVICE,
        "`ONPREM`, or `CLOUD`, where folders of the server are no sources and there is no management of users",
        default=RunMode.ONPREM,
        validation_alias=by_interface_name("RUN_MODE"),
    )
    disable_auth: bool | None = define(
        Group.SERVICE,
        "whether every request acts as the local user",
        default_text="only if the address is a loopback one",
        default=None,
        validation_alias=by_interface_name("DISABLE_AUTH"),
    )
    public_url: Annotated[str | None, AfterValidator(_base_url)] = define(
        Group.SERVICE,
        "URL under which clients reach the service if a proxy stands before it; a path is allowed",
        default_text="that of the request",
        default=None,
    )
    allowed_hosts: _Texts = define(
        Group.SERVICE,
        "further names in the header `Host` that are accepted, separated by commas",
        default_text="none",
        default=(),
    )
    cors_origins: _Texts = define(
        Group.SERVICE,
        "origins whose pages may call the service, separated by commas",
        default_text="none",
        default=(),
    )
    trusted_proxies: _Texts = define(
        Group.SERVICE,
        "addresses of proxies whose headers `X-Forwarded-For` and `X-Forwarded-Proto` count, separated by commas",
        default_text="none",
        default=(),
    )
    max_token_s: int = define(Group.SERVICE, "longest life of a bearer token in seconds", default=86_400, ge=60)
    relative_uris: bool = define(
        Group.SERVICE,
        "whether URIs of files in answers are relative to the server, for old notebooks",
        default=False,
    )
    ingest_path_role: Role = define(
        Group.SERVICE,
        "least role with which members create datasets from folders of the server: `editor` or `admin`",
        default=Role.ADMIN,
    )
    s3_allowed_roles: _Texts = define(
        Group.SERVICE,
        "ARNs of roles that users may assume to read from buckets, separated by commas",
        default_text="none",
        default=(),
    )
    max_query_bytes: int = define(Group.SERVICE, "largest image that is searched for", default=64 * 2**20, gt=0)
    max_metadata_bytes: int = define(
        Group.SERVICE, "largest size of the values of one custom field", default=256 * 2**20, gt=0
    )
    export_days: float = define(Group.SERVICE, "days for which exports are kept", default=7.0, gt=0)
    heavy_requests: int = define(
        Group.SERVICE,
        "searches, uploads and other heavy requests at the same time, 1 to 256",
        default_text="twice the number of processors",
        default_factory=lambda: 2 * (os.cpu_count() or 1),
        gt=0,
        le=256,
    )
    search_timeout_s: float = define(
        Group.SERVICE,
        "seconds for one search, up to 3,600; a longer one is stopped with the status 503",
        default=30.0,
        gt=0,
        le=3600,
    )
    head_timeout_s: float = define(
        Group.SERVICE,
        "seconds within which the line and the headers of a request must be complete",
        default=10.0,
        gt=0,
        le=3600,
    )
    body_timeout_s: float = define(
        Group.SERVICE,
        "seconds within which the body of a request must make progress; an answer ten times as long",
        default=30.0,
        gt=0,
        le=3600,
    )
    on_alert_command: str | None = define(
        Group.SERVICE,
        "program with its arguments that gets each alert of a saved view as JSON on its standard input",
        default_text="none",
        default=None,
    )
    on_alert_url: Annotated[str | None, AfterValidator(_target_url)] = define(
        Group.SERVICE,
        "URL that gets each alert of a saved view as the JSON body of a POST",
        default_text="none",
        default=None,
        is_secret=True,
        repr=False,
    )
    on_alert_private: bool = define(
        Group.SERVICE,
        "whether `FRAMEDEX_ON_ALERT_URL` may lead to an address that is not public, such as one of this machine",
        default=False,
    )
    admin_password: str | None = define(
        Group.SERVICE,
        "at the first start without users, the password of a new user `admin`",
        default_text="none",
        default=None,
        is_secret=True,
        repr=False,
    )
