"""Access to objects in S3 buckets. URIs are ``s3://bucket/key``, unescaped."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader

import pyarrow as pa

from framedex.core import forks
from framedex.core.counts import counted
from framedex.errors import CannotDecode, Forbidden, InvalidInput, Unavailable
from framedex.media import s3
from framedex.media.object_files import open_object
from framedex.media.s3 import BucketAccess

SCHEME = "s3://"
OUTSIDE_BUCKETS = "it lies outside of the buckets that may be read (FRAMEDEX_S3_ALLOWED)"
INVALID_URI = "Invalid object-storage URI or no media files found at the URI"
"""The interface's message; a note of the error has the details."""
ODD_KEY = r"(^|/)\.{0,2}(/|$)"
"""Keys with empty parts, ``.`` or ``..``, which HTTP clients normalise, so that the objects cannot be requested."""
_URI = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9._-]{1,254})(?:/(.*))?", re.DOTALL)
_ODD_KEY = re.compile(ODD_KEY)
_MAX_FAILURES = 100
"""Consecutive failures after which the service, not the objects, is considered unavailable."""
_LISTING = pa.schema([("key", pa.string()), ("size_bytes", pa.int64()), ("modified_ns", pa.int64())])


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


class ObjectStore:
    """A reader of objects. Safe to share between threads.

    It distinguishes a broken object from an unavailable service: after a failure it sends a request for the bucket, and
    it counts consecutive failures.

    Args:
        access: options for access to buckets.
        allowed: the buckets, and folders in buckets, that may be read, as ``bucket`` or ``bucket/folder``; None for
            any. A refusal does not tell whether an object exists.
    """

    def __init__(self, access: BucketAccess, allowed: Sequence[str] | None = None) -> None:
        self._access, self._allowed = access, allowed
        self._lock = forks.Lock()
        self._read, self._failed, self._consecutive, self._last = 0, 0, 0, ""

    def read(self, uri: str, max_bytes: int) -> tuple[int | None, bytes]:
        """Return the modification time (nanoseconds since 1970) and the content of an object.

        Raises:
            CannotDecode: the object does not exist, is too large, or cannot be read although others can.
            Unavailable: the service cannot be reached, or denies access.
        """
        with self._reading(uri):
            return s3.client(self._access).read(*_parts(uri), max_bytes)

    def open(self, uri: str) -> tuple[int | None, BufferedReader]:
        """Return the modification time of an object, and the object as an open file of which only parts are fetched.

        Raises:
            CannotDecode: as :meth:`read`, but the size does not matter.
            Unavailable: as :meth:`read`; while the file is read, also if the object was replaced.
        """
        with self._reading(uri):
            return open_object(s3.client(self._access), *_parts(uri))

    @contextmanager
    def _reading(self, uri: str) -> Iterator[None]:
        """Convert the errors of a request for an object, and count it."""
        if not self._is_allowed(uri):
            raise CannotDecode(f"cannot be read: {OUTSIDE_BUCKETS}", "unreadable")
        if _ODD_KEY.search(uri.removeprefix(SCHEME)):
            raise CannotDecode("cannot be requested: its key has parts that are empty, '.' or '..'", "unreadable")
        try:
            yield
        except s3.Missing:
            raise CannotDecode("cannot be read: there is no such object", "unreadable") from None
        except s3.BadCredentials as error:
            raise Unavailable(f"cannot read {uri!r}: {error}") from None
        except (s3.Refused, s3.Unreachable) as error:
            raise self._failure(uri, error) from None
        with self._lock:
            self._read, self._consecutive = self._read + 1, 0

    def check_any_read(self) -> None:
        """Check that at least one object could be read, if any was requested.

        Raises:
            Unavailable: all objects failed.
        """
        if self._failed and not self._read:
            raise Unavailable(
                f"no object could be read: {counted(self._failed, 'objects')} failed, the last: {self._last}"
            )

    def list(self, uri: str) -> pa.Table:
        """Return the objects below a folder, sorted by key: ``key`` (relative), ``size_bytes``, ``modified_ns``.

        Raises:
            InvalidInput: the bucket does not exist.
            Forbidden: the folder may not be read.
            Unavailable: the service cannot be reached, or denies listing the folder.
        """
        batches = []
        for files in self._pages(uri):
            columns = zip(*files, strict=True) if files else ([], [], [])
            arrays = [pa.array(column, each.type) for column, each in zip(columns, _LISTING, strict=True)]
            batches.append(pa.record_batch(arrays, schema=_LISTING))
        return pa.Table.from_batches(batches, _LISTING).sort_by("key")

    def check_listed(self, uri: str) -> None:
        """Check that a folder can be listed, by the first page of its objects; raise as :meth:`list`."""
        next(self._pages(uri), None)

    def _pages(self, uri: str) -> Iterator[Sequence[tuple[str, int, int]]]:
        """Yield the objects below a folder, a page at a time: key (relative), size and modification time in ns."""
        bucket, key = split_uri(uri)
        self.check_allowed(uri)
        prefix = f"{key}/" if key else ""
        try:
            for page in s3.client(self._access).pages(bucket, prefix):
                # Keys that end with a slash stand for folders.
                yield [(each.key[len(prefix) :], *each[1:]) for each in page if not each.key.endswith("/")]
        except s3.Missing:
            raise invalid_uri(f"there is no bucket {bucket!r}") from None
        except s3.S3Error as error:
            raise Unavailable(f"cannot list {uri!r}: {error}") from None

    def exists(self, uri: str) -> bool:
        """Return whether there is an object with exactly this URI.

        Raises:
            Forbidden: the object may not be read.
            Unavailable: the service cannot be reached, or denies access.
        """
        self.check_allowed(uri)
        try:
            s3.client(self._access).check_object(*_parts(uri))
        except s3.Missing:
            return False
        except s3.S3Error as error:
            raise Unavailable(f"cannot look for {uri!r}: {error}") from None
        return True

    def check_allowed(self, uri: str) -> None:
        """Check that an object, or the objects below a folder, may be read.

        Raises:
            Forbidden: they may not.
        """
        if not self._is_allowed(uri):
            raise Forbidden(f"{uri!r} cannot be read: {OUTSIDE_BUCKETS}", "unreadable")

    def _is_allowed(self, uri: str) -> bool:
        place = uri.removeprefix(SCHEME).rstrip("/")
        return self._allowed is None or any(place == each or place.startswith(f"{each}/") for each in self._allowed)

    def _failure(self, uri: str, error: s3.Refused | s3.Unreachable) -> CannotDecode:
        """Return the error for an object that cannot be read.

        Raises:
            Unavailable: the cause is the service, not the object.
        """
        if isinstance(error, s3.Unreachable) and not self._answers(uri):
            raise Unavailable(f"cannot read {uri!r}: {error}")
        with self._lock:
            self._failed, self._consecutive, self._last = self._failed + 1, self._consecutive + 1, f"{uri!r}: {error}"
            if self._consecutive >= _MAX_FAILURES:
                raise Unavailable(f"{self._consecutive} objects in a row could not be read, the last: {self._last}")
        return CannotDecode(f"cannot be read: {error}", "unreadable")

    def _answers(self, uri: str) -> bool:
        """Return whether the service answers a request for an object's bucket, even with a refusal."""
        try:
            s3.client(self._access).check_bucket(_parts(uri)[0])
        except s3.Unreachable:
            return False
        except s3.S3Error:
            pass
        return True


def _parts(uri: str) -> tuple[str, str]:
    """Return the bucket and the key of the URI of an object."""
    bucket, _, key = uri.removeprefix(SCHEME).partition("/")
    return bucket, key
