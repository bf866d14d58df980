"""Responses with the bytes of a file: validators, ranges, and headers that keep a browser from running it."""

import io
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, BinaryIO, Protocol, TypeVar
from urllib.parse import quote

import anyio
from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from framedex.core.counts import counted
from framedex.service.errors import Refusal

HOUR = "private, max-age=3600"
"""How long a browser may show a file without asking."""
IMMUTABLE = "private, max-age=31536000, immutable"
"""The same for a URI that changes with the file."""
_POLICY = "sandbox; default-src 'none'"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_PART = 2**18
_Result = TypeVar("_Result")


class Closing(Protocol):
    """Anything that is closed after it was sent."""

    def close(self) -> None:
        """Close it."""


class ContentResponse(Response):
    """A response with a part of an open file, read as it is sent, or with no body.

    Args:
        content: the open file; None for no body.
        start: the first byte.
        length: the number of bytes.
        status_code: of the response.
        headers: of the response.
        owner: closed at the end.
    """

    def __init__(
        self,
        content: BinaryIO | None,
        *,
        start: int,
        length: int,
        status_code: int,
        headers: Mapping[str, str],
        owner: Closing | None,
    ) -> None:
        super().__init__(status_code=status_code)
        # Without the length of an empty body, which the base class adds.
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        self._content, self._start, self._left, self._owner = content, start, length, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for part in self._parts(is_head=scope.get("is_head", False)):
                await send({"type": "http.response.body", "body": part, "more_body": self._left > 0})
        finally:
            if self._owner is not None:
                await _call(self._owner, self._owner.close)

    async def _parts(self, *, is_head: bool) -> AsyncIterator[bytes]:
        """Yield the parts of the body; the last one, which may be empty, when nothing is left to read."""
        content = self._content
        if content is None or is_head:
            self._left = 0
        else:
            await _call(content, content.seek, self._start)
        while content is not None and self._left > _PART:
            if not (part := await _call(content, content.read, _PART)):
                break  # the file was cut off
            self._left -= len(part)
            yield part
        left, self._left = self._left, 0
        yield await _call(content, content.read, left) if content is not None and left else b""


async def _call(owner: object, method: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a method of a file on a thread; that of one in memory, which does not wait, at once."""
    if isinstance(owner, io.BytesIO):
        return method(*arguments)
    return await anyio.to_thread.run_sync(method, *arguments)


def content_response(
    request: Request,
    content: BinaryIO,
    *,
    size: int,
    media_type: str,
    etag: str,
    name: str,
    disposition: str = "inline",
    cache: str = HOUR,
    owner: Closing | None = None,
) -> Response:
    """Return a response with a file: all of it, the part that is asked for, or 304 if the client has it.

    Args:
        request: with the conditions and the range (RFC 9110, sections 13 and 14). Several ranges are answered by all.
        content: the open file.
        size: the number of bytes.
        media_type: the content type.
        etag: identifies the bytes, without quotes.
        name: of the file.
        disposition: ``inline`` or ``attachment``.
        cache: the header ``Cache-Control``.
        owner: closed once the response was sent; by default the file.

    Raises:
        Refusal: the range begins after the end.
    """
    owner, quoted = owner or content, f'"{etag}"'
    headers = {"ETag": quoted, "Cache-Control": cache, "Content-Security-Policy": _POLICY, "Accept-Ranges": "bytes"}
    if _has_it(request.headers.get("if-none-match"), quoted):
        return ContentResponse(None, start=0, length=0, status_code=304, headers=headers, owner=owner)
    headers |= {
        "Content-Type": media_type,
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(_plain(name), safe='')}",
    }
    span = None if request.headers.get("if-range", quoted) != quoted else _span(request.headers.get("range"), size)
    if span == (0, 0) and size:
        owner.close()
        raise Refusal(416, f"The file has {counted(size, 'bytes')}", headers={"Content-Range": f"bytes */{size}"})
    start, end = span or (0, size)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    status = 200 if span is None else 206
    return ContentResponse(content, start=start, length=end - start, status_code=status, headers=headers, owner=owner)


def _plain(name: str) -> str:
    """Return the name of a file without separators of paths, and without characters that are not shown."""
    return "".join(each if each.isprintable() and each not in "/\\:" else "_" for each in name)


def _has_it(condition: str | None, etag: str) -> bool:
    if condition is None:
        return False
    tags = [each.strip().removeprefix("W/") for each in condition.split(",")]
    return "*" in tags or etag in tags


def _span(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the first byte and the one behind the last of a range; None for all, and (0, 0) for nothing."""
    match = None if header is None else _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not size:
        return None
    first, last = match.groups()
    if not first:
        return ((0, 0) if not int(last) else (max(0, size - int(last)), size)) if last else None
    start, end = int(first), size if not last else min(size, int(last) + 1)
    if last and int(last) < start:
        return None
    return (start, end) if start < size else (0, 0)
