"""A temporary file of texts, for values that are too large to be in memory for all annotations at a time."""

import threading
import weakref
from tempfile import SpooledTemporaryFile

_IN_MEMORY = 2**24  # bytes before the texts are written to the disk


class TextFile:
    """Texts that are appended once and read at any time, from any thread. The file is deleted with the object."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile[bytes](max_size=_IN_MEMORY)
        self._lock, self._end = threading.Lock(), 0
        weakref.finalize(self, self._file.close)

    def append(self, text: str) -> int:
        """Append a text, and return the position behind it."""
        data = text.encode()
        with self._lock:
            self._file.seek(self._end)
            self._file.write(data)
            self._end += len(data)
        return self._end

    def read(self, start: int, end: int) -> str:
        """Return the text between two positions."""
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start).decode()
