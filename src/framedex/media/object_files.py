"""Objects in buckets as open files, of which only what is read is fetched."""

import io
from collections.abc import Callable
from typing import Any

from framedex.errors import Unavailable
from framedex.media.s3 import ObjectAnswer, S3Client, S3Error, Unreachable

_BUFFER_BYTES = 2**18


def open_object(client: S3Client, bucket: str, key: str) -> tuple[int | None, io.BufferedReader]:
    """Return the modification time of an object (nanoseconds since 1970), and the object as an open file.

    Reading from a position on is one request, however long it goes on; a change of the position is another. An object
    that is replaced meanwhile is not read on.

    Raises:
        S3Error: the object does not exist, or cannot be read.
    """
    stat = client.stat(bucket, key)

    def answer_from(start: int) -> ObjectAnswer:
        return client.answer_from(bucket, key, start, etag=stat.etag)

    return stat.modified_ns, io.BufferedReader(_ObjectFile(answer_from, stat.size_bytes), _BUFFER_BYTES)


class _ObjectFile(io.RawIOBase):
    """The bytes of an object.

    Args:
        answer_from: requests the bytes from a position on.
        size: of the object, in bytes.
    """

    def __init__(self, answer_from: Callable[[int], ObjectAnswer], size: int) -> None:
        self._answer_from, self._size = answer_from, size
        self._position = 0
        self._answer: ObjectAnswer | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        position = max(start + offset, 0)
        if position != self._position:
            self._drop()
            self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number; 0 at the end.

        Raises:
            Unavailable: the service does not answer, or the object was replaced.
        """
        view = memoryview(buffer).cast("B")
        if self._position >= self._size or not len(view):
            return 0
        try:
            data = self._read(len(view))
        except S3Error as error:
            self._drop()
            raise Unavailable(f"an object cannot be read on: {error}") from None
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, size: int) -> bytes:
        if self._answer is not None:
            try:
                return self._next(size)
            except Unreachable:  # the connection broke, as it does after a long pause: ask again from here on
                self._drop()
        self._answer = self._answer_from(self._position)
        return self._next(size)

    def _next(self, size: int) -> bytes:
        assert self._answer is not None, "an answer is open"
        data = self._answer.read(size)
        if not data:
            raise Unreachable("the answer ends too early")
        return data

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._drop()
        super().close()
