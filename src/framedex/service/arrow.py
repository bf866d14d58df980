"""Answers as Arrow IPC streams, for clients that ask for them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from fastapi import Request
from fastapi.responses import StreamingResponse

ARROW = "application/vnd.apache.arrow.stream"
ARROW_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}}
}
"""The further form of an answer, for the documentation of the API."""


def wants_arrow(request: Request) -> bool:
    """Return whether a request asks for an Arrow stream."""
    return ARROW in request.headers.get("accept", "")


def arrow_response(
    schema: pa.Schema, tables: Iterable[pa.Table], headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    """Return tables as an Arrow stream; each is sent before the next one is read."""
    return StreamingResponse(_stream(schema, tables), media_type=ARROW, headers=dict(headers or {}))


def _stream(schema: pa.Schema, tables: Iterable[pa.Table]) -> Iterator[bytes]:
    sink = _Chunks()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        for table in tables:
            writer.write_table(table.cast(schema))
            yield sink.take()
    yield sink.take()


class _Chunks:
    """A file that hands over what was written to it."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: what was written is taken at once."""

    def close(self) -> None:
        """Do nothing: the end is taken after it."""

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data
