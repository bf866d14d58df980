"""The one door to the bytes of media: files that may be anything (pipes, folders, links to nowhere), and objects."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

from framedex.errors import CannotDecode
from framedex.media.remote import SCHEME, BucketAccess, ObjectStore, is_remote
from framedex.settings import Settings


class Reader:
    """Reads files by absolute path and objects by URI; used by several threads at once.

    Args:
        settings: limits, and how buckets are reached.
        role_arn: role to assume for objects.
    """

    def __init__(self, settings: Settings, role_arn: str | None = None) -> None:
        self._most_bytes = settings.max_file_bytes
        self._objects = ObjectStore(BucketAccess.of(settings, role_arn))

    def read(self, location: str) -> tuple[int | None, bytes]:
        """Return (time of the last change in nanoseconds since 1970, content).

        Raises:
            CannotDecode: there is nothing, it is too large, or it cannot be read.
            Unavailable: it is an object, and its service cannot be reached or lets nothing be read any more.
        """
        if is_remote(location):
            return self._objects.read(location, self._most_bytes)
        status, data = read_file(location, self._most_bytes)
        return status.st_mtime_ns, data

    @contextmanager
    def open(self, location: str) -> Iterator[tuple[float | None, BinaryIO]]:
        """Yield (time of the last change in seconds since 1970, content as a file); files may be of any size.

        Raises:
            CannotDecode: there is nothing, or it cannot be opened; or an object is too large.
            Unavailable: as in :meth:`read`.
        """
        if is_remote(location):
            modified_ns, data = self.read(location)
            yield (None if modified_ns is None else modified_ns / 1e9), BytesIO(data)
            return
        try:
            file = open(location, "rb", opener=open_at_once)  # noqa: SIM115 - closed below
        except (OSError, ValueError) as error:  # a name with a null character is a ValueError
            raise CannotDecode(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
        with file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CannotDecode("not a regular file")
            yield status.st_mtime, file

    def check_any_read(self) -> None:
        """Check that not all objects so far failed; files that fail are always broken ones.

        Raises:
            Unavailable: all did.
        """
        self._objects.check_any_read()


def locate(root: str, path: str) -> str:
    """Return the location of what lies at a path below a source root: an absolute path, or a URI."""
    if is_remote(root):
        return f"{root}{path}" if root == SCHEME else f"{root}/{path}"  # keys may begin with anything
    return os.path.join(root, path)  # noqa: PTH118 - names may be any bytes


def below(root: str, other: str) -> str | None:
    """Return the way from a source root to another within it: empty for itself; None if it is not within."""
    start = root if root == SCHEME else root.rstrip(os.sep) + ("/" if is_remote(root) else os.sep)
    if other == root:
        return ""
    return other[len(start) :] if other.startswith(start) else None


def read_file(path: str, max_bytes: int) -> tuple[os.stat_result, bytes]:
    """Return a file's status and content.

    Raises:
        CannotDecode: it is missing, too large, no regular file, or cannot be read.
    """
    try:
        with open(path, "rb", buffering=0, opener=open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CannotDecode("not a regular file")
            if status.st_size > max_bytes:
                raise CannotDecode(f"the file has {status.st_size:,} bytes, more than {max_bytes:,}")
            return status, file.readall()
    except (OSError, ValueError) as error:
        raise CannotDecode(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting; an ``opener`` for :func:`open`."""
    # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
