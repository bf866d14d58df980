"""The one door to objects in S3 buckets. All else knows them by their URIs: ``s3://bucket/key``, nothing escaped."""

import os
import re
import threading
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from framedex.errors import CannotDecode, InvalidInput, Unavailable
from framedex.settings import Settings

SCHEME = "s3://"
INVALID_URI = "Invalid object-storage URI or no media files found at the URI"
"""The interface's message; what exactly is wrong is said in a note of the error."""
ODD_KEY = r"(^|/)\.{0,2}(/|$)"
"""Keys with empty parts, or with parts that HTTP clients take for steps to another folder: they cannot be asked for."""
_URI = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9._-]{1,254})(?:/(.*))?", re.DOTALL)
_ODD_KEY = re.compile(ODD_KEY)
_AWS = re.compile(r"AWS Error (\w+(?: \(HTTP status \d+\))?) during (\w+) operation: ?(.*)", re.DOTALL)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING|INTERNAL_FAILURE|HTTP status 5"
)
_MOST_FAILURES = 100
"""So many objects in a row that cannot be read are no broken objects: rights have ended, or the service has."""
_REASON_LETTERS = 300


def is_remote(location: str) -> bool:
    """Return whether a location is the URI of an object."""
    return location.startswith(SCHEME)


def invalid_uri(detail: str) -> InvalidInput:
    """Return the interface's error, with a note that says what exactly is wrong."""
    error = InvalidInput(INVALID_URI)
    error.add_note(detail)
    return error


def split_uri(uri: str) -> tuple[str, str]:
    """Return (bucket, key) of an object's or a folder's URI; of a folder without a slash at the end.

    Raises:
        InvalidInput: it is not ``s3://bucket`` or ``s3://bucket/key``.
    """
    match = _URI.fullmatch(uri) if isinstance(uri, str) else None
    key = (match[2] or "").rstrip("/") if match else ""
    if match is None or not key.isprintable() or (key and _ODD_KEY.search(key)):
        raise invalid_uri(f"an object-storage URI is s3://bucket/folder, not {uri!r}")
    return match[1], key


@dataclass(frozen=True)
class BucketAccess:
    """How buckets are reached.

    Attributes:
        endpoint: address of the service; None for Amazon's.
        region: of the buckets; None to find out.
        anonymous: without credentials.
        role_arn: role to assume; None for none.
        attempts: how often a request is tried.
    """

    endpoint: str | None = None
    region: str | None = None
    anonymous: bool = False
    role_arn: str | None = None
    attempts: int = 5

    @classmethod
    def of(cls, settings: Settings, role_arn: str | None = None) -> "BucketAccess":
        """Return what the settings say; a role that came with the media goes before theirs."""
        role_arn = role_arn or settings.s3_role_arn
        return cls(settings.s3_endpoint, settings.s3_region, settings.s3_anonymous, role_arn, settings.s3_attempts)


class ObjectStore:
    """Reads objects; used by several threads at once.

    A broken object is told from a service that is gone: after a failure the bucket is asked for, and many failures
    in a row are no chance.
    """

    def __init__(self, access: BucketAccess) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._read, self._failed, self._in_a_row, self._last = 0, 0, 0, ""

    def read(self, uri: str, max_bytes: int) -> tuple[int | None, bytes]:
        """Return (time of the last change in nanoseconds since 1970, content) of an object.

        Raises:
            CannotDecode: there is none, it is too large, or it alone cannot be read.
            Unavailable: the service cannot be reached, or lets nothing be read any more.
        """
        path = uri.removeprefix(SCHEME)
        if _ODD_KEY.search(path):
            raise CannotDecode("cannot be asked for: its key has parts that are empty, '.' or '..'")
        try:
            with self._files(path).open_input_file(path) as file:
                size = file.size()
                if size > max_bytes:
                    raise CannotDecode(f"the object has {size:,} bytes, more than {max_bytes:,}")
                found = _modified_ns(file.metadata()), file.read()
        except FileNotFoundError:
            raise CannotDecode("cannot be read: there is no such object") from None
        except (OSError, pa.ArrowException) as error:
            raise self._failure(uri, error) from None
        with self._lock:
            self._read, self._in_a_row = self._read + 1, 0
        return found

    def check_any_read(self) -> None:
        """Check that not all objects so far failed.

        Raises:
            Unavailable: they did.
        """
        if self._failed and not self._read:
            raise Unavailable(f"none of {self._failed:,} objects could be read, the last: {self._last}")

    def list(self, uri: str) -> pa.Table:
        """Return the objects below a folder: ``key`` (below the folder), ``size_bytes``, ``modified_ns``, in order.

        Raises:
            InvalidInput: there is no such bucket.
            Unavailable: the service cannot be reached, or does not let the folder be listed.
        """
        from pyarrow.fs import FileSelector

        bucket, key = split_uri(uri)
        folder = f"{bucket}/{key}".rstrip("/")
        try:
            found = self._files(folder).get_file_info(FileSelector(folder, recursive=True))
        except FileNotFoundError:
            found = []
        except (OSError, pa.ArrowException) as error:
            if "NO_SUCH_BUCKET" in str(error):
                raise invalid_uri(f"there is no bucket {bucket!r}") from None
            raise Unavailable(f"cannot list {uri!r}: {_reason(error)}") from None
        files = [info for info in found if info.is_file]
        columns = {
            "key": pa.array([info.path[len(folder) + 1 :] for info in files], pa.string()),
            "size_bytes": pa.array([info.size for info in files], pa.int64()),
            "modified_ns": pa.array([info.mtime_ns for info in files], pa.int64()),
        }
        return pa.table(columns).sort_by("key")

    def exists(self, uri: str) -> bool:
        """Return whether there is an object of that very URI.

        Raises:
            Unavailable: that cannot be learnt.
        """
        path = uri.removeprefix(SCHEME)
        try:
            return bool(self._files(path).get_file_info(path).is_file)
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(f"cannot look for {uri!r}: {_reason(error)}") from None

    def _files(self, path: str) -> Any:
        return _file_system(self._access, path.partition("/")[0])

    def _failure(self, uri: str, error: Exception) -> CannotDecode:
        """Return what is wrong with one object.

        Raises:
            Unavailable: it is not the object.
        """
        reason = _reason(error)
        if _UNREACHABLE.search(str(error)) and not self._answers(uri):
            raise Unavailable(f"cannot read {uri!r}: {reason}")
        with self._lock:
            self._failed, self._in_a_row, self._last = self._failed + 1, self._in_a_row + 1, f"{uri!r}: {reason}"
            if self._in_a_row >= _MOST_FAILURES:
                raise Unavailable(f"{self._in_a_row} objects in a row could not be read, the last: {self._last}")
        return CannotDecode(f"cannot be read: {reason}")

    def _answers(self, uri: str) -> bool:
        """Return whether the service says anything of an object's bucket, be it a refusal."""
        path = uri.removeprefix(SCHEME)
        try:
            self._files(path).get_file_info(path.partition("/")[0])
        except (OSError, pa.ArrowException) as error:
            return not _UNREACHABLE.search(str(error))
        return True


def _reason(error: Exception) -> str:
    """Return what a service said, without the page that it may have said it on."""
    match = _AWS.search(str(error))
    text = f"{match[1]} ({match[2]}) {match[3]}" if match else str(error)
    return " ".join(text.split())[:_REASON_LETTERS].strip()


def _modified_ns(metadata: dict[str, bytes]) -> int | None:
    try:
        when = datetime.fromisoformat(metadata["Last-Modified"].decode())
    except (KeyError, ValueError):
        return None
    return int(when.timestamp() * 1e9)


@lru_cache(maxsize=64)
def _file_system(access: BucketAccess, bucket: str) -> Any:
    """Return a client, which is kept: making one may take seconds, as credentials are looked for.

    Raises:
        InvalidInput: a role is to be assumed without credentials.
    """
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    if access.role_arn and access.anonymous:
        raise InvalidInput(f"no role can be assumed without credentials: {access.role_arn!r} (FRAMEDEX_S3_ANONYMOUS)")
    options: dict[str, Any] = {"region": access.region or _usual_region(access, bucket)}
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


def _usual_region(access: BucketAccess, bucket: str) -> str | None:
    from pyarrow.fs import resolve_s3_region

    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named or access.endpoint:  # services other than Amazon's want one too, and take any
        return named or "us-east-1"
    try:
        return str(resolve_s3_region(bucket))
    except (OSError, pa.ArrowException):
        return None
