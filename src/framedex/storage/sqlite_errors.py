"""Descriptions of SQLite's errors: the codes of failures of the disk, and a line that says what the user can do."""

import shutil
import sqlite3
from pathlib import Path

OF_THE_DISK = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN})
"""Primary result codes of failures of the disk, which say nothing about the file's content."""
LITTLE_BYTES = 256 * 1024
"""Free bytes of a disk below which it counts as full."""
_NO_SPACE = "no space left on the disk; free some, for example by framedex vacuum or by deleting a dataset"


def base_code(error: BaseException | None) -> int:
    """Return the primary result code of an SQLite error; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def failure_reason(error: BaseException | None, path: Path) -> str:
    """Return the text of an SQLite error on a catalog, with the full or broken disk if that is the cause."""
    code = base_code(error)
    if code == sqlite3.SQLITE_FULL or (code in OF_THE_DISK and free_bytes(path) < LITTLE_BYTES):
        return f"{error}: {_NO_SPACE}"
    if code == sqlite3.SQLITE_IOERR:
        return f"{error}: the disk may be full, over its quota, or broken"
    return str(error)


def free_bytes(path: Path) -> int:
    """Return the number of free bytes on the catalog's disk; a large number if it cannot be determined."""
    try:
        return shutil.disk_usage(path.parent).free
    except (OSError, AttributeError):  # not every system can say
        return 2**62
