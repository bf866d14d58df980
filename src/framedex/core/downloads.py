"""Downloads of single files over HTTP, which continue where an interrupted one ended.

Names of files never come from a server. Addresses are https, or http on this machine, and lead to listed hosts alone,
also by redirects.
"""

import hashlib
import ipaddress
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from framedex.core.atomic import write_atomic
from framedex.core.counts import counted
from framedex.errors import Forbidden, InvalidInput, Unavailable

OnBytes = Callable[[int, int | None], None]
"""Called with the bytes that are there, and with those of the whole file; None while that is not known."""

TIMEOUT_S = 30.0
"""Seconds to wait for a connection, and for the next bytes."""
MAX_BYTES = 64 * 2**30
"""The maximum size of a file whose size is not known beforehand."""
_CONTINUES = "what is there is kept, and the next call continues"
_BLOCK = 2**18
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


@dataclass(frozen=True)
class RemoteFile:
    """A file on the hosts of a publisher.

    Attributes:
        addresses: the next one is tried if one cannot be reached.
        hosts: the names of hosts; ``*.`` stands for any part in front.
        size_bytes: the size; None if it is not known.
        sha256: the hash; None if it is not known.
    """

    addresses: Sequence[str]
    hosts: Sequence[str]
    size_bytes: int | None = None
    sha256: str | None = None


def check_remote(address: str, hosts: Sequence[str]) -> None:
    """Check that an address may be read.

    Raises:
        Forbidden: it is neither https nor http on this machine, or leads to another host than those listed.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise Forbidden(f"{address!r} is no address: it must be https://host/path") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise Forbidden(f"an address must begin with https://, or lead to this machine, not {_short(address)!r}")
    if parts.username is not None or not any(_fits(host, each) for each in hosts):
        raise Forbidden(f"{_short(address)!r} leads to another host than {', '.join(hosts)}")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _fits(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _short(address: str) -> str:
    """Return an address without the query, which may be a signature."""
    return address.partition("?")[0]


def download(
    remote: RemoteFile, path: Path, *, on_bytes: OnBytes = lambda _done, _total: None, timeout_s: float = TIMEOUT_S
) -> str:
    """Fetch a file, and return its SHA-256. What an earlier call has left in the file is not read again.

    Args:
        remote: the file.
        path: where the content is written; it is kept if the download ends early, and deleted if it is not the
            file that it should be.
        on_bytes: called for each block.
        timeout_s: seconds to wait for a connection, and for the next bytes.

    Raises:
        Unavailable: no address can be reached, the connection ended, or there is no room; the next call continues.
        Forbidden: an address or a redirect leads elsewhere.
        InvalidInput: the size or the hash is not the expected one.
    """
    reasons = []
    for address in remote.addresses:
        try:
            _Transfer(remote, address, path, on_bytes, timeout_s).run()
        except Unavailable as error:
            reasons.append(str(error))
            continue
        except InvalidInput:
            _discard(path)
            raise
        digest = _sha256(path)
        if remote.sha256 not in (None, digest):
            _discard(path)
            raise InvalidInput(
                f"{address} is another file than expected: its SHA-256 is {digest}, and should be {remote.sha256}"
            )
        _validator_file(path).unlink(missing_ok=True)
        return digest
    raise Unavailable("; ".join(reasons))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _validator_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.validator")


def _discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    _validator_file(path).unlink(missing_ok=True)


def _opener() -> Any:
    """Return a client that follows no redirect, because each is checked first; it is loaded late."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return

    return build_opener(NoRedirects)


class _Transfer:
    """The transfer of a file from one address."""

    def __init__(self, remote: RemoteFile, address: str, path: Path, on_bytes: OnBytes, timeout_s: float) -> None:
        self._remote, self._address, self._path = remote, address, path
        self._on_bytes, self._timeout_s = on_bytes, timeout_s

    def run(self) -> None:
        """Read what the file lacks."""
        done, validator = self._present()
        if done == self._remote.size_bytes:
            return
        response = self._open(self._range(done, validator))
        if done and response.status != HTTPStatus.OK:
            start, total = self._content_range(response)
            if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and total == done:  # it was complete
                response.close()
                return
            if response.status != HTTPStatus.PARTIAL_CONTENT or start != done:
                response.close()
                done, response = 0, self._open({})
        else:  # the whole file: nothing was here, the server knows no ranges, or has another file by now
            done = 0
        with response:
            if not done:
                total = self._begin(response)
            self._check_size(total)
            self._check_room((total or 0) - done)
            with self._open_partial() as file:
                done = self._copy(response, file, done, total)
        expected = self._remote.size_bytes if total is None else total
        if expected is not None and done < expected:
            raise self._ended(f"the connection ended after {done:,} of {counted(expected, 'bytes')}")

    def _present(self) -> tuple[int, str]:
        """Return the size of the partial file, 0 if it cannot be continued, and its validator."""
        try:
            done = self._path.stat().st_size
        except OSError:
            return 0, ""
        validator = ""
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads(_validator_file(self._path).read_text(encoding="utf-8"))
            validator = str(stored["validator"]) if stored["address"] == self._address else ""
        limit = self._remote.size_bytes or MAX_BYTES
        return (done, validator) if done <= limit and (validator or self._remote.sha256) else (0, "")

    @staticmethod
    def _range(done: int, validator: str) -> dict[str, str]:
        if not done:
            return {}
        return {"Range": f"bytes={done}-", **({"If-Range": validator} if validator else {})}

    def _content_range(self, response: Any) -> tuple[int | None, int | None]:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        return (int(match[1]) if match and match[1] else None, int(match[2]) if match else None)

    def _begin(self, response: Any) -> int | None:
        """Empty the partial file, store the validator of the content, and return the size; None if it is not known."""
        if response.status != HTTPStatus.OK:
            raise Unavailable(f"{self._address} answers {response.status}, and should answer 200 with the file")
        length = response.headers.get("Content-Length", "")
        if not (length.isdecimal() or response.chunked or self._remote.size_bytes or self._remote.sha256):
            raise Unavailable(f"{self._address} does not say how large the file is, so nothing shows its end")
        tag = response.headers.get("ETag", "")
        validator = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
        stored = json.dumps({"address": self._address, "validator": validator}).encode()
        self._on_disk(lambda: self._path.unlink(missing_ok=True))
        self._on_disk(lambda: write_atomic(_validator_file(self._path), stored))
        return int(length) if length.isdecimal() else None

    def _check_size(self, total: int | None) -> None:
        expected = self._remote.size_bytes
        if total is not None and total != (expected or total):
            raise InvalidInput(f"{self._address} has {counted(total, 'bytes')}, and should have {expected:,}")
        if total is not None and total > MAX_BYTES:
            raise InvalidInput(f"{self._address} has {counted(total, 'bytes')}; the largest file has {MAX_BYTES:,}")

    def _check_room(self, size_bytes: int) -> None:
        free = shutil.disk_usage(self._path.parent).free
        if size_bytes > free:
            folder = os.fspath(self._path.parent)
            raise Unavailable(f"no room for {counted(size_bytes, 'bytes')} in {folder!r}: {free:,} are free")

    def _open_partial(self) -> BinaryIO:
        file: BinaryIO = self._on_disk(lambda: self._path.open("ab", buffering=0))
        return file

    def _copy(self, response: Any, file: BinaryIO, done: int, total: int | None) -> int:
        self._on_bytes(done, total)
        limit = total or self._remote.size_bytes or MAX_BYTES
        while block := self._next(response):
            if done + len(block) > limit:
                raise InvalidInput(f"{self._address} sends more than {counted(limit, 'bytes')}, the expected size")
            rest = memoryview(block)
            while rest:
                rest = rest[self._on_disk(partial(file.write, rest)) :]
            done += len(block)
            self._on_bytes(done, total)
        self._on_disk(lambda: os.fsync(file.fileno()))
        return done

    def _next(self, response: Any) -> bytes:
        from http.client import HTTPException

        try:
            return bytes(response.read1(_BLOCK))
        except (OSError, HTTPException) as error:
            raise self._ended(_reason(error, self._timeout_s)) from None

    def _on_disk(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as error:
            reason = error.strerror or error
            raise Unavailable(f"{os.fspath(self._path)!r} cannot be written: {reason}; {_CONTINUES}") from None

    def _ended(self, reason: str) -> Unavailable:
        return Unavailable(f"{self._address}: {reason}; {_CONTINUES}")

    def _open(self, headers: dict[str, str]) -> Any:
        """Return the response of the address, or of the one that it is redirected to."""
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        opener, address = _opener(), self._address
        for _ in range(_MAX_REDIRECTS + 1):
            check_remote(address, self._remote.hosts)
            request = Request(address, headers={"Accept-Encoding": "identity", **headers})  # noqa: S310 - checked
            try:
                return opener.open(request, timeout=self._timeout_s)
            except HTTPError as error:
                if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return error
                error.close()
                if error.code not in _REDIRECTS or not (target := error.headers.get("Location")):
                    raise Unavailable(f"{self._address} answers {error.code} {error.reason}") from None
                address = self._joined(address, target)
            except (OSError, HTTPException) as error:
                raise Unavailable(f"{self._address}: {_reason(error, self._timeout_s)}") from None
        raise Unavailable(f"{self._address} is redirected more than {_MAX_REDIRECTS} times")

    def _joined(self, address: str, target: str) -> str:
        try:
            return urljoin(address, target)
        except ValueError:
            raise Unavailable(f"{self._address} is redirected to {target!r}, which is no address") from None


def _reason(error: Exception, timeout_s: float) -> str:
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
