"""Failures of the disk and of the engines that write to it, as errors of our own."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from framedex.errors import Error, WorkspaceError

_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
_ENGINE = re.compile(r"LanceError\(|lance(-[a-z]+)?/src/")
# Where in its own source the engine failed helps nobody here.
_PLACE_IN_SOURCE = re.compile(r",? ?/[^ ,]*\.rs:\d+(:\d+)?")


@contextmanager
def own_errors(doing: str) -> Iterator[None]:
    """Raise what the disk or the table engine fails with as WorkspaceError; all else as it is.

    Args:
        doing: what is being done, as in ``cannot <doing>``.

    Raises:
        WorkspaceError: the disk is full, read-only or broken, or a table is damaged.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if not _is_of_the_disk(error):
            raise
        raise WorkspaceError(f"cannot {doing}: {_reason(error)}") from error


def _is_of_the_disk(error: Exception) -> bool:
    return (isinstance(error, OSError) and error.errno in _OF_THE_DISK) or _ENGINE.search(str(error)) is not None


def _reason(error: Exception) -> str:
    text = str(error)
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left on device" in text:
        return "no space left on the disk; nothing was changed"
    return _PLACE_IN_SOURCE.sub("", text)
