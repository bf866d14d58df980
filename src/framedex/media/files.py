"""Access to the bytes of media: files, which may be anything (pipes, folders, broken links), and objects in buckets."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

from framedex.core.allowed_folders import OUTSIDE, AllowedFolders, within
from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.regular_files import NOT_REGULAR, TooLarge, open_binary, opener, read_at_most
from framedex.errors import CannotDecode, Forbidden, Unavailable
from framedex.media.limits import RAISE_BYTES
from framedex.media.remote import SCHEME, ObjectStore, is_remote
from framedex.media.s3 import BucketAccess
from framedex.settings import Settings

_DIGEST_BYTES, _BLOCK_BYTES = 16, 2**20


class Reader:
    """A reader of files by absolute path and of objects by URI. Safe to share between threads.

    Files that Framedex itself stores, given as :class:`framedex.core.allowed_folders.OwnPath`, can always be read.
    Others must be in an allowed folder or bucket, if the settings have some; the refusal does not tell whether the
    file exists.

    Args:
        settings: limits, allowed folders, and the access to buckets.
        role: the role to assume for reading objects.
    """

    def __init__(self, settings: Settings, role: AssumedRole | None = None) -> None:
        self._max_bytes = settings.max_file_bytes
        self._allowed = allowed_folders(settings)
        self._objects = object_store(settings, role)

    def read(self, location: str) -> tuple[int | None, bytes]:
        """Return the modification time (nanoseconds since 1970) and the content.

        Raises:
            CannotDecode: the file or object does not exist, is too large, may not be read, or cannot be read.
            Unavailable: the object store cannot be reached, or denies access.
        """
        if is_remote(location):
            return self._objects.read(location, self._max_bytes)
        status, data = read_file(location, self._max_bytes, self._allowed)
        return status.st_mtime_ns, data

    @contextmanager
    def open(self, location: str, *, in_parts: bool = False) -> Iterator[tuple[float | None, BinaryIO]]:
        """Yield the modification time (seconds since 1970) and the content as a file. Files may have any size.

        Args:
            location: the path or the URI.
            in_parts: fetch only what is read of an object, which may then have any size; else it is fetched at once.

        Raises:
            CannotDecode: the file or object does not exist or cannot be opened, or the object is too large.
            Unavailable: as in :meth:`read`; with *in_parts* also while the file is read.
        """
        if is_remote(location):
            modified_ns, content = self._objects.open(location) if in_parts else self._whole(location)
            with content:
                yield (None if modified_ns is None else modified_ns / 1e9), content
            return
        try:
            with _restricted(self._allowed):
                file = open_binary(location)
        except (OSError, ValueError) as error:  # a name with a null character is a ValueError
            raise _cannot_decode(error) from None
        with file:
            yield os.fstat(file.fileno()).st_mtime, file

    def digest(self, location: str) -> bytes:
        """Return the BLAKE2b hash of a file or an object, 16 bytes, as rows have it; it may have any size.

        Raises:
            CannotDecode: the file or object does not exist, may not be read, or cannot be read.
            Unavailable: as in :meth:`open`.
        """
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with self.open(location, in_parts=True) as (_, content):
            try:
                while block := content.read(_BLOCK_BYTES):
                    digest.update(block)
            except Unavailable:
                raise
            except OSError as error:
                raise _cannot_decode(error) from None
        return digest.digest()

    def _whole(self, location: str) -> tuple[int | None, BinaryIO]:
        modified_ns, data = self.read(location)
        return modified_ns, BytesIO(data)

    def check_any_read(self) -> None:
        """Check that at least one object could be read. Files do not count: an unreadable file is always broken.

        Raises:
            Unavailable: no object could be read.
        """
        self._objects.check_any_read()


def locate(root: str, path: str) -> str:
    """Return the location of a path below a source root: an absolute path or a URI."""
    if is_remote(root):
        return f"{root}{path}" if root == SCHEME else f"{root}/{path}"  # keys may begin with anything
    return os.path.join(root, path)  # noqa: PTH118 - names may be any bytes


def below(root: str, other: str) -> str | None:
    """Return the path of *other* relative to a source root: empty for the root itself, None outside of it."""
    start = root if root == SCHEME else root.rstrip(os.sep) + ("/" if is_remote(root) else os.sep)
    if other == root:
        return ""
    return other[len(start) :] if other.startswith(start) else None


def allowed_folders(settings: Settings) -> AllowedFolders | None:
    """Return the folders from which the settings allow to read; None for any."""
    return None if settings.media_roots is None else AllowedFolders(settings.media_roots)


def object_store(settings: Settings, role: AssumedRole | None = None) -> ObjectStore:
    """Return the reader of objects with the settings' access and allowed buckets."""
    return ObjectStore(BucketAccess.of(settings, role), settings.s3_allowed)


@contextmanager
def _restricted(allowed: AllowedFolders | None) -> Iterator[None]:
    """Refuse to read files in no allowed folder, except for files of our own.

    Raises:
        CannotDecode: the path is in no allowed folder.
    """
    try:
        with within(allowed):
            yield
    except Forbidden:
        raise CannotDecode(f"cannot be read: {OUTSIDE}", "unreadable") from None


def read_file(path: str, max_bytes: int, allowed: AllowedFolders | None = None) -> tuple[os.stat_result, bytes]:
    """Return a file's status and content.

    Args:
        path: the file.
        max_bytes: the maximum size.
        allowed: the folders from which files may be read; None for any.

    Raises:
        CannotDecode: the file is missing, too large, not a regular file, in no allowed folder, or cannot be read.
    """
    try:
        with _restricted(allowed), open(path, "rb", buffering=0, opener=opener) as file:
            status = os.fstat(file.fileno())
            if status.st_size > max_bytes:
                size = counted(status.st_size, "bytes")
                raise CannotDecode(f"the file has {size}, more than {max_bytes:,} {RAISE_BYTES}", "over_limit")
            return status, read_at_most(file, max_bytes)
    except (OSError, ValueError) as error:
        raise _cannot_decode(error) from None


def _cannot_decode(error: OSError | ValueError) -> CannotDecode:
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, TooLarge):
        return CannotDecode(f"{reason} {RAISE_BYTES}", "over_limit")
    return CannotDecode(reason if reason == NOT_REGULAR else f"cannot be read: {reason}", "unreadable")
