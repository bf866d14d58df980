"""Files that appear under their names only when they are whole."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from framedex.errors import InvalidInput


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes *path*'s place at the end of the block; if the block raises, nothing stays.

    Raises:
        InvalidInput: nothing can be written there.
    """
    if "\0" in str(path):
        raise InvalidInput(f"cannot write {str(path)!r}: a name has no null characters")
    try:
        if path.is_dir():
            raise InvalidInput(f"cannot write {path}: it is a folder")
        partial = path.with_name(f".framedex-{secrets.token_hex(8)}.partial")
        file = partial.open("wb")
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
