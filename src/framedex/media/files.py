"""Reading files that may be anything: pipes, folders, links to nowhere."""

import os
import stat

from framedex.errors import CannotDecode


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
