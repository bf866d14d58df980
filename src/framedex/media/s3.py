"""Clients for S3, the only module that uses botocore. Its errors become errors of this module, by type and code.

S3Error
├── Missing          no such object or bucket
├── Refused          the service answers and denies this request
├── BadCredentials   the service or a file denies all requests of this user
└── Unreachable      no answer, half an answer, or a service that is overloaded
"""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from framedex.core import forks
from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.lru_cache import LruCache
from framedex.errors import CannotDecode, InvalidInput
from framedex.media.limits import RAISE_BYTES
from framedex.settings import Settings

_REASON_CHARACTERS = 300
_CLIENTS_KEPT = 64
_CONNECTIONS = 256
"""The maximum number of connections to keep open; callers limit the number of requests at a time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BAD_CREDENTIALS = {
    "ExpiredToken", "InvalidAccessKeyId", "InvalidSecurity", "InvalidToken", "RequestTimeTooSkewed",
    "SignatureDoesNotMatch", "TokenRefreshRequired",
}  # fmt: skip
_OVERLOADED = {"BandwidthLimitExceeded", "RequestLimitExceeded", "RequestTimeout", "SlowDown", "Throttling"}
"""Codes of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html; unknown codes count by their status."""


class S3Error(Exception):
    """A failed request, with the reason in one line."""


class Missing(S3Error):
    """A request for an object or a bucket that does not exist."""


class Refused(S3Error):
    """A request that the service denies."""


class BadCredentials(S3Error):
    """Credentials that are missing, incomplete, expired or unknown to the service."""


class Unreachable(S3Error):
    """A service without a complete answer."""


@dataclass(frozen=True)
class BucketAccess:
    """Options for access to buckets.

    Attributes:
        endpoint: the address of the service; None for that of the environment, else Amazon S3.
        region: the region of the buckets; None for that of the environment, else that of each bucket.
        anonymous: whether to send requests without credentials.
        role: the role to assume; None for no role.
        attempts: the maximum number of attempts for each request.
        timeout_s: seconds to wait for a connection, and for the next bytes of an answer.
    """

    endpoint: str | None = None
    region: str | None = None
    anonymous: bool = False
    role: AssumedRole | None = None
    attempts: int = 5
    timeout_s: float = 10.0

    @classmethod
    def of(cls, settings: Settings, role: AssumedRole | None = None) -> "BucketAccess":
        """Return the options of the settings; *role* overrides the role of the settings."""
        if role is None and settings.s3_role_arn:
            role = AssumedRole(settings.s3_role_arn)
        return cls(
            settings.s3_endpoint, settings.s3_region, settings.s3_anonymous, role,
            settings.s3_attempts, settings.s3_timeout_s,
        )  # fmt: skip


class ListedObject(NamedTuple):
    """An object in a listing: its key, its size, and its modification time in nanoseconds since 1970."""

    key: str
    size_bytes: int
    modified_ns: int


class ObjectStat(NamedTuple):
    """An object: its size, its modification time in nanoseconds since 1970 if it is known, and its entity tag."""

    size_bytes: int
    modified_ns: int | None
    etag: str


class ObjectAnswer:
    """The bytes of an object from a position on, as they arrive.

    Args:
        body: the answer of the engine.
    """

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes; none at the end.

        Raises:
            S3Error: the answer breaks off.
        """
        with _own_errors():
            return bytes(self._body.read(size))

    def close(self) -> None:
        """Close the connection."""
        self._body.close()


class S3Client:
    """A client for the buckets of one service. Safe to share between threads; each process needs its own.

    Its methods raise an :class:`S3Error`; :meth:`read` raises CannotDecode for an object above the limit.

    Args:
        engine: the client of botocore.
        attempts: the maximum number of attempts to read an object whose transfer breaks off.
    """

    def __init__(self, engine: Any, attempts: int) -> None:
        self._engine, self._attempts = engine, attempts

    def read(self, bucket: str, key: str, max_bytes: int) -> tuple[int | None, bytes]:
        """Return the modification time and the content of an object.

        The time is in nanoseconds since 1970; None if the service names none. The engine repeats requests until an
        answer begins. If the answer breaks off, this repeats the request, as often and without a pause, like the
        downloads of s3transfer 0.19.
        """
        for attempt in range(1, self._attempts + 1):
            with _own_errors():
                answer = self._engine.get_object(Bucket=bucket, Key=key)
            try:
                with closing(answer["Body"]) as body, _own_errors():
                    data = _content(body, answer.get("ContentLength"), max_bytes)
                return (_ns(answer["LastModified"]) if "LastModified" in answer else None), data
            except Unreachable:
                if attempt == self._attempts:
                    raise
        raise AssertionError("there is at least one attempt")

    def stat(self, bucket: str, key: str) -> ObjectStat:
        """Return the size, the time and the entity tag of an object."""
        with _own_errors():
            answer = self._engine.head_object(Bucket=bucket, Key=key)
        modified_ns = _ns(answer["LastModified"]) if "LastModified" in answer else None
        return ObjectStat(int(answer["ContentLength"]), modified_ns, str(answer["ETag"]))

    def answer_from(self, bucket: str, key: str, start: int, *, etag: str) -> ObjectAnswer:
        """Request the bytes of an object from a position on, unless it has another entity tag."""
        with _own_errors():
            answer = self._engine.get_object(Bucket=bucket, Key=key, Range=f"bytes={start}-", IfMatch=etag)
        return ObjectAnswer(answer["Body"])

    def check_object(self, bucket: str, key: str) -> None:
        """Check that an object exists."""
        with _own_errors():
            self._engine.head_object(Bucket=bucket, Key=key)

    def check_bucket(self, bucket: str) -> None:
        """Check that a bucket exists and that this user may know."""
        with _own_errors():
            self._engine.head_bucket(Bucket=bucket)

    def pages(self, bucket: str, prefix: str) -> Iterator[list[ListedObject]]:
        """Yield the objects whose keys begin with a prefix, a page at a time."""
        with _own_errors():
            for page in self._engine.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield [
                    ListedObject(each["Key"], each["Size"], _ns(each["LastModified"]))
                    for each in page.get("Contents", ())
                ]


def _content(body: Any, size: int | None, max_bytes: int) -> bytes:
    """Return the content of an answer; memory is bounded even if the service names no size."""
    if size is not None and size > max_bytes:
        too_many = f"the object has {counted(size, 'bytes')}, more than {max_bytes:,}"
        raise CannotDecode(f"{too_many} {RAISE_BYTES}", "over_limit")
    data = bytes(body.read() if size is not None else body.read(max_bytes + 1))
    if len(data) > max_bytes:
        raise CannotDecode(f"the object has more than {counted(max_bytes, 'bytes')} {RAISE_BYTES}", "over_limit")
    return data


def _ns(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(microseconds=1) * 1000


class _Clients:
    """The clients of this process. A child of a fork makes its own, as connections cannot be shared with the parent."""

    def __init__(self) -> None:
        self._gate = forks.Gate(2)  # so that no fork happens while a thread imports the engine
        self._cache = LruCache[BucketAccess, S3Client](_CLIENTS_KEPT)
        forks.renew_after_forks(self)

    def get(self, access: BucketAccess) -> S3Client:
        """Return a client. It is cached, because its creation may take seconds while it searches for credentials."""
        if (client := self._cache.get(access)) is not None:
            return client
        with self._gate.using(), _own_errors(BadCredentials):
            return self._cache.get_or_make(access, partial(_new_client, access))

    def renew(self) -> None:
        """Forget the clients of the parent; the destructors of their connections would take locks."""
        forks.abandon(self._cache)
        self._cache = LruCache[BucketAccess, S3Client](_CLIENTS_KEPT)


_CLIENTS = _Clients()


def client(access: BucketAccess) -> S3Client:
    """Return a client for this process.

    Raises:
        InvalidInput: a role is set together with anonymous access, or the endpoint or the region is invalid.
        S3Error: the credentials cannot be used.
    """
    if access.role and access.anonymous:
        raise InvalidInput(f"no role can be assumed without credentials: {access.role.arn!r} (FRAMEDEX_S3_ANONYMOUS)")
    return _CLIENTS.get(access)


def _new_client(access: BucketAccess) -> S3Client:
    from botocore import UNSIGNED
    from botocore.config import Config

    session = _session()
    endpoint, region = _endpoint(access), _region(session, access)
    limits: dict[str, Any] = {
        "connect_timeout": access.timeout_s,
        "read_timeout": access.timeout_s,
        "retries": {"mode": "standard", "total_max_attempts": access.attempts},
    }
    tls = {"verify": _certificates(session)}
    credentials = None if access.anonymous else session.get_credentials()
    if access.role:
        sts = partial(session.create_client, region_name=_region(session, None), config=Config(**limits), **tls)
        credentials = _of_role(access.role, credentials, sts)
        session = _session()
        session.register_component("credential_provider", _Provider(credentials))
    if credentials is None:  # without any, public objects can be read
        limits["signature_version"] = UNSIGNED
    else:
        credentials.get_frozen_credentials()  # to fail here if they cannot be retrieved
    if endpoint:
        # Other services have no name for each bucket, and are not behind the proxy that leads out of a network.
        limits |= {"s3": {"addressing_style": "path"}, "proxies": {}}
    config = Config(max_pool_connections=_CONNECTIONS, **limits)
    try:
        engine = session.create_client("s3", region_name=region, endpoint_url=endpoint, config=config, **tls)
    except ValueError as error:
        raise InvalidInput(f"the settings for S3 have an invalid endpoint or region: {error}") from None
    return S3Client(engine, access.attempts)


def _session() -> Any:
    """Return a session: the settings and credentials of the environment and of the files of AWS."""
    from botocore.session import Session

    session = Session()
    # The parser of dates takes two thirds of the time of a listing.
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)
    return session


class _Provider:
    """A provider of credentials that exist already, in the form of botocore."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load_credentials(self) -> Any:
        """Return the credentials."""
        return self._credentials


def _of_role(role: AssumedRole, source: Any, create_client: Callable[..., Any]) -> Any:
    """Return credentials of a role, which renew themselves before they expire."""
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

    if source is None:
        raise BadCredentials(f"there are no credentials to assume the role {role.arn!r}")
    options = {"RoleSessionName": "framedex"}
    if role.external_id is not None:
        options["ExternalId"] = role.external_id
    fetcher = AssumeRoleCredentialFetcher(create_client, source, role.arn, extra_args=options)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _time(text: Any) -> datetime:
    """Return a time with its zone, from one of the formats of answers."""
    from botocore.utils import parse_timestamp

    try:
        when = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        when = parse_timestamp(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _endpoint(access: BucketAccess) -> str | None:
    endpoint = access.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return endpoint.rstrip("/") if endpoint else None


def _region(session: Any, access: BucketAccess | None) -> str:
    """Return the region of a client. That of Amazon S3 follows redirections to the regions of buckets."""
    region = (access and access.region) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region and not (access and _endpoint(access)):  # the region in a file is one of Amazon's
        region = session.get_config_variable("region")
    return region or "us-east-1"


def _certificates(session: Any) -> str | None:
    """Return the file of trusted certificates: that of the user, else that of the system; None for botocore's own.

    The certificates of the system may include those of an organisation.
    """
    if own := session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE"):
        return str(own)
    paths = ssl.get_default_verify_paths()
    debian = Path(paths.capath or "") / "ca-certificates.crt"
    return paths.cafile or (str(debian) if debian.is_file() else None)


@contextmanager
def _own_errors(other: type[S3Error] = Refused) -> Iterator[None]:
    """Convert the engine's errors.

    Args:
        other: the error for those that are about neither connections nor credentials.

    Raises:
        S3Error: the engine raised an error.
    """
    from botocore import exceptions as engine
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except engine.ClientError as error:
        raise _of_answer(error) from None
    except engine.ReadTimeoutError:
        raise Unreachable("no answer within the time of FRAMEDEX_S3_TIMEOUT_S") from None
    except (engine.IncompleteReadError, engine.ResponseStreamingError, HTTPError):
        raise Unreachable("the connection broke within the answer") from None
    except (
        engine.ConnectionError, engine.HTTPClientError, engine.FlexibleChecksumError, ResponseParserError,
    ) as error:  # fmt: skip
        raise Unreachable(_line(str(error))) from None
    except (
        engine.NoCredentialsError, engine.PartialCredentialsError, engine.CredentialRetrievalError,
        engine.TokenRetrievalError, engine.SSOError, engine.MetadataRetrievalError,
    ) as error:  # fmt: skip
        raise BadCredentials(_line(str(error))) from None
    except engine.BotoCoreError as error:
        raise other(_line(str(error))) from None


def _of_answer(error: Any) -> S3Error:
    """Return the error for an answer of the service."""
    details, status = error.response.get("Error", {}), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = details.get("Code", "")
    reason = _line(f"{code} ({error.operation_name}) {details.get('Message', '')}")
    if status == 404:
        return Missing(reason)
    if status == 429 or (status or 0) >= 500 or code in _OVERLOADED:
        return Unreachable(reason)
    is_login = error.operation_name.startswith("AssumeRole")
    return BadCredentials(reason) if is_login or status == 401 or code in _BAD_CREDENTIALS else Refused(reason)


def _line(text: str) -> str:
    return " ".join(text.split())[:_REASON_CHARACTERS].strip()
