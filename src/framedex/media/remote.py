"""Access to objects in S3 buckets, the only module that uses an S3 client. URIs are ``s3://bucket/key``, unescaped."""

import os
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from framedex.core import forks
from framedex.errors import CannotDecode, InvalidInput, Unavailable
from framedex.settings import Settings

SCHEME = "s3://"
INVALID_URI = "Invalid object-storage URI or no media files found at the URI"
"""The interface's message; a note of the error has the details."""
ODD_KEY = r"(^|/)\.{0,2}(/|$)"
"""Keys with empty parts, ``.`` or ``..``, which HTTP clients normalise, so that the objects cannot be requested."""
_URI = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9._-]{1,254})(?:/(.*))?", re.DOTALL)
_ODD_KEY = re.compile(ODD_KEY)
_AWS = re.compile(r"AWS Error (\w+(?: \(HTTP status \d+\))?) during (\w+) operation: ?(.*)", re.DOTALL)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING|INTERNAL_FAILURE|HTTP status 5"
)
_MAX_FAILURES = 100
"""Consecutive failures after which the service, not the objects, is considered unavailable."""
_REASON_CHARACTERS = 300


def is_remote(location: str) -> bool:
    """Return whether a location is the URI of an object."""
    return location.startswith(SCHEME)


def invalid_uri(detail: str) -> InvalidInput:
    """Return the interface's error, with a note about the details."""
    error = InvalidInput(INVALID_URI)
    error.add_note(detail)
    return error


def split_uri(uri: str) -> tuple[str, str]:
    """Return the bucket and the key of the URI of an object or a folder; keys of folders have no trailing slash.

    Raises:
        InvalidInput: the URI is not ``s3://bucket`` or ``s3://bucket/key``.
    """
    match = _URI.fullmatch(uri) if isinstance(uri, str) else None
    key = (match[2] or "").rstrip("/") if match else ""
    if match is None or not key.isprintable() or (key and _ODD_KEY.search(key)):
        raise invalid_uri(f"an object-storage URI must be s3://bucket/folder, not {uri!r}")
    return match[1], key


@dataclass(frozen=True)
class BucketAccess:
    """Options for access to buckets.

    Attributes:
        endpoint: the address of the service; None for Amazon S3.
        region: the region of the buckets; None to detect it.
        anonymous: whether to send requests without credentials.
        role_arn: ARN of the role to assume; None for no role.
        attempts: the maximum number of attempts for each request.
    """

    endpoint: str | None = None
    region: str | None = None
    anonymous: bool = False
    role_arn: str | None = None
    attempts: int = 5

    @classmethod
    def of(cls, settings: Settings, role_arn: str | None = None) -> "BucketAccess":
        """Return the options of the settings; *role_arn* overrides the role of the settings."""
        role_arn = role_arn or settings.s3_role_arn
        return cls(settings.s3_endpoint, settings.s3_region, settings.s3_anonymous, role_arn, settings.s3_attempts)


class ObjectStore:
    """A reader of objects. Safe to share between threads.

    It distinguishes a broken object from an unavailable service: after a failure it sends a request for the bucket, and
    it counts consecutive failures.
    """

    def __init__(self, access: BucketAccess) -> None:
        self._access = access
        self._lock = forks.Lock()
        self._read, self._failed, self._consecutive, self._last = 0, 0, 0, ""

    def read(self, uri: str, max_bytes: int) -> tuple[int | None, bytes]:
        """Return the modification time (nanoseconds since 1970) and the content of an object.

        Raises:
            CannotDecode: the object does not exist, is too large, or cannot be read although others can.
            Unavailable: the service cannot be reached, or denies access.
        """
        path = uri.removeprefix(SCHEME)
        if _ODD_KEY.search(path):
            raise CannotDecode("cannot be requested: its key has parts that are empty, '.' or '..'")
        try:
            with self._files(path).open_input_file(path) as file:
                size = file.size()
                if size > max_bytes:
                    raise CannotDecode(f"the object has {size:,} bytes, more than {max_bytes:,}")
                result = _modified_ns(file.metadata()), file.read(size)
        except FileNotFoundError:
            raise CannotDecode("cannot be read: there is no such object") from None
        except (OSError, pa.ArrowException) as error:
            raise self._failure(uri, error) from None
        with self._lock:
            self._read, self._consecutive = self._read + 1, 0
        return result

    def check_any_read(self) -> None:
        """Check that at least one object could be read, if any was requested.

        Raises:
            Unavailable: all objects failed.
        """
        if self._failed and not self._read:
            raise Unavailable(f"none of {self._failed:,} objects could be read, the last: {self._last}")

    def list(self, uri: str) -> pa.Table:
        """Return the objects below a folder, sorted by key: ``key`` (relative), ``size_bytes``, ``modified_ns``.

        Raises:
            InvalidInput: the bucket does not exist.
            Unavailable: the service cannot be reached, or denies listing the folder.
        """
        from pyarrow.fs import FileSelector

        bucket, key = split_uri(uri)
        folder = f"{bucket}/{key}".rstrip("/")
        try:
            infos = self._files(folder).get_file_info(FileSelector(folder, recursive=True))
        except FileNotFoundError:
            infos = []
        except (OSError, pa.ArrowException) as error:
            if "NO_SUCH_BUCKET" in str(error):
                raise invalid_uri(f"there is no bucket {bucket!r}") from None
            raise Unavailable(f"cannot list {uri!r}: {_reason(error)}") from None
        files = [info for info in infos if info.is_file]
        columns = {
            "key": pa.array([info.path[len(folder) + 1 :] for info in files], pa.string()),
            "size_bytes": pa.array([info.size for info in files], pa.int64()),
            "modified_ns": pa.array([info.mtime_ns for info in files], pa.int64()),
        }
        return pa.table(columns).sort_by("key")

    def exists(self, uri: str) -> bool:
        """Return whether there is an object with exactly this URI.

        Raises:
            Unavailable: the service cannot be reached, or denies access.
        """
        path = uri.removeprefix(SCHEME)
        try:
            return bool(self._files(path).get_file_info(path).is_file)
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(f"cannot look for {uri!r}: {_reason(error)}") from None

    def _files(self, path: str) -> Any:
        return _file_system(self._access, path.partition("/")[0])

    def _failure(self, uri: str, error: Exception) -> CannotDecode:
        """Return the error for an object that cannot be read.

        Raises:
            Unavailable: the cause is the service, not the object.
        """
        reason = _reason(error)
        if _UNREACHABLE.search(str(error)) and not self._answers(uri):
            raise Unavailable(f"cannot read {uri!r}: {reason}")
        with self._lock:
            self._failed, self._consecutive, self._last = self._failed + 1, self._consecutive + 1, f"{uri!r}: {reason}"
            if self._consecutive >= _MAX_FAILURES:
                raise Unavailable(f"{self._consecutive} objects in a row could not be read, the last: {self._last}")
        return CannotDecode(f"cannot be read: {reason}")

    def _answers(self, uri: str) -> bool:
        """Return whether the service answers a request for an object's bucket, even with a refusal."""
        path = uri.removeprefix(SCHEME)
        try:
            self._files(path).get_file_info(path.partition("/")[0])
        except (OSError, pa.ArrowException) as error:
            return not _UNREACHABLE.search(str(error))
        return True


def _reason(error: Exception) -> str:
    """Return the message of a service in one line, shortened."""
    match = _AWS.search(str(error))
    text = f"{match[1]} ({match[2]}) {match[3]}" if match else str(error)
    return " ".join(text.split())[:_REASON_CHARACTERS].strip()


def _modified_ns(metadata: dict[str, bytes]) -> int | None:
    try:
        when = datetime.fromisoformat(metadata["Last-Modified"].decode())
    except (KeyError, ValueError):
        return None
    return int(when.timestamp() * 1e9)


@lru_cache(maxsize=64)
def _file_system(access: BucketAccess, bucket: str) -> Any:
    """Return a client. It is cached, because its creation may take seconds while it searches for credentials.

    Raises:
        InvalidInput: a role is set together with anonymous access.
    """
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    if access.role_arn and access.anonymous:
        raise InvalidInput(f"no role can be assumed without credentials: {access.role_arn!r} (FRAMEDEX_S3_ANONYMOUS)")
    options: dict[str, Any] = {"region": access.region or _default_region(access, bucket)}
    if access.endpoint:
        address = urlsplit(access.endpoint)
        options |= {"scheme": address.scheme, "endpoint_override": address.netloc}
    if access.role_arn:
        options |= {"role_arn": access.role_arn, "session_name": "framedex"}
    return S3FileSystem(
        anonymous=access.anonymous,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=access.attempts),
        **options,
    )


def _default_region(access: BucketAccess, bucket: str) -> str | None:
    from pyarrow.fs import resolve_s3_region

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region or access.endpoint:  # other services require a region, too, and accept any
        return region or "us-east-1"
    try:
        return str(resolve_s3_region(bucket))
    except (OSError, pa.ArrowException):
        return None
